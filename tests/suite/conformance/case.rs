//! One thing that holds of providers, and the table of all.

use hostel_tests::provider::Subject;

use super::casebook::{at_once, background as left, ends as ended, state as kept, streams, text};
use super::{
    background, concurrency, encoding, ends, input, large, leaks, login, output, quoting, signals, state,
    trees, values,
};

/// One thing that holds of providers.
#[derive(Clone, Copy)]
pub(super) struct Case {
    /// Its name in reports.
    pub(super) id: &'static str,
    /// What holds.
    pub(super) about: &'static str,
    /// Where it does not apply.
    pub(super) needs: Needs,
    /// Panics where it does not hold.
    pub(super) run: fn(&Subject),
}

/// Where a case applies.
#[derive(Clone, Copy)]
pub(super) enum Needs {
    /// Everywhere.
    Nothing,
    /// On all backends but this one, for this reason.
    Another(&'static str, &'static str),
}

impl Needs {
    /// Returns why a case does not apply to `backend`.
    pub(super) fn missing(self, backend: &str) -> Option<&'static str> {
        match self {
            Self::Another(other, reason) if other == backend => Some(reason),
            Self::Another(..) | Self::Nothing => None,
        }
    }
}

/// What a command starts must be able to outlive it.
pub(super) const SURVIVORS: Needs = Needs::Another(
    "bubblewrap",
    "every command has a pid namespace of its own, so nothing that it has started outlives it",
);

/// Signals must reach the shell itself, and its end must be told by the kernel.
pub(super) const OWN_SHELL: Needs = Needs::Another(
    "bubblewrap",
    "`bwrap` stands in front of the shell: it gets the signals, and tells of the shell's end by an exit code",
);

/// Makes a case that applies everywhere.
pub(super) const fn case(id: &'static str, about: &'static str, run: fn(&Subject)) -> Case {
    Case { id, about, needs: Needs::Nothing, run }
}

impl Case {
    /// The same case, which does not apply everywhere.
    pub(super) const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }
}

/// All cases, by class.
const CLASSES: &[(&str, &[&[Case]])] = &[
    ("background", &[background::CASES, left::CASES]),
    ("concurrency", &[concurrency::CASES, at_once::CONCURRENCY]),
    ("encoding", &[encoding::CASES, text::ENCODING]),
    ("ends", &[ends::CASES, ended::ENDS]),
    ("input", &[input::CASES, streams::INPUT]),
    ("large", &[large::CASES, streams::LARGE, left::LARGE]),
    ("leaks", &[leaks::CASES, at_once::LEAKS]),
    ("login", &[login::CASES]),
    ("output", &[output::CASES, ended::OUTPUT]),
    ("quoting", &[quoting::CASES, text::QUOTING]),
    ("signals", &[signals::CASES, ended::SIGNALS]),
    ("state", &[state::CASES, values::CASES, kept::CASES]),
    ("trees", &[trees::CASES, ended::TREES]),
];

/// Returns the cases of a class.
pub(super) fn of(class: &str) -> impl Iterator<Item = Case> {
    let (_, tables) = CLASSES.iter().find(|(name, _)| *name == class).unwrap();
    tables.iter().flat_map(|table| table.iter().copied())
}

#[test]
fn each_case_has_a_name_of_its_own() {
    let all: Vec<Case> = CLASSES.iter().flat_map(|(class, _)| of(class)).collect();
    let mut names: Vec<&str> = all.iter().map(|case| case.id).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len(), "two cases have the same name: {names:?}");
    assert!(all.iter().all(|case| !case.about.is_empty()));
}
