//! What every process of the host knows of each task's environment: that there is one, since when, and whether it is in use.
//!
//! An environment may outlive the process that made it, and cost money or disk for as long as nobody remembers it. So each
//! has its folder, `state/tasks/BACKEND/TASK`, in which stand its identity (`identity.rs`) and its use (`in_use.rs`). Folders
//! from before that are listed too, if their names can be read back.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags};
use serde::Serialize;

use super::identity::Identity;
pub use super::in_use::InUse;
use super::in_use::{Holder, UseFile};
use crate::home::{Home, make_private};

/// How often a folder that is removed at that moment is made anew, before that counts as an error.
const ATTEMPTS: usize = 8;

/// Folders that are being removed are called so. No task's folder begins with a dot.
const REMOVED: &str = ".removed-";

/// The environments of one home.
#[derive(Debug, Clone)]
pub struct Ledger {
    home: Home,
}

/// An environment of this process, as the ledger knows it.
#[derive(Debug, Clone)]
pub struct Known {
    id: String,
    holder: Holder,
}

/// What an environment does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A call is in flight, or it is being cleaned up.
    Busy,
    /// Background processes are alive in it. The ledger itself does not know of these.
    Background,
    /// Nothing.
    Idle,
}

/// One environment. Serialises to what `hostel env list --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The task.
    pub task: String,
    /// The backend.
    pub backend: String,
    /// What it does.
    pub state: State,
    /// Seconds since it was made.
    pub age_s: u64,
    /// Seconds since its last use; 0 while it is busy.
    pub idle_s: u64,
    /// Its id, which no other environment has. None for one that was made before there were ids.
    pub id: Option<String>,
    /// Its folder.
    #[serde(skip)]
    pub dir: PathBuf,
}

/// An environment that nobody else can use before this is dropped.
#[derive(Debug)]
pub struct Claim {
    dir: PathBuf,
    _lock: UseFile,
}

impl Known {
    /// The environment's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says that a call begins; it is in flight until what is returned is dropped. None where the environment was cleaned up by
    /// somebody else: it must be made anew, and opened anew here.
    ///
    /// # Errors
    ///
    /// Fails as the operating system says, and if a cleanup of it does not end within a minute.
    pub fn begin(&self) -> io::Result<Option<InUse>> {
        self.holder.begin()
    }

    /// Notes a use that does not keep a cleanup off, as that of a background process does not.
    pub fn touch(&self) {
        self.holder.touch();
    }
}

impl Claim {
    /// Removes the environment's folder, and so all that is known of it.
    ///
    /// # Errors
    ///
    /// Fails as the operating system says; the folder is then in its place again, with what could not be removed.
    pub fn remove(self) -> io::Result<()> {
        discard(&self.dir)
    }
}

