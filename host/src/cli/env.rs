//! `hostel env`: the environments that tasks have left, and their cleanup.

use clap::Subcommand;
use hostel_plugin_api::Error;
use serde::Serialize;

use super::failure::{FAILED, Failure};
use super::print::{Out, say, visible};
use crate::environments::cleanup::{Background, Report, cleanup};
use crate::environments::ledger::{Ledger, Row, State};
use crate::home::Home;
use crate::processes::Processes;
use crate::world::{Options, World};

#[derive(Debug, Subcommand)]
pub(super) enum Env {
    /// List the environments of all tasks
    #[command(
        after_help = "STATE is `busy` (a call is in flight), `background` (background processes are alive) or `idle`.\n\n\
                            Example:\n  hostel env list --json | jq -r '.[] | select(.idle_s > 86400) | .task'"
    )]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Destroy environments, and all that is kept of them
    #[command(
        after_help = "Background processes of the task are ended first, except detached ones. An environment with a call in\n\
                            flight or a detached process in it stays. `--force` destroys it all the same, and removes what is kept\n\
                            here of one whose backend cannot clean it up or is gone.\n\n\
                            Examples:\n  hostel env cleanup build\n  hostel env cleanup --idle 86400\n  \
                            hostel env cleanup --all --backend acmebox"
    )]
    Cleanup {
        /// The tasks
        #[arg(value_name = "TASK", required_unless_present_any = ["all", "idle"])]
        tasks: Vec<String>,
        /// Only on this backend
        #[arg(long, value_name = "NAME")]
        backend: Option<String>,
        /// Those of all tasks
        #[arg(long, conflicts_with = "tasks")]
        all: bool,
        /// Only those that are idle, and have been for this many seconds
        #[arg(long, value_name = "SECONDS")]
        idle: Option<u64>,
        /// Whatever is going on in them
        #[arg(long)]
        force: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(action: Env, out: &mut Out) -> Result<u8, Failure> {
    match action {
        Env::List { json } => list(json, out),
        Env::Cleanup { tasks, backend, idle, force, json, all: _ } => {
            let wanted = Wanted { tasks, backend, idle };
            clean(&wanted, force, json, out)
        }
    }
}

fn list(json: bool, out: &mut Out) -> Result<u8, Failure> {
    let home = Home::find()?;
    let rows =
        seen(&Ledger::new(&home).list().map_err(|error| unread(&error))?, &Processes::new(home.clone()));
    if json {
        out.json(&rows)?;
        return Ok(0);
    }
    let mut table = vec![["TASK", "BACKEND", "STATE", "AGE", "IDLE", "ID"].map(str::to_owned).to_vec()];
    table.extend(rows.into_iter().map(|row| {
        let id = row.id.unwrap_or_else(|| "-".into());
        vec![row.task, row.backend, word(row.state).into(), span(row.age_s), span(row.idle_s), id]
    }));
    out.table(&table)?;
    Ok(0)
}

fn word(state: State) -> &'static str {
    match state {
        State::Busy => "busy",
        State::Background => "background",
        State::Idle => "idle",
    }
}

/// Writes a number of seconds for a person, in the largest unit that leaves more than one of it.
fn span(seconds: u64) -> String {
    let units = [(86400, "d"), (3600, "h"), (60, "min")];
    match units.into_iter().find(|(length, _)| seconds >= 2 * length) {
        Some((length, unit)) => format!("{} {unit}", seconds / length),
        None => format!("{seconds} s"),
    }
}

/// Adds to what the ledger knows which environments have background processes.
fn seen(rows: &[Row], background: &dyn Background) -> Vec<Row> {
    let with = |row: &Row| {
        let mut row = row.clone();
        if row.state == State::Idle && background.live(&row.backend, &row.task) > 0 {
            row.state = State::Background;
        }
        row
    };
    rows.iter().map(with).collect()
}

fn unread(error: &std::io::Error) -> Failure {
    Failure::new(format!("failed to read the folder of tasks: {error}"))
        .with_hint("check its permissions; `hostel status` shows the home")
}

/// What is to be cleaned up.
#[derive(Default)]
struct Wanted {
    /// All if empty.
    tasks: Vec<String>,
    backend: Option<String>,
    idle: Option<u64>,
}

impl Wanted {
    /// Returns the rows that are meant. A task that is named and not there is an error, before anything is done.
    fn choose(&self, ledger: &Ledger, background: &dyn Background) -> Result<Vec<Row>, Failure> {
        let here = |row: &Row| self.backend.as_ref().is_none_or(|backend| *backend == row.backend);
        let mut rows: Vec<Row> = Vec::new();
        for task in &self.tasks {
            let found: Vec<Row> =
                ledger.find(task).map_err(|error| unread(&error))?.into_iter().filter(here).collect();
            if found.is_empty() {
                let place = self.backend.as_ref().map_or_else(String::new, |name| format!(" on `{name}`"));
                let message = format!("there is no environment of task `{task}`{place}");
                return Err(Failure::new(message).with_hint("`hostel env list` shows all"));
            }
            // A task may be named twice.
            rows.extend(
                found
                    .into_iter()
                    .filter(|row| !rows.iter().any(|other| other.dir == row.dir))
                    .collect::<Vec<_>>(),
            );
        }
        if self.tasks.is_empty() {
            rows = ledger.list().map_err(|error| unread(&error))?.into_iter().filter(here).collect();
        }
        let Some(idle) = self.idle else { return Ok(rows) };
        let rows = seen(&rows, background).into_iter();
        Ok(rows.filter(|row| row.state == State::Idle && row.idle_s >= idle).collect())
    }
}

