//! Names of background processes.

use crate::short_id::{Kind, ShortId};

/// What the name of a background process is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfProcess;

impl Kind for OfProcess {
    const PREFIX: &'static str = "proc_";
    const WHAT: &'static str = "a process";
}

/// The name of one background process: `proc_` and twelve hexadecimal digits in lower case.
pub type ProcessId = ShortId<OfProcess>;
