//! Files by name, newest first.

use super::by_content::{begun, page};
use super::output::Output;
use super::query::Query;
use super::walk::{Asked, walk};
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::tool::Failure;

/// Looks for files by name. They are only counted if `count` is set.
///
/// # Errors
///
/// Fails if the search could not be made.
pub(super) fn search(session: &Session, call: &Call, query: &Query, count: bool) -> Result<Output, Failure> {
    let walked = walk(session, call, query, Asked::Times)?;
    let mut output = Output { total_count: walked.files.len() as u64, ..begun(&walked) };
    if !count {
        let page = page(&walked.files, query, &mut output);
        output.files = Some(page.iter().map(|file| walked.place.shown(&file.name)).collect());
    }
    Ok(output)
}