/// What became of one environment, as JSON.
#[derive(Serialize)]
struct Done {
    ok: bool,
    #[serde(flatten)]
    report: Report,
    error: Option<String>,
    hint: Option<String>,
}

impl Done {
    fn of(row: &Row, result: Result<Report, Error>) -> Self {
        match result {
            Ok(report) => Self { ok: true, report, error: None, hint: None },
            Err(error) => {
                let (task, backend) = (row.task.clone(), row.backend.clone());
                let report = Report { task, backend, ..Report::default() };
                let hint = error.hint().map(str::to_owned);
                Self { ok: false, report, error: Some(error.message().to_owned()), hint }
            }
        }
    }

    fn say(&self) {
        if let Some(error) = &self.error {
            say("error", error);
        }
        if let Some(hint) = &self.hint {
            say("hint", hint);
        }
        for warning in &self.report.warnings {
            say("warning", warning);
        }
    }
}

fn clean(wanted: &Wanted, force: bool, json: bool, out: &mut Out) -> Result<u8, Failure> {
    let world = World::open(Options::default())?;
    let processes = Processes::new(world.home.clone());
    let rows = wanted.choose(&Ledger::new(&world.home), &processes)?;
    let mut all = Vec::new();
    for row in &rows {
        let done = Done::of(row, cleanup(&world, &processes, &row.backend, &row.task, force));
        if !json {
            if done.ok {
                out.line(&visible(&format!("cleaned up task `{}` on `{}`", row.task, row.backend)))?;
            }
            done.say();
        }
        all.push(done);
    }
    if json {
        out.json(&all)?;
    } else if all.is_empty() {
        say("note", "there is nothing to clean up");
    }
    Ok(if all.iter().all(|done| done.ok) { 0 } else { FAILED })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::cleanup::Stopped;

    /// Background processes in the environments of one task.
    struct In(&'static str);

    impl Background for In {
        fn live(&self, _: &str, task: &str) -> usize {
            usize::from(task == self.0)
        }

        fn end(&self, _: &str, _: &str) -> Result<Stopped, Error> {
            Ok(Stopped::default())
        }
    }

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(&Home::at(dir.path().join("home")).unwrap());
        for (backend, task) in [("local", "a"), ("local", "b"), ("acmebox", "a")] {
            ledger.open(backend, task).unwrap();
        }
        (dir, ledger)
    }

    fn chosen(wanted: &Wanted, ledger: &Ledger) -> Vec<(String, String)> {
        let rows = wanted.choose(ledger, &In("b")).unwrap().into_iter();
        rows.map(|row| (row.task, row.backend)).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(task, backend)| ((*task).to_owned(), (*backend).to_owned())).collect()
    }

    #[test]
    fn what_is_named_is_chosen_once() {
        let (_dir, ledger) = ledger();
        let tasks = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let wanted = Wanted { tasks: tasks(&["a", "a"]), ..Wanted::default() };
        let mut both = chosen(&wanted, &ledger);
        both.sort();
        assert_eq!(both, pairs(&[("a", "acmebox"), ("a", "local")]));
        let wanted = Wanted { tasks: tasks(&["a"]), backend: Some("local".into()), idle: None };
        assert_eq!(chosen(&wanted, &ledger), pairs(&[("a", "local")]));
        let wanted = Wanted { tasks: tasks(&["a", "b"]), backend: Some("acmebox".into()), idle: None };
        let failure = wanted.choose(&ledger, &In("")).unwrap_err();
        assert_eq!(failure.message, "there is no environment of task `b` on `acmebox`");
    }

    #[test]
    fn only_what_is_idle_is_chosen_by_its_idleness() {
        let (_dir, ledger) = ledger();
        let known = ledger.open("local", "a").unwrap();
        let in_use = known.begin().unwrap();
        let wanted = Wanted { idle: Some(0), ..Wanted::default() };
        assert_eq!(chosen(&wanted, &ledger), pairs(&[("a", "acmebox")]));
        drop(in_use);
        assert_eq!(chosen(&Wanted { idle: Some(1000), ..Wanted::default() }, &ledger), []);
        assert_eq!(chosen(&Wanted::default(), &ledger).len(), 3);
    }

    #[test]
    fn spans_are_short() {
        let shown = [0, 119, 120, 7199, 7200, 172_800].map(span);
        assert_eq!(shown, ["0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
    }
}
