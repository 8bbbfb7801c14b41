//! Holds a provider to every rule, one after the other.

use std::sync::Arc;

use super::bench::{Bench, Provider};
use super::limit::{Silent, limited};
use super::options::Options;
use super::report::{Report, Row, Verdict};
use super::rule::{Found, Rule, Unmet};
use super::{commands, declares, ends, hides, inputs, leaks, life};
use crate::TerminalEnvironmentProvider;

/// Every rule. Those that may leave something hanging come last, so that they spoil nothing for the others.
const RULES: [&[Rule]; 7] =
    [declares::RULES, commands::RULES, inputs::RULES, hides::RULES, leaks::RULES, life::RULES, ends::RULES];

/// Holds `provider` to every rule that `options` ask for.
#[must_use]
pub fn check(provider: &Arc<dyn TerminalEnvironmentProvider>, options: &Options) -> Report {
    check_with(provider, options, &mut |_| {})
}

/// Does what [`check`] does, and passes each row to `progress` as soon as there is one.
pub fn check_with(
    provider: &Arc<dyn TerminalEnvironmentProvider>,
    options: &Options,
    progress: &mut dyn FnMut(&Row),
) -> Report {
    let mut report = Report::default();
    let mut add = |row: Row| {
        progress(&row);
        report.rows.push(row);
    };
    match Bench::new(provider, options) {
        Ok(bench) => {
            let bench = Arc::new(bench);
            let name = name(&bench);
            let wanted = RULES.into_iter().flatten().filter(|rule| options.wants(rule.id));
            for rule in wanted {
                let found = find(&bench, rule);
                add(row(rule, &name, found));
            }
            bench.finish();
        }
        Err(error) => add(Row {
            rule: "kit.folder",
            about: "the kit can make a folder for what it tries".into(),
            verdict: Verdict::Failed,
            detail: one_line(&error.to_string()),
            reproduce: "mktemp -d".into(),
        }),
    }
    report
}

/// Returns what stands for the backend's name in the rows.
fn name(bench: &Bench) -> String {
    let name = bench.ask("name", |provider: &Provider| provider.name().to_owned());
    name.ok().filter(|name| declares::is_name(name)).unwrap_or_else(|| "NAME".into())
}

fn find(bench: &Arc<Bench>, rule: &'static Rule) -> Found {
    if rule.runs
        && let Some(reason) = bench.closed()
    {
        return Err(Unmet::Skipped(reason));
    }
    let theirs = Arc::clone(bench);
    let answer = limited((rule.limit)(&bench.options), move || (rule.test)(&theirs));
    let hung = matches!(answer, Err(Silent::Hung(_)));
    let found = answer.unwrap_or_else(|silent| Err(Unmet::Broken(silent.to_string())));
    if rule.runs && matches!(found, Err(Unmet::Broken(_))) {
        bench.recover(hung);
    }
    found
}

fn row(rule: &Rule, name: &str, found: Found) -> Row {
    let (verdict, detail) = match found {
        Ok(remark) => (Verdict::Passed, remark),
        Err(Unmet::Broken(detail)) => (Verdict::Failed, detail),
        Err(Unmet::Skipped(reason)) => (Verdict::Skipped, reason),
    };
    Row {
        rule: rule.id,
        about: rule.about.to_owned(),
        verdict,
        detail: one_line(&detail),
        reproduce: rule.reproduce.replace("BACKEND", name),
    }
}

/// Makes one line of what a provider may have written.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_an_id_of_its_own_and_says_all_that_it_must() {
        let rules: Vec<&Rule> = RULES.into_iter().flatten().collect();
        for (index, rule) in rules.iter().enumerate() {
            assert!(rules[..index].iter().all(|other| other.id != rule.id), "{}", rule.id);
            assert!(rule.id.len() <= 24 && rule.id.contains('.'), "{}", rule.id);
            assert!(!rule.about.is_empty() && !rule.reproduce.is_empty(), "{}", rule.id);
        }
    }
}
