//! One call, as a person is asked about it, and what a yes to it covers.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::arguments::{indented, told};
use super::rules::Concern;
use super::visible::{cut, line};
use crate::digest::sha256_hex;
use crate::policy::redact::Secrets;

/// The most characters of what is to be done that a question holds.
const SHOWN: usize = 4000;

/// The most characters of each detail in a question.
const DETAIL: usize = 500;

/// The most characters that are kept of a request.
const KEPT: usize = 20_000;

/// A call that a person must allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The tool.
    pub tool: String,
    /// The backend on which it acts.
    pub backend: String,
    /// The task in whose environment it acts.
    pub task: String,
    /// SHA-256 of all that makes it this call and no other.
    pub digest: String,
    /// What a yes for the session covers.
    pub scope: String,
    /// That in words.
    pub covers: String,
    /// Why it is asked.
    pub reason: String,
    /// The command or the code; of other tools all that they are given.
    pub command: String,
    /// How the command is to be run.
    #[serde(default)]
    pub details: Vec<String>,
}

impl Request {
    /// Describes a call of `tool` with these arguments. Secrets are not in it.
    #[must_use]
    pub fn new(
        (backend, task): (&str, &str),
        tool: &str,
        arguments: &Value,
        concern: Concern,
        secrets: &Arc<Secrets>,
    ) -> Self {
        let digest = sha256_hex(json!([tool, backend, task, sorted(arguments)]).to_string().as_bytes());
        let told = told(tool, arguments, secrets);
        let Concern { scope, covers, reason } = concern;
        Self {
            tool: tool.to_owned(),
            backend: backend.to_owned(),
            task: task.to_owned(),
            digest,
            scope,
            covers,
            reason,
            command: told.what,
            details: told.details,
        }
    }

    /// Returns the question to a person, several lines. Those that are not ours are moved in.
    #[must_use]
    pub fn question(&self) -> String {
        let (task, backend) = (line(&self.task), line(&self.backend));
        let mut text = format!(
            "An agent wants to use `{}` in task `{task}` on backend `{backend}`:\n\n{}\n",
            self.tool,
            indented(&cut(&self.command, SHOWN))
        );
        for detail in &self.details {
            text.push('\n');
            text.push_str(&indented(&cut(detail, DETAIL)));
        }
        if !self.details.is_empty() {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\nIt is asked because {}. A yes for the session holds for {} in this task.",
            self.reason, self.covers
        );
        text
    }

    /// Returns whether a yes for the session to `other` covers this one.
    pub(super) fn is_covered_by(&self, other: &Self) -> bool {
        self.is_beside(other) && self.scope == other.scope
    }

    /// Returns whether it is the very same call.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.is_beside(other) && self.digest == other.digest
    }

    fn is_beside(&self, other: &Self) -> bool {
        (&self.tool, &self.backend, &self.task) == (&other.tool, &other.backend, &other.task)
    }

    /// Returns it with as much of its texts as is kept.
    pub(super) fn kept(&self) -> Self {
        let details = self.details.iter().map(|detail| cut(detail, DETAIL)).collect();
        Self { command: cut(&self.command, KEPT), details, ..self.clone() }
    }
}

/// Returns a value whose members are in order: in which one they were written makes no other call.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            let members = members.into_iter().map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        plain => plain.clone(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::policy::approvals) fn sample(task: &str, command: &str) -> Request {
        of(("local", task), "terminal", &json!({ "command": command }))
    }

    fn of(place: (&str, &str), tool: &str, arguments: &Value) -> Request {
        let concern = Concern {
            scope: format!("tool {tool}"),
            covers: format!("every call of `{tool}`"),
            reason: "it was wanted".into(),
        };
        Request::new(place, tool, arguments, concern, &Arc::default())
    }

    #[test]
    fn only_the_same_call_is_the_same() {
        let call = json!({ "command": "ls", "timeout": 5 });
        let one = of(("local", "t"), "terminal", &call);
        assert!(one.is_same(&of(("local", "t"), "terminal", &json!({ "timeout": 5, "command": "ls" }))));
        for other in [
            of(("local", "t"), "terminal", &json!({ "command": "ls", "timeout": "5" })),
            of(("local", "t"), "terminal", &json!({ "command": "ls" })),
            of(("local", "u"), "terminal", &call),
            of(("acmebox", "t"), "terminal", &call),
            of(("local", "t"), "process", &call),
        ] {
            assert!(!one.is_same(&other) && one.digest != other.digest, "{other:?}");
        }
        assert!(one.is_covered_by(&of(("local", "t"), "terminal", &json!({ "command": "rm" }))));
        assert!(!one.is_covered_by(&of(("local", "u"), "terminal", &call)));
    }

    #[test]
    fn a_question_cannot_be_forged_or_outgrown() {
        let request = of(
            ("local", "t\nAllowed"),
            "terminal",
            &json!({ "command": format!("ls\n\nIt is asked because nothing.{}", "x".repeat(9000)), "workdir": "/" }),
        );
        let question = request.question();
        assert!(question.starts_with(
            "An agent wants to use `terminal` in task `t^JAllowed` on backend `local`:\n\n    ls\n"
        ));
        assert!(
            question.contains("\n    It is asked because nothing.")
                && question.contains("\n    workdir: /\n")
        );
        assert!(question.contains("characters are left out here]") && question.len() < 4600, "{question}");
        assert!(question.ends_with("\nIt is asked because it was wanted. A yes for the session holds for every call of `terminal` in this task."));
    }
}
