//! Decides when a background process's output is worth a notice.
//!
//! An agent that waits for `listening on` wants to hear of it once, and at once. A process that prints the pattern a
//! thousand times a second must not drown everything else that the agent hears. So notices of one process keep their
//! distance, and a process that goes on regardless is no longer watched. All processes together have a limit as well
//! (`limit.rs`). The time is always passed in: nothing here looks at a clock.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The least time between two notices of one process.
pub const BETWEEN_NOTICES: Duration = Duration::from_secs(15);

/// After so many windows in a row with suppressed matches a process is no longer watched.
const STRIKES: u32 = 3;

/// The most lines of a notice.
const LINES: usize = 20;

/// The most characters of a notice, and of the tail that tells of a completion.
const CHARACTERS: usize = 2000;

/// A line that does not fit whole is shown in part if there is room for so many characters.
const LEAST_ROOM: usize = 80;

/// Bytes of an unfinished line that are kept. A longer one is searched in overlapping pieces.
const LONGEST_LINE: usize = 64 * 1024;

/// What there is to tell of a process that is watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    /// Lines matched.
    Matched {
        /// The patterns that were found, once each.
        patterns: Vec<String>,
        /// The lines that matched: at most 20, and at most 2,000 characters.
        text: String,
        /// Further lines that matched now and are not in `text`.
        omitted: u64,
        /// Lines that matched since the last notice and were not told, because they came too soon after it.
        suppressed: u64,
    },
    /// Too much matched for too long: the process is no longer watched, and its completion is told instead.
    Disabled {
        /// Lines that matched since the last notice and were not told.
        suppressed: u64,
    },
}

/// Watches the output of one process for patterns.
#[derive(Debug)]
pub struct Watch {
    /// Empty once watching is switched off.
    patterns: Vec<String>,
    /// Bytes of the longest pattern.
    longest: usize,
    /// What there is of a line that has not ended, or its end if it is very long.
    line: Vec<u8>,
    /// Whether the line that has not ended matched already.
    line_matched: bool,
    noticed: Option<Instant>,
    /// Whether a match was suppressed since the last notice.
    struck: bool,
    strikes: u32,
    suppressed: u64,
}

impl Watch {
    /// Watches for lines that contain one of these patterns, which are plain text. Empty ones are left out.
    #[must_use]
    pub fn new(mut patterns: Vec<String>) -> Self {
        patterns.retain(|pattern| !pattern.is_empty());
        let longest = patterns.iter().map(String::len).max().unwrap_or(0);
        Self {
            patterns,
            longest,
            line: Vec::new(),
            line_matched: false,
            noticed: None,
            struck: false,
            strikes: 0,
            suppressed: 0,
        }
    }

    /// Returns whether anything can still match: there are patterns, and watching was not switched off.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// Returns how many lines matched since the last notice and were not told.
    #[must_use]
    pub fn suppressed(&self) -> u64 {
        self.suppressed
    }

