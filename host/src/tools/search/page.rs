//! Which lines of which files stand on one page.
//!
//! All matches stand in one row: file after file, line after line. A page is a piece of that row, so pages fit together as long
//! as nothing changes.

/// A piece of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Item {
    /// The file, as a place in the list of files.
    pub(super) file: usize,
    /// How many of its matches come before.
    pub(super) skip: u64,
    /// How many there are.
    pub(super) take: u64,
    /// How many matches of all files come before.
    pub(super) at: u64,
    /// How many matches of all files stand up to the end of this file.
    pub(super) end: u64,
}

/// Returns what stands on the page that begins after `offset` matches. `counts` says how many each file has.
pub(super) fn items(counts: impl IntoIterator<Item = u64>, offset: u64, limit: u64) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut end, mut left) = (0_u64, limit);
    for (file, count) in counts.into_iter().enumerate() {
        let skip = offset.saturating_sub(end).min(count);
        let at = end.saturating_add(skip);
        end = end.saturating_add(count);
        let take = (count - skip).min(left);
        if take > 0 {
            items.push(Item { file, skip, take, at, end });
            left -= take;
        }
        if left == 0 {
            break;
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_fit_together() {
        let counts = [3, 0, 1, 10, 2];
        let all: Vec<_> = counts
            .iter()
            .enumerate()
            .flat_map(|(file, count)| (0..*count).map(move |at| (file, at)))
            .collect();
        for limit in 1..20 {
            let mut seen = Vec::new();
            for page in 0..=16 / limit {
                for item in items(counts, page * limit, limit) {
                    assert_eq!(item.at, seen.len() as u64);
                    seen.extend((item.skip..item.skip + item.take).map(|at| (item.file, at)));
                }
            }
            assert_eq!(seen, all, "{limit}");
        }
        assert!(items(counts, 16, 5).is_empty() && items(counts, 0, 0).is_empty());
        assert_eq!(items(counts, 5, 2), [Item { file: 3, skip: 1, take: 2, at: 5, end: 14 }]);
    }
}
