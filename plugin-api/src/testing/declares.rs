//! Rules about what a provider says of itself.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::bench::{Bench, Provider};
use super::options::Options;
use super::rule::{Found, Rule, Unmet, broken, hold, shown, skipped};
use crate::shell::StripList;
use crate::{Error, ProbeStatus, TerminalEnvironmentProvider};

/// Names of the host's own backends, built yet or not.
const RESERVED: [&str; 8] =
    ["local", "docker", "singularity", "modal", "managed_modal", "daytona", "vercel_sandbox", "ssh"];

/// What a key of `config_schema` may hold.
const TYPES: [&str; 7] = ["string", "text", "boolean", "number", "list", "select", "secret"];

pub(super) const RULES: &[Rule] = &[
    Rule::attribute(
        "attributes.answer",
        "every attribute comes back in time and does not panic",
        "call the attribute in a test of the plugin's and measure it; `hostel backends` asks for most of them",
        answer,
    ),
    Rule::attribute(
        "attributes.name",
        "the name is of the form `^[a-z][a-z0-9_-]{0,63}$`, no built-in backend's, and stays the same",
        "hostel backends",
        name,
    ),
    Rule::attribute(
        "attributes.texts",
        "names and descriptions are one line each and not empty",
        "hostel backends",
        texts,
    ),
    Rule::attribute(
        "attributes.probe",
        "`probe` says ready exactly when `is_available` is true",
        "hostel backends --json",
        probe,
    ),
    Rule::attribute(
        "attributes.guards",
        "dangerous commands run without approval in containers only",
        "compare `skip_container_guards` with `is_container`",
        guards,
    ),
    Rule::attribute(
        "attributes.places",
        "directories that are named are absolute paths",
        "hostel status",
        places,
    ),
    Rule::attribute(
        "attributes.setup",
        "each line of `setup_instructions` is one line and not empty",
        "hostel exec --backend BACKEND -- true   # while it is not set up",
        setup,
    ),
    Rule::attribute(
        "attributes.doctor",
        "each row of `doctor_checks` has a label of one line",
        "hostel doctor",
        doctor,
    ),
    Rule::attribute(
        "attributes.strip-env",
        "`strip_env_keys` are names of variables, or beginnings of names with `*` at the end",
        "hostel plugins enable BACKEND",
        strip_env,
    ),
    Rule::attribute(
        "config.schema",
        "`config_schema` maps each key to a known type, with options and a default that fit",
        "compare what `config_schema` returns with its documentation",
        schema,
    ),
    Rule::attribute(
        "config.resolve",
        "`resolve_config` works or says what is wrong, also where nothing is set",
        "hostel exec --backend BACKEND -- true   # with nothing below `terminal.backends.BACKEND`",
        resolve,
    ),
    Rule::attribute(
        "config.requirements",
        "`check_requirements` works or says what is missing",
        "hostel exec --backend BACKEND -- true",
        requirements,
    ),
];

/// Asks for one attribute and drops the answer.
type Question = fn(&Provider);

const QUESTIONS: [(&str, Question); 18] = [
    ("name", |provider| drop(provider.name().to_owned())),
    ("display_name", |provider| drop(provider.display_name())),
    ("description", |provider| drop(provider.description())),
    ("is_available", |provider| _ = provider.is_available()),
    ("probe", |provider| drop(provider.probe())),
    ("setup_instructions", |provider| drop(provider.setup_instructions())),
    ("doctor_checks", |provider| drop(provider.doctor_checks())),
    ("is_remote", |provider| _ = provider.is_remote()),
    ("env_description", |provider| drop(provider.env_description())),
    ("is_container", |provider| _ = provider.is_container()),
    ("skip_container_guards", |provider| _ = provider.skip_container_guards()),
    ("cache_path_base", |provider| drop(provider.cache_path_base())),
    ("strip_env_keys", |provider| drop(provider.strip_env_keys())),
    ("session_isolated_when_nonpersistent", |provider| _ = provider.session_isolated_when_nonpersistent()),
    ("default_cwd", |provider| drop(provider.default_cwd())),
    ("guest_home", |provider| drop(provider.guest_home())),
    ("costs_to_create", |provider| _ = provider.costs_to_create()),
    ("config_schema", |provider| drop(provider.config_schema())),
];