    /// Takes some output, and returns what there is to tell. A line counts once it ended, with `\n` or `\r`. Colours and
    /// other escape sequences are to be removed before, or they come between the characters of a pattern.
    pub fn take(&mut self, text: &[u8], now: Instant) -> Option<Notice> {
        if !self.is_on() {
            return None;
        }
        let mut found = Found::default();
        for piece in text.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            match piece.split_last() {
                Some((b'\n' | b'\r', content)) => {
                    self.lengthen(content, &mut found);
                    self.end_line(&mut found);
                }
                _ => self.lengthen(piece, &mut found),
            }
        }
        self.decide(found, now)
    }

    /// Takes the end of the output, which also ends the last line.
    pub fn finish(&mut self, now: Instant) -> Option<Notice> {
        let mut found = Found::default();
        self.end_line(&mut found);
        self.decide(found, now)
    }

    fn lengthen(&mut self, content: &[u8], found: &mut Found) {
        for part in content.chunks(LONGEST_LINE) {
            if self.line_matched {
                return;
            }
            self.line.extend_from_slice(part);
            if self.line.len() > LONGEST_LINE + self.longest {
                self.search(found);
                // A match may lie across the cut.
                let cut = self.line.len() - (self.longest - 1);
                self.line.drain(..cut);
            }
        }
    }

    fn end_line(&mut self, found: &mut Found) {
        if !self.line_matched {
            self.search(found);
        }
        self.line.clear();
        self.line_matched = false;
    }

    fn search(&mut self, found: &mut Found) {
        let line = String::from_utf8_lossy(&self.line);
        let hit = self.patterns.iter().find_map(|pattern| Some((pattern, line.find(pattern.as_str())?)));
        if let Some((pattern, at)) = hit {
            found.add(pattern, &line, at);
            self.line_matched = true;
        }
    }

    fn decide(&mut self, found: Found, now: Instant) -> Option<Notice> {
        if found.matches == 0 {
            return None;
        }
        let since = self.noticed.map_or(Duration::MAX, |noticed| now.saturating_duration_since(noticed));
        if since < BETWEEN_NOTICES {
            self.suppressed += found.matches;
            if !std::mem::replace(&mut self.struck, true) {
                self.strikes += 1;
            }
            if self.strikes < STRIKES {
                return None;
            }
            self.patterns.clear();
            return Some(Notice::Disabled { suppressed: std::mem::take(&mut self.suppressed) });
        }
        // A whole window of silence after the last one ends the row as well.
        if !std::mem::take(&mut self.struck) || since >= BETWEEN_NOTICES * 2 {
            self.strikes = 0;
        }
        self.noticed = Some(now);
        Some(Notice::Matched {
            patterns: found.patterns,
            text: found.text,
            omitted: found.omitted,
            suppressed: std::mem::take(&mut self.suppressed),
        })
    }
}

/// The matches in one piece of output.
#[derive(Debug, Default)]
struct Found {
    patterns: Vec<String>,
    text: String,
    lines: usize,
    characters: usize,
    matches: u64,
    omitted: u64,
}

impl Found {
    fn add(&mut self, pattern: &str, line: &str, at: usize) {
        self.matches += 1;
        if !self.patterns.iter().any(|known| known == pattern) {
            self.patterns.push(pattern.to_owned());
        }
        let separator = usize::from(self.lines > 0);
        let room = CHARACTERS.saturating_sub(self.characters + separator);
        let length = line.chars().count();
        if self.omitted > 0 || self.lines == LINES || (length > room && room < LEAST_ROOM) {
            self.omitted += 1;
            return;
        }
        if separator > 0 {
            self.text.push('\n');
        }
        self.lines += 1;
        self.characters += separator + length.min(room);
        if length <= room {
            self.text.push_str(line);
            return;
        }
        // The part around the match, with a mark at either end.
        let shown = room - 2;
        let start = line[..at].chars().count().saturating_sub(room / 4).min(length - shown);
        self.text.push('…');
        self.text.extend(line.chars().skip(start).take(shown));
        self.text.push('…');
    }
}

