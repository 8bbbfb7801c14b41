//! Counts edits that failed, so that whoever tries the same thing over and over is told to do another.

use std::collections::HashMap;

/// From this attempt on there is a hint.
const MANY: u32 = 3;

/// Of more files than this nothing is remembered: the counting begins anew.
const MOST: usize = 1000;

/// How often edits of each file have failed since one last succeeded.
#[derive(Debug, Default)]
pub(in crate::tools) struct Failures {
    counts: HashMap<String, u32>,
}

impl Failures {
    /// Counts an edit that failed. Returns what to do after too many.
    pub(super) fn failed(&mut self, path: &str) -> Option<String> {
        if self.counts.len() >= MOST && !self.counts.contains_key(path) {
            self.counts.clear();
        }
        let count = self.counts.entry(path.to_owned()).or_default();
        *count = count.saturating_add(1);
        (*count >= MANY).then(|| {
            format!(
                "{count} edits of this file failed in a row: read it again with `read_file`, give a shorter `old_string` \
                 that is in it once, or write it whole with `write_file`"
            )
        })
    }

    /// Forgets what failed before.
    pub(super) fn succeeded(&mut self, path: &str) {
        self.counts.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_failure_in_a_row_gives_a_hint() {
        let mut failures = Failures::default();
        assert_eq!((failures.failed("a"), failures.failed("a"), failures.failed("b")), (None, None, None));
        assert!(failures.failed("a").is_some_and(|hint| hint.starts_with("3 edits")));
        failures.succeeded("a");
        assert_eq!(failures.failed("a"), None);
    }
}
