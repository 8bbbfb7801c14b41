//! Edits the text of the configuration, so that only what was asked for changes.
//!
//! The file is the user's own: comments, order, quoting and blank lines stay. `yaml-edit` changes the text; around it stands
//! a guard that reads the text before and after with the strict reader and compares the two, because an editor that is
//! tolerant of errors will also edit what it has not understood.

use std::str::FromStr;

use serde_yaml::{Mapping, Value};
use yaml_edit::path::{PathError, YamlPath};
use yaml_edit::{Document, ScalarValue, Sequence, YamlFile, YamlValue};

use super::key::Key;
use super::schema::is_index;
use super::value::written;

/// Why an edit was not made.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// What stands at the key is no section.
    #[error("`{0}` holds a value, so that no key can stand below it")]
    NotSection(String),
    /// The key is a section.
    #[error("`{0}` is a section; set one of the keys in it")]
    Section(String),
    /// Something else stands at the key.
    #[error("`{0}` is {1} in the file")]
    Occupied(String, &'static str),
    /// A number was given where there is no list.
    #[error("`{0}` is not a list in the file, so it has no items")]
    NotList(String),
    /// There is no such item.
    #[error("`{0}` is not an item of the list: it has {1}")]
    NoItem(String, usize),
    /// The key is not set.
    #[error("`{0}` is not set in the file")]
    NotSet(String),
    /// The text is written in a way that cannot be edited safely.
    #[error("this file cannot be edited safely here ({0})")]
    Guard(String),
}

/// Returns `text` with `value` at `key`.
///
/// # Errors
///
/// Fails if that would destroy something else, or the text cannot be edited safely.
pub(super) fn set(text: &str, before: &Value, key: &Key, value: &Value) -> Result<String, EditError> {
    let mut wanted = before.clone();
    set_in_tree(&mut wanted, key, value)?;
    if wanted == *before {
        return Ok(text.to_owned());
    }
    let edited = edit(text, &wanted, |document| {
        let path = key.to_string();
        let present = document.try_get_path(&path).map(|node| node.to_string()).unwrap_or_default();
        document.try_set_path(&path, in_style_of(&present, value))
    })?;
    let replaced = super::get(before, key).and_then(Value::as_sequence).map_or(1, |items| 1 + items.len());
    if lines_lost(text, &edited) > replaced {
        return Err(EditError::Guard("the edit would touch other lines as well".into()));
    }
    let marks = |text: &str| text.matches('#').count();
    let inside = |value: &Value| marks(&serde_yaml::to_string(value).unwrap_or_default());
    let old = super::get(before, key).map_or(0, inside);
    if marks(&edited) + old < marks(text) + inside(value) {
        return Err(EditError::Guard("a comment would be lost".into()));
    }
    Ok(edited)
}

/// Returns how many lines of `before` are not in `after`, those at the beginning and the end that are the same not counted.
fn lines_lost(before: &str, after: &str) -> usize {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let start = before.iter().zip(&after).take_while(same).count();
    let end = before[start..].iter().rev().zip(after[start..].iter().rev()).take_while(same).count();
    before.len() - start - end
}

/// Returns the written form of a value, in the quotes that stood around the one that it replaces.
fn in_style_of(present: &str, value: &Value) -> YamlValue {
    match (present.chars().next(), value) {
        (Some('"'), Value::String(text)) => YamlValue::scalar(ScalarValue::double_quoted(text.as_str())),
        (Some('\''), Value::String(text)) if !text.contains(['\n', '\r']) => {
            YamlValue::scalar(ScalarValue::single_quoted(text.as_str()))
        }
        _ => written(value),
    }
}

/// Returns `text` with `item` at the end of the list at `key`, which is made if it is not there.
///
/// # Errors
///
/// As [`set`].
pub(super) fn push(text: &str, before: &Value, key: &Key, item: &str) -> Result<String, EditError> {
    let item = Value::String(item.to_owned());
    let Some(items) = super::get(before, key).and_then(Value::as_sequence).filter(|items| !items.is_empty())
    else {
        return set(text, before, key, &Value::Sequence(vec![item]));
    };
    let mut wanted = before.clone();
    let longer = items.iter().cloned().chain([item.clone()]).collect();
    set_in_tree(&mut wanted, key, &Value::Sequence(longer))?;
    let edited = edit(text, &wanted, |document| on_list(document, key, |list| list.push(written(&item))))?;
    one_line(text, edited)
}

