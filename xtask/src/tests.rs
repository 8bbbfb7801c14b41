//! Runs all tests, and ends with one line that counts them.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::cargo;

pub(crate) fn run(filter: &[String]) -> Result<()> {
    // Plugins and fixtures are libraries that no test links to, so they are built before.
    cargo::run(&["build", "--workspace"], &[])?;
    crate::abi::build()?;
    let mut command = cargo::command(&["test", "--workspace", "--no-fail-fast", "--"]);
    let mut child = command.args(filter).stdout(Stdio::piped()).spawn().context("failed to start cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut count = Count::default();
    for line in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        count.add(&line);
        writeln!(std::io::stdout(), "{line}")?;
    }
    let status = child.wait()?;
    let skipped = if count.ignored == 0 { String::new() } else { format!(", {} skipped", count.ignored) };
    println!("{} passed, {} failed{skipped}", count.passed, count.failed);
    ensure!(status.success() && count.failed == 0, "some tests failed");
    ensure!(count.passed > 0, "no test ran");
    Ok(())
}

#[derive(Debug, Default, PartialEq)]
struct Count {
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Count {
    /// Adds what a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …` says.
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in counts.split("; ") {
            let Some((number, word)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<u32>() else { continue };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn result_lines_are_added_up() {
        let mut count = Count::default();
        count.add(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s",
        );
        count.add("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        count.add("test something ... ok");
        assert_eq!(count, Count { passed: 4, failed: 2, ignored: 1 });
    }
}
