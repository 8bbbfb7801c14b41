//! What the tool `terminal` is given.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;

use crate::tools::arguments;
use crate::tools::tool::Failure;

/// The least time that a command can be given, in seconds.
const LEAST: f64 = 0.001;

/// The arguments.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is an argument of the tool's contract")]
pub(in crate::tools) struct Input {
    /// Shell text, run as it is. Its standard input is empty.
    pub(super) command: String,
    /// Start the command and return at once with a `session_id` for the tool `process`. For servers, watchers, and whatever takes
    /// long. Default false.
    #[serde(default, deserialize_with = "arguments::flag")]
    pub(super) background: bool,
    /// Seconds until a command in the foreground is ended, with everything that it has started (exit code 124). Fractions are
    /// allowed. By default 180; a command that is given more than 600 is run in the background and ended there in time.
    #[serde(default, deserialize_with = "arguments::number")]
    pub(super) timeout: Option<f64>,
    /// The directory for this command only, where commands run; a relative one starts where the session stands. The session stays
    /// where it is.
    #[serde(default)]
    pub(super) workdir: Option<String>,
    /// Run the command on a terminal of 30 lines and 120 columns, for programs that want one. Only with `background`. Default
    /// false.
    #[serde(default, deserialize_with = "arguments::flag")]
    pub(super) pty: bool,
    /// Leave the command's standard input open, so that `process` can write to it. Only with `background`; with `pty` it always
    /// is. Default false.
    #[serde(default, deserialize_with = "arguments::flag")]
    pub(super) stdin: bool,
    /// `true`: tell the end of a background process in the `notices` of a later result. A list of texts: tell lines of its output
    /// that contain one of them. Replaces `notify_on_complete` and `watch_patterns`.
    #[serde(default, deserialize_with = "notify")]
    #[schemars(with = "Option<NotifyForm>")]
    pub(super) notify: Option<Notify>,
    /// Older form of `notify: true`.
    #[serde(default, deserialize_with = "arguments::flag")]
    pub(super) notify_on_complete: bool,
    /// Older form of `notify` with a list. Without effect together with `notify_on_complete`.
    #[serde(default, deserialize_with = "arguments::texts")]
    pub(super) watch_patterns: Option<Vec<String>>,
    /// What older prompts say and no tool has obeyed for long.
    #[serde(default)]
    #[schemars(skip)]
    pub(super) check_interval: Option<Value>,
    /// What means something on another system.
    #[serde(default, deserialize_with = "arguments::flag")]
    #[schemars(skip)]
    pub(super) elevated: bool,
}

/// What is to be told of a background process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) enum Notify {
    /// Its end, or nothing.
    End(bool),
    /// Lines that contain one of these.
    Lines(Vec<String>),
}

// No doc comment: it would be told to agents.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum NotifyForm {
    End(bool),
    Lines(Vec<String>),
}

fn notify<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Notify>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    if let Ok(end) = arguments::flag(&value) {
        return Ok((!value.is_null()).then_some(Notify::End(end)));
    }
    match arguments::texts(&value) {
        Ok(lines) => Ok(lines.map(Notify::Lines)),
        Err(_) => Err(D::Error::custom("`true`, `false` or a list of texts is expected")),
    }
}

impl Input {
    /// Returns whether the end of a background process is told, and for which lines of its output that is done. Adds what the agent
    /// should know.
    pub(super) fn told(&self, warnings: &mut Vec<String>) -> (bool, Vec<String>) {
        let (end, lines) = match &self.notify {
            Some(Notify::End(end)) => (*end, Vec::new()),
            Some(Notify::Lines(lines)) => (false, lines.clone()),
            None => {
                let lines = self.watch_patterns.clone().unwrap_or_default();
                if self.notify_on_complete && !lines.is_empty() {
                    warnings.push("`watch_patterns` has no effect together with `notify_on_complete`".into());
                }
                (self.notify_on_complete, if self.notify_on_complete { Vec::new() } else { lines })
            }
        };
        (end, lines.into_iter().filter(|line| !line.is_empty()).collect())
    }

