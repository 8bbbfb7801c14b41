//! `hostel config`.

use std::process::Command;

use hostel_plugin_api::{ErrorKind, Probe, ProbeStatus};
use serde_json::json;

use super::args::Config as Action;
use super::failure::{FAILED, Failure};
use super::print::{Out, say};
use crate::config::schema::{self, Found, Type};
use crate::config::{self, Config, ConfigFile, FileError, Key, declared, value};
use crate::home::{Home, make_private};
use crate::registry::{ask, open_in_time};
use crate::world::{Options, World};

/// What the last part of a key holds whose value is not shown without being asked for.
const SECRET: [&str; 9] =
    ["token", "secret", "password", "passwd", "api_key", "apikey", "private_key", "bearer", "credential"];

const MASK: &str = "********";

/// Returns a value in one line.
fn flow(value: &serde_yaml::Value) -> String {
    let nested = |item: &serde_yaml::Value| item.is_mapping() || item.is_sequence();
    match value.as_sequence() {
        Some(items) if items.iter().any(nested) => json!(value).to_string(),
        _ => value::shown(value),
    }
}

pub(super) fn run(action: Action, out: &mut Out) -> Result<u8, Failure> {
    let home = Home::find()?;
    match action {
        Action::Show { origin, json } => show(&Config::load(&home, None)?, origin, json, out)?,
        Action::Get { key, json } => get(&Config::load(&home, None)?, &Key::parse(&key)?, json, out)?,
        Action::Set { key, value, force } => set(&home, &Key::parse(&key)?, &value, force, out)?,
        Action::Unset { key } => {
            let key = Key::parse(&key)?;
            ConfigFile::unset(&home, &key)?;
            out.line(&format!("unset {key}"))?;
        }
        Action::Edit => return edit(&home, out),
        Action::Path => out.line(&home.config().display().to_string())?,
        Action::Check { json } => return check(&home, json, out),
    }
    Ok(0)
}

fn is_secret(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    last == "auth" || SECRET.iter().any(|word| last.contains(word))
}

/// Returns a value with all secrets in it masked, also those inside lists and maps.
fn masked(key: &str, value: &serde_yaml::Value) -> serde_yaml::Value {
    if is_secret(key) {
        return serde_yaml::Value::String(MASK.into());
    }
    match value {
        serde_yaml::Value::Sequence(items) => {
            items.iter().map(|item| masked("", item)).collect::<Vec<_>>().into()
        }
        serde_yaml::Value::Mapping(map) => {
            let pairs = map.iter().map(|(name, value)| (name.clone(), masked(&value::shown(name), value)));
            serde_yaml::Value::Mapping(pairs.collect())
        }
        plain => plain.clone(),
    }
}

fn show(config: &Config, origin: bool, json: bool, out: &mut Out) -> Result<(), Failure> {
    let all = config.all();
    if json {
        let entry = |(key, setting): &(String, crate::config::Setting)| {
            let value = json!(masked(key, &setting.value));
            (
                key.clone(),
                if origin { json!({"value": value, "origin": setting.origin.to_string()}) } else { value },
            )
        };
        let map: serde_json::Map<String, serde_json::Value> = all.iter().map(entry).collect();
        return Ok(out.json(&map)?);
    }
    let rows = all.iter().map(|(key, setting)| {
        let line = format!("{key} = {}", flow(&masked(key, &setting.value)));
        if origin { vec![line, format!("({})", setting.origin)] } else { vec![line] }
    });
    Ok(out.table(&rows.collect::<Vec<_>>())?)
}

fn get(config: &Config, key: &Key, json: bool, out: &mut Out) -> Result<(), Failure> {
    let Some(setting) = config.get(key) else {
        let failure = Failure::new(format!("`{key}` is not set"));
        return Err(match schema::find(key) {
            Found::Unknown(Some(near)) => failure.with_hint(format!("did you mean `{near}`?")),
            _ => failure,
        });
    };
    if json {
        return Ok(out.json(&json!(setting.value))?);
    }
    Ok(out.line(&value::shown(&setting.value))?)
}

fn set(home: &Home, key: &Key, text: &str, force: bool, out: &mut Out) -> Result<(), Failure> {
    let world = || World::open(Options { home: Some(home.clone()), backend: None });
    let name = schema::alias(&key.to_string()).map_or_else(|| Ok(key.clone()), Key::parse)?;
    let holds = match schema::find(&name) {
        Found::Declared(holds) => holds,
        Found::Open => declared_by_plugin(&world()?, &name, force)?,
        // What stands in the file already is somebody's, known here or not.
        Found::Unknown(_) if force || Config::load(home, None)?.get(&name).is_some() => Type::Text,
        Found::Unknown(near) => {
            let failure = Failure::new(format!("`{key}` is not a known key"));
            return Err(match near {
                Some(near) => failure
                    .with_hint(format!("did you mean `{near}`? `--force` sets it all the same, as text")),
                None => failure.with_hint(
                    "`hostel config show` lists the keys; `--force` sets it all the same, as text",
                ),
            });
        }
    };
    let value = value::read(text, &holds).map_err(|error| Failure::new(format!("`{key}`: {error}")))?;
    let doubt = if holds == Type::Backend { check_backend(&world()?, text, force)? } else { None };
    // An older name that stands in the file is edited where it stands, so that it does not fight with the present one.
    let in_file =
        |key: &Key| ConfigFile::read(&home.config()).is_ok_and(|file| config::get(&file.tree, key).is_some());
    let present = name.to_string();
    let older = schema::aliases_of(&present).filter_map(|old| Key::parse(old).ok()).find(|old| in_file(old));
    let place = older.filter(|_| !in_file(&name)).unwrap_or(name);
    ConfigFile::set(home, &place, &value)?;
    let shown = flow(&masked(&key.to_string(), &value));
    out.line(&format!("{key} = {shown}"))?;
    if let Some(doubt) = doubt {
        say("warning", &doubt);
    }
    if holds == Type::Backend {
        tell_setup(&world()?, text);
    }
    if holds == Type::Backend
        && let Ok(setting) = Config::load(home, None)?.backend()
        && setting.value.as_str() != Some(text)
    {
        say("warning", &format!("{} overrides this setting", setting.origin));
    }
    Ok(())
}