/// Returns the end of an output that tells of a completion: its last 2,000 characters.
#[must_use]
pub fn completion(tail: &str) -> &str {
    match tail.char_indices().rev().nth(CHARACTERS - 1) {
        Some((start, _)) => &tail[start..],
        None => tail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(patterns: &[&str]) -> Watch {
        Watch::new(patterns.iter().map(|pattern| (*pattern).to_owned()).collect())
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn matched(text: &str, suppressed: u64) -> Notice {
        Notice::Matched { patterns: vec!["up".into()], text: text.into(), omitted: 0, suppressed }
    }

    #[test]
    fn a_line_matches_once_it_is_whole_wherever_it_is_cut() {
        let (text, now) = ("töt up ü\n".as_bytes(), Instant::now());
        for cut in 0..text.len() {
            let mut watch = watch(&["up"]);
            assert_eq!(watch.take(&text[..cut], now), None, "{cut}");
            assert_eq!(watch.take(&text[cut..], now), Some(matched("töt up ü", 0)), "{cut}");
        }
        let mut watch = watch(&["up", "", "UP"]);
        assert_eq!(watch.take(b"down\nUp\nnow up", now), None);
        assert_eq!(watch.finish(now), Some(matched("now up", 0)));
        assert_eq!(watch.finish(now), None);
        assert_eq!(watch.take(b"50 %\rup\r", now + seconds(15)), Some(matched("up", 0)));
        assert!(!Watch::new(vec![String::new()]).is_on());
    }

    #[test]
    fn a_line_without_end_is_searched_in_bounded_memory() {
        let now = Instant::now();
        for before in [0, 65_530, 65_536, 65_540, 131_070, 300_000] {
            for size in [1000, 70_000, 1_000_000] {
                let mut watch = watch(&["listening"]);
                let text =
                    ["x".repeat(before).as_bytes(), b"listening", &b"y".repeat(200_000), b"\nz\n"].concat();
                let mut notices = Vec::new();
                for piece in text.chunks(size) {
                    notices.extend(watch.take(piece, now));
                    assert!(watch.line.len() <= LONGEST_LINE * 2);
                }
                let [Notice::Matched { text, .. }] = &notices[..] else { panic!("{before}: {notices:?}") };
                assert!(text.contains("listening") && text.chars().count() == CHARACTERS, "{before}: {text}");
                assert_eq!(watch.suppressed(), 0);
            }
        }
    }

    #[test]
    fn matches_that_come_too_soon_are_counted_and_told_in_the_next() {
        let (mut watch, start) = (watch(&["up"]), Instant::now());
        assert_eq!(watch.take(b"up 1\n", start), Some(matched("up 1", 0)));
        assert_eq!(watch.take(b"up 2\nup 3\n", start + seconds(14)), None);
        assert_eq!(watch.suppressed(), 2);
        assert_eq!(watch.take(b"up 4\n", start + seconds(15)), Some(matched("up 4", 2)));
        assert_eq!(watch.take(b"up 5\n", start + seconds(40)), Some(matched("up 5", 0)));
    }

    #[test]
    fn three_windows_in_a_row_switch_watching_off() {
        let (mut watch, start) = (watch(&["up"]), Instant::now());
        for window in 0..3 {
            assert!(matches!(
                watch.take(b"up\n", start + seconds(window * 15)),
                Some(Notice::Matched { .. })
            ));
            let second = watch.take(b"up\nup\n", start + seconds(window * 15 + 1));
            let expected = (window == 2).then_some(Notice::Disabled { suppressed: 2 });
            assert_eq!(second, expected, "{window}");
        }
        assert!(!watch.is_on());
        assert_eq!(watch.take(b"up\n", start + seconds(1000)), None);
    }

    #[test]
    fn a_quiet_window_ends_the_row() {
        // Per notice: when it comes, and whether a match is suppressed after it.
        let rows = [
            [(0, true), (15, true), (30, false), (45, true), (60, true)],
            [(0, true), (15, true), (45, true), (60, true), (90, true)],
        ];
        for row in rows {
            let (mut watch, start) = (watch(&["up"]), Instant::now());
            for (at, again) in row {
                assert!(watch.take(b"up\n", start + seconds(at)).is_some());
                assert_eq!(again.then(|| watch.take(b"up\n", start + seconds(at + 1))).flatten(), None);
            }
            assert!(watch.is_on());
        }
    }

    #[test]
    fn a_notice_is_short() {
        let now = Instant::now();
        let Some(Notice::Matched { text, omitted, .. }) = watch(&["up"]).take(&b"up\n".repeat(25), now)
        else {
            panic!("nothing told");
        };
        assert_eq!((text.lines().count(), omitted), (20, 5));
        let line = format!("{}up\n", "ä".repeat(700));
        let Some(Notice::Matched { text, omitted, .. }) = watch(&["up"]).take(line.repeat(4).as_bytes(), now)
        else {
            panic!("nothing told");
        };
        assert_eq!((text.chars().count(), text.lines().count(), omitted), (2000, 3, 1));
        assert!(text.lines().all(|line| line.contains("up")), "{text}");
    }

    #[test]
    fn a_completion_tells_the_end() {
        let long = format!("{}{}", "a".repeat(5), "€".repeat(2000));
        assert_eq!(completion(&long), "€".repeat(2000));
        assert_eq!(completion("short"), "short");
        assert_eq!(completion(""), "");
    }
}
