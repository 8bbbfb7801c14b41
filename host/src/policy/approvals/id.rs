//! Names of requests. A person types one to say yes.

use crate::short_id::{Kind, ShortId};

/// What the name of a request is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfApproval;

impl Kind for OfApproval {
    const PREFIX: &'static str = "appr_";
    const WHAT: &'static str = "a request";
}

/// The name of one request: `appr_` and twelve hexadecimal digits in lower case.
pub type ApprovalId = ShortId<OfApproval>;