fn answer(bench: &Bench) -> Found {
    let mut wrong = Vec::new();
    let mut slowest = (Duration::ZERO, "name");
    for (what, question) in QUESTIONS {
        let start = Instant::now();
        let answer = bench.question(question);
        let took = start.elapsed();
        if let Err(silent) = answer {
            bench.silence(what);
            wrong.push(format!("`{what}`: {silent}"));
        } else if took > bench.options.probe_limit {
            wrong.push(format!("`{what}` took {took:.1?} of at most {:?}", bench.options.probe_limit));
        }
        slowest = slowest.max((took, what));
    }
    hold(wrong.is_empty(), || wrong.join("; "))?;
    Ok(format!("`{}` was the slowest with {:.1?}", slowest.1, slowest.0))
}

/// Returns whether `name` is of the form that backends' names have.
pub(super) fn is_name(name: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    name.len() <= 64 && name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(rest)
}

fn name(bench: &Bench) -> Found {
    let ask = || bench.ask("name", |provider: &Provider| provider.name().to_owned());
    let (name, again) = (ask()?, ask()?);
    hold(name == again, || {
        format!("it was {} and then {}", shown(name.as_bytes()), shown(again.as_bytes()))
    })?;
    hold(is_name(&name), || format!("{} is not of that form", shown(name.as_bytes())))?;
    let folded = name.replace('-', "_");
    let own = RESERVED.into_iter().find(|own| *own == folded && !bench.options.builtin);
    hold(own.is_none(), || {
        format!("`{name}` is, or reads like, the built-in backend `{}`", own.unwrap_or_default())
    })?;
    Ok(format!("`{name}`"))
}

/// Holds a text to being one line and not empty.
fn line(what: &str, text: &str) -> Result<(), Unmet> {
    hold(!text.trim().is_empty(), || format!("{what} is empty"))?;
    hold(!text.contains(char::is_control), || {
        format!("{what} is not one line of text: {}", shown(text.as_bytes()))
    })
}

/// Holds an error to what a person needs of it.
fn explained(what: &str, error: &Error) -> Found {
    line(&format!("the message of the error of `{what}`"), error.message())?;
    if let Some(hint) = error.hint() {
        line(&format!("the hint of the error of `{what}`"), hint)?;
    }
    Ok(format!("it fails with: {error}"))
}

fn texts(bench: &Bench) -> Found {
    line("`display_name`", &bench.ask("display_name", TerminalEnvironmentProvider::display_name)?)?;
    line("`description`", &bench.ask("description", TerminalEnvironmentProvider::description)?)?;
    let place = bench.ask("env_description", TerminalEnvironmentProvider::env_description)?;
    line("`env_description`", &place)?;
    Ok(String::new())
}

fn probe(bench: &Bench) -> Found {
    let available = bench.ask("is_available", TerminalEnvironmentProvider::is_available)?;
    let probe = bench.ask("probe", TerminalEnvironmentProvider::probe)?;
    let status = probe.status.as_str();
    hold(available == (probe.status == ProbeStatus::READY), || {
        format!("`is_available` returns {available}, and `probe` says `{status}`: {}", probe.detail)
    })?;
    if !probe.detail.is_empty() {
        line("the detail of `probe`", &probe.detail)?;
    }
    Ok(format!("`{status}` {}", probe.detail).trim_end().to_owned())
}

fn guards(bench: &Bench) -> Found {
    let skips = bench.ask("skip_container_guards", TerminalEnvironmentProvider::skip_container_guards)?;
    let contained = bench.ask("is_container", TerminalEnvironmentProvider::is_container)?;
    hold(contained || !skips, || {
        "`skip_container_guards` is true although `is_container` is false".to_owned()
    })?;
    Ok(format!("approval {}", if skips { "is not needed" } else { "is needed" }))
}

