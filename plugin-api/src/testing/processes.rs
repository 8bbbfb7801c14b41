//! What `/proc` says of processes on this machine.

use std::fs;

/// Returns the ids of the processes that have `argument` in their command line. A zombie has none.
pub(super) fn with_argument(argument: &str) -> Vec<u32> {
    let argument = argument.as_bytes();
    let has = |id: &u32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.windows(argument.len()).any(|window| window == argument)
    };
    ids().filter(has).collect()
}

/// Returns how many processes, `process` aside, are its children or its adopter's, or carry a call's id that begins with `mark` as
/// `HOSTEL_CALL`.
pub(super) fn related(process: u32, adopter: Option<u32>, mark: &str) -> usize {
    let carries = |id: u32| {
        let environ = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let mut variables = environ.split(|byte| *byte == 0);
        let ids = variables.find_map(|variable| variable.strip_prefix(b"HOSTEL_CALL="));
        // A call within a call carries the ids of both.
        ids.is_some_and(|ids| ids.split(|byte| *byte == b':').any(|id| id.starts_with(mark.as_bytes())))
    };
    let is_child = |id: u32| parent_of(id).is_some_and(|parent| parent == process || Some(parent) == adopter);
    ids().filter(|id| *id != process && (is_child(*id) || carries(*id))).count()
}

/// Reads the fourth field of `/proc/PID/stat`; the second is in parentheses and may hold any character.
fn parent_of(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn ids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has this number.
    const NOBODY: u32 = u32::MAX;

    #[test]
    fn a_child_is_found_by_its_argument_and_its_parent() {
        let argument = format!("61.{:010}", std::process::id());
        let mut child = std::process::Command::new("sleep").arg(&argument).spawn().unwrap();
        assert_eq!(parent_of(child.id()), Some(std::process::id()));
        assert!(related(std::process::id(), None, "no-such-call") >= 1);
        assert_eq!(related(child.id(), None, "no-such-call"), 0);
        // What has lost its parent is its adopter's.
        assert!(related(NOBODY, Some(std::process::id()), "no-such-call") >= 1);
        assert_eq!(with_argument(&argument), [child.id()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(with_argument(&argument).is_empty());
    }
}
