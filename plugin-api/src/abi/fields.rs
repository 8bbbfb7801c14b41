//! What the fields of crossing types are made of.

use abi_stable::std_types::{ROption, RString, RVec};
use serde_json::Value;

use crate::environment::TERMINAL;
use crate::{Error, ErrorKind, Extra};

/// Writes a list of texts as it crosses.
pub(crate) fn strings(lines: Vec<String>) -> RVec<RString> {
    lines.into_iter().map(RString::from).collect()
}

/// Writes a text that may be absent as it crosses.
pub(crate) fn optional(text: Option<String>) -> ROption<RString> {
    text.map(RString::from).into()
}

/// Reads a value that crosses as JSON.
pub(crate) fn json(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::new(ErrorKind::INVALID_REQUEST, format!("a value is not JSON: {error}")))
}

/// Writes later fields as they cross: a JSON object, or nothing.
pub(crate) fn extra_text(extra: &Extra) -> RString {
    if extra.is_empty() { RString::new() } else { serde_json::to_string(extra).unwrap_or_default().into() }
}

/// Reads later fields; what is no JSON object counts as none.
pub(crate) fn extra_from(text: &str) -> Extra {
    serde_json::from_str(text).unwrap_or_default()
}

/// What begins the name of a later field that must not be passed over.
const MUST: char = '!';

/// Reads later fields, and refuses those that must be understood and that this version does not know.
pub(crate) fn understood(text: &str) -> Result<Extra, Error> {
    let malformed =
        || Error::new(ErrorKind::INVALID_REQUEST, "the later fields of a request are not JSON").not_started();
    let extra: Extra =
        if text.is_empty() { Extra::new() } else { serde_json::from_str(text).map_err(|_| malformed())? };
    match extra.keys().find(|key| key.starts_with(MUST) && *key != TERMINAL) {
        None => Ok(extra),
        Some(key) => {
            let message = format!("the plugin is too old for what is asked of it (`{key}`)");
            Err(Error::new(ErrorKind::UNSUPPORTED, message).with_hint("update the plugin").not_started())
        }
    }
}
