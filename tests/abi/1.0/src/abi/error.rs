//! [`Error`] as it crosses.

use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RString};

use super::fields::{extra_from, extra_text};
use crate::{Error, ErrorKind};

/// The crossing form of [`Error`].
#[repr(C)]
#[derive(Debug, StableAbi)]
pub struct AbiError {
    pub(crate) kind: u32,
    pub(crate) message: RString,
    pub(crate) hint: ROption<RString>,
    pub(crate) started: u8,
    pub(crate) extra: RString,
}

impl From<Error> for AbiError {
    fn from(error: Error) -> Self {
        Self {
            kind: error.kind().0,
            message: error.message().into(),
            hint: error.hint().map(RString::from).into(),
            started: u8::from(error.may_have_started()),
            extra: extra_text(error.extra()),
        }
    }
}

impl From<AbiError> for Error {
    fn from(crossing: AbiError) -> Self {
        let mut error = Error::new(ErrorKind(crossing.kind), crossing.message.into_string());
        if crossing.started == 0 {
            error = error.not_started();
        }
        if let Some(hint) = crossing.hint.into_option() {
            error = error.with_hint(hint.into_string());
        }
        for (key, value) in extra_from(&crossing.extra) {
            error = error.with_extra(&key, value);
        }
        error
    }
}
