//! The tool as an agent calls it.

use std::sync::PoisonError;

use super::input::Input;
use super::output::Output;
use super::query::{Query, What};
use super::walk::{LeftOut, left_out};
use super::{by_content, by_name};
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::tool::{Effects, Failure, Tool};

/// Searches files for lines, or for names.
pub(in crate::tools) struct SearchFiles;

impl Tool for SearchFiles {
    const NAME: &'static str = "search_files";
    const TITLE: &'static str = "Search files";
    const DESCRIPTION: &'static str = "Searches what files hold for a regular expression, or finds files by name (`target`: \
        `files`), newest first. Use it instead of grep, rg, find and ls. Hidden and ignored files are left out unless `path` \
        names them; binary files are only named. Lines are cut after 500 characters, and five matches and more are listed under \
        their file. There are more results while `next_offset` is given. A search ends after 60 s with what it has found. \
        Without `error`, no results means that nothing matches.";
    const EFFECTS: Effects =
        Effects { read_only: true, destructive: false, idempotent: true, open_world: false };

    type Input = Input;
    type Output = Output;

    fn run(session: &Session, input: Input, call: &Call) -> Output {
        search(session, input, call).unwrap_or_else(Self::failed)
    }

    fn failed(failure: Failure) -> Output {
        Output { error: Some(failure.line()), ..Output::default() }
    }
}

fn search(session: &Session, input: Input, call: &Call) -> Result<Output, Failure> {
    let query = Query::new(input)?;
    let remark = {
        let mut searches = session.memory.searches.lock().unwrap_or_else(PoisonError::into_inner);
        searches.begin(&query)?
    };
    let mut output = match &query.what {
        What::Content { patterns, mode, context } => {
            by_content::search(session, call, &query, (patterns, *mode, *context))?
        }
        What::Files { count, .. } => by_name::search(session, call, &query, *count)?,
    };
    if output.total_count == 0 {
        nothing_found(session, call, &query, &mut output);
    } else if output.has_empty_page() && query.limit > 0 {
        output.note = Some("`offset` is behind the last result".to_owned());
    }
    output.warnings.extend(remark);
    Ok(output)
}

/// Makes sure that a failure is not taken for an answer, and says where nobody has looked.
fn nothing_found(session: &Session, call: &Call, query: &Query, output: &mut Output) {
    if !output.warnings.is_empty() {
        let problems = std::mem::take(&mut output.warnings).join("; ");
        output.error = Some(format!("nothing was found, but not everything could be searched: {problems}"));
    } else if output.limit_reason.is_some() {
        output.note = Some("nothing was found so far: search in a smaller folder".to_owned());
    } else {
        output.note = note(left_out(session, call, query));
    }
}

/// Says what a search that has found nothing has left out.
fn note(left_out: LeftOut) -> Option<String> {
    if left_out.by_glob {
        return Some("the file that `path` names does not fit `file_glob`, and was not searched".to_owned());
    }
    let protected =
        "protected files were not searched: credentials, and what rules systems, shells and Hostel";
    let passed_over = "hidden and ignored files, and folders such as `node_modules`, were not searched: name one as `path` to \
                       search it";
    let notes = [(left_out.protected, protected), (left_out.passed_over, passed_over)];
    let notes: Vec<&str> = notes.into_iter().filter_map(|(applies, note)| applies.then_some(note)).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}