/// Returns `text` without the item of that number in the list at `key`.
///
/// # Errors
///
/// As [`unset`].
pub(super) fn remove_item(text: &str, before: &Value, key: &Key, index: usize) -> Result<String, EditError> {
    let count = super::get(before, key).and_then(Value::as_sequence).map_or(0, Vec::len);
    if index >= count {
        return Err(EditError::NoItem(format!("{key}.{index}"), count));
    }
    if count == 1 {
        return unset(text, before, key);
    }
    let mut wanted = before.clone();
    let parts: Vec<String> = key.parts().iter().cloned().chain([index.to_string()]).collect();
    remove_from_tree(&mut wanted, &parts);
    let edited = edit(text, &wanted, |document| on_list(document, key, |list| drop(list.remove(index))))?;
    one_line(text, edited)
}

/// Lets `change` work on the list at `key`.
fn on_list(document: &Document, key: &Key, change: impl FnOnce(&Sequence)) -> Result<(), PathError> {
    let node = document.try_get_path(&key.to_string())?;
    if let Some(list) = node.as_sequence() {
        change(list);
    }
    Ok(())
}

/// Refuses an edit of one item that would touch other lines.
fn one_line(text: &str, edited: String) -> Result<String, EditError> {
    if lines_lost(text, &edited) > 1 {
        return Err(EditError::Guard("the edit would touch other lines as well".into()));
    }
    Ok(edited)
}

/// Returns `text` without `key`, and without the sections that are empty once it is gone.
///
/// # Errors
///
/// Fails if the key is not set, or the text cannot be edited safely.
pub(super) fn unset(text: &str, before: &Value, key: &Key) -> Result<String, EditError> {
    if let (Some(list), Some(index)) = (key.parent(), key.parts().last().filter(|part| is_index(part)))
        && super::get(before, &list).is_some_and(Value::is_sequence)
    {
        return remove_item(text, before, &list, index.parse().unwrap_or(usize::MAX));
    }
    let mut last = key.clone();
    while let Some(parent) = last.parent() {
        let alone = super::get(before, &parent).and_then(Value::as_mapping).is_some_and(|map| map.len() == 1);
        if !alone {
            break;
        }
        last = parent;
    }
    let mut wanted = before.clone();
    super::get(before, key).ok_or_else(|| EditError::NotSet(key.to_string()))?;
    remove_from_tree(&mut wanted, last.parts());
    edit(text, &wanted, |document| document.try_remove_path(&last.to_string()).map(drop))
}

