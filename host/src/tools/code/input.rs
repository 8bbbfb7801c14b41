//! What the tool `execute_code` is given.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;

use super::launch::Language;
use super::limits::{SCRIPT, TIME};
use crate::tools::arguments;
use crate::tools::tool::Failure;

/// The least time that a script can be given, in seconds.
const LEAST: f64 = 0.1;

/// The arguments.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct Input {
    /// The script, a whole program. It prints what you want to see.
    pub(super) code: String,
    /// What it is written in: `python`, `bash` or `node`. Default `python`.
    #[serde(default, deserialize_with = "language")]
    #[schemars(with = "Option<LanguageForm>")]
    pub(super) language: Language,
    /// Seconds until the script is ended, with everything that it has started. By default 300, which is also the most.
    #[serde(default, deserialize_with = "arguments::number")]
    pub(super) timeout: Option<f64>,
}

// No doc comments: they would be told to agents.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is used")]
enum LanguageForm {
    Python,
    Bash,
    Node,
}

fn language<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Language, D::Error> {
    let language = match Value::deserialize(deserializer)? {
        Value::Null => Some(Language::default()),
        Value::String(name) => Language::named(&name),
        _ => None,
    };
    language.ok_or_else(|| D::Error::custom("`language` is `python`, `bash` or `node`"))
}

impl Input {
    /// Returns how long the script may run. Zero stands for the default. Adds what the agent should know.
    pub(super) fn limit(&self, warnings: &mut Vec<String>) -> Result<Duration, Failure> {
        let most = TIME.as_secs_f64();
        let Some(seconds) = self.timeout.filter(|seconds| *seconds != 0.0) else { return Ok(TIME) };
        if seconds < LEAST {
            let message = format!("`timeout` is {seconds}, and must be at least {LEAST} seconds");
            return Err(Failure::new(message).with_hint("leave it out for the default"));
        }
        if seconds > most {
            warnings.push(format!("`timeout` is {seconds}, and a script may run {most} seconds at the most"));
        }
        Ok(Duration::try_from_secs_f64(seconds).map_or(TIME, |limit| limit.min(TIME)))
    }

    /// Refuses what is no script.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.code.trim().is_empty() {
            return Err(Failure::new("`code` is empty").with_hint("give a program to run"));
        }
        if self.code.len() > SCRIPT {
            let message = format!("`code` has {} bytes, and may have {SCRIPT}", self.code.len());
            return Err(Failure::new(message).with_hint("put data into files by `write_file`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Input, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_are_read_as_agents_write_them() {
        let input = read(json!({"code": "x", "language": null, "timeout": "2.5"})).unwrap();
        assert_eq!(input.language, Language::Python);
        assert_eq!(input.limit(&mut Vec::new()).unwrap(), Duration::from_millis(2500));
        assert_eq!(read(json!({"code": "x", "language": "JavaScript"})).unwrap().language, Language::Node);
        for (value, reason) in [
            (json!({}), "missing field `code`"),
            (json!({"code": "x", "language": "ruby"}), "`python`, `bash` or `node`"),
            (json!({"code": "x", "language": 3}), "`python`, `bash` or `node`"),
            (json!({"code": "x", "lang": "bash"}), "expected one of `code`"),
        ] {
            let error = read(value).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        for code in ["", " \n\t"] {
            assert!(read(json!({ "code": code })).unwrap().check().is_err());
        }
    }

    #[test]
    fn no_script_has_more_time_than_all() {
        let limit = |seconds: f64| {
            let mut warnings = Vec::new();
            let limit = Input { timeout: Some(seconds), ..Input::default() }.limit(&mut warnings);
            (limit, warnings.len())
        };
        assert_eq!(limit(0.0), (Ok(TIME), 0));
        assert_eq!(limit(300.0), (Ok(TIME), 0));
        assert_eq!(limit(301.0), (Ok(TIME), 1));
        assert_eq!(limit(1e300), (Ok(TIME), 1));
        assert!(limit(-1.0).0.is_err() && limit(0.01).0.is_err());
    }
}
