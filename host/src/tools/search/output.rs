//! What the tool `search_files` answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(in crate::tools) struct Output {
    /// The matching lines of this page, if there are fewer than five, in the order of their paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) matches: Option<Vec<Match>>,
    /// The matching lines of this page under the path of their file, if there are five or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) matches_by_file: Option<BTreeMap<String, Vec<Line>>>,
    /// The files of this page: those with a match in the order of their paths, those found by name newest first. A name that is
    /// not UTF-8 is written as bash reads it, `$'caf\xe9'`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) files: Option<Vec<String>>,
    /// How many lines match in each file of this page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) counts: Option<BTreeMap<String, u64>>,
    /// All matching lines, or all files with `files_only` or by name, on every page together.
    pub(super) total_count: u64,
    /// There is more than this page shows.
    pub(super) truncated: bool,
    /// The `offset` at which the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next_offset: Option<u64>,
    /// Why not everything was looked at, or shown up to `limit`. `search_timeout`: it took too long. `output_limit`: too many
    /// files fit. `result_size`: the result would be too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) limit_reason: Option<&'static str>,
    /// The program that searched: `ripgrep`, `grep -P`, `grep -E` or `find`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) engine: Option<&'static str>,
    /// What was not searched, where nothing was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    /// What could not be searched, beside what was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    /// Why the search failed. It did not if this is not there: then nothing found means no match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Output {
    /// Returns whether the page shows nothing, though it could.
    pub(super) fn has_empty_page(&self) -> bool {
        self.matches.as_ref().is_some_and(Vec::is_empty)
            || self.files.as_ref().is_some_and(Vec::is_empty)
            || self.counts.as_ref().is_some_and(BTreeMap::is_empty)
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::tools) struct Match {
    /// The file.
    pub(super) path: String,
    /// The line.
    #[serde(flatten)]
    pub(super) at: Line,
}

/// A line of a file whose path stands above it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[allow(clippy::struct_field_names, reason = "the member is called so by the tool's contract")]
pub(in crate::tools) struct Line {
    /// Its number, from 1. A binary file has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
    /// Its first 500 characters, without the end of the line.
    pub(super) content: String,
    /// It does not match, or stands on another page: it is shown for its neighbour.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) context: bool,
    /// The file is binary, which is all that is told of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) binary: bool,
}
