//! The requests of a home, and their answers.
//!
//! An answer belongs to one call: the same tool with the same arguments, in the same task on the same backend. It is spent by being
//! used. One for the session belongs to a tool in a task, and goes with the task's environment.

use std::io;

use super::folder::Folder;
use super::id::ApprovalId;
use super::record::{Record, Standing, now};
use super::request::Request;
use super::visible::line;
use crate::home::Home;

/// The most requests that are kept. Of more, the oldest go, those without an answer first.
const MOST: usize = 200;

/// What was answered to a call before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may be made.
    Yes,
    /// It is refused, and why if that was said.
    No(Option<String>),
    /// Nothing.
    None,
}

/// The requests of one home.
#[derive(Debug, Clone)]
pub struct Store(Home);

impl Store {
    /// Takes the requests of `home`.
    #[must_use]
    pub fn of(home: &Home) -> Self {
        Self(home.clone())
    }

    /// Finds what was answered to a call. A yes to this very call is spent by that.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be used.
    pub fn consult(&self, request: &Request) -> io::Result<Answer> {
        let Some(folder) = Folder::open(&self.0)? else { return Ok(Answer::None) };
        let now = now();
        let records: Vec<Record> = folder.all()?.into_iter().filter(|record| !record.is_over(now)).collect();
        let same = |standing: Standing| {
            let same = |record: &&Record| record.standing == standing && request.is_same(&record.request);
            records.iter().find(same)
        };
        if let Some(denied) = same(Standing::Denied) {
            return Ok(Answer::No(denied.note.clone()));
        }
        let covers =
            |record: &Record| record.standing == Standing::Session && request.is_covered_by(&record.request);
        if records.iter().any(covers) {
            return Ok(Answer::Yes);
        }
        match same(Standing::Once) {
            Some(once) if folder.remove(&once.id)? => Ok(Answer::Yes),
            _ => Ok(Answer::None),
        }
    }

    /// Keeps a call that waits for an answer, and returns its name. One that waits already keeps its own.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be used, or has no room.
    pub fn ask(&self, request: &Request) -> io::Result<ApprovalId> {
        let folder = Folder::make(&self.0)?;
        let records = prune(&folder)?;
        let waits =
            |record: &&Record| record.standing == Standing::Pending && request.is_same(&record.request);
        if let Some(waiting) = records.iter().find(waits) {
            return Ok(waiting.id.clone());
        }
        keep(&folder, request, Standing::Pending)
    }

    /// Notes that a person who was asked has answered: the call waits no more, and with `session` all that it covers is allowed
    /// to other processes too.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be used, or has no room.
    pub fn settle(&self, request: &Request, session: bool) -> io::Result<()> {
        if session {
            let folder = Folder::make(&self.0)?;
            prune(&folder)?;
            keep(&folder, request, Standing::Session)?;
        }
        self.remove(|record| record.standing == Standing::Pending && request.is_same(&record.request))
    }

    /// Returns all requests that count, the oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be used.
    pub fn list(&self) -> io::Result<Vec<Record>> {
        let Some(folder) = Folder::open(&self.0)? else { return Ok(Vec::new()) };
        let now = now();
        let mut records: Vec<Record> =
            folder.all()?.into_iter().filter(|record| !record.is_over(now)).collect();
        records.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        Ok(records)
    }

    /// Answers a request, whatever was answered before, and returns it as it then stands. None if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be used, or has no room.
    pub fn answer(
        &self,
        id: &ApprovalId,
        standing: Standing,
        note: Option<&str>,
    ) -> io::Result<Option<Record>> {
        let Some(folder) = Folder::open(&self.0)? else { return Ok(None) };
        let now = now();
        let Some(record) = folder.read(id).filter(|record| !record.is_over(now)) else { return Ok(None) };
        let note = note.map(line).filter(|note| !note.is_empty());
        let record = Record { standing, answered: Some(now), note, ..record };
        folder.write(&record)?;
        Ok(Some(record))
    }

    /// Forgets all that was asked and answered for `task` on `backend`.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be used.
    pub fn forget(&self, backend: &str, task: &str) -> io::Result<()> {
        self.remove(|record| record.request.backend == backend && record.request.task == task)
    }

    fn remove(&self, which: impl Fn(&Record) -> bool) -> io::Result<()> {
        let Some(folder) = Folder::open(&self.0)? else { return Ok(()) };
        for record in folder.all()?.iter().filter(|record| which(record)) {
            folder.remove(&record.id)?;
        }
        Ok(())
    }
}

/// Keeps a request that stands so.
fn keep(folder: &Folder, request: &Request, standing: Standing) -> io::Result<ApprovalId> {
    let (id, created) = (ApprovalId::random()?, now());
    let answered = (standing != Standing::Pending).then_some(created);
    let record = Record { id, created, standing, answered, note: None, request: request.kept() };
    folder.write(&record)?;
    Ok(record.id)
}

