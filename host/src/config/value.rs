//! Values: from the command line into the file, and from the file to whoever asks.

use serde_yaml::{Number, Value};
use yaml_edit::{ScalarValue, YamlValue};

use super::schema::Type;

/// Why a value does not fit its key.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ValueError {
    /// It is not of the key's type.
    #[error("{0} is expected, not `{1}`")]
    Type(String, String),
    /// It is a number out of range.
    #[error("`{0}` is too small: {1}")]
    Small(String, String),
    /// It is a number out of range.
    #[error("`{0}` is too large")]
    Large(String),
    /// An item of a list is none of the words that are known.
    #[error("`{0}` is unknown: use one of `{1}`")]
    Word(String, String),
    /// The key is a section.
    #[error("it is a section; set one of the keys in it")]
    Section,
}

/// Returns the largest number that a key can hold: in seconds more than thirty years, in bytes a petabyte.
fn largest(whole: bool) -> f64 {
    if whole { 1e15 } else { 1e9 }
}

/// Reads a value as `holds` says.
///
/// # Errors
///
/// Fails if the text is not of that type or is out of range.
pub fn read(text: &str, holds: &Type) -> Result<Value, ValueError> {
    let wrong = |expected: &str| Err(ValueError::Type(expected.into(), text.escape_debug().to_string()));
    match holds {
        Type::Text | Type::Backend => Ok(Value::String(text.to_owned())),
        Type::Choice(words) if words.iter().any(|word| word == text) => Ok(Value::String(text.to_owned())),
        Type::Choice(words) => wrong(&format!("one of `{}`", words.join("`, `"))),
        Type::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(Value::Bool(true)),
            "false" | "no" | "off" => Ok(Value::Bool(false)),
            _ => wrong("`true` or `false`"),
        },
        Type::Number { min, whole } => number(text, *min, *whole),
        Type::List => list(text).map_or_else(|| wrong("a list such as `[a, b]` or `a,b`"), Ok),
        Type::Words(words) => {
            let value = read(text, &Type::List)?;
            let mut items = value.as_sequence().into_iter().flatten().filter_map(Value::as_str);
            match items.find(|item| !words.iter().any(|word| word == item)) {
                Some(item) => Err(ValueError::Word(item.escape_debug().to_string(), words.join("`, `"))),
                None => Ok(value),
            }
        }
        Type::Section => Err(ValueError::Section),
    }
}

fn number(text: &str, min: f64, whole: bool) -> Result<Value, ValueError> {
    let kind = if whole { "a whole number" } else { "a number" };
    let wrong = || ValueError::Type(kind.into(), text.escape_debug().to_string());
    let plain =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'));
    let value: f64 = if plain { text.parse().map_err(|_| wrong())? } else { return Err(wrong()) };
    if !value.is_finite() || (whole && value.fract() != 0.0) {
        return Err(wrong());
    }
    if value < min {
        return Err(ValueError::Small(text.to_owned(), format!("it must be at least {min}")));
    }
    if value > largest(whole) {
        return Err(ValueError::Large(text.to_owned()));
    }
    Ok(Value::Number(text.parse::<u64>().map_or_else(|_| Number::from(value), Number::from)))
}

fn list(text: &str) -> Option<Value> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Value::Sequence(Vec::new()));
    }
    if text.starts_with('[') {
        let items: Vec<String> = serde_yaml::from_str(text).ok()?;
        return Some(Value::Sequence(items.into_iter().map(Value::String).collect()));
    }
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    items
        .iter()
        .all(|item| !item.is_empty())
        .then(|| items.into_iter().map(|item| Value::String(item.into())).collect())
}

/// Returns whether a value that stands in the file is of the type `holds`.
#[must_use]
pub fn fits(value: &Value, holds: &Type) -> bool {
    match holds {
        Type::Text => value.is_string(),
        Type::Backend => value.as_str().is_some_and(|name| !name.trim().is_empty()),
        Type::Choice(words) => match value {
            Value::String(text) => words.contains(text),
            // Other programs read a bare `off` as false; the word that was meant is known.
            Value::Bool(value) => words.iter().any(|word| word == if *value { "on" } else { "off" }),
            _ => false,
        },
        Type::Boolean => value.is_bool(),
        Type::Number { min, whole } => value.as_f64().is_some_and(|value| {
            value >= *min && value <= largest(*whole) && (!whole || value.fract() == 0.0)
        }),
        Type::List => value.as_sequence().is_some_and(|items| items.iter().all(Value::is_string)),
        Type::Words(words) => {
            let known =
                |item: &Value| item.as_str().is_some_and(|item| words.iter().any(|word| word == item));
            value.as_sequence().is_some_and(|items| items.iter().all(known))
        }
        Type::Section => value.is_mapping() || value.is_null(),
    }
}

