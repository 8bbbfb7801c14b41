//! What the kit found, as rows.

use std::fmt;

use serde::Serialize;

/// What came of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It holds.
    Passed,
    /// It is broken.
    Failed,
    /// It could not be tried, or the interface leaves open what was tried.
    Skipped,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        }
    }
}

/// One rule and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The rule's id, which stays the same between versions, such as `exec.exit-code`.
    pub rule: &'static str,
    /// What must hold.
    pub about: String,
    /// What came of it.
    pub verdict: Verdict,
    /// What was found, or why it was skipped: one line, which may be empty.
    pub detail: String,
    /// How to see it without the kit.
    pub reproduce: String,
}

/// What a table shows below the columns begins under the second of them.
const INDENT: &str = "         ";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<7}  {:<24}  {}", self.verdict.word(), self.rule, self.about)?;
        if self.verdict != Verdict::Passed && !self.detail.is_empty() {
            write!(f, "\n{INDENT}{}", self.detail)?;
        }
        if self.verdict == Verdict::Failed {
            write!(f, "\n{INDENT}to see it: {}", self.reproduce)?;
        }
        Ok(())
    }
}

/// All rows, in the order in which the rules were tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// A row for each rule.
    pub rows: Vec<Row>,
}

impl Report {
    /// Returns whether no rule is broken. Rules that were skipped do not count.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failed().next().is_none()
    }

    /// Returns the rows of the rules that are broken.
    pub fn failed(&self) -> impl Iterator<Item = &Row> {
        self.with(Verdict::Failed)
    }

    /// Returns the rows of the rules that were skipped.
    pub fn skipped(&self) -> impl Iterator<Item = &Row> {
        self.with(Verdict::Skipped)
    }

    /// Does nothing if no rule is broken, for use in a test.
    ///
    /// # Panics
    ///
    /// Panics with the table if a rule is broken.
    pub fn assert(&self) {
        assert!(self.passed(), "the provider breaks rules of the interface\n\n{self}");
    }

    fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.verdict == verdict)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            writeln!(f, "{row}")?;
        }
        let count = |verdict| self.with(verdict).count();
        let (passed, failed, skipped) =
            (count(Verdict::Passed), count(Verdict::Failed), count(Verdict::Skipped));
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}
