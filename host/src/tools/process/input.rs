//! What the tool `process` is given.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::processes::{Lines, PtySize};
use crate::tools::arguments;
use crate::tools::tool::Failure;

/// How many lines of output are shown.
const LINES: u64 = 200;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::tools) enum Action {
    /// Show the processes of this task.
    List,
    /// Show how a process is, with the end of its output.
    Poll,
    /// Show lines of its output.
    Log,
    /// Wait until it has ended.
    Wait,
    /// End it and everything that it has started.
    Kill,
    /// Give it `data` to read.
    Write,
    /// Give it `data` and a line end to read.
    Submit,
    /// End its input.
    Close,
    /// Change the size of its terminal.
    Resize,
    /// Send it a signal.
    Signal,
    /// Let it run longer than it was given.
    Renew,
    /// Show what has happened in the background.
    Notices,
}

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct Input {
    /// What to do.
    pub(super) action: Action,
    /// The process, as `terminal` has named it. All actions but `list` and `notices` need it.
    #[serde(default)]
    pub(super) session_id: Option<String>,
    /// For `log`: how many lines to pass over. 0, the default, shows the last lines.
    #[serde(default, deserialize_with = "arguments::whole")]
    pub(super) offset: Option<u64>,
    /// For `log`: how many lines to show. Default 200.
    #[serde(default, deserialize_with = "arguments::whole")]
    pub(super) limit: Option<u64>,
    /// For `wait`: seconds after which to return even if the process has not ended. By default, and at the most, as many as a
    /// command may take (180 unless configured).
    #[serde(default, deserialize_with = "arguments::number")]
    pub(super) timeout: Option<f64>,
    /// For `write` and `submit`: what the process is to read. It must have been started with `stdin` or `pty`; on a terminal
    /// control characters are keys, such as `\u0003` for Ctrl-C.
    #[serde(default)]
    pub(super) data: Option<String>,
    /// For `resize`: the terminal's lines.
    #[serde(default, deserialize_with = "arguments::whole")]
    pub(super) rows: Option<u64>,
    /// For `resize`: the characters in a line.
    #[serde(default, deserialize_with = "arguments::whole")]
    pub(super) columns: Option<u64>,
    /// For `signal`: a name, with or without `SIG`, or a number, such as `INT` or `2`.
    #[serde(default)]
    pub(super) signal: Option<Signal>,
    /// For `renew`: how many seconds from now it may run. By default as many as it was given before.
    #[serde(default, deserialize_with = "arguments::number")]
    pub(super) lease: Option<f64>,
}

/// A signal, as agents name it.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::tools) enum Signal {
    /// By its number.
    Number(f64),
    /// By its name, or its number as text.
    Name(String),
}

impl Input {
    /// Returns the name of the process.
    pub(super) fn id(&self) -> Result<&str, Failure> {
        self.session_id.as_deref().map(str::trim).filter(|id| !id.is_empty()).ok_or_else(|| {
            Failure::new("`session_id` is missing")
                .with_hint("the action `list` shows the processes that there are")
        })
    }

    /// Returns which lines are to be shown.
    pub(super) fn lines(&self) -> Lines {
        Lines { offset: self.offset.unwrap_or(0), limit: self.limit.unwrap_or(LINES) }
    }

    /// Returns how long to wait, and whether that is less than was asked for. `most` is the most, and the default.
    pub(super) fn patience(&self, most: Duration) -> Result<(Duration, bool), Failure> {
        let Some(seconds) = self.timeout else { return Ok((most, false)) };
        if seconds < 0.0 {
            return Err(Failure::new(format!("`timeout` is {seconds}, and cannot be negative")));
        }
        match Duration::try_from_secs_f64(seconds) {
            Ok(wanted) if wanted <= most => Ok((wanted, false)),
            _ => Ok((most, true)),
        }
    }

    /// Returns what is to be given to the process. A line end alone needs no words.
    pub(super) fn data(&self) -> Result<&str, Failure> {
        if let (None, Action::Submit) = (&self.data, self.action) {
            return Ok("");
        }
        self.data.as_deref().ok_or_else(|| {
            Failure::new("`data` is missing").with_hint("give the text that the process is to read")
        })
    }

    /// Returns the size of the terminal.
    pub(super) fn size(&self) -> Result<PtySize, Failure> {
        let wrong = || Failure::new("`resize` needs `rows` and `columns`, each from 1 to 65535");
        let of = |number: Option<u64>| {
            number
                .and_then(|number| u16::try_from(number).ok())
                .filter(|number| *number > 0)
                .ok_or_else(wrong)
        };
        Ok(PtySize { rows: of(self.rows)?, columns: of(self.columns)? })
    }

    /// Returns the number of the signal.
    pub(super) fn signal(&self) -> Result<i32, Failure> {
        let text = match &self.signal {
            Some(Signal::Number(number)) => number.to_string(),
            Some(Signal::Name(name)) => name.trim().to_owned(),
            None => String::new(),
        };
        crate::processes::parse_signal(&text).ok_or_else(|| {
            Failure::new("`signal` must be the name or number of a signal, such as `INT` or `2`")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<Input, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_are_read_as_agents_write_them() {
        let input =
            read(json!({"action": "log", "session_id": " proc_1 ", "offset": "5", "limit": null})).unwrap();
        assert_eq!((input.id().unwrap(), input.lines()), ("proc_1", Lines { offset: 5, limit: 200 }));
        assert!(read(json!({"action": "list"})).unwrap().id().is_err());
        for (value, part) in [
            (json!({"action": "stop"}), "`kill`"),
            (json!({}), "missing field `action`"),
            (json!({"action": "log", "offset": -1}), "not negative"),
            (json!({"action": "log", "id": "x"}), "`session_id`"),
        ] {
            let error = read(value).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn nobody_is_waited_for_longer_than_a_command_may_take() {
        let most = Duration::from_secs(180);
        let patience =
            |timeout: Value| read(json!({"action": "wait", "timeout": timeout})).unwrap().patience(most);
        assert_eq!(patience(json!(null)).unwrap(), (most, false));
        assert_eq!(patience(json!(0.5)).unwrap(), (Duration::from_millis(500), false));
        assert_eq!(patience(json!(600)).unwrap(), (most, true));
        assert_eq!(patience(json!(1e300)).unwrap(), (most, true));
        assert!(patience(json!(-1)).is_err());
    }

    #[test]
    fn sizes_and_signals_are_checked() {
        let of = |value: Value| read(value).unwrap();
        let size = of(json!({"action": "resize", "rows": 24, "columns": "80"})).size().unwrap();
        assert_eq!((size.rows, size.columns), (24, 80));
        assert!(of(json!({"action": "resize", "rows": 0, "columns": 80})).size().is_err());
        assert!(of(json!({"action": "resize", "rows": 24})).size().is_err());
        for signal in [json!(2), json!(2.0), json!("2"), json!("INT"), json!("sigint"), json!(" SigInt ")] {
            assert_eq!(of(json!({"action": "signal", "signal": signal})).signal().unwrap(), 2, "{signal}");
        }
        for signal in [json!(null), json!(0), json!(-2), json!(2.5), json!(1e30), json!(""), json!("SIG")] {
            assert!(of(json!({"action": "signal", "signal": signal})).signal().is_err(), "{signal}");
        }
    }
}
