//! The tool `search_files`: which lines match a pattern, and which files have a name.
//!
//! A sandbox may have ripgrep, GNU grep or busybox, and no two of them print, ignore or understand the same. So one road
//! leads through all: a list of plain files (`rg --files`, or `find`), some hundred names at a time given to the program that
//! matches, and only counts come back. What is hidden is taken out here, the rest is put in one order, and only the lines of
//! the page are fetched. A program that fails is never a search without a match: it is asked about the pattern first, and what
//! it says of files is told.
//!
//! | file | holds |
//! | --- | --- |
//! | `tool.rs`, `input.rs`, `output.rs` | what an agent gives and gets |
//! | `query.rs`, `repeats.rs` | a call that makes sense; the one that is made over and over |
//! | `dialects.rs`, `extended.rs`, `class.rs` | the pattern as each program understands it |
//! | `globs.rs`, `braces.rs`, `component.rs` | patterns for names |
//! | `walk.rs`, `place.rs`, `records.rs`, `names.rs` | which files fit |
//! | `page.rs`, `lines.rs`, `found.rs` | the lines of one page |
//! | `by_name.rs`, `by_content.rs` | the two searches |
//! | `walk.sh`, `lines.sh`, `passed_over.sh` | what runs in the sandbox, behind what they share: |
//! | `begin.sh`, `place.sh`, `match.sh`, `engine.sh`, `list.sh` | the shell, the folder, the pattern, the program, the files |

mod braces;
mod by_content;
mod by_name;
mod class;
mod component;
mod dialects;
mod extended;
mod found;
mod globs;
mod input;
mod lines;
mod names;
mod output;
mod page;
mod place;
mod query;
mod records;
mod repeats;
mod tool;
mod walk;

pub(super) use repeats::Searches;
pub(super) use tool::SearchFiles;
