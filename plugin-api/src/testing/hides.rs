//! Rules about variables that no command may see.

use super::bench::Bench;
use super::rule::{Found, Rule, Unmet, hold, skipped};
use crate::ExecRequest;
use crate::shell::StripList;

pub(super) const RULES: &[Rule] = &[
    Rule::command(
        "secrets.inherited",
        "a variable of the host's own that is to be hidden reaches no command",
        "hostel exec --backend BACKEND -- env   # with a variable set that `strip_env_keys` names",
        inherited,
    ),
    Rule::command(
        "secrets.request",
        "a variable that is to be hidden reaches no command by way of a call either",
        "put a name into `strip_env` of `CreateEnvironment` and into `env` of `ExecRequest`, and run `env`",
        request,
    ),
];

/// Variables that a shell sets by itself, and one without which it finds nothing.
const SHELL_OWN: [&str; 7] = ["PATH", "PWD", "OLDPWD", "SHLVL", "_", "HOME", "HOSTEL_CALL"];

const ENV: &str = "env";

/// Holds what `env` printed to showing nothing of `strip`.
fn hidden(printed: &str, strip: &StripList) -> Result<(), Unmet> {
    let names = printed.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let seen: Vec<String> =
        names.filter(|name| strip.matches(name.as_ref())).map(|name| format!("`{name}`")).collect();
    hold(seen.is_empty(), || format!("a command sees {}, which `strip_env` names", seen.join(", ")))
}

fn inherited(bench: &Bench) -> Found {
    if !bench.is_local()? {
        return skipped("commands run on another machine");
    }
    // Whatever of the host's reaches a command shows whether it can be held back.
    let open = bench.text(bench.shared()?.as_ref(), ExecRequest::new(ENV))?;
    let reaches = |name: &str, value: &str| {
        let line = format!("{name}={value}");
        !SHELL_OWN.contains(&name) && !value.is_empty() && open.lines().any(|other| other == line)
    };
    let mut own = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let found = own.find(|(name, value)| reaches(name, value)).map(|(name, _)| name);
    let mut wish = bench.request("inherited")?;
    wish.strip_env.extend(found.clone());
    let strip = wish.strip_list();
    let held = bench.create(wish)?;
    hidden(&bench.text(&held, ExecRequest::new(ENV))?, &strip)?;
    Ok(match found {
        Some(name) => format!("tried with `{name}`"),
        None => "no variable of the host's reaches a command anyhow".into(),
    })
}

fn request(bench: &Bench) -> Found {
    if !bench.is_local()? {
        return skipped(
            "commands run on another machine, and a host takes such variables out of a call itself",
        );
    }
    let mut wish = bench.request("hides")?;
    wish.strip_env.extend(["KIT_SECRET".to_owned(), "KIT_HIDDEN_*".to_owned()]);
    let strip = wish.strip_list();
    let held = bench.create(wish)?;
    let mut request = ExecRequest::new(ENV);
    for name in ["KIT_SECRET", "KIT_HIDDEN_ONE"] {
        request.env.push((name.into(), "s3cret".into()));
    }
    hidden(&bench.text(&held, request)?, &strip)?;
    hidden(&bench.text(&held, ExecRequest::new(ENV))?, &strip)?;
    Ok(String::new())
}