/// Returns the form in which a value is written into the file. A text that YAML 1.1 or 1.2 could read as anything else is
/// quoted, because other programs read this file too.
pub(super) fn written(value: &Value) -> YamlValue {
    match value {
        Value::String(text) if is_plain(text) => YamlValue::scalar(ScalarValue::plain(text.as_str())),
        Value::String(text) => YamlValue::scalar(ScalarValue::double_quoted(text.as_str())),
        Value::Bool(value) => YamlValue::scalar(ScalarValue::parse(value.to_string())),
        Value::Number(number) => YamlValue::scalar(ScalarValue::parse(number.to_string())),
        Value::Sequence(items) => YamlValue::Sequence(items.iter().map(written).collect()),
        Value::Null | Value::Mapping(_) | Value::Tagged(_) => YamlValue::scalar(ScalarValue::null()),
    }
}

/// Words that some version of YAML takes for something else than text.
const SPECIAL: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

fn is_plain(text: &str) -> bool {
    let starts = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/' || first == '_');
    let inner = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'@' | b'+'));
    starts && inner && !SPECIAL.contains(&text.to_ascii_lowercase().as_str())
}

/// Returns a value as a person reads it: text and numbers bare, the rest as YAML.
#[must_use]
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null => String::new(),
        Value::Sequence(items) if items.iter().all(|item| !item.is_mapping() && !item.is_sequence()) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        other => serde_yaml::to_string(other).unwrap_or_default().trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_decides_and_not_the_look() {
        let words = Type::Choice(vec!["ask".into(), "off".into()]);
        assert_eq!(read("off", &words).unwrap(), Value::String("off".into()));
        assert!(read("manual", &words).is_err());
        for text in ["null", "00701", "1.10", "{message}", "off", "-5"] {
            assert_eq!(read(text, &Type::Text).unwrap(), Value::String(text.into()));
        }
        assert_eq!(read("false", &Type::Boolean).unwrap(), Value::Bool(false));
        let seconds = Type::Number { min: 0.001, whole: false };
        assert_eq!(read("90", &seconds).unwrap(), Value::Number(90.into()));
        assert_eq!(read("1.5", &seconds).unwrap(), Value::Number(1.5.into()));
        for bad in ["-5", "0", "0.0000001", "99999999999999999999", "nan", "inf", "1e999", "", "x", "0x10"] {
            assert!(read(bad, &seconds).is_err(), "{bad}");
        }
        assert!(read("1.5", &Type::Number { min: 1.0, whole: true }).is_err());
        for text in ["a,b", "[a, b]", " a , b "] {
            assert_eq!(shown(&read(text, &Type::List).unwrap()), "[a, b]");
        }
        for bad in ["a,,b", "[a", "[{x: 1}]"] {
            assert!(read(bad, &Type::List).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_list_of_words_names_the_one_that_is_unknown() {
        let words = Type::Words(vec!["terminal".into(), "patch".into()]);
        assert_eq!(shown(&read("patch,terminal", &words).unwrap()), "[patch, terminal]");
        assert!(fits(&read("", &words).unwrap(), &words) && !fits(&read("a", &Type::List).unwrap(), &words));
        let error = read("[patch, termnal]", &words).unwrap_err().to_string();
        assert_eq!(error, "`termnal` is unknown: use one of `terminal`, `patch`");
    }

    #[test]
    fn text_that_another_reader_could_mistake_is_quoted() {
        for plain in ["local", "acmebox", "/usr/bin", "a.b-c"] {
            assert!(is_plain(plain), "{plain}");
        }
        for quoted in
            ["off", "NO", "null", "1.10", "00701", "{message}", "", "a: b", "~", "a #b", ".inf", "12:30", "ä"]
        {
            assert!(!is_plain(quoted), "{quoted}");
        }
    }
}