fn places(bench: &Bench) -> Found {
    let named = [
        ("`cache_path_base`", bench.ask("cache_path_base", TerminalEnvironmentProvider::cache_path_base)?),
        ("`default_cwd`", bench.ask("default_cwd", TerminalEnvironmentProvider::default_cwd)?),
        ("`guest_home`", bench.ask("guest_home", TerminalEnvironmentProvider::guest_home)?),
    ];
    for (what, path) in named {
        let Some(path) = path else { continue };
        line(what, &path)?;
        // A directory may be named by its way from home; home itself may not.
        let absolute = path.starts_with('/') || (what == "`default_cwd`" && path.starts_with('~'));
        hold(absolute, || format!("{what} is {}", shown(path.as_bytes())))?;
    }
    Ok(String::new())
}

fn setup(bench: &Bench) -> Found {
    let lines = bench.ask("setup_instructions", TerminalEnvironmentProvider::setup_instructions)?;
    for (number, text) in (1..).zip(&lines) {
        line(&format!("line {number}"), text)?;
    }
    Ok(String::new())
}

fn doctor(bench: &Bench) -> Found {
    let rows = bench.ask("doctor_checks", TerminalEnvironmentProvider::doctor_checks)?;
    for (number, row) in (1..).zip(&rows) {
        line(&format!("the label of row {number}"), &row.label)?;
    }
    Ok(String::new())
}

fn strip_env(bench: &Bench) -> Found {
    let keys = bench.ask("strip_env_keys", TerminalEnvironmentProvider::strip_env_keys)?;
    let wrong: Vec<String> =
        keys.iter().filter(|key| !StripList::is_valid(key)).map(|key| shown(key.as_bytes())).collect();
    hold(wrong.is_empty(), || format!("not names of variables: {}", wrong.join(", ")))?;
    Ok(keys.join(" "))
}

fn schema(bench: &Bench) -> Found {
    let schema = bench.ask("config_schema", TerminalEnvironmentProvider::config_schema)?;
    let Some(keys) = schema.as_object() else { return broken("it is not an object") };
    for (key, form) in keys {
        hold(!key.split('.').any(str::is_empty), || {
            format!("{} is not a dotted key", shown(key.as_bytes()))
        })?;
        let kind = form.get("type").and_then(Value::as_str).unwrap_or_default();
        hold(TYPES.contains(&kind), || format!("the type of `{key}` is `{kind}`"))?;
        let described = form.get("description").is_none_or(Value::is_string);
        hold(described, || format!("the description of `{key}` is not text"))?;
        let options: Vec<&Value> =
            form.get("options").and_then(Value::as_array).into_iter().flatten().collect();
        let chosen = kind != "select" || (!options.is_empty() && options.iter().all(|one| one.is_string()));
        hold(chosen, || format!("`{key}` is a selection, and its options are not a list of texts"))?;
        let default = form.get("default").filter(|default| !default.is_null());
        let fits = default.is_none_or(|default| match kind {
            "boolean" => default.is_boolean(),
            "number" => default.is_number(),
            "list" => default.is_array(),
            "select" => options.contains(&default),
            _ => default.is_string(),
        });
        hold(fits, || format!("the default of `{key}` is not of its type"))?;
    }
    Ok(format!("{} keys", keys.len()))
}

fn resolve(bench: &Bench) -> Found {
    let given = bench.options.config.clone();
    let mut found = String::new();
    for config in [Options::default().config, given] {
        match bench.question(move |provider| provider.resolve_config(config)) {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => found = explained("resolve_config", &error)?,
            Err(silent) => return broken(silent.to_string()),
        }
    }
    Ok(found)
}

fn requirements(bench: &Bench) -> Found {
    let config = bench.options.config.clone();
    let Ok(Ok(resolved)) = bench.question(move |provider| provider.resolve_config(config)) else {
        return skipped("the settings could not be resolved: see `config.resolve`");
    };
    match bench.requirements(resolved) {
        Ok(Ok(())) => Ok(String::new()),
        Ok(Err(error)) => explained("check_requirements", &error),
        Err(silent) => broken(silent.to_string()),
    }
}