/// Edits `text` and checks that it then reads as `wanted`.
fn edit(
    text: &str,
    wanted: &Value,
    change: impl FnOnce(&Document) -> Result<(), PathError>,
) -> Result<String, EditError> {
    let guard = |reason: String| EditError::Guard(reason);
    let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body));
    let file = YamlFile::from_str(body).map_err(|error| guard(first_line(&error.to_string())))?;
    // A file of nothing but comments has no document yet: a new one follows them.
    let present = file.document().filter(|document| document.as_mapping().is_some());
    let document = present.clone().unwrap_or_default();
    change(&document).map_err(|error| guard(first_line(&error.to_string())))?;
    let mut edited = if present.is_some() {
        file.to_string()
    } else {
        let document = document.to_string();
        let fresh = document.strip_prefix("---\n").unwrap_or(&document);
        // What ends a document stays at its end.
        let end = body.rfind("\n...").filter(|at| body[at + 4..].trim().is_empty());
        let (above, below) = body.split_at(end.map_or(body.len(), |at| at + 1));
        let gap = if above.is_empty() || above.ends_with('\n') { "" } else { "\n" };
        format!("{above}{gap}{fresh}{below}")
    };
    if is_nothing(wanted) {
        // What is left of a document whose last key has gone.
        edited = edited.split_inclusive('\n').filter(|line| line.trim() != "{}").collect();
    }
    if !edited.is_empty() && !edited.ends_with('\n') && (body.is_empty() || body.ends_with('\n')) {
        edited.push('\n');
    }
    let read: Value = serde_yaml::from_str(&edited).map_err(|error| guard(first_line(&error.to_string())))?;
    if read != *wanted && !(is_nothing(&read) && is_nothing(wanted)) {
        return Err(guard("the edited text would mean something else".into()));
    }
    Ok(format!("{mark}{edited}"))
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_mapping().is_some_and(Mapping::is_empty)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Puts `value` at `key`, making sections on the way where there is nothing.
fn set_in_tree(tree: &mut Value, key: &Key, value: &Value) -> Result<(), EditError> {
    let mut at = tree;
    let parts = key.parts();
    for (depth, part) in parts.iter().enumerate() {
        let above = || parts[..depth].join(".");
        if is_index(part) && !at.is_sequence() && at.get(part.as_str()).is_none() {
            return Err(EditError::NotList(above()));
        }
        if at.is_null() {
            *at = Value::Mapping(Mapping::new());
        }
        at = match at {
            Value::Mapping(map) => map.entry(Value::String(part.clone())).or_insert(Value::Null),
            Value::Sequence(items) if is_index(part) => {
                let count = items.len();
                let item = part.parse::<usize>().ok().and_then(|index| items.get_mut(index));
                item.ok_or_else(|| EditError::NoItem(key.to_string(), count))?
            }
            _ => return Err(EditError::NotSection(above())),
        };
    }
    if at.is_mapping() {
        return Err(EditError::Section(key.to_string()));
    }
    if at.is_sequence() && !value.is_sequence() {
        return Err(EditError::Occupied(key.to_string(), "a list"));
    }
    *at = value.clone();
    Ok(())
}

