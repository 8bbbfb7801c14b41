//! `hostel plugins check`.

use std::path::Path;

use hostel_plugin_api::testing::{Row, Verdict};
use serde_json::json;

use super::failure::{FAILED, Failure};
use super::print::{Out, say, visible};
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
    if json {
        out.json(&json!({
            "plugin": checked.plugin, "passed": report.passed(), "rows": report.rows,
        }))?;
    } else {
        out.line(&format!("{passed} rules hold, {failed} are broken, {skipped} could not be tried"))?;
    }
    if report.rows.is_empty() {
        say("note", "no rule was tried: see `--only`");
    }
    Ok(if report.passed() { 0 } else { FAILED })
}

impl From<SubjectError> for Failure {
    fn from(error: SubjectError) -> Self {
        Self::new(error.to_string()).with_hint(error.hint())
    }
}
