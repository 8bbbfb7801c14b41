//! Lines that match, the files that have some, or how many each has.

use super::dialects::Patterns;
use super::found::Found;
use super::input::OutputMode;
use super::lines::fetch;
use super::output::Output;
use super::page::items;
use super::query::Query;
use super::walk::{Asked, File, Walked, walk};
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::tool::Failure;

/// Searches what files hold.
///
/// # Errors
///
/// Fails if the search could not be made.
pub(super) fn search(
    session: &Session,
    call: &Call,
    query: &Query,
    (patterns, mode, context): (&Patterns, OutputMode, u64),
) -> Result<Output, Failure> {
    let asked = if mode == OutputMode::FilesOnly { Asked::Names } else { Asked::Counts };
    let walked = walk(session, call, query, asked)?;
    let total = walked.files.iter().fold(0, |total, file| file.count.saturating_add(total));
    let mut output = Output { total_count: total, ..begun(&walked) };
    match mode {
        OutputMode::Content => lines(session, call, query, (patterns, context), &walked, &mut output)?,
        OutputMode::FilesOnly => {
            let page = page(&walked.files, query, &mut output);
            output.files = Some(page.iter().map(|file| walked.place.shown(&file.name)).collect());
        }
        OutputMode::Count => {
            let page = page(&walked.files, query, &mut output);
            let counts = page.iter().map(|file| (walked.place.shown(&file.name), file.count));
            output.counts = Some(counts.collect());
        }
    }
    Ok(output)
}

/// Begins the result of a search.
pub(super) fn begun(walked: &Walked) -> Output {
    Output {
        engine: Some(walked.engine.shown()),
        truncated: walked.limit.is_some(),
        limit_reason: walked.limit,
        warnings: walked.problems.clone(),
        ..Output::default()
    }
}

/// Returns the files of one page, and says in the result whether there are more.
pub(super) fn page<'a>(files: &'a [File], query: &Query, output: &mut Output) -> &'a [File] {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(files.len());
    let end = query.offset.saturating_add(query.limit);
    if place(end) < files.len() {
        output.truncated = true;
        output.next_offset = Some(end).filter(|end| *end > query.offset);
    }
    &files[place(query.offset)..place(end)]
}

/// Fetches the lines of one page.
fn lines(
    session: &Session,
    call: &Call,
    query: &Query,
    asked: (&Patterns, u64),
    walked: &Walked,
    output: &mut Output,
) -> Result<(), Failure> {
    let items = items(walked.files.iter().map(|file| file.count), query.offset, query.limit);
    let fetched = fetch(session, call, query, asked, (walked, &items))?;
    let mut found = Found::after(query.offset);
    let last = fetched.pieces.len().saturating_sub(1);
    let mut limit = fetched.limit;
    for (index, (item, piece)) in items.iter().zip(fetched.pieces).enumerate() {
        // Only the last of the pieces can have been cut.
        let whole = fetched.limit.is_none() || index < last;
        if !found.add(&walked.place.shown(&walked.files[item.file].name), *item, piece, whole) {
            limit = Some("result_size");
            break;
        }
    }
    if found.end < output.total_count {
        output.truncated = true;
        output.next_offset = Some(found.end).filter(|end| *end > query.offset);
    }
    output.limit_reason = output.limit_reason.or(limit);
    output.warnings.extend(fetched.problems.into_iter().filter(|problem| !walked.problems.contains(problem)));
    found.put(output);
    Ok(())
}
