//! What is to be told of background processes to somebody who is not looking.
//!
//! The keeper has nobody to tell, so it writes down what there is: the end of its process, and lines in which a pattern was
//! found. Whoever looks after the agent takes the notices from there. An end that somebody has learnt of otherwise is taken
//! out, so that nobody is told twice.

use std::fs;
use std::io::{self, ErrorKind};

use serde::{Deserialize, Serialize};

use super::folder::{self, Folder};
use super::id::ProcessId;
use super::limit::{Admission, GlobalLimit};
use super::record::{Record, Status, now};
use super::watch;
use crate::home::{Home, read_regular};

/// The file in a process's folder, a line of JSON for each.
const FILE: &str = "notices";

/// The most that are kept of one process.
const MOST: usize = 200;

/// Longer than so many notices can be.
const LARGEST: u64 = 64 * 1024 * 1024;

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The process.
    pub session_id: ProcessId,
    /// Its task.
    pub task: String,
    /// Its command.
    pub command: String,
    /// When it came, in seconds since 1970.
    pub at: f64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What there is to tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// It has ended.
    Completed {
        /// How.
        status: Status,
        /// Its exit code, if there is one.
        exit_code: Option<i32>,
        /// The end of its output.
        output: String,
    },
    /// Lines matched.
    Matched {
        /// The patterns that were found.
        patterns: Vec<String>,
        /// The lines.
        text: String,
        /// Further lines that matched now.
        omitted: u64,
        /// Lines that matched before and were not told.
        suppressed: u64,
    },
    /// Too much matched: it is no longer watched, and its end will be told instead.
    Disabled {
        /// Lines that matched and were not told.
        suppressed: u64,
    },
    /// All processes together had too much to tell; what matches is not told for a while.
    Silenced,
}

impl From<watch::Notice> for Event {
    fn from(notice: watch::Notice) -> Self {
        match notice {
            watch::Notice::Matched { patterns, text, omitted, suppressed } => {
                Self::Matched { patterns, text, omitted, suppressed }
            }
            watch::Notice::Disabled { suppressed } => Self::Disabled { suppressed },
        }
    }
}

/// Adds a notice to those of a process. What matches is under the limit of all processes together.
pub(super) fn add(home: &Home, record: &Record, event: Event) -> io::Result<()> {
    let event = match event {
        Event::Matched { patterns, text, omitted, suppressed } => match admit(home)? {
            Admission::Passes { suppressed: others } => {
                Event::Matched { patterns, text, omitted, suppressed: suppressed.saturating_add(others) }
            }
            Admission::Silences => Event::Silenced,
            Admission::Silent => return Ok(()),
        },
        other => other,
    };
    let notice = Notice {
        session_id: record.id.clone(),
        task: record.task.clone(),
        command: record.command.clone(),
        at: now(),
        event,
    };
    change(&Folder::of(home, &record.id), |notices| {
        notices.push(notice);
        let over = notices.len().saturating_sub(MOST);
        notices.drain(..over);
    })
}

/// Takes the end of a process out of what is to be told, since it is known by now.
pub(super) fn consume_completion(folder: &Folder) {
    if !has_some(folder) {
        return;
    }
    let done = change(folder, |notices| {
        notices.retain(|notice| !matches!(notice.event, Event::Completed { .. }));
    });
    if let Err(error) = done {
        tracing::warn!(folder = %folder.path().display(), %error, "a notice could not be taken out");
    }
}

/// Returns the notices of the processes of `task`, or of all, the oldest first, and forgets them if they are consumed.
pub(super) fn all(home: &Home, task: Option<&str>, consume: bool) -> io::Result<Vec<Notice>> {
    let mut found = Vec::new();
    for (_, folder) in Folder::all(home)?.into_iter().filter(|(_, folder)| has_some(folder)) {
        // It may have been removed in the meantime.
        let _ = change(&folder, |notices| {
            let wanted = |notice: &mut Notice| task.is_none_or(|task| notice.task == task);
            if consume {
                found.extend(notices.extract_if(.., wanted));
            } else {
                found.extend(notices.iter_mut().filter_map(|notice| wanted(notice).then(|| notice.clone())));
            }
        });
    }
    found.sort_by(|one, other| one.at.total_cmp(&other.at));
    Ok(found)
}

fn has_some(folder: &Folder) -> bool {
    folder.path().join(FILE).is_file()
}

fn admit(home: &Home) -> io::Result<Admission> {
    let root = folder::root(home);
    let path = root.join("notices.json");
    let _lock = folder::lock(&root.join("notices.lock"))?;
    // What cannot be read is begun anew: it limits, and nothing else.
    let text = read_regular(&path, LARGEST).unwrap_or_default();
    let mut limit: GlobalLimit = serde_json::from_slice(&text).unwrap_or_default();
    let admission = limit.admit(std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs()));
    folder::replace(&path, &serde_json::to_vec(&limit)?)?;
    Ok(admission)
}

/// Changes the notices of one process, while nobody else does.
fn change(folder: &Folder, change: impl FnOnce(&mut Vec<Notice>)) -> io::Result<()> {
    let path = folder.path().join(FILE);
    let _lock = folder::lock(&folder.path().join("notices.lock"))?;
    let text = match read_regular(&path, LARGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    // A line that is damaged tells nobody anything.
    let before: Vec<Notice> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let mut notices = before.clone();
    change(&mut notices);
    if notices == before {
        return Ok(());
    }
    if notices.is_empty() {
        return fs::remove_file(&path);
    }
    let text: Vec<u8> = notices.iter().flat_map(super::control::line).collect();
    folder::replace(&path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::record::tests::sample;

    fn process(home: &Home, task: &str) -> Record {
        let record = Record { task: task.into(), ..sample() };
        Folder::of(home, &record.id).create().unwrap();
        record
    }

    fn completed() -> Event {
        Event::Completed { status: Status::Exited, exit_code: Some(0), output: "two\nlines\n".into() }
    }

    fn matched(text: &str) -> Event {
        Event::Matched { patterns: vec!["x".into()], text: text.into(), omitted: 0, suppressed: 0 }
    }

    #[test]
    fn notices_are_kept_until_they_are_consumed() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        let (one, other) = (process(&home, "a"), process(&home, "b"));
        add(&home, &one, matched("1")).unwrap();
        add(&home, &other, completed()).unwrap();
        add(&home, &one, completed()).unwrap();
        let events = |task, consume| {
            let notices = all(&home, task, consume).unwrap();
            notices.into_iter().map(|notice| notice.event).collect::<Vec<_>>()
        };
        assert_eq!(events(None, false).len(), 3);
        assert_eq!(events(Some("b"), true), [completed()]);
        assert_eq!(events(Some("b"), true), []);
        consume_completion(&Folder::of(&home, &one.id));
        assert_eq!(events(None, false), [matched("1")]);
    }

    #[test]
    fn only_the_newest_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        let record = process(&home, "a");
        for count in 0..MOST as u64 + 5 {
            add(&home, &record, Event::Disabled { suppressed: count }).unwrap();
        }
        let notices = all(&home, None, false).unwrap();
        assert_eq!(notices.len(), MOST);
        assert_eq!(notices[0].event, Event::Disabled { suppressed: 5 });
    }

    #[test]
    fn what_matches_is_under_the_limit_of_all() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        let record = process(&home, "a");
        for count in 0..40 {
            add(&home, &record, matched(&count.to_string())).unwrap();
        }
        let notices = all(&home, None, false).unwrap();
        assert!(notices.len() < 40, "{}", notices.len());
        assert!(notices.iter().any(|notice| notice.event == Event::Silenced));
    }
}
