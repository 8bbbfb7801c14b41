//! The nine ways to find a text, what they are called, and in which order they are tried.

/// Lines with a name or number in them that a block must have to be found by what is merely alike.
pub(super) const SHORTEST: usize = 4;

/// A way to find a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// It stands there as it is.
    Exact,
    /// Line by line, without the white space around lines.
    LineTrimmed,
    /// As much white space between words as there is.
    WhitespaceNormalized,
    /// Line by line, without indentation, and with as much white space as there is.
    IndentationFlexible,
    /// Without the backslashes of escapes.
    EscapeNormalized,
    /// Without the white space and blank lines around the whole.
    TrimmedBoundary,
    /// Of characters that look alike, whichever they are.
    UnicodeNormalized,
    /// By the first and the last line.
    BlockAnchor,
    /// By most of the lines.
    ContextAware,
}

/// The order in which they are tried.
pub(super) const ORDER: [Strategy; 9] = [
    Strategy::Exact,
    Strategy::LineTrimmed,
    Strategy::WhitespaceNormalized,
    Strategy::IndentationFlexible,
    Strategy::EscapeNormalized,
    Strategy::TrimmedBoundary,
    Strategy::UnicodeNormalized,
    Strategy::BlockAnchor,
    Strategy::ContextAware,
];

impl Strategy {
    /// Whether it finds what is merely alike.
    pub(super) fn is_approximate(self) -> bool {
        matches!(self, Self::BlockAnchor | Self::ContextAware)
    }

    /// Its name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineTrimmed => "line_trimmed",
            Self::WhitespaceNormalized => "whitespace_normalized",
            Self::IndentationFlexible => "indentation_flexible",
            Self::EscapeNormalized => "escape_normalized",
            Self::TrimmedBoundary => "trimmed_boundary",
            Self::UnicodeNormalized => "unicode_normalized",
            Self::BlockAnchor => "block_anchor",
            Self::ContextAware => "context_aware",
        }
    }

    /// What it took no notice of, for a warning.
    pub(crate) fn difference(self) -> &'static str {
        match self {
            Self::Exact => "nothing",
            Self::LineTrimmed | Self::IndentationFlexible => "white space or indentation",
            Self::WhitespaceNormalized => "white space",
            Self::EscapeNormalized => "backslashes",
            Self::TrimmedBoundary => "white space around the whole",
            Self::UnicodeNormalized => "white space and characters that look alike",
            Self::BlockAnchor | Self::ContextAware => "lines that the edit leaves alone",
        }
    }
}
