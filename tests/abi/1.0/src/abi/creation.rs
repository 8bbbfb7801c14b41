//! [`CreateEnvironment`] as it crosses.

use std::time::Duration;

use abi_stable::StableAbi;
use abi_stable::std_types::{ROption, RString, RVec};

use super::fields::{extra_text, json, optional, strings, understood};
use crate::{CreateEnvironment, Error};

/// The crossing form of [`CreateEnvironment`]. `config` and `extra` are JSON.
#[repr(C)]
#[derive(StableAbi)]
pub struct AbiCreateEnvironment {
    pub(crate) task_id: RString,
    pub(crate) cwd: ROption<RString>,
    pub(crate) timeout_ns: u64,
    pub(crate) image: ROption<RString>,
    pub(crate) host_cwd: ROption<RString>,
    pub(crate) config: RString,
    pub(crate) state_dir: ROption<RString>,
    pub(crate) persistent: u8,
    pub(crate) strip_env: RVec<RString>,
    pub(crate) extra: RString,
}

impl From<CreateEnvironment> for AbiCreateEnvironment {
    fn from(request: CreateEnvironment) -> Self {
        Self {
            task_id: request.task_id.into(),
            cwd: optional(request.cwd),
            timeout_ns: u64::try_from(request.timeout.as_nanos()).unwrap_or(u64::MAX),
            image: optional(request.image),
            host_cwd: optional(request.host_cwd),
            config: request.config.to_string().into(),
            state_dir: optional(request.state_dir),
            persistent: u8::from(request.persistent),
            strip_env: strings(request.strip_env),
            extra: extra_text(&request.extra),
        }
    }
}

impl TryFrom<AbiCreateEnvironment> for CreateEnvironment {
    type Error = Error;

    fn try_from(request: AbiCreateEnvironment) -> Result<Self, Error> {
        let text = |text: ROption<RString>| text.map(RString::into_string).into_option();
        Ok(Self {
            task_id: request.task_id.into_string(),
            cwd: text(request.cwd),
            timeout: Duration::from_nanos(request.timeout_ns),
            image: text(request.image),
            host_cwd: text(request.host_cwd),
            config: json(&request.config)?,
            state_dir: text(request.state_dir),
            persistent: request.persistent == 1,
            strip_env: request.strip_env.into_iter().map(RString::into_string).collect(),
            extra: understood(&request.extra)?,
        })
    }
}
