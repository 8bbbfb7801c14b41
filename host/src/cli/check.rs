//! `hostel plugins check`.

use std::path::Path;

use hostel_plugin_api::testing::{Report, Row, Verdict};
use serde_json::json;

use super::failure::{FAILED, Failure};
use super::print::{Out, visible};
use crate::plugins::check::{Options, SubjectError, check};

pub(super) fn run(path: &Path, options: &Options, json: bool, out: &mut Out) -> Result<u8, Failure> {
    let mut written = Ok(());
    let mut print = |row: &Row| {
        if !json && written.is_ok() {
            written = row.to_string().lines().try_for_each(|line| out.line(&visible(line)));
        }
    };
    let checked = check(path, options, &mut print)?;
    written?;
    let report = &checked.report;
    let count = |verdict| report.rows.iter().filter(|row| row.verdict == verdict).count();
    let (passed, failed, skipped) = (count(Verdict::Passed), count(Verdict::Failed), count(Verdict::Skipped));
    let untried = untried(report);
    let good = report.passed() && untried.is_none() && !report.rows.is_empty();
    if json {
        out.json(&json!({ "plugin": checked.plugin, "passed": good, "rows": report.rows }))?;
    } else {
        out.line(&format!("{passed} rules hold, {failed} are broken, {skipped} could not be tried"))?;
    }
    if let Some(reason) = untried {
        return Err(Failure::new(format!("none of its commands could be tried: {}", visible(reason)))
            .with_hint("set what it needs; `--only attributes.` and the like try what needs no sandbox"));
    }
    if report.rows.is_empty() {
        return Err(Failure::new("no rule was tried").with_hint("`--only` takes how a rule's name begins"));
    }
    Ok(if good { 0 } else { FAILED })
}

/// Returns why no command could be tried, if any was to be: a plugin that was never used has shown nothing.
fn untried(report: &Report) -> Option<&str> {
    let mut commands = report.rows.iter().filter(|row| row.rule.starts_with("exec.")).peekable();
    let reason = commands.peek()?.detail.as_str();
    commands.all(|row| row.verdict == Verdict::Skipped).then_some(reason)
}

impl From<SubjectError> for Failure {
    fn from(error: SubjectError) -> Self {
        Self::new(error.to_string()).with_hint(error.hint())
    }
}
