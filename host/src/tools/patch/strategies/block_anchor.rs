//! Finds a block by its first and its last line, where the lines between have drifted.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::found::{Fit, Match};
use super::lines::Lines;
use super::similarity::{names, plain, says_the_same, similarity};
use super::strategy::SHORTEST;
use super::unicode::Dash;

/// How alike the lines between must be where there is one such block, and where there are several.
const ALIKE: (f32, f32) = (0.50, 0.70);

/// More pairs of a first and a last line than this say nothing about the place.
const MOST: usize = 64;

/// Returns the blocks of `lines` that begin and end as `old` does, with much the same between.
pub(super) fn find(lines: &Lines, old: &[&str]) -> Vec<Match> {
    let (Some(first), Some(last)) = (old.first(), old.last()) else { return Vec::new() };
    let filled = old.iter().filter(|line| !names(line).is_empty()).count();
    if filled < SHORTEST || names(first).is_empty() && names(last).is_empty() {
        return Vec::new();
    }
    let begins: Vec<usize> = (0..lines.len()).filter(|at| says_the_same(first, lines.line(*at))).collect();
    let ends: Vec<usize> = (0..lines.len()).filter(|at| says_the_same(last, lines.line(*at))).collect();
    let blocks = candidates(&begins, &ends, old.len());
    let between = |block: &[&str]| {
        inside(block).iter().map(|line| plain(line, Dash::One)).collect::<Vec<_>>().join("\n")
    };
    let wanted = between(old);
    let enough = match blocks.len() {
        0 => return Vec::new(),
        1 => ALIKE.0,
        2..=MOST => ALIKE.1,
        _ => return Vec::new(),
    };
    let certain = |only: &[usize], line: &str| only.len() == 1 && !names(line).is_empty();
    let certain = certain(&begins, first) || certain(&ends, last);
    let mut best: Vec<(f32, Range<usize>)> = Vec::new();
    for block in blocks {
        let alike = similarity(&wanted, &between(&lines.block(block.clone())));
        match best.last_mut() {
            // Of two ends of one block, the better.
            Some((other, other_block)) if other_block.start == block.start => {
                if alike > *other {
                    (*other, *other_block) = (alike, block);
                }
            }
            _ => best.push((alike, block)),
        }
    }
    let made = |block: Range<usize>| {
        let pairs = pairs(old, &lines.block(block.clone())).into();
        Match::new(lines, &block, Fit::Lines { pairs, certain })
    };
    best.into_iter().filter(|(alike, _)| *alike >= enough).map(|(_, block)| made(block)).collect()
}

fn inside<'a, 'b>(block: &'b [&'a str]) -> &'b [&'a str] {
    match block {
        [_, inside @ .., _] => inside,
        _ => &[],
    }
}

/// Returns the blocks between a first and a last line whose length is not more than half as much off.
fn candidates(begins: &[usize], ends: &[usize], length: usize) -> Vec<Range<usize>> {
    let lengths = length - length / 2..=length + length / 2;
    let mut blocks = Vec::new();
    for begin in begins {
        let from = ends.partition_point(|end| *end < begin + lengths.start() - 1);
        let near = ends[from..].iter().take_while(|end| **end - begin < *lengths.end());
        blocks.extend(near.map(|end| *begin..end + 1).take(MOST + 1));
        if blocks.len() > MOST {
            break;
        }
    }
    blocks
}

/// Says for each line of `old` which line of `found` says the same. The first and the last lines are why it was found.
fn pairs(old: &[&str], found: &[&str]) -> Vec<Option<usize>> {
    let plain = |lines: &[&str]| lines.iter().map(|line| plain(line, Dash::One)).collect::<Vec<_>>();
    let mut pairs = vec![None; old.len()];
    for op in capture_diff_slices(Algorithm::Myers, &plain(inside(old)), &plain(inside(found))) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            for at in 1..=len {
                pairs[old_index + at] = Some(new_index + at);
            }
        }
    }
    if let ([first, .., last], Some(end)) = (&mut pairs[..], found.len().checked_sub(1)) {
        (*first, *last) = (Some(0), Some(end));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "fn start() {\n    // old comment here\n    load(1);\n    check();\n}\n\nfn other() {\n}\n";

    fn found(old: &str) -> Vec<Match> {
        find(&Lines::new(FILE), &old.split('\n').collect::<Vec<_>>())
    }

    #[test]
    fn what_is_between_may_have_drifted() {
        let found = found("fn start() {\n    // new comment here\n    load(1);\n    check();\n}");
        assert_eq!(found.len(), 1);
        let Fit::Lines { pairs, certain } = &found[0].fit else { panic!("lines") };
        assert_eq!((&pairs[..], *certain), (&[Some(0), None, Some(2), Some(3), Some(4)][..], true));
    }

    #[test]
    fn short_blocks_and_strangers_are_not_found() {
        assert!(found("fn start() {\n    load(2);\n}").is_empty());
        assert!(found("fn start() {\n    a();\n    b();\n    c();\n}").is_empty());
        assert!(found("fn begin() {\n    // old comment here\n    load(1);\n    check();\n}").is_empty());
    }
}
