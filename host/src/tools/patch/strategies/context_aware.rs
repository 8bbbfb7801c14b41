//! Finds a block by most of its lines, where some have drifted, be it the first or the last.

use std::collections::HashMap;

use super::found::{Fit, Match};
use super::lines::Lines;
use super::similarity::{names, plain, says_the_same, similarity};
use super::strategy::SHORTEST;
use super::unicode::Dash;

/// How alike a line must be to count.
const ALIKE: f32 = 0.80;

/// More blocks than this say nothing about the place.
const MOST: usize = 64;

/// Returns the blocks of `lines` as long as `old` of which at least half of the lines are much alike.
pub(super) fn find(lines: &Lines, old: &[&str]) -> Vec<Match> {
    let filled = old.iter().filter(|line| !names(line).is_empty()).count();
    if filled < SHORTEST {
        return Vec::new();
    }
    let mut starts: Vec<usize> = starts(lines, old);
    if starts.len() > MOST {
        return Vec::new();
    }
    starts.retain(|start| {
        let alike = |at: &usize| {
            similarity(&plain(old[*at], Dash::One), &plain(lines.line(start + at), Dash::One)) >= ALIKE
        };
        (0..old.len()).filter(alike).count() * 2 >= old.len()
    });
    let made = |start: usize| {
        let pair = |at: usize| says_the_same(old[at], lines.line(start + at)).then_some(at);
        let pairs = (0..old.len()).map(pair).collect();
        Match::new(lines, &(start..start + old.len()), Fit::Lines { pairs, certain: false })
    };
    starts.into_iter().map(made).collect()
}

/// Returns where blocks begin of which at least half of the lines that are not blank say the same as in `old`.
fn starts(lines: &Lines, old: &[&str]) -> Vec<usize> {
    let Some(last) = lines.len().checked_sub(old.len()) else { return Vec::new() };
    let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, line) in old.iter().enumerate().filter(|(_, line)| !names(line).is_empty()) {
        wanted.entry(plain(line, Dash::One)).or_default().push(at);
    }
    let mut votes = vec![0_usize; last + 1];
    for index in 0..lines.len() {
        let Some(places) = wanted.get(&plain(lines.line(index), Dash::One)) else { continue };
        let begins = places.iter().filter_map(|at| index.checked_sub(*at)).filter(|start| *start <= last);
        begins.for_each(|start| votes[start] += 1);
    }
    let filled: usize = wanted.values().map(Vec::len).sum();
    (0..=last).filter(|start| votes[*start] * 2 >= filled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_though_its_first_line_has_drifted() {
        let lines = Lines::new("x\ndef a(one, two):\n    load()\n    check()\n    done()\n");
        let old = ["def a(one, two,):", "    load()", "    check()", "    done()"];
        let found = find(&lines, &old);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].body, 2..lines.text().len() - 1);
        assert!(find(&lines, &old[..3]).is_empty());
        assert!(find(&lines, &["def b():", "    save()", "    check()", "    stop()"]).is_empty());
    }
}
