//! The tools there are, and the one door to them.

use serde_json::{Value, json};

use super::call::Call;
use super::process::Process;
use super::session::Session;
use super::terminal::Terminal;
use super::tool::{Answer, AnyTool};

/// All tools, in the order in which they are listed.
const TOOLS: &[AnyTool] = &[AnyTool::of::<Terminal>(), AnyTool::of::<Process>()];

/// Returns all tools.
#[must_use]
pub fn all() -> &'static [AnyTool] {
    TOOLS
}

/// Calls the tool `name`. Every face comes through here, and so do the scripts of `execute_code`.
#[must_use]
pub fn call(session: &Session, name: &str, arguments: Value, call: &Call) -> Answer {
    if let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) {
        return tool.run(session, arguments, call);
    }
    let known: Vec<_> = TOOLS.iter().map(|tool| format!("`{}`", tool.name)).collect();
    let message = format!("there is no tool `{}`: use one of {}", name.escape_debug(), known.join(", "));
    Answer { value: json!({ "error": message }) }
}