impl Ledger {
    /// Takes the ledger of `home`.
    #[must_use]
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone() }
    }

    /// Finds or enters the environment of `task` on `backend`.
    ///
    /// # Errors
    ///
    /// Fails as the operating system says.
    pub fn open(&self, backend: &str, task: &str) -> io::Result<Known> {
        let dir = self.home.task(backend, task);
        for _ in 0..ATTEMPTS {
            make_private(&dir)?;
            let opened = match open_folder(&dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let holder = match UseFile::open(&opened) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => Holder::new(file?),
            };
            // While it is in use the folder stays what it is.
            if let Some(_in_use) = holder.begin()? {
                let id = Identity::read_or_make(&opened, backend, task)?.id;
                return Ok(Known { id, holder });
            }
        }
        Err(io::Error::other("it is removed again and again"))
    }

    /// Returns all environments, by task and backend. Folders that are none of ours are passed over.
    ///
    /// # Errors
    ///
    /// Fails if the folder of all tasks cannot be read.
    pub fn list(&self) -> io::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for backend in folders(&self.home.tasks())? {
            // One backend's folder that cannot be read hides no other's.
            for name in folders(&self.home.tasks_of(&backend)).unwrap_or_default() {
                rows.extend(self.row(&backend, &name));
            }
        }
        rows.sort_by(|a, b| (&a.task, &a.backend).cmp(&(&b.task, &b.backend)));
        Ok(rows)
    }

    /// Returns the environments of `task`, one for each backend that has one.
    ///
    /// # Errors
    ///
    /// Fails if the folder of all tasks cannot be read.
    pub fn find(&self, task: &str) -> io::Result<Vec<Row>> {
        let backends = folders(&self.home.tasks())?;
        let look = |backend: &String| examine(backend, task.to_owned(), &self.home.task(backend, task));
        Ok(backends.iter().filter_map(look).collect())
    }

    /// Returns the id of the environment of `task` on `backend`, if it has one.
    #[must_use]
    pub fn id(&self, backend: &str, task: &str) -> Option<String> {
        examine(backend, task.to_owned(), &self.home.task(backend, task))?.id
    }

    /// Claims the environment of `task` on `backend` for oneself. None if a call is in flight, or somebody else has claimed it.
    ///
    /// # Errors
    ///
    /// Fails as the operating system says: with `NotFound` if there is no such environment.
    pub fn claim(&self, backend: &str, task: &str) -> io::Result<Option<Claim>> {
        let dir = self.home.task(backend, task);
        let file = UseFile::open(open_folder(&dir)?)?;
        if !file.lock_alone()? {
            return Ok(None);
        }
        // Whoever had it before us may have removed it.
        if file.is_gone()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Some(Claim { dir, _lock: file }))
    }

    /// Removes the folder of the environment of `task` on `backend`, whoever uses it.
    ///
    /// # Errors
    ///
    /// Fails as the operating system says; the folder is then in its place again, with what could not be removed.
    pub fn remove_by_force(&self, backend: &str, task: &str) -> io::Result<()> {
        discard(&self.home.task(backend, task))
    }

    /// Reads one folder by its name.
    fn row(&self, backend: &str, name: &str) -> Option<Row> {
        let dir = self.home.tasks_of(backend).join(name);
        let belongs = |task: &String| self.home.task(backend, task) == dir;
        let written = open_folder(&dir).ok().and_then(|opened| Identity::read(opened).ok().flatten());
        let task = written.map(|identity| identity.task).filter(belongs);
        let task = task.or_else(|| decode(name).filter(belongs))?;
        examine(backend, task, &dir)
    }
}

/// Looks at the folder `dir` of the environment of `task` on `backend`. None where there is no such folder.
fn examine(backend: &str, task: String, dir: &Path) -> Option<Row> {
    let opened = open_folder(dir).ok()?;
    let identity = Identity::read(&opened).ok().flatten();
    let identity = identity.filter(|found| found.backend == backend && found.task == task);
    let file = UseFile::find(&opened).ok().flatten();
    let held = file.as_ref().is_some_and(|file| file.is_held().unwrap_or(true));
    // Without that file: when something was last put into the folder.
    let changed = || File::from(opened).metadata().ok()?.modified().ok();
    let used = file.and_then(|file| file.last_used().ok()).or_else(changed);
    let idle = used.map_or(0, seconds_since);
    let made = identity.as_ref().map(|found| UNIX_EPOCH.checked_add(Duration::from_secs(found.created)));
    let age = made.flatten().map_or(idle, seconds_since);
    Some(Row {
        task,
        backend: backend.to_owned(),
        state: if held { State::Busy } else { State::Idle },
        age_s: age,
        idle_s: if held { 0 } else { idle },
        id: identity.map(|found| found.id),
        dir: dir.to_owned(),
    })
}

fn seconds_since(time: SystemTime) -> u64 {
    // A clock that was set back makes no age.
    time.elapsed().map_or(0, |since| since.as_secs())
}

/// Opens a task's folder, unless a link was put in its place.
fn open_folder(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(dir, flags, Mode::empty())?)
}

/// Returns the names of the folders in `dir`; none where there is no `dir`.
fn folders(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        (entry.file_type().ok()?.is_dir() && !name.starts_with('.')).then_some(name)
    };
    Ok(entries.flatten().filter_map(name).collect())
}

