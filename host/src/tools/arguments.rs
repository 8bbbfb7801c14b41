//! Reads the arguments of tools as agents write them.
//!
//! A model that means 30 also writes `"30"`, and says `null` for what it does not want to say. That costs nothing to
//! understand; anything else is an error that says what is expected.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;

/// Reads a number, which may be written as text. Null is none.
///
/// # Errors
///
/// Fails for anything else.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let read = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    read.filter(|number| number.is_finite()).map(Some).ok_or_else(|| D::Error::custom("a number is expected"))
}

/// Reads a whole number that is not negative, which may be written as text. Null is none.
///
/// # Errors
///
/// Fails for anything else.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let read = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(without_fraction)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    read.map(Some).ok_or_else(|| D::Error::custom("a whole number that is not negative is expected"))
}

/// Makes a whole number of one that happens to be written with a point.
fn without_fraction(number: f64) -> Option<u64> {
    if number.fract() != 0.0 {
        return None;
    }
    format!("{number:.0}").parse().ok()
}

/// Reads yes or no, which may be written as text. Null is no.
///
/// # Errors
///
/// Fails for anything else.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(D::Error::custom("`true` or `false` is expected")),
    }
}

/// Reads a list of texts, or one text for a list of one. Null is none.
///
/// # Errors
///
/// Fails for anything else.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(vec![text])),
        list @ Value::Array(_) => serde_json::from_value(list)
            .map(Some)
            .map_err(|error| D::Error::custom(format!("a list of texts is expected: {error}"))),
        _ => Err(D::Error::custom("a list of texts is expected")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (value, expected) in [
            (json!(30), Some(Some(30.0))),
            (json!(0.5), Some(Some(0.5))),
            (json!(" 30 "), Some(Some(30.0))),
            (json!(null), Some(None)),
            (json!("soon"), None),
            (json!("inf"), None),
            (json!([1]), None),
        ] {
            assert_eq!(number(&value).ok(), expected, "{value}");
        }
        for (value, expected) in [
            (json!(200), Some(Some(200))),
            (json!(200.0), Some(Some(200))),
            (json!("7"), Some(Some(7))),
            (json!(null), Some(None)),
            (json!(1.5), None),
            (json!(-1), None),
        ] {
            assert_eq!(whole(&value).ok(), expected, "{value}");
        }
    }

    #[test]
    fn flags_and_lists_are_read_as_they_are_written() {
        for (value, expected) in [
            (json!(true), Some(true)),
            (json!("True"), Some(true)),
            (json!("false"), Some(false)),
            (json!(null), Some(false)),
            (json!(1), None),
            (json!("yes"), None),
        ] {
            assert_eq!(flag(&value).ok(), expected, "{value}");
        }
        assert_eq!(texts(&json!("one")).ok(), Some(Some(vec!["one".to_owned()])));
        assert_eq!(texts(&json!(["a", "b"])).ok(), Some(Some(vec!["a".to_owned(), "b".to_owned()])));
        assert_eq!(texts(&json!(null)).ok(), Some(None));
        assert!(texts(&json!([1])).is_err() && texts(&json!(true)).is_err());
    }
}
