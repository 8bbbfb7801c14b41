//! The attributes of a plugin's provider, or what kept it from giving them.
//!
//! Whoever only shows a provider takes the default of an attribute that panics. A worker must say that it did, since its host has
//! the same defaults, and so must whoever judges the plugin.

use abi_stable::std_types::{ROption, RResult, RString, RVec};
use serde_json::Value;

use super::super::error::AbiError;
use super::super::fields::json;
use super::ForeignProvider;
use crate::{DoctorCheck, Error, Probe, ProbeStatus};

#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "each is the provider's method of that name, and fails if that panics"
)]
impl ForeignProvider {
    pub fn try_is_available(&self) -> Result<bool, Error> {
        flag(self.provider.is_available())
    }

    pub fn try_display_name(&self) -> Result<String, Error> {
        text(self.provider.display_name())
    }

    pub fn try_description(&self) -> Result<String, Error> {
        text(self.provider.description())
    }

    pub fn try_probe(&self) -> Result<Probe, Error> {
        let probe = self.provider.probe().into_result()?;
        Ok(Probe { status: ProbeStatus(probe.status), detail: probe.detail.into_string() })
    }

    pub fn try_setup_instructions(&self) -> Result<Vec<String>, Error> {
        texts(self.provider.setup_instructions())
    }

    pub fn try_doctor_checks(&self) -> Result<Vec<DoctorCheck>, Error> {
        let rows = self.provider.doctor_checks().into_result()?.into_iter();
        let row = |ok, label: RString, detail: RString| DoctorCheck {
            ok,
            label: label.into_string(),
            detail: detail.into_string(),
        };
        Ok(rows.map(|found| row(found.ok == 1, found.label, found.detail)).collect())
    }

    pub fn try_is_remote(&self) -> Result<bool, Error> {
        flag(self.provider.is_remote())
    }

    pub fn try_env_description(&self) -> Result<String, Error> {
        text(self.provider.env_description())
    }

    pub fn try_is_container(&self) -> Result<bool, Error> {
        flag(self.provider.is_container())
    }

    pub fn try_skip_container_guards(&self) -> Result<bool, Error> {
        flag(self.provider.skip_container_guards())
    }

    pub fn try_cache_path_base(&self) -> Result<Option<String>, Error> {
        optional(self.provider.cache_path_base())
    }

    /// Reads the names to strip. A host must not run commands for a provider that cannot name them.
    pub fn try_strip_env_keys(&self) -> Result<Vec<String>, Error> {
        texts(self.provider.strip_env_keys())
    }

    pub fn try_session_isolated_when_nonpersistent(&self) -> Result<bool, Error> {
        flag(self.provider.session_isolated_when_nonpersistent())
    }

    pub fn try_default_cwd(&self) -> Result<Option<String>, Error> {
        optional(self.provider.default_cwd())
    }

    pub fn try_guest_home(&self) -> Result<Option<String>, Error> {
        optional(self.provider.guest_home())
    }

    pub fn try_costs_to_create(&self) -> Result<bool, Error> {
        flag(self.provider.costs_to_create())
    }

    pub fn try_config_schema(&self) -> Result<Value, Error> {
        json(&text(self.provider.config_schema())?)
    }
}

/// A flag is true only if it says so cleanly.
pub(super) fn flag(read: RResult<u8, AbiError>) -> Result<bool, Error> {
    Ok(read.into_result()? == 1)
}

pub(super) fn text(read: RResult<RString, AbiError>) -> Result<String, Error> {
    Ok(read.into_result()?.into_string())
}

fn texts(read: RResult<RVec<RString>, AbiError>) -> Result<Vec<String>, Error> {
    Ok(read.into_result()?.into_iter().map(RString::into_string).collect())
}

pub(super) fn optional(read: RResult<ROption<RString>, AbiError>) -> Result<Option<String>, Error> {
    Ok(read.into_result()?.map(RString::into_string).into_option())
}
