//! Keeps panics on the side on which they happen.
//!
//! Each library has its own copy of the standard library, so a panic that leaves one cannot be caught in the other: the
//! process ends. Every function of the other author's therefore runs in [`guard`]; what only moves fields runs without.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use abi_stable::std_types::{RErr, ROk, RResult};

use super::error::AbiError;
use crate::{Error, ErrorKind};

/// Runs `body` and turns a panic into an error that names `what` was running.
pub(crate) fn guard<T>(what: &str, body: impl FnOnce() -> Result<T, Error>) -> RResult<T, AbiError> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => ROk(value),
        Ok(Err(error)) => RErr(error.into()),
        Err(payload) => RErr(panic_error(what, payload).into()),
    }
}

/// Runs `body`, or returns `fallback` if it panics.
pub(crate) fn guard_or<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        discard(payload);
        fallback
    })
}

fn panic_error(what: &str, payload: Box<dyn Any + Send>) -> Error {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    discard(payload);
    let text = text.unwrap_or_else(|| "without a message".to_owned());
    Error::new(ErrorKind::PANICKED, format!("`{what}` panicked: {}", first_line(&text)))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Drops a panic's payload, whose own destructor may panic.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}
