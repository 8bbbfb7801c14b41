//! What becomes of background processes when their task ends.

use std::time::Duration;

use hostel_plugin_api::shell::end_call;

use super::client::{Asked, ask};
use super::control::Request;
use super::error::ProcessError;
use super::folder::Folder;
use super::manager::{LETTING_GO, Processes, let_go};
use super::record::{Lifetime, Record, Source};
use super::view::{Fate, TaskEnd};

/// How long the processes of a task may take to end. By force it takes no longer than their grace and eight seconds.
const ENDING: Duration = Duration::from_secs(60);

impl Processes {
    /// Returns how many processes run in the environment of `task` on `backend`.
    ///
    /// # Errors
    ///
    /// Fails if the processes cannot be listed.
    pub fn live_in(&self, backend: &str, task: &str) -> Result<usize, ProcessError> {
        let lives =
            |record: &&Record| record.is_running() && record.backend == backend && record.task == task;
        Ok(self.records()?.iter().filter(lives).count())
    }

    /// Ends all processes that depend on `task` on `backend`, side by side, and forgets them. What does not depend on it runs on,
    /// and is named as well.
    ///
    /// # Errors
    ///
    /// Fails if the processes cannot be listed, or one cannot be ended.
    pub fn end_task(&self, backend: &str, task: &str, source: Source) -> Result<Vec<TaskEnd>, ProcessError> {
        let of_task = |record: &Record| record.backend == backend && record.task == task;
        let mut ends = Vec::new();
        let mut ending: Vec<(Folder, Record, Option<Asked>)> = Vec::new();
        for record in self.records()?.into_iter().filter(of_task) {
            let depends = matches!(record.lifetime, Lifetime::Task | Lifetime::Lease);
            let running = record.is_running();
            if !depends {
                ends.extend(running.then(|| end(&record, Fate::Left)));
                continue;
            }
            ends.push(end(&record, if running { Fate::Ended } else { Fate::AlreadyEnded }));
            let folder = Folder::of(&self.home, &record.id);
            let asked = if running { ask_to_end(&folder, &record, source)? } else { None };
            ending.push((folder, record, asked));
        }
        for (folder, record, asked) in ending {
            if let Some(asked) = asked {
                asked.wait(Some(ENDING), None)?;
                match asked.answer() {
                    Ok(_) | Err(ProcessError::Ended(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            if !let_go(&record) {
                let seconds = LETTING_GO.as_secs();
                tracing::warn!(id = %record.id, seconds, "a keeper has not let go of its environment in time");
            }
            // What it has left in the background on this machine.
            end_call(&record.call_id);
            folder.remove();
        }
        Ok(ends)
    }
}

fn ask_to_end(folder: &Folder, record: &Record, source: Source) -> Result<Option<Asked>, ProcessError> {
    match ask(folder, &record.id, Request::Kill { source }, b"") {
        Ok(asked) => Ok(Some(asked)),
        Err(ProcessError::Ended(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn end(record: &Record, fate: Fate) -> TaskEnd {
    TaskEnd { session_id: record.id.clone(), command: record.command.clone(), fate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;
    use crate::processes::record::Status;
    use crate::processes::record::tests::sample;

    #[test]
    fn only_what_depends_on_the_task_goes() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        let processes = Processes::new(home.clone());
        let mut locks = Vec::new();
        let mut add = |task: &str, lifetime, status| {
            let mut record = Record { task: task.into(), lifetime, status, ..sample() };
            // A keeper that is gone.
            record.keeper.started += 1;
            let folder = Folder::of(&home, &record.id);
            folder.create().unwrap();
            locks.push(folder.keep().unwrap());
            folder.write_record(&record).unwrap();
            folder
        };
        let ended = add("a", Lifetime::Task, Status::Exited);
        let detached = add("a", Lifetime::Detached, Status::Running);
        let other = add("b", Lifetime::Task, Status::Exited);
        assert_eq!(processes.live_in("local", "a").unwrap(), 1);
        assert_eq!(processes.live_in("local", "b").unwrap(), 0);
        let ends = processes.end_task("local", "a", Source::Cleanup).unwrap();
        let mut fates: Vec<Fate> = ends.iter().map(|end| end.fate).collect();
        fates.sort_by_key(|fate| *fate == Fate::Left);
        assert_eq!(fates, [Fate::AlreadyEnded, Fate::Left]);
        assert!(!ended.path().exists() && detached.path().exists() && other.path().exists());
    }
}