fn remove_from_tree(tree: &mut Value, parts: &[String]) {
    let Some((first, rest)) = parts.split_first() else { return };
    match tree {
        Value::Mapping(map) if rest.is_empty() => {
            map.remove(first.as_str());
        }
        Value::Mapping(map) => {
            if let Some(inner) = map.get_mut(first.as_str()) {
                remove_from_tree(inner, rest);
            }
        }
        Value::Sequence(items) => {
            let Some(index) = first.parse::<usize>().ok().filter(|index| *index < items.len()) else {
                return;
            };
            if rest.is_empty() {
                items.remove(index);
            } else {
                remove_from_tree(&mut items[index], rest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::Type;
    use crate::config::value;

    const FILE: &str = "# why: keep this first line\nterminal:\n  backend: local   # until the server is back\n  timeout: 60\n\n  env_note: \"größe 你好\"\n# fallback:\n#   model: x\nzeta: 1\nalpha: [a, b]   # order matters\n";

    fn tree(text: &str) -> Value {
        serde_yaml::from_str(text).unwrap()
    }

    fn set_text(text: &str, key: &str, to: &str) -> Result<String, EditError> {
        set(text, &tree(text), &Key::parse(key).unwrap(), &Value::String(to.into()))
    }

    fn unset_key(text: &str, key: &str) -> Result<String, EditError> {
        unset(text, &tree(text), &Key::parse(key).unwrap())
    }

    #[test]
    fn only_the_value_changes() {
        assert_eq!(set_text(FILE, "terminal.backend", "docker").unwrap(), FILE.replace("local", "docker"));
        assert_eq!(set_text(FILE, "terminal.backend", "local").unwrap(), FILE);
    }

    #[test]
    fn what_was_added_can_be_taken_away_without_a_trace() {
        let added = set_text(FILE, "new.deep.key", "5").unwrap();
        assert_eq!(tree(&added)["new"]["deep"]["key"], "5");
        assert_eq!(unset_key(&added, "new").unwrap(), FILE);
        assert_eq!(unset_key(&added, "new.deep.key").unwrap(), FILE);
        let list = value::read("acmebox", &Type::List).unwrap();
        let added = set(FILE, &tree(FILE), &Key::parse("plugins.enabled").unwrap(), &list).unwrap();
        assert_eq!(unset_key(&added, "plugins.enabled").unwrap(), FILE);
        let inside = set_text(FILE, "terminal.cwd", "/x").unwrap();
        assert_eq!(unset_key(&inside, "terminal.cwd").unwrap(), FILE);
    }

    #[test]
    fn other_shapes_of_files_keep_theirs() {
        for (text, wanted) in [
            ("", "terminal:\n  backend: docker\n"),
            ("# only a comment\n", "# only a comment\nterminal:\n  backend: docker\n"),
            ("terminal: {backend: local, timeout: 60}\n", "terminal: {backend: docker, timeout: 60}\n"),
            ("terminal:\r\n  backend: local # c\r\n", "terminal:\r\n  backend: docker # c\r\n"),
            ("\u{feff}terminal:\n  backend: local\n", "\u{feff}terminal:\n  backend: docker\n"),
            ("---\nterminal:\n  backend: 'local'\n", "---\nterminal:\n  backend: 'docker'\n"),
            ("terminal:\n  backend: \"local\"  # q\n", "terminal:\n  backend: \"docker\"  # q\n"),
            ("terminal:\n  backend: local", "terminal:\n  backend: docker"),
        ] {
            let before = tree(text.trim_start_matches('\u{feff}'));
            let edited =
                set(text, &before, &Key::parse("terminal.backend").unwrap(), &Value::String("docker".into()));
            assert_eq!(edited.unwrap(), wanted, "{text:?}");
        }
    }

    #[test]
    fn one_item_of_a_list_comes_and_goes_by_itself() {
        let lists = [
            "plugins:\n  enabled:\n    # about A\n    - a # A\n    # about B: keep\n    - 'b' # B\n  other: 1\n",
            "plugins:\n  enabled:\n  - a\n  - b\n",
            "plugins: {enabled: [a, b]} # flow\n",
        ];
        let enabled = Key::parse("plugins.enabled").unwrap();
        for text in lists {
            let longer = push(text, &tree(text), &enabled, "c").unwrap();
            assert_eq!(tree(&longer)["plugins"]["enabled"][2], "c");
            let again = unset_key(&longer, "plugins.enabled.2").unwrap();
            assert_eq!(again, text);
            let without = remove_item(text, &tree(text), &enabled, 0).unwrap();
            assert_eq!(tree(&without)["plugins"]["enabled"], tree("[b]"), "{without}");
            assert_eq!(text.contains("about B: keep"), without.contains("about B: keep"), "{without}");
            assert_eq!(text.contains("# B"), without.contains("# B"), "{without}");
        }
    }

    #[test]
    fn nothing_is_destroyed_on_the_way() {
        let text = "terminal: {backend: local, timeout: 60}\nhooks:\n  - {name: a, run: x}\n  - {name: b, run: y}\nmodel: tiny\n";
        assert!(matches!(set_text(text, "terminal", "bash"), Err(EditError::Section(_))));
        assert_eq!(set_text(text, "hooks.1.run", "z").unwrap(), text.replace("run: y", "run: z"));
        assert!(matches!(set_text(text, "hooks.7.run", "z"), Err(EditError::NoItem(_, 2))));
        assert!(matches!(set_text(text, "model.name", "big"), Err(EditError::NotSection(_))));
        assert!(matches!(set_text(text, "hooks.x", "1"), Err(EditError::NotSection(_))));
        assert!(matches!(set_text(text, "hooks", "1"), Err(EditError::Occupied(..))));
        assert!(matches!(unset_key(text, "model.name"), Err(EditError::NotSet(_))));
    }

    #[test]
    fn the_last_key_can_go() {
        assert_eq!(unset_key("a: 1\n", "a").unwrap().trim(), "");
        let rest = unset_key("# keep\na: 1\n", "a").unwrap();
        assert_eq!(set_text(&rest, "b", "x").unwrap(), "# keep\nb: x\n");
    }

    #[test]
    fn an_alias_is_not_written_through() {
        let text = "base: &b\n  backend: local\nterminal: *b\n";
        assert!(matches!(set_text(text, "terminal.backend", "docker"), Err(EditError::Guard(_))));
    }
}
