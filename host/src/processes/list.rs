//! Which processes there are, and what of them is still true.
//!
//! A keeper that was killed could write nothing down any more, so a record alone proves nothing. Whoever looks finds that
//! nobody holds the lock, kills what the process has left on this machine, and writes down that it is lost.

use std::io;
use std::time::{Duration, SystemTime};

use hostel_plugin_api::shell::end_call;

use super::folder::{Folder, Hold};
use super::record::{Record, now};
use super::settings::Settings;
use crate::home::Home;

/// The most finished processes that are known.
const MOST_FINISHED: usize = 64;

/// How old a folder without a record is before somebody may take it for debris.
const DEBRIS: Duration = Duration::from_secs(60);

/// Returns how many processes run, or are about to.
pub(super) fn alive(home: &Home) -> io::Result<usize> {
    // A keeper whose process has ended still lives for a moment, to let go of everything.
    let has_ended =
        |folder: &Folder| matches!(folder.read_record(), Ok(Some(record)) if !record.is_running());
    let runs = |folder: &Folder| matches!(folder.hold(), Ok(Hold::Keeper)) && !has_ended(folder);
    Ok(Folder::all(home)?.iter().filter(|(_, folder)| runs(folder)).count())
}

/// Returns the record of one process, brought up to date. None if there is none.
pub(super) fn current(folder: &Folder) -> io::Result<Option<Record>> {
    let Some(record) = folder.read_record()? else { return Ok(None) };
    if !record.is_running() {
        return Ok(Some(record));
    }
    let hold = match folder.hold() {
        Ok(Hold::Keeper) => return Ok(Some(record)),
        Ok(hold) => hold,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Read again, as nobody else can change it now: it may have ended just before.
    let Some(mut record) = folder.read_record()? else { return Ok(None) };
    if record.is_running() {
        end_call(&record.call_id);
        record.lose();
        folder.write_record(&record)?;
    }
    drop(hold);
    Ok(Some(record))
}

/// Returns the records of all processes, brought up to date, the oldest first.
pub(super) fn all(home: &Home) -> io::Result<Vec<Record>> {
    let mut records = Vec::new();
    for (_, folder) in Folder::all(home)? {
        match current(&folder) {
            Ok(record) => records.extend(record),
            // One that is damaged must not hide the others.
            Err(error) => {
                tracing::warn!(folder = %folder.path().display(), %error, "a record cannot be read");
            }
        }
    }
    records.sort_by(|one, other| one.started_at.total_cmp(&other.started_at));
    Ok(records)
}

/// Removes the processes that ended long ago, the oldest of those that are too many, and debris.
pub(super) fn prune(home: &Home, settings: &Settings) {
    let mut finished = Vec::new();
    for (_, folder) in Folder::all(home).unwrap_or_default() {
        match current(&folder) {
            Ok(Some(record)) => finished.extend(record.ended_at.map(|ended| (ended, folder))),
            Ok(None) if is_debris(&folder) => folder.remove(),
            _ => {}
        }
    }
    finished.sort_by(|one, other| other.0.total_cmp(&one.0));
    let oldest = now() - settings.keep_finished.as_secs_f64();
    for (index, (ended, folder)) in finished.into_iter().enumerate() {
        let unwanted = ended < oldest || index >= MOST_FINISHED;
        // Its keeper may not have let go of everything yet.
        if unwanted && let Ok(Hold::Ours(_)) = folder.hold() {
            folder.remove();
        }
    }
}

/// Whether a folder was left by a keeper that died before it had written a record.
fn is_debris(folder: &Folder) -> bool {
    let age = || {
        let modified = std::fs::metadata(folder.path()).ok()?.modified().ok()?;
        SystemTime::now().duration_since(modified).ok()
    };
    age().is_some_and(|age| age > DEBRIS) && matches!(folder.hold(), Ok(Hold::Ours(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::id::ProcessId;
    use crate::processes::record::Status;
    use crate::processes::record::tests::sample;

    fn home(dir: &tempfile::TempDir) -> Home {
        Home::at(dir.path().join("home")).unwrap()
    }

    fn process(home: &Home, ended_at: Option<f64>) -> Folder {
        let mut record = sample();
        record.ended_at = ended_at;
        if ended_at.is_some() {
            record.status = Status::Exited;
        }
        let folder = Folder::of(home, &record.id);
        folder.create().unwrap();
        folder.write_record(&record).unwrap();
        folder
    }

    #[test]
    fn a_process_without_a_keeper_is_lost_and_one_with_a_keeper_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = home(&dir);
        let folder = process(&home, None);
        let lock = folder.keep().unwrap();
        assert_eq!(alive(&home).unwrap(), 1);
        assert_eq!(current(&folder).unwrap().unwrap().status, Status::Running);
        drop(lock);
        assert_eq!(alive(&home).unwrap(), 0);
        assert_eq!(all(&home).unwrap()[0].status, Status::Lost);
        let record = folder.read_record().unwrap().unwrap();
        assert!(record.status == Status::Lost && record.ended_at.is_some() && record.error.is_some());
        // Its keeper may still be there.
        let _lock = process(&home, Some(now())).keep().unwrap();
        assert_eq!(alive(&home).unwrap(), 0);
    }

    #[test]
    fn what_ended_long_ago_goes_and_so_do_the_oldest_of_too_many() {
        let dir = tempfile::tempdir().unwrap();
        let home = home(&dir);
        let settings = Settings {
            log_max: 1,
            max_running: 1,
            keep_finished: Duration::from_secs(1000),
            grace: Duration::ZERO,
        };
        let old = process(&home, Some(now() - 2000.0));
        let held = process(&home, Some(now() - 3000.0));
        let _lock = held.keep().unwrap();
        let second = process(&home, Some(now() - 900.0));
        let recent: Vec<Folder> = (0..MOST_FINISHED).map(|_| process(&home, Some(now()))).collect();
        prune(&home, &settings);
        let exists = |folder: &Folder| folder.path().exists();
        assert!(!exists(&old) && !exists(&second) && exists(&held));
        assert!(recent.iter().all(exists));
    }

    #[test]
    fn a_folder_that_is_being_made_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let home = home(&dir);
        let folder = Folder::of(&home, &ProcessId::random().unwrap());
        folder.create().unwrap();
        let settings =
            Settings { log_max: 1, max_running: 1, keep_finished: Duration::ZERO, grace: Duration::ZERO };
        prune(&home, &settings);
        assert!(folder.path().exists());
        assert!(all(&home).unwrap().is_empty());
    }
}
