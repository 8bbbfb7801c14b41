//! Looks a configuration over for what its owner should know.

use serde_yaml::Value;

use super::key::Key;
use super::schema::{self, Found, KEYS, Type};
use super::value;

/// The backends that have a section of their own name in `terminal`.
const OWNERS: [&str; 2] = ["docker", "ssh"];

/// Something about the file that its owner should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether it keeps something from working.
    pub is_error: bool,
    /// One line.
    pub message: String,
}

fn error(message: String) -> Finding {
    Finding { is_error: true, message }
}

fn remark(message: String) -> Finding {
    Finding { is_error: false, message }
}

/// Returns what there is to say of the file's keys and values.
pub(super) fn check(tree: &Value) -> Vec<Finding> {
    check_but(tree, |_| false)
}

/// Returns what keeps commands from running on `backend`: what only another one reads does not.
pub(super) fn in_the_way_of(tree: &Value, backend: &str) -> Option<Finding> {
    check_but(tree, |key| belongs_to_another(key, backend)).into_iter().find(|finding| finding.is_error)
}

fn check_but(tree: &Value, is_passed_over: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = sections_that_are_none(tree, &is_passed_over);
    findings.extend(keys_with_dots(tree));
    let leaves = leaves(tree, &mut Vec::new()).into_iter().filter(|name| !is_passed_over(name));
    findings.extend(leaves.filter_map(|name| leaf(tree, &name)));
    findings
}

/// Whether a key is, or is in, the section of a backend that is not this one.
fn belongs_to_another(key: &str, backend: &str) -> bool {
    let mut parts = key.split('.');
    if parts.next() != Some("terminal") {
        return false;
    }
    let owner = match parts.next() {
        Some("backends") => parts.next(),
        section => section.filter(|section| OWNERS.contains(section)),
    };
    owner.is_some_and(|owner| owner != backend.trim())
}

/// Finds values where a section belongs: all that was meant to be in it would be passed over.
fn sections_that_are_none(tree: &Value, is_passed_over: impl Fn(&str) -> bool) -> Vec<Finding> {
    let above = |declared: &'static schema::Declared| {
        declared
            .key
            .match_indices('.')
            .map(|(at, _)| &declared.key[..at])
            .filter(|section| !section.contains('*'))
    };
    let mut sections: Vec<&str> = KEYS.iter().flat_map(above).collect();
    sections.sort_unstable();
    sections.dedup();
    sections.retain(|section| !is_passed_over(section));
    let value = |section: &str| super::get(tree, &Key::parse(section).ok()?).filter(|value| !value.is_null());
    let wrong = |section: &str| value(section).filter(|value| !value.is_mapping());
    let found = sections.into_iter().filter_map(|section| Some((section, wrong(section)?)));
    found
        .map(|(section, value)| {
            error(format!("`{section}` must be a section, but is `{}`", value::shown(value)))
        })
        .collect()
}

/// Finds keys of the form `terminal.backend:`, which look right and are not read.
fn keys_with_dots(tree: &Value) -> Vec<Finding> {
    let keys = tree.as_mapping().into_iter().flat_map(|map| map.keys()).filter_map(Value::as_str);
    let declared =
        |key: &str| Key::parse(key).is_ok_and(|key| !matches!(schema::find(&key), Found::Unknown(_)));
    let dotted = keys.filter(|key| key.contains('.') && declared(key));
    dotted
        .map(|key| error(format!("`{key}` must be written as a section with a key in it, not with a dot")))
        .collect()
}

fn leaf(tree: &Value, name: &str) -> Option<Finding> {
    let Ok(key) = Key::parse(name) else {
        return Some(remark(format!("`{}`: nothing reads a key of this form", name.escape_debug())));
    };
    if let Some(new) = schema::alias(name) {
        let both = Key::parse(new).is_ok_and(|new| super::get(tree, &new).is_some());
        let what =
            if both { "and is overridden by it: remove one of the two" } else { "which is read as well" };
        return Some(remark(format!("`{name}` is an older name of `{new}`, {what}")));
    }
    let value = super::get(tree, &key)?;
    match schema::find(&key) {
        Found::Declared(_) if value.is_null() => None,
        Found::Declared(holds) if !value::fits(value, &holds) => {
            let reason = expected(value, &holds);
            Some(error(format!("`{name}` is `{}`: {reason}", value::shown(value))))
        }
        Found::Declared(_) | Found::Open => None,
        Found::Unknown(near) => {
            // Another spelling of the same letters was surely meant to be read.
            let meant = near.as_ref().is_some_and(|near| near.eq_ignore_ascii_case(name));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Some(Finding { is_error: meant, message: format!("`{name}` is unknown{near}") })
        }
    }
}

/// Says what a value of type `holds` would be.
pub(super) fn expected(value: &Value, holds: &Type) -> String {
    match value::read(&value::shown(value), holds) {
        Err(error) => error.to_string(),
        // It would fit as text of the command line; in the file its form is another.
        Ok(_) if value.as_str().is_some_and(|text| text.trim().is_empty()) => {
            "the backend name is empty".into()
        }
        Ok(_) if matches!(holds, Type::Text | Type::Backend) => "text is expected; put it in quotes".into(),
        Ok(_) if matches!(holds, Type::List | Type::Words(_)) => {
            "a list is expected, such as `[a, b]`".into()
        }
        Ok(_) => "it must be written without quotes".into(),
    }
}

/// Returns the keys of all values in a tree, lists of plain values counting as one.
pub(super) fn leaves(tree: &Value, above: &mut Vec<String>) -> Vec<String> {
    let mut found = Vec::new();
    let Value::Mapping(map) = tree else { return found };
    for (name, value) in map {
        above.push(value::shown(name));
        if value.as_mapping().is_some_and(|map| !map.is_empty()) {
            found.extend(leaves(value, above));
        } else {
            found.push(above.join("."));
        }
        above.pop();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_selected_backends_own_settings_are_in_its_way() {
        for (text, stops) in [
            ("terminal: {docker: {image: []}}", &["docker"][..]),
            ("terminal: {ssh: 7}", &["ssh"]),
            ("terminal: {backends: {acmebox: 7}}", &["acmebox"]),
            ("terminal: {backends: {acmebox: {x: [1]}}}", &[]),
            ("terminal: {backends: 7}", &["local", "docker", "ssh", "acmebox"]),
            ("terminal: {timeout: soon}", &["local", "docker", "ssh", "acmebox"]),
            ("terminal.timeout: 5", &["local", "docker", "ssh", "acmebox"]),
            ("plugins: {enabled: 5}", &["local", "docker", "ssh", "acmebox"]),
        ] {
            let tree: Value = serde_yaml::from_str(text).unwrap();
            for backend in ["local", "docker", "ssh", "acmebox"] {
                assert_eq!(
                    in_the_way_of(&tree, backend).is_some(),
                    stops.contains(&backend),
                    "{text}: {backend}"
                );
            }
        }
    }
}
