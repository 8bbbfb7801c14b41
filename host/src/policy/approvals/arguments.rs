//! What a call is given, in words: as a person reads it who is to decide about the call.

use std::sync::Arc;

use serde_json::Value;

use super::visible::{line, visible};
use crate::policy::redact::Secrets;

/// The argument that says it all, of tools that have one.
const LEADS: [(&str, &str); 2] = [("terminal", "command"), ("execute_code", "code")];

/// What comes first of the others.
const FIRST: [&str; 10] = [
    "action",
    "session_id",
    "path",
    "mode",
    "old_string",
    "new_string",
    "replace_all",
    "patch",
    "data",
    "content",
];

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The command or the code as it stands; of other tools all arguments, each with its name.
    pub(super) what: String,
    /// How that is to be done: the other arguments, each with its name.
    pub(super) details: Vec<String>,
}

/// Puts what `tool` is given into words. Nothing in them is hidden, except for secrets.
pub(super) fn told(tool: &str, arguments: &Value, secrets: &Arc<Secrets>) -> Told {
    let Some(arguments) = arguments.as_object() else { return Told::default() };
    let text = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // Hidden first: a secret whose middle is made visible is another text.
        visible(&secrets.hide(&text))
    };
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    let lead = LEADS.iter().find(|(leads, _)| *leads == tool).map(|(_, lead)| *lead);
    let what = lead.and_then(|lead| arguments.get(lead)).map(text);
    let mut others: Vec<_> =
        arguments.iter().filter(|(name, value)| !value.is_null() && Some(name.as_str()) != lead).collect();
    others.sort_by_key(|(name, _)| place(name));
    let details = others.into_iter().map(|(name, value)| {
        let (name, text) = (line(name), text(value));
        if text.contains('\n') { format!("{name}:\n{}", indented(&text)) } else { format!("{name}: {text}") }
    });
    match what {
        Some(what) => Told { what, details: details.collect() },
        None => Told { what: details.collect::<Vec<_>>().join("\n"), details: Vec::new() },
    }
}

/// Moves each line in, so that it cannot be taken for one of ours.
pub(super) fn indented(text: &str) -> String {
    text.split('\n').map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use hostel_plugin_api::shell::StripList;
    use serde_json::json;

    use super::*;

    fn of(tool: &str, arguments: &Value) -> Told {
        let strip = StripList::new(["TOKEN".to_owned()]);
        let secrets = Secrets::new(&strip, [(OsString::from("TOKEN"), OsString::from("hunter22-hunter22"))]);
        told(tool, arguments, &Arc::new(secrets))
    }

    #[test]
    fn a_command_stands_for_itself_and_the_rest_beside_it() {
        let arguments = json!({"workdir": "/srv", "command": "echo\nhunter22-hunter22\x1b[8m", "pty": null, "timeout": 5});
        let told = of("terminal", &arguments);
        assert_eq!(told.what, "echo\n[redacted TOKEN]^[[8m");
        assert_eq!(told.details, ["workdir: /srv", "timeout: 5"]);
    }

    #[test]
    fn what_is_done_to_files_begins_with_the_path() {
        let told = of("write_file", &json!({"content": "a\nb", "path": "x\r"}));
        assert_eq!((told.what.as_str(), told.details), ("path: x^M\ncontent:\n    a\n    b", vec![]));
        assert_eq!(of("terminal", &json!([1])), Told::default());
    }
}
