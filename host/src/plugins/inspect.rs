//! The first contact with a plugin's library, in a worker, whatever the plugin's isolation will be.
//!
//! Foreign code is likeliest to crash when it is first run, so that does not happen in the process that edits the user's
//! configuration.

use super::error::{LoadError, Step};
use super::record::ProviderRecord;
use super::worker::{Plan, RemoteProvider, Worker};

/// Asks the plugin about itself. Returns with it the permissions that the kernel cannot enforce, a line each.
pub(super) fn inspect(plan: Plan) -> Result<(Vec<ProviderRecord>, Vec<String>), LoadError> {
    let name = plan.found.manifest.name.clone();
    let worker = Worker::new(plan);
    let ready = worker.start()?;
    let failed = |reason: String| {
        LoadError::new(&name, Step::Register, reason, "this is a bug in the plugin; report it to its author")
    };
    let mut records = Vec::new();
    for registered in ready.providers {
        let keys = registered.strip_env_keys.ok_or_else(|| {
            let why = registered.strip_env_error.unwrap_or_default();
            failed(format!("it cannot say which variables are its secrets: {why}"))
        })?;
        let provider = RemoteProvider::new(registered.name, worker.clone());
        records.push(ProviderRecord::of(&provider, keys).map_err(|error| failed(error.to_string()))?);
    }
    Ok((records, ready.unenforced))
}