    /// Returns how long the command may take, if it was given a time. Zero stands for none.
    pub(super) fn limit(&self) -> Result<Option<Duration>, Failure> {
        let Some(seconds) = self.timeout.filter(|seconds| *seconds != 0.0) else { return Ok(None) };
        let wrong = |what: String| Failure::new(what).with_hint("leave it out for the default");
        if seconds < LEAST {
            return Err(wrong(format!("`timeout` is {seconds}, and must be at least {LEAST} seconds")));
        }
        let limit = Duration::try_from_secs_f64(seconds);
        limit.map(Some).map_err(|_| wrong(format!("`timeout` is {seconds:e} seconds, which is too long")))
    }

    /// Returns the directory, if one was named.
    pub(super) fn workdir(&self) -> Option<&str> {
        self.workdir.as_deref().filter(|dir| !dir.is_empty())
    }

    /// Adds a line for each argument that means nothing here.
    pub(super) fn without_effect(&self, in_background: bool, warnings: &mut Vec<String>) {
        if self.check_interval.as_ref().is_some_and(|value| !value.is_null()) {
            warnings.push("`check_interval` has no effect: `notify` tells what happens".into());
        }
        if self.background && self.timeout.is_some() {
            warnings.push("`timeout` has no effect in the background: end the process with `process`".into());
        }
        let only_there = [
            ("notify", self.notify.as_ref().is_some_and(|notify| *notify != Notify::End(false))),
            ("notify_on_complete", self.notify_on_complete),
            ("watch_patterns", self.watch_patterns.as_ref().is_some_and(|lines| !lines.is_empty())),
            ("stdin", self.stdin),
        ];
        for (name, _) in only_there.into_iter().filter(|(_, given)| *given && !in_background) {
            warnings.push(format!("`{name}` has an effect only with `background`"));
        }
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
        let input = read(json!({"command": "x", "timeout": "2.5", "background": null, "workdir": null,
            "notify": null, "watch_patterns": null, "check_interval": 5}))
        .unwrap();
        assert_eq!(input.limit().unwrap(), Some(Duration::from_millis(2500)));
        assert!(!input.background && input.workdir().is_none() && input.notify.is_none());
        let mut warnings = Vec::new();
        input.without_effect(false, &mut warnings);
        assert!(warnings.len() == 1 && warnings[0].contains("check_interval"), "{warnings:?}");
        assert_eq!(read(json!({"command": "x", "workdir": ""})).unwrap().workdir(), None);
        for (value, reason) in [
            (json!({}), "missing field `command`"),
            (json!({"command": 5}), "expected a string"),
            (json!({"command": "x", "notify": 5}), "a list of texts"),
            (json!({"command": "x", "cwd": "/"}), "expected one of `command`"),
        ] {
            let error = read(value).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn what_is_told_follows_the_newest_form() {
        let told = |value: Value| read(value).unwrap().told(&mut Vec::new());
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            told(json!({"command": "x", "notify": true, "watch_patterns": ["a"]})),
            (true, lines(&[]))
        );
        assert_eq!(told(json!({"command": "x", "notify": ["a", ""]})), (false, lines(&["a"])));
        assert_eq!(told(json!({"command": "x", "notify": "a"})), (false, lines(&["a"])));
        assert_eq!(told(json!({"command": "x", "watch_patterns": ["a"]})), (false, lines(&["a"])));
        let both = json!({"command": "x", "notify_on_complete": true, "watch_patterns": ["a"]});
        let mut warnings = Vec::new();
        assert_eq!(read(both).unwrap().told(&mut warnings), (true, lines(&[])));
        assert_eq!(warnings.len(), 1);
        assert_eq!(told(json!({"command": "x"})), (false, lines(&[])));
    }

    #[test]
    fn a_time_is_positive_and_zero_is_none() {
        let limit = |seconds: f64| Input { timeout: Some(seconds), ..Input::default() }.limit();
        assert_eq!(limit(0.0).unwrap(), None);
        assert_eq!(limit(0.1).unwrap(), Some(Duration::from_millis(100)));
        assert!(limit(-1.0).is_err() && limit(0.0001).is_err());
        assert_eq!(limit(1e300).unwrap_err().message, "`timeout` is 1e300 seconds, which is too long");
    }
}
