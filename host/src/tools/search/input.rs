//! What the tool `search_files` is given.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools::arguments;

/// The arguments.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct Input {
    /// With `target` `content`: a regular expression, matched against one line at a time; `(?i)` at its beginning ignores case.
    /// With `target` `files`: a pattern for names such as `*.py` or `src/**/*_test.go`; one without `*`, `?` and `[` finds the
    /// names that contain it, and an empty one all.
    pub(super) pattern: String,
    /// `content` (default) looks into files, `files` looks for files by name.
    #[serde(default)]
    pub(super) target: Option<Target>,
    /// The folder or the one file to search in. Default: where the session stands.
    #[serde(default)]
    pub(super) path: Option<String>,
    /// Only files whose name fits: `*.rs`, `*.{ts,tsx}`, `src/**/*.rs` (from `path` on), `!*.min.js` (all others); several are
    /// separated by commas.
    #[serde(default)]
    pub(super) file_glob: Option<String>,
    /// The most results, matching lines or files, of this call. Default 50, at most 1000.
    #[serde(default, deserialize_with = "arguments::whole")]
    pub(super) limit: Option<u64>,
    /// How many results to pass over: `next_offset` of the call before. Default 0.
    #[serde(default, deserialize_with = "arguments::whole")]
    pub(super) offset: Option<u64>,
    /// `content` (default): the matching lines. `files_only`: the files with a match. `count`: how many lines match in each file.
    #[serde(default)]
    pub(super) output_mode: Option<OutputMode>,
    /// How many lines before and after each match to show besides. Default 0, at most 50.
    #[serde(default, deserialize_with = "arguments::whole")]
    pub(super) context: Option<u64>,
}

/// What is searched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::tools) enum Target {
    /// What files hold.
    #[default]
    #[serde(alias = "grep")]
    Content,
    /// The names of files.
    #[serde(alias = "file", alias = "find", alias = "name")]
    Files,
}

/// What is told of the matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::tools) enum OutputMode {
    /// The lines.
    #[default]
    Content,
    /// The files.
    #[serde(alias = "files_with_matches")]
    FilesOnly,
    /// How many lines in each file.
    Count,
}
