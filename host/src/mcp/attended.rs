//! An answer over HTTP whose end is noticed, however it comes.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream, Bytes};
use futures_core::Stream;

use super::sessions::Open;

/// Returns the same body. As long as somebody reads it, the client counts as there.
pub(super) fn attended(body: Body, open: Open) -> Body {
    Body::from_stream(Attended { body: body.into_data_stream(), _open: open })
}

struct Attended {
    body: BodyDataStream,
    _open: Open,
}

impl Stream for Attended {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
