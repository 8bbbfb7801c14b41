//! What a client over HTTP is told of a request that was not taken.
//!
//! The library says it in a line of plain text, and says the same of a body that is no JSON as of one that is no message. A client
//! reads messages of the protocol: so it is told by one, with a code beside the status. To say what is wrong with a body it must still be
//! there, so it is read first and held. Bodies that nobody wants are read as well: the connection would be reset under a client that still
//! sends, and the answer lost.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use rmcp::model::{ErrorCode, RequestId, ServerJsonRpcMessage};
use tokio::time::timeout;

use super::in_use;
use super::message::{false_start, flaw, wrong};

/// What messages are made of.
const JSON: &str = "application/json";

/// The longest reason that the library gives, in bytes.
const LONGEST_REASON: usize = 4096;

/// How long a client has to send what nobody wants.
const DRAINING: Duration = Duration::from_secs(5);

/// Reads the body of a request that says that it holds a message, of at most `most` bytes. Returns the same request, and the body if it was
/// read.
///
/// # Errors
///
/// Fails with the answer.
pub(super) async fn read(request: Request, most: usize) -> Result<(Request, Option<Bytes>), Response> {
    if !holds_json(request.headers()) {
        return Ok((request, None));
    }
    let (parts, body) = request.into_parts();
    let (mut bytes, mut stream) = (Vec::new(), body.into_data_stream());
    while let Some(part) = next(&mut stream).await {
        // Its sender has gone, and hears no answer.
        let part = part.map_err(|error| refused(StatusCode::BAD_REQUEST, error.to_string()))?;
        if bytes.len() + part.len() > most {
            drop(bytes);
            rest(stream).await;
            let why = format!("the message is longer than {most} bytes");
            return Err(refused(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        bytes.extend_from_slice(&part);
    }
    let bytes = Bytes::from(bytes);
    Ok((Request::from_parts(parts, Body::from(bytes.clone())), Some(bytes)))
}

/// Reads what a request still sends that was refused before it was read, but not for long.
pub(super) async fn drain(request: Request) {
    // Who asks first sends nothing after a no.
    if !request.headers().contains_key(header::EXPECT) {
        rest(request.into_body().into_data_stream()).await;
    }
}

async fn rest(mut stream: BodyDataStream) {
    let read = async { while let Some(Ok(_)) = next(&mut stream).await {} };
    // Who is slower than that may lose the answer.
    let _ = timeout(DRAINING, read).await;
}

async fn next(stream: &mut BodyDataStream) -> Option<Result<Bytes, axum::Error>> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

/// Returns the library's answer to a request with this `body`; where that is a refusal, as a message of the protocol.
pub(super) async fn told(response: Response, body: Option<&Bytes>) -> Response {
    let status = response.status();
    if !status.is_client_error() || holds_json(response.headers()) {
        return response;
    }
    let flaw = match (status, body) {
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, Some(body)) => Some(flaw(body)),
        // The library takes it for a request without a session.
        (StatusCode::BAD_REQUEST, Some(body)) => false_start(body),
        _ => None,
    };
    if let Some(flaw) = flaw {
        return answer(StatusCode::BAD_REQUEST, &flaw);
    }
    let allowed = response.headers().get(header::ALLOW).cloned();
    let reason = to_bytes(response.into_body(), LONGEST_REASON).await.unwrap_or_default();
    let mut response = refused(status, String::from_utf8_lossy(&reason).trim().to_owned());
    if let Some(allowed) = allowed {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// Answers that a request is none of the protocol's.
pub(super) fn refused(status: StatusCode, why: String) -> Response {
    answer(status, &wrong(ErrorCode::INVALID_REQUEST, why, None))
}

/// Answers that the number of a request is in use.
pub(super) fn in_use(id: RequestId) -> Response {
    answer(StatusCode::BAD_REQUEST, &wrong(ErrorCode::INVALID_REQUEST, in_use::REFUSAL, Some(id)))
}

fn answer(status: StatusCode, message: &ServerJsonRpcMessage) -> Response {
    let body = serde_json::to_vec(message).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static(JSON))], body).into_response()
}

/// Whether what has these headers says that it holds JSON.
fn holds_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(JSON))
}
