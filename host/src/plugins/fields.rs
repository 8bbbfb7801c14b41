//! The single fields of a manifest: each is read strictly, and names itself where it is wrong.

use serde_yaml::{Mapping, Value};

use super::manifest::{Kind, ManifestError, RequiredEnv};
use super::permissions::{Permissions, is_plain};
use crate::registry::{check_name, fold};

const KEYS: [&str; 14] = [
    "manifest_version",
    "name",
    "version",
    "description",
    "kind",
    "library",
    "api_version",
    "provides",
    "author",
    "homepage",
    "license",
    "requires_env",
    "permissions",
    "files",
];

/// The keys of `permissions`.
const PERMISSION_KEYS: [&str; 5] = ["network", "read", "write", "exec", "env"];

/// The keys of one of `requires_env`.
const VARIABLE_KEYS: [&str; 4] = ["name", "description", "url", "secret"];

/// Returns a line for each key that nothing reads.
pub(super) fn unknown_keys(map: &Mapping) -> Vec<String> {
    let shown = |key: &Value| crate::config::value::shown(key).escape_debug().to_string();
    let unknown = |key: &&Value, known: &[&str]| !key.as_str().is_some_and(|key| known.contains(&key));
    let top = map
        .keys()
        .filter(|key| unknown(key, &KEYS))
        .map(|key| format!("`{}` is not a key of a manifest", shown(key)));
    let variables = map
        .get("requires_env")
        .and_then(Value::as_sequence)
        .into_iter()
        .flatten()
        .filter_map(Value::as_mapping);
    let inner = variables.flat_map(Mapping::keys).filter(|key| unknown(key, &VARIABLE_KEYS));
    let granted = map.get("permissions").and_then(Value::as_mapping).into_iter().flat_map(Mapping::keys);
    let granted = granted
        .filter(|key| unknown(key, &PERMISSION_KEYS))
        .map(|key| format!("`{}` is not a key of `permissions`", shown(key)));
    top.chain(granted)
        .chain(inner.map(|key| format!("`{}` is not a key of `requires_env`", shown(key))))
        .collect()
}

pub(super) fn text(map: &Mapping, key: &'static str) -> Result<Option<String>, ManifestError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(ManifestError::Wrong(key.into(), "text")),
    }
}

pub(super) fn required_text(map: &Mapping, key: &'static str) -> Result<String, ManifestError> {
    match map.get(key) {
        None => Err(ManifestError::NoKey(key)),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(ManifestError::Wrong(key.into(), "text; put it in quotes")),
    }
}

/// Reads a text or a list of texts.
pub(super) fn texts(value: &Value, key: &'static str) -> Result<Vec<String>, ManifestError> {
    let wrong = || ManifestError::Wrong(key.into(), "text or a list of texts");
    match value {
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Sequence(items) if !items.is_empty() => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        _ => Err(wrong()),
    }
}

pub(super) fn kinds(map: &Mapping) -> Result<Vec<Kind>, ManifestError> {
    let words = texts(map.get("kind").ok_or(ManifestError::NoKey("kind"))?, "kind")?;
    let kind = |word: &String| match word.as_str() {
        "backend" => Ok(Kind::Backend),
        "sandbox" => Ok(Kind::Sandbox),
        _ => Err(ManifestError::Wrong("kind".into(), "`backend`, `sandbox`, or a list of these")),
    };
    words.iter().map(kind).collect()
}

pub(super) fn library(map: &Mapping) -> Result<Option<String>, ManifestError> {
    let Some(library) = text(map, "library")? else { return Ok(None) };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if library.is_empty() || library.starts_with(['.', '-']) || !library.bytes().all(plain) {
        return Err(ManifestError::Wrong("library".into(), "the name of a file in the plugin's own folder"));
    }
    Ok(Some(library))
}

pub(super) fn provides(map: &Mapping, name: &str) -> Result<Vec<String>, ManifestError> {
    let names = match map.get("provides") {
        None | Some(Value::Null) => vec![name.to_owned()],
        Some(value) => texts(value, "provides")?,
    };
    for (index, name) in names.iter().enumerate() {
        check_name(name).map_err(|error| ManifestError::Name { key: "provides", error })?;
        if names[..index].iter().any(|earlier| fold(earlier) == fold(name)) {
            return Err(ManifestError::Wrong("provides".into(), "a list in which no name comes twice"));
        }
    }
    Ok(names)
}

pub(super) fn requires_env(map: &Mapping) -> Result<Vec<RequiredEnv>, ManifestError> {
    let wrong =
        || ManifestError::Wrong("requires_env".into(), "a list of variables: names, or maps with a `name`");
    let items = match map.get("requires_env") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Sequence(items)) => items,
        Some(_) => return Err(wrong()),
    };
    let variable = |item: &Value| {
        let (name, fields) = match item {
            Value::String(name) => (name.clone(), None),
            Value::Mapping(map) => (text(map, "name")?.ok_or_else(wrong)?, Some(map)),
            _ => return Err(wrong()),
        };
        if !is_variable(&name) {
            return Err(wrong());
        }
        let field = |key| fields.map_or(Ok(None), |map| text(map, key));
        let secret = match fields.and_then(|map| map.get("secret")) {
            None => true,
            Some(value) => value.as_bool().ok_or_else(wrong)?,
        };
        Ok(RequiredEnv { description: field("description")?, url: field("url")?, name, secret })
    };
    items.iter().map(variable).collect()
}

fn is_variable(name: &str) -> bool {
    let first = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    first && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Reads what the plugin's code may do. What is misspelt here must not silently be less, or more, than was meant.
pub(super) fn permissions(map: &Mapping) -> Result<Permissions, ManifestError> {
    let wrong = |key: &str, expected| ManifestError::Wrong(format!("permissions.{key}"), expected);
    let map = match map.get("permissions") {
        None | Some(Value::Null) => return Ok(Permissions::default()),
        Some(Value::Mapping(map)) => map,
        Some(_) => {
            return Err(ManifestError::Wrong(
                "permissions".into(),
                "a map of `network`, `read`, `write`, `exec` and `env`",
            ));
        }
    };
    let list = |key: &'static str, good: fn(&str) -> bool, expected| match map.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Sequence(items)) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            texts.filter(|texts| texts.iter().all(|text| good(text))).ok_or_else(|| wrong(key, expected))
        }
        Some(_) => Err(wrong(key, expected)),
    };
    let paths = "a list of paths that begin with `/` or `~/`, hold no `..`, `.` or `//`, and lead through no process (`/proc/self`)";
    let network = serde_json::to_value(map.get("network")).unwrap_or_default();
    let exec = map.get("exec").map_or(Some(false), Value::as_bool);
    Ok(Permissions {
        network: network.try_into().map_err(|expected| wrong("network", expected))?,
        read: list("read", is_plain, paths)?,
        write: list("write", is_plain, paths)?,
        exec: exec.ok_or_else(|| wrong("exec", "true or false"))?,
        env: list("env", is_variable, "a list of the names of variables")?,
    })
}

/// Reads the names of further files that belong to the plugin.
pub(super) fn files(map: &Mapping) -> Result<Vec<String>, ManifestError> {
    let wrong = || ManifestError::Wrong("files".into(), "a list of paths below the plugin's own folder");
    let items = match map.get("files") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Sequence(items)) => items,
        Some(_) => return Err(wrong()),
    };
    let inside = |path: &str| {
        !path.is_empty()
            && std::path::Path::new(path)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    let path = |item: &Value| item.as_str().filter(|path| inside(path)).map(str::to_owned).ok_or_else(wrong);
    items.iter().map(path).collect()
}