/// Removes a task's folder, under another name first: whoever comes meanwhile makes a new one, and finds nothing half removed.
fn discard(dir: &Path) -> io::Result<()> {
    let (Some(beside), Some(name)) = (dir.parent(), dir.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let aside = tempfile::Builder::new().prefix(REMOVED).tempdir_in(beside)?;
    let moved = aside.path().join(name);
    fs::rename(dir, &moved)?;
    if let Err(error) = fs::remove_dir_all(&moved)
        // Another one who sweeps may have been quicker.
        && error.kind() != io::ErrorKind::NotFound
    {
        // Where a new one has been made in the meantime, the rest stays aside and is swept below by the next who comes.
        if fs::rename(&moved, dir).is_err() {
            let _ = aside.keep();
        }
        return Err(error);
    }
    drop(aside);
    // What one who was killed has left.
    for entry in fs::read_dir(beside).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(REMOVED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Reads the task from the name of its folder. Names that were cut cannot be read; the caller checks the rest.
fn decode(name: &str) -> Option<String> {
    if name == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(&Home::at(dir.path().join("home")).unwrap());
        (dir, ledger)
    }

    #[test]
    fn an_environment_is_listed_with_what_it_does() {
        let (_dir, ledger) = ledger();
        assert_eq!(ledger.list().unwrap(), []);
        let known = ledger.open("local", "a/b").unwrap();
        assert_eq!(ledger.open("local", "a/b").unwrap().id(), known.id());
        ledger.open("acmebox", "a/b").unwrap();
        let states = || ledger.list().unwrap().into_iter().map(|row| (row.backend, row.state));
        let in_use = known.begin().unwrap().unwrap();
        let expected = |state| [("acmebox".to_owned(), State::Idle), ("local".to_owned(), state)];
        assert!(states().eq(expected(State::Busy)));
        drop(in_use);
        assert!(states().eq(expected(State::Idle)));
        let row = ledger.find("a/b").unwrap().into_iter().find(|row| row.backend == "local").unwrap();
        assert_eq!((row.task.as_str(), row.id.as_deref()), ("a/b", Some(known.id())));
        assert_eq!(ledger.find("a").unwrap(), []);
    }

    #[test]
    fn the_printed_form_is_what_others_parse() {
        let (_dir, ledger) = ledger();
        let id = ledger.open("local", "t").unwrap().id().to_owned();
        let text = serde_json::to_string(&ledger.list().unwrap()).unwrap();
        let expected =
            format!(r#"[{{"task":"t","backend":"local","state":"idle","age_s":0,"idle_s":0,"id":"{id}"}}]"#);
        assert_eq!(text.replace(r#"_s":1"#, r#"_s":0"#), expected);
    }

    #[test]
    fn older_folders_are_listed_by_their_names() {
        let (_dir, ledger) = ledger();
        let long = "x/".repeat(200);
        for task in ["", "plain", "a/b", "100%", "ä ", &long] {
            make_private(&ledger.home.task("local", task)).unwrap();
        }
        make_private(&ledger.home.tasks_of("local").join("not%2Fours")).unwrap();
        let listed: Vec<String> = ledger.list().unwrap().into_iter().map(|row| row.task).collect();
        assert_eq!(listed, ["", "100%", "a/b", "plain", "ä "]);
        ledger.open("local", &long).unwrap();
        assert_eq!(ledger.list().unwrap().len(), 6, "a name that was cut is known once it is written down");
    }

    #[test]
    fn a_claim_keeps_others_off_and_removes_everything() {
        let (_dir, ledger) = ledger();
        assert_eq!(ledger.claim("local", "t").unwrap_err().kind(), io::ErrorKind::NotFound);
        let known = ledger.open("local", "t").unwrap();
        let in_use = known.begin().unwrap();
        assert!(ledger.claim("local", "t").unwrap().is_none());
        drop(in_use);
        let claim = ledger.claim("local", "t").unwrap().unwrap();
        assert!(ledger.claim("local", "t").unwrap().is_none());
        claim.remove().unwrap();
        assert!(known.begin().unwrap().is_none(), "it does not see that it was cleaned up");
        assert_eq!(fs::read_dir(ledger.home.tasks_of("local")).unwrap().count(), 0);
        let again = ledger.open("local", "t").unwrap();
        assert_ne!(again.id(), known.id());
        assert!(again.begin().unwrap().is_some());
    }

    #[test]
    fn a_link_in_a_folders_place_is_neither_listed_nor_written_to() {
        let (dir, ledger) = ledger();
        let elsewhere = dir.path().join("elsewhere");
        make_private(&elsewhere).unwrap();
        make_private(&ledger.home.tasks_of("local")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, ledger.home.task("local", "t")).unwrap();
        assert!(ledger.open("local", "t").is_err());
        assert_eq!(ledger.list().unwrap(), []);
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
