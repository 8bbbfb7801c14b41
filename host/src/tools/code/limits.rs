//! How much a script may do.

use std::time::Duration;

/// How long it may run.
pub(super) const TIME: Duration = Duration::from_secs(300);

/// How long its launcher may take to come up.
pub(super) const START: Duration = Duration::from_secs(60);

/// How long the look after a launcher may take that was killed.
pub(super) const SWEEPING: Duration = Duration::from_secs(10);

/// How many tools it may call.
pub(super) const CALLS: u32 = 50;

/// How many bytes of its standard output are shown.
pub(super) const OUTPUT: usize = 50_000;

/// How many bytes of its standard error are shown.
pub(super) const ERRORS: usize = 10_000;

/// How many bytes it may have.
pub(super) const SCRIPT: usize = 8 * 1024 * 1024;
