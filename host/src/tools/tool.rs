//! What a tool is, and the form in which all of them are the same.

use hostel_plugin_api::Error;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::Call;
use super::gate::{self, Refusal};
use super::session::Session;

/// What a tool does to the world: hints for whoever decides which calls need a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "one for each hint of the protocol")]
pub struct Effects {
    /// It changes nothing.
    pub read_only: bool,
    /// What it changes may be lost.
    pub destructive: bool,
    /// To call it twice is the same as once.
    pub idempotent: bool,
    /// It reaches beyond the sandbox.
    pub open_world: bool,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// One line.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Failure {
    /// Makes one without a hint.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Says what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns message and hint in one line, for results that have one member for both.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} ({hint})", self.message),
            None => self.message.clone(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { message: error.message().to_owned(), hint: error.hint().map(str::to_owned) }
    }
}

/// One tool.
pub trait Tool {
    /// Its name.
    const NAME: &'static str;
    /// What it is called for people.
    const TITLE: &'static str;
    /// What an agent is told of it.
    const DESCRIPTION: &'static str;
    /// What it does to the world.
    const EFFECTS: Effects;
    /// What it is given. A doc comment on each field is what an agent is told of it.
    type Input: DeserializeOwned + JsonSchema;
    /// What it answers. A member `error` that is not null says that the call failed.
    type Output: Serialize + JsonSchema;

    /// Does what the tool is for.
    fn run(session: &Session, input: Self::Input, call: &Call) -> Self::Output;

    /// Makes the answer to a call that could not be begun.
    fn failed(failure: Failure) -> Self::Output;
}

/// A tool in a form that all share.
#[derive(Clone, Copy)]
pub struct AnyTool {
    /// Its name.
    pub name: &'static str,
    /// What it is called for people.
    pub title: &'static str,
    /// What an agent is told of it.
    pub description: &'static str,
    /// What it does to the world.
    pub effects: Effects,
    input: fn() -> Map<String, Value>,
    output: fn() -> Map<String, Value>,
    run: fn(&Session, Value, &Call) -> Answer,
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The result object.
    pub value: Value,
}

impl Answer {
    /// Returns whether the call failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.value.get("error").is_some_and(|error| !error.is_null())
    }

    fn of(output: &impl Serialize) -> Self {
        let value = serde_json::to_value(output)
            .unwrap_or_else(|error| json!({ "error": format!("failed to write the result: {error}") }));
        Self { value }
    }
}

impl AnyTool {
    /// Returns `T` in the form that all tools share.
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            title: T::TITLE,
            description: T::DESCRIPTION,
            effects: T::EFFECTS,
            input: schema::<T::Input>,
            output: output::<T>,
            run: run::<T>,
        }
    }

    /// Returns the JSON schema of what it is given.
    #[must_use]
    pub fn input_schema(&self) -> Map<String, Value> {
        (self.input)()
    }

    /// Returns the JSON schema of what it answers.
    #[must_use]
    pub fn output_schema(&self) -> Map<String, Value> {
        (self.output)()
    }

    /// Calls it, if it is allowed. What it is given that does not fit is said in the answer.
    #[must_use]
    pub(super) fn run(&self, session: &Session, arguments: Value, call: &Call) -> Answer {
        (self.run)(session, arguments, call)
    }
}

fn run<T: Tool>(session: &Session, arguments: Value, call: &Call) -> Answer {
    let input = match T::Input::deserialize(&arguments) {
        Ok(input) => input,
        Err(error) => {
            let reason = reason::<T::Input>(&arguments, &error);
            let message = format!("`{}` was called with arguments that do not fit: {reason}", T::NAME);
            let hint = "correct the arguments and call it again";
            return Answer::of(&T::failed(Failure::new(message).with_hint(hint)));
        }
    };
    // Nobody is asked about what cannot be meant.
    let passed = gate::pass(session, T::NAME, &arguments, call);
    // They may be large, and the call may last.
    drop(arguments);
    match passed {
        Ok(()) => Answer::of(&T::run(session, input, call)),
        Err(refusal) => refused::<T>(refusal),
    }
}

/// Makes the answer to a call that was not allowed. It has two members more than other failures.
fn refused<T: Tool>(refusal: Refusal) -> Answer {
    let mut answer = Answer::of(&T::failed(refusal.failure));
    if let Value::Object(members) = &mut answer.value {
        members.insert(gate::STATUS.into(), refusal.status.into());
        members.extend(refusal.approval_id.map(|id| (gate::APPROVAL_ID.into(), id.into())));
    }
    answer
}

/// Returns the schema of what a tool answers, with what the gate may add.
fn output<T: Tool>() -> Map<String, Value> {
    let mut schema = schema::<T::Output>();
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        for (name, about) in gate::MEMBERS {
            members.entry(name).or_insert_with(|| json!({ "type": "string", "description": about }));
        }
    }
    schema
}

/// Returns why arguments do not fit, and which one it is: the one that does not fit in the same way by itself.
fn reason<T: DeserializeOwned>(arguments: &Value, error: &serde_json::Error) -> String {
    let error = error.to_string();
    // One that is missing, or not known.
    if error.contains("field `") {
        return error;
    }
    let fails_alone = |name: &&String| {
        let alone = Value::Object(Map::from_iter([((*name).clone(), arguments[name.as_str()].clone())]));
        T::deserialize(&alone).is_err_and(|alone| alone.to_string() == error)
    };
    let mut members = arguments.as_object().into_iter().flat_map(Map::keys);
    match members.find(fails_alone) {
        Some(name) => format!("`{}`: {error}", name.escape_debug()),
        None => error,
    }
}

/// Returns a schema without references to other places, which not every client follows, and without Rust's names for sizes of numbers:
/// they are formats that no client knows, of which some complain and for which others do not take the tool.
fn schema<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let without_formats = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("format");
    });
    let settings = settings.with_transform(without_formats);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    match schema.to_value() {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_argument_that_does_not_fit_is_named() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(dead_code, reason = "only read")]
        struct Input {
            text: String,
            more: Option<u8>,
        }
        for (arguments, expected) in [
            (json!({ "text": 5 }), "`text`: invalid type: integer `5`, expected a string"),
            (json!({ "more": 1, "text": null }), "`text`: invalid type: null, expected a string"),
            (json!({ "text": "x", "more": "y" }), "`more`: invalid type: string \"y\", expected u8"),
            (json!({ "more": 1 }), "missing field `text`"),
            (json!({ "text": "x", "moer": 1 }), "unknown field `moer`, expected `text` or `more`"),
        ] {
            let error = Input::deserialize(&arguments).unwrap_err();
            assert_eq!(reason::<Input>(&arguments, &error), expected);
        }
    }
}
