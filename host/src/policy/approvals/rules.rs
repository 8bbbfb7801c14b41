//! What the configuration says of calls that need a person.

use std::time::Duration;

use crate::config::{Config, ConfigError};

/// What becomes of a call that needs a person's yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A person is asked.
    Ask,
    /// It is refused.
    Deny,
    /// It is made.
    Off,
}

/// Why a person is asked, and how far a yes for the session goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// The name of what such a yes covers: calls of a task with a concern of the same scope.
    pub scope: String,
    /// What that is, for a person.
    pub covers: String,
    /// Why it is asked.
    pub reason: String,
}

/// What the rules say of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody has to be asked.
    Pass,
    /// A person must say yes.
    Ask(Concern),
    /// It is not made, whatever anybody says.
    Refuse(Concern),
}

/// The rules that are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    mode: Mode,
    tools: Vec<String>,
    patience: Duration,
}

impl Rules {
    /// Reads `approvals.*`.
    ///
    /// # Errors
    ///
    /// Fails if a value there does not fit.
    pub fn read(config: &Config) -> Result<Self, ConfigError> {
        let mode = match config.word("approvals.mode")?.as_str() {
            "off" => Mode::Off,
            "deny" => Mode::Deny,
            // The schema knows no fourth.
            _ => Mode::Ask,
        };
        let (tools, patience) = (config.list("approvals.tools")?, config.seconds("approvals.timeout_s")?);
        Ok(Self { mode, tools, patience })
    }

    /// How long a person is waited for.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Judges a call of `tool`.
    #[must_use]
    pub fn judge(&self, tool: &str) -> Verdict {
        if !self.tools.iter().any(|named| named == tool) {
            return Verdict::Pass;
        }
        let concern = Concern {
            scope: format!("tool {tool}"),
            covers: format!("every call of `{tool}`"),
            reason: format!("`approvals.tools` names `{tool}`"),
        };
        match self.mode {
            Mode::Off => Verdict::Pass,
            Mode::Ask => Verdict::Ask(concern),
            Mode::Deny => Verdict::Refuse(concern),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;

    fn rules(text: &str) -> Result<Rules, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().to_owned()).unwrap();
        std::fs::write(home.config(), text).unwrap();
        Rules::read(&Config::load(&home, None).unwrap())
    }

    #[test]
    fn nothing_is_asked_unless_it_is_wanted() {
        let usual = rules("").unwrap();
        assert_eq!((usual.judge("terminal"), usual.patience()), (Verdict::Pass, Duration::from_secs(60)));
        let asked = rules("approvals: {tools: [terminal], timeout_s: 0.5}\n").unwrap();
        assert!(matches!(asked.judge("terminal"), Verdict::Ask(_)));
        assert_eq!((asked.judge("patch"), asked.patience()), (Verdict::Pass, Duration::from_millis(500)));
    }

    #[test]
    fn the_mode_decides_and_a_bare_off_is_one() {
        for (mode, expected) in [("ask", 'a'), ("deny", 'd'), ("off", 'p'), ("false", 'p'), ("'off'", 'p')] {
            let verdict =
                rules(&format!("approvals: {{tools: [patch], mode: {mode}}}\n")).unwrap().judge("patch");
            let got = match verdict {
                Verdict::Ask(_) => 'a',
                Verdict::Refuse(_) => 'd',
                Verdict::Pass => 'p',
            };
            assert_eq!(got, expected, "{mode}");
        }
        for wrong in ["mode: on", "mode: true", "tools: [shell]", "tools: terminal", "timeout_s: 0"] {
            assert!(rules(&format!("approvals: {{{wrong}}}\n")).is_err(), "{wrong}");
        }
    }
}
