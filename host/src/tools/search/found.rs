//! A page of matches, put together within the room that a result has.

use std::collections::BTreeMap;

use super::lines::Piece;
use super::output::{Line, Match, Output};
use super::page::Item;

/// The most characters of all lines and paths together.
const ROOM: usize = 100_000;

/// From so many matches on they stand under the path of their file.
const GROUPED: usize = 5;

/// What is told of a binary file.
const BINARY: &str = "binary file matches";

/// The matches of one page.
#[derive(Debug)]
pub(super) struct Found {
    matches: Vec<Match>,
    /// How many of them are no context.
    count: usize,
    room: usize,
    /// How many matches stand up to the end of this page, with those of the pages before it.
    pub(super) end: u64,
}

impl Found {
    /// Begins a page after `offset` matches.
    pub(super) fn after(offset: u64) -> Self {
        Self { matches: Vec::new(), count: 0, room: ROOM, end: offset }
    }

    /// Adds what was fetched of one file; `whole` says that it is all that was asked for. Returns whether there was room.
    pub(super) fn add(&mut self, path: &str, item: Item, piece: Piece, whole: bool) -> bool {
        if piece.binary {
            let line = Line { content: BINARY.to_owned(), binary: true, ..Line::default() };
            if !self.push(path, vec![line]) {
                return false;
            }
            // It is told of once, whatever it holds.
            (self.count, self.end) = (self.count + 1, item.end);
            return true;
        }
        let mut at = item.at;
        // Lines are added up to each match, so that none stands without its neighbours.
        let mut group = Vec::new();
        for line in piece.lines {
            let asked = line.asked;
            let (number, content) = (Some(line.number), line.content);
            group.push(Line { line: number, content, context: !asked, binary: false });
            if !asked {
                continue;
            }
            if !self.push(path, std::mem::take(&mut group)) {
                return false;
            }
            at += 1;
            (self.count, self.end) = (self.count + 1, at);
        }
        if whole {
            // Fewer were found than counted if the file was changed meanwhile: the next page begins behind it all the same.
            self.end = item.at + item.take;
        }
        group.is_empty() || self.push(path, group)
    }

    fn push(&mut self, path: &str, lines: Vec<Line>) -> bool {
        let size: usize = lines.iter().map(|line| line.content.len() + path.len() + 20).sum();
        // One match always has room, however long its path.
        if size > self.room && self.count > 0 {
            return false;
        }
        self.room = self.room.saturating_sub(size);
        self.matches.extend(lines.into_iter().map(|at| Match { path: path.to_owned(), at }));
        true
    }

    /// Puts the page into a result.
    pub(super) fn put(self, output: &mut Output) {
        if self.count < GROUPED {
            output.matches = Some(self.matches);
            return;
        }
        let mut files: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        for found in self.matches {
            files.entry(found.path).or_default().push(found.at);
        }
        output.matches_by_file = Some(files);
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::FileLine;
    use super::*;

    fn piece(count: u64, length: usize) -> Piece {
        let line = |number| FileLine { number, asked: number % 2 == 0, content: "x".repeat(length) };
        Piece { binary: false, lines: (1..=count * 2).map(line).collect() }
    }

    fn item(at: u64, take: u64) -> Item {
        Item { take, at, end: at + take + 7, ..Item::default() }
    }

    #[test]
    fn five_matches_and_more_stand_under_their_files() {
        for (count, grouped) in [(4, false), (5, true)] {
            let mut found = Found::after(0);
            assert!(found.add("a", item(0, count), piece(count, 1), true));
            assert_eq!(found.end, count);
            let mut output = Output::default();
            found.put(&mut output);
            assert_eq!((output.matches.is_none(), output.matches_by_file.is_some()), (grouped, grouped));
        }
    }

    #[test]
    fn a_page_ends_where_there_is_no_more_room() {
        let mut found = Found::after(3);
        assert!(!found.add("a", item(3, 1000), piece(1000, 500), true));
        assert!(found.end > 3 + 50 && found.end < 3 + 200, "{}", found.end);
        assert_eq!(found.end, 3 + found.count as u64);
        assert_eq!(found.matches.len(), found.count * 2, "no neighbours of what is not there");
        let mut found = Found::after(0);
        assert!(found.add(&"p".repeat(200_000), item(0, 1), piece(1, 1), true), "one always has room");
    }

    #[test]
    fn a_binary_file_is_told_of_once() {
        let mut found = Found::after(0);
        assert!(found.add("a", item(0, 2), Piece { binary: true, lines: Vec::new() }, true));
        assert_eq!((found.end, found.count), (9, 1));
    }

    #[test]
    fn what_was_only_begun_goes_on_where_it_ended() {
        let mut found = Found::after(0);
        assert!(found.add("a", item(0, 10), piece(2, 1), false));
        assert_eq!(found.end, 2);
        let mut found = Found::after(0);
        assert!(found.add("a", item(0, 10), piece(2, 1), true));
        assert_eq!(found.end, 10);
    }
}
