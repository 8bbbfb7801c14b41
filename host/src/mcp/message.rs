//! Reads a message of the protocol, and says what is wrong with one that is none.
//!
//! Whoever has sent nonsense can only mend it if the answer says of what kind it was, and which request it belongs to. What is no JSON is
//! told apart from what is JSON and no request; notifications and answers are not answered, whatever is in them. The same holds over
//! standard input and over HTTP.

use std::borrow::Cow;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::halves::read_without;

/// How the library of JSON begins to say that it does not read that deep. It is JSON all the same.
const TOO_DEEP: &str = "recursion limit exceeded";

/// Reads a message. None for what is nothing, or cannot be answered; an error is the answer.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Box<ServerJsonRpcMessage>> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let error = match serde_json::from_slice(text) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(error) if error.to_string().starts_with(TOO_DEEP) => {
            return Err(wrong(ErrorCode::INVALID_REQUEST, "the message is nested too deep", None));
        }
        Err(error) => {
            let id = read_without(text).as_ref().and_then(id);
            return Err(wrong(ErrorCode::PARSE_ERROR, format!("the message is no JSON: {error}"), id));
        }
    };
    tracing::debug!(%error, "a message is none of the protocol's");
    match &value {
        Value::Object(_) if is_unanswered(&value) => Ok(None),
        Value::Array(_) => Err(wrong(
            ErrorCode::INVALID_REQUEST,
            "batches are not served: send the messages one by one",
            None,
        )),
        Value::Object(_)
            if value["jsonrpc"] == "2.0" && value["method"].is_string() && value["params"].is_array() =>
        {
            Err(wrong(ErrorCode::INVALID_PARAMS, "the protocol's parameters have names", id(&value)))
        }
        _ => Err(wrong(ErrorCode::INVALID_REQUEST, "this is no request of the protocol", id(&value))),
    }
}

/// Returns what is wrong with a message that was refused.
pub(super) fn flaw(bytes: &[u8]) -> Box<ServerJsonRpcMessage> {
    match parse(bytes) {
        Err(wrong) => wrong,
        Ok(_) if bytes.trim_ascii().is_empty() => {
            wrong(ErrorCode::PARSE_ERROR, "the message is no JSON: there is none", None)
        }
        Ok(_) => wrong(ErrorCode::INVALID_REQUEST, "this is no message of the protocol", None),
    }
}

/// Returns what is wrong with a request that begins a session and has parameters that do not fit. None for any other message.
pub(super) fn false_start(bytes: &[u8]) -> Option<Box<ServerJsonRpcMessage>> {
    let Ok(Some(ClientJsonRpcMessage::Request(request))) = parse(bytes) else { return None };
    let ClientRequest::CustomRequest(custom) = &request.request else { return None };
    let message = "the parameters of `initialize` do not fit";
    (custom.method == "initialize").then(|| wrong(ErrorCode::INVALID_PARAMS, message, Some(request.id)))
}

/// Returns the number of a request. None for any other message.
pub(super) fn request_id(bytes: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Head {
        id: Option<RequestId>,
        method: Option<IgnoredAny>,
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let head: Head = serde_json::from_slice(bytes).ok()?;
    head.id.filter(|_| head.method.is_some())
}

/// Makes the answer to what was wrong.
pub(super) fn wrong(
    code: ErrorCode,
    message: impl Into<Cow<'static, str>>,
    id: Option<RequestId>,
) -> Box<ServerJsonRpcMessage> {
    Box::new(ServerJsonRpcMessage::error(ErrorData::new(code, message, None), id))
}

/// Whether an object is a notification or an answer, to neither of which there is one.
fn is_unanswered(message: &Value) -> bool {
    let is_notification = message["jsonrpc"] == "2.0" && message["method"].is_string();
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    (is_notification && message.get("id").is_none()) || (is_answer && message.get("method").is_none())
}

fn id(message: &Value) -> Option<RequestId> {
    message.get("id").and_then(|id| serde_json::from_value(id.clone()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(answer: Box<ServerJsonRpcMessage>) -> (i64, Value) {
        let answer = serde_json::to_value(answer).unwrap();
        (answer["error"]["code"].as_i64().unwrap(), answer.get("id").cloned().unwrap_or_default())
    }

    fn answer(text: &str) -> (i64, Value) {
        json(parse(text.as_bytes()).unwrap_err())
    }

    #[test]
    fn what_is_no_json_is_told_from_what_is_no_request() {
        let ping = parse(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n").unwrap();
        assert!(matches!(ping, Some(ClientJsonRpcMessage::Request(_))));
        for text in ["{nonsense", "{\"id\":1,}", "{} {}", "nul", "'x'", "{\"id\":1"] {
            assert_eq!(answer(text), (-32700, Value::Null), "{text}");
        }
        assert_eq!(json(parse(b"{\"id\":3,\"method\":\"\xff\"}").unwrap_err()), (-32700, 3.into()));
        assert_eq!(answer(r#"{"id":7,"method":"x","params":{"text":"caf\udce9"}}"#), (-32700, 7.into()));
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        for text in ["[]", "[1]", "7", "null", "true", "\"x\"", "{}", r#"{"jsonrpc":"2.0"}"#, &deep] {
            assert_eq!(answer(text), (-32600, Value::Null), "{text}");
        }
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":"x","method":7}"#, "x".into()),
            (r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#, 4.into()),
            (r#"{"id":5,"method":"ping"}"#, 5.into()),
            (r#"{"jsonrpc":"2.0","id":6}"#, 6.into()),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#, Value::Null),
            (r#"{"method":"ping"}"#, Value::Null),
        ] {
            assert_eq!(answer(text), (-32600, id), "{text}");
        }
        let positional = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":["terminal"]}"#;
        assert_eq!(answer(positional), (-32602, 8.into()));
        let silent = ["", " \r\n", r#"{"id":1,"result":7}"#, r#"{"jsonrpc":"2.0","id":1,"error":7}"#];
        for text in silent {
            assert!(parse(text.as_bytes()).is_ok_and(|message| message.is_none()), "{text}");
        }
    }

    #[test]
    fn requests_have_a_number_and_others_have_none() {
        let id = |text: &str| request_id(text.as_bytes());
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#), Some(RequestId::Number(7)));
        assert_eq!(
            id(r#"{"method":"ping","params":{"id":1},"id":"7"}"#),
            Some(RequestId::String("7".into()))
        );
        for text in [r#"{"id":7,"result":{}}"#, r#"{"method":"notifications/x"}"#, "[]", "nonsense"] {
            assert_eq!(id(text), None, "{text}");
        }
    }

    #[test]
    fn a_beginning_that_does_not_fit_is_no_unknown_session() {
        let begin = |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
        assert_eq!(json(false_start(begin("initialize").as_bytes()).unwrap()), (-32602, 1.into()));
        assert!(false_start(begin("tools/list").as_bytes()).is_none() && false_start(b"[]").is_none());
    }

    #[test]
    fn what_was_refused_always_has_a_flaw() {
        assert_eq!(json(flaw(b" \n")).0, -32700);
        assert_eq!(json(flaw(b"nonsense")).0, -32700);
        for text in
            ["[]", r#"{"id":1,"result":7}"#, r#"{"jsonrpc":"2.0","method":"notifications/x","params":7}"#]
        {
            assert_eq!(json(flaw(text.as_bytes())).0, -32600, "{text}");
        }
    }
}