/// Removes what counts no more, and makes room for one more. Returns what is left.
fn prune(folder: &Folder) -> io::Result<Vec<Record>> {
    let now = now();
    let (over, mut left): (Vec<Record>, Vec<Record>) =
        folder.all()?.into_iter().partition(|record| record.is_over(now));
    left.sort_by_key(|record| (record.standing != Standing::Pending, record.created));
    let surplus = (left.len() + 1).saturating_sub(MOST);
    for record in over.iter().chain(&left[..surplus]) {
        folder.remove(&record.id)?;
    }
    left.drain(..surplus);
    Ok(left)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::policy::approvals::request::tests::sample;

    const DAY: u64 = 24 * 60 * 60;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        (dir, Store::of(&home))
    }

    fn yes(store: &Store, id: &ApprovalId) {
        store.answer(id, Standing::Once, None).unwrap().unwrap();
    }

    #[test]
    fn a_yes_is_for_one_call_and_spent_by_it() {
        let (_dir, store) = store();
        let (one, other) = (sample("t", "ls"), sample("t", "rm"));
        assert_eq!(store.consult(&one).unwrap(), Answer::None);
        let id = store.ask(&one).unwrap();
        assert_eq!(store.ask(&one).unwrap(), id, "it waits already");
        assert_eq!(store.consult(&one).unwrap(), Answer::None);
        yes(&store, &id);
        assert_eq!(store.consult(&other).unwrap(), Answer::None);
        assert_eq!(store.consult(&sample("u", "ls")).unwrap(), Answer::None);
        assert_eq!(store.consult(&one).unwrap(), Answer::Yes);
        assert_eq!(store.consult(&one).unwrap(), Answer::None);
        assert!(store.list().unwrap().is_empty());
    }

    #[test]
    fn of_many_at_once_one_spends_it() {
        let (_dir, store) = store();
        let request = sample("t", "ls");
        yes(&store, &store.ask(&request).unwrap());
        let barrier = Barrier::new(8);
        let try_it = || {
            barrier.wait();
            store.consult(&request).unwrap() == Answer::Yes
        };
        let made = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(try_it)).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap().then_some(())).count()
        });
        assert_eq!(made, 1);
    }

    #[test]
    fn a_no_stands_until_it_is_taken_back() {
        let (_dir, store) = store();
        let request = sample("t", "ls");
        let id = store.ask(&request).unwrap();
        store.answer(&id, Standing::Denied, Some("not\nnow")).unwrap().unwrap();
        for _ in 0..2 {
            assert_eq!(store.consult(&request).unwrap(), Answer::No(Some("not^Jnow".into())));
        }
        yes(&store, &id);
        assert_eq!(store.consult(&request).unwrap(), Answer::Yes);
        assert!(store.answer(&id, Standing::Once, None).unwrap().is_none(), "it is spent");
    }

    #[test]
    fn a_yes_for_the_session_covers_the_task_until_it_is_forgotten() {
        let (_dir, store) = store();
        let id = store.ask(&sample("t", "ls")).unwrap();
        store.answer(&id, Standing::Session, None).unwrap().unwrap();
        assert_eq!(store.consult(&sample("t", "rm")).unwrap(), Answer::Yes);
        assert_eq!(store.consult(&sample("t", "rm")).unwrap(), Answer::Yes);
        assert_eq!(store.consult(&sample("u", "rm")).unwrap(), Answer::None);
        store.forget("local", "u").unwrap();
        assert_eq!(store.consult(&sample("t", "rm")).unwrap(), Answer::Yes);
        store.forget("local", "t").unwrap();
        assert_eq!(store.consult(&sample("t", "rm")).unwrap(), Answer::None);
        store.settle(&sample("t", "ls"), true).unwrap();
        assert_eq!(store.consult(&sample("t", "rm")).unwrap(), Answer::Yes);
    }

    #[test]
    fn what_is_older_than_a_day_counts_no_more_and_makes_room() {
        let (_dir, store) = store();
        let old = |standing: Standing, age: u64| {
            let folder = Folder::make(&store.0).unwrap();
            let id = keep(&folder, &sample("t", "ls"), standing).unwrap();
            let record = folder.read(&id).unwrap();
            let at = record.created - age;
            folder.write(&Record { created: at, answered: record.answered.map(|_| at), ..record }).unwrap();
            id
        };
        let outdated = [
            old(Standing::Once, DAY + 60),
            old(Standing::Session, DAY + 60),
            old(Standing::Pending, DAY + 60),
        ];
        assert_eq!(store.consult(&sample("t", "ls")).unwrap(), Answer::None);
        assert!(outdated.iter().all(|id| store.answer(id, Standing::Once, None).unwrap().is_none()));
        let kept = old(Standing::Once, DAY - 60);
        for number in 0..MOST + 20 {
            store.ask(&sample("t", &format!("echo {number}"))).unwrap();
        }
        let records = store.list().unwrap();
        assert_eq!(Folder::open(&store.0).unwrap().unwrap().all().unwrap().len(), MOST);
        assert!(records.len() == MOST && records.iter().any(|record| record.id == kept));
    }
}
