//! [`Error`] as it crosses.

use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RString};

use crate::{Error, ErrorKind};

/// The crossing form of [`Error`].
#[repr(C)]
#[derive(Debug, StableAbi)]
pub struct AbiError {
    pub(crate) kind: u32,
    pub(crate) message: RString,
    pub(crate) hint: ROption<RString>,
    pub(crate) started: u8,
}

impl From<Error> for AbiError {
    fn from(error: Error) -> Self {
        Self {
            kind: error.kind().0,
            message: error.message().into(),
            hint: error.hint().map(RString::from).into(),
            started: u8::from(error.may_have_started()),
        }
    }
}

impl From<AbiError> for Error {
    fn from(error: AbiError) -> Self {
        let started = error.started != 0;
        let hint = error.hint.into_option();
        let error = Error::new(ErrorKind(error.kind), error.message.into_string());
        let error = if started { error } else { error.not_started() };
        match hint {
            Some(hint) => error.with_hint(hint.into_string()),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_round_trip() {
        for error in [
            Error::new(ErrorKind::LOST, "the sandbox is gone"),
            Error::new(ErrorKind(4711), "from the future").with_hint("update Hostel").not_started(),
        ] {
            assert_eq!(Error::from(AbiError::from(error.clone())), error);
        }
    }
}
