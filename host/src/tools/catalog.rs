//! The tools there are, and the one door to them.

use std::sync::PoisonError;

use serde_json::{Value, json};

use super::call::Call;
use super::code::ExecuteCode;
use super::files::{ReadFile, WriteFile};
use super::patch::Patch;
use super::process::Process;
use super::search::SearchFiles;
use super::session::Session;
use super::terminal::Terminal;
use super::tool::{Answer, AnyTool, Tool};

/// All tools, in the order in which they are listed.
const TOOLS: &[AnyTool] = &[
    AnyTool::of::<Terminal>(),
    AnyTool::of::<Process>(),
    AnyTool::of::<ReadFile>(),
    AnyTool::of::<WriteFile>(),
    AnyTool::of::<Patch>(),
    AnyTool::of::<SearchFiles>(),
    AnyTool::of::<ExecuteCode>(),
];

/// Returns all tools.
#[must_use]
pub fn all() -> &'static [AnyTool] {
    TOOLS
}

/// Calls the tool `name`. Every face comes through here, and from here through the gate (`gate.rs`).
#[must_use]
pub fn call(session: &Session, name: &str, arguments: Value, call: &Call) -> Answer {
    if let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) {
        if name != SearchFiles::NAME {
            // Only a search that follows on the same one is a repetition.
            session.memory.searches.lock().unwrap_or_else(PoisonError::into_inner).forget();
        }
        return tool.run(session, arguments, call);
    }
    let known: Vec<_> = TOOLS.iter().map(|tool| format!("`{}`", tool.name)).collect();
    let message = format!("there is no tool `{}`: use one of {}", name.escape_debug(), known.join(", "));
    Answer { value: json!({ "error": message }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;

    #[test]
    fn the_configuration_knows_every_tool() {
        let tools: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(schema::TOOLS, tools);
    }

    #[test]
    fn every_result_can_say_that_it_was_not_allowed() {
        for tool in TOOLS {
            let schema = tool.output_schema();
            for name in ["status", "approval_id", "error"] {
                assert!(!schema["properties"][name].is_null(), "{}: {name}", tool.name);
            }
        }
    }

    #[test]
    fn schemas_hold_nothing_that_clients_do_not_know() {
        for tool in all() {
            for schema in [tool.input_schema(), tool.output_schema()] {
                let text = Value::Object(schema).to_string();
                for word in ["\"format\"", "\"$ref\"", "\"$defs\"", "\"$schema\""] {
                    assert!(!text.contains(word), "{} {word}: {text}", tool.name);
                }
            }
        }
    }
}
