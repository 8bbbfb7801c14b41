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

#[cfg(test)]
mod tests {
    use super::*;

    struct BombOnDrop;
    impl Drop for BombOnDrop {
        fn drop(&mut self) {
            panic!("from the payload's destructor");
        }
    }

    fn message_of(body: impl FnOnce() -> Result<(), Error>) -> Error {
        guard("execute", body).into_result().unwrap_err().into()
    }

    #[test]
    fn a_panic_becomes_an_error_that_names_the_call() {
        let error = message_of(|| panic!("boom\nsecond line"));
        assert_eq!(error.kind(), ErrorKind::PANICKED);
        assert_eq!(error.message(), "`execute` panicked: boom");
    }

    #[test]
    fn a_payload_that_is_no_text_and_panics_itself_is_survived() {
        let error = message_of(|| std::panic::panic_any(BombOnDrop));
        assert_eq!(error.message(), "`execute` panicked: without a message");
    }
}