/// Finds the type that a provider has declared for a key of its own section. Where it declares any keys, others are refused.
fn declared_by_plugin(world: &World, key: &Key, force: bool) -> Result<Type, Failure> {
    let [first, second, backend, rest @ ..] = key.parts() else { return Ok(Type::Text) };
    if (first.as_str(), second.as_str()) != ("terminal", "backends") || rest.is_empty() {
        return Ok(Type::Text);
    }
    if world.registry.get(backend).is_err() {
        say("warning", &format!("there is no backend `{backend}` yet that would read this"));
    }
    let records = world.catalog.candidates.iter().filter_map(|candidate| candidate.record.as_ref());
    let mut providers = records.flat_map(|record| &record.providers);
    let Some(provider) = providers.find(|provider| provider.name == *backend) else { return Ok(Type::Text) };
    let name = rest.join(".");
    match (
        declared::type_of(&provider.config_schema, &name),
        declared::nearest(&provider.config_schema, &name),
    ) {
        (Some(holds), _) => Ok(holds),
        (None, Some(near)) if !force => {
            let hint = format!("did you mean `{near}`? `--force` sets it all the same, as text");
            Err(Failure::new(format!("`{key}` is not a key that backend `{backend}` reads")).with_hint(hint))
        }
        (None, _) => Ok(Type::Text),
    }
}

/// Refuses a backend that nobody provides, or whose plugin the user has not enabled. Returns why one that may be selected
/// cannot be used all the same.
fn check_backend(world: &World, name: &str, force: bool) -> Result<Option<String>, Failure> {
    let reason = match world.backend(name) {
        Ok(entry) => entry.closed_because(),
        Err(error) if force => return Ok(Some(error.message().to_owned())),
        Err(error) => return Err(error.into()),
    };
    match reason {
        Some(reason) if !force && reason.kind() == ErrorKind::NOT_CONFIGURED => Err(reason.clone().into()),
        reason => Ok(reason.map(|reason| reason.message().to_owned())),
    }
}

/// Says what is still missing of a backend that was just selected.
fn tell_setup(world: &World, name: &str) {
    let Ok(provider) = world.registry.get(name).and_then(open_in_time) else { return };
    let silent = (Probe::ready(""), Vec::new());
    let (probe, lines) =
        ask(&provider, "probe", silent, |provider| (provider.probe(), provider.setup_instructions()));
    if probe.status != ProbeStatus::READY {
        say("note", &format!("it is not ready yet: {}", probe.detail));
        for line in &lines {
            say("note", line);
        }
    }
}

fn edit(home: &Home, out: &mut Out) -> Result<u8, Failure> {
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".into());
    make_private(home.path())
        .map_err(|error| Failure::new(format!("failed to make `{}`: {error}", home.path().display())))?;
    if home.config().is_dir() {
        return Err(FileError::NotFile(home.config()).into());
    }
    // An editor's setting may hold arguments, which only a shell can tell apart.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(home.config());
    let status =
        command.status().map_err(|error| Failure::new(format!("failed to start the editor: {error}")))?;
    if !status.success() {
        let failure = Failure::new(format!("the editor `{editor}` ended with {status}"));
        return Err(failure.with_hint("set `EDITOR` to the one that you want"));
    }
    check(home, false, out)
}

fn check(home: &Home, json: bool, out: &mut Out) -> Result<u8, Failure> {
    // A list of plugins that cannot be read keeps the world from opening, and is one of the findings.
    let findings = match World::open(Options { home: Some(home.clone()), backend: None }) {
        Ok(world) => world.check(),
        Err(_) => Config::load(home, None)?.check(),
    };
    let bad = findings.iter().any(|finding| finding.is_error);
    if json {
        let rows: Vec<_> = findings
            .iter()
            .map(|finding| json!({"ok": !finding.is_error, "message": finding.message}))
            .collect();
        out.json(&rows)?;
    } else if findings.is_empty() {
        out.line("the configuration is in order")?;
    }
    if !json {
        for finding in &findings {
            out.line(&format!(
                "{}: {}",
                if finding.is_error { "error" } else { "warning" },
                finding.message
            ))?;
        }
    }
    Ok(if bad { FAILED } else { 0 })
}
