//! Running git, never for longer than it may take, and never for longer than this process lives.
//!
//! Git starts helpers (`git-remote-https`, `ssh`) that live on when it alone is killed, for as long as a server that says nothing
//! keeps its connection. So all of them carry a mark, as the processes of a call do: by that they are ended when their time is up,
//! and by the guard when this process is killed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use hostel_plugin_api::shell::{Process, Spawn, end_call, find_program, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, waitpid};

use crate::guard::Guard;
use crate::random;

/// The variable in which processes carry the marks of the calls that they belong to, with colons between them.
const MARKS: &str = "HOSTEL_CALL";

/// Where programs are if nobody says so.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What is to be run.
pub(super) struct Git<'a> {
    /// The folder in which it runs.
    pub(super) folder: &'a Path,
    /// Its arguments, without its name.
    pub(super) arguments: Vec<OsString>,
    /// Its whole environment.
    pub(super) env: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub(super) limit: Duration,
}

impl Git<'_> {
    /// Runs it, with its standard output in the file `printed`; `hear` gets what it says on standard error. Returns whether it
    /// succeeded; none if its time was up, and then nothing of it runs any more.
    pub(super) fn run(self, printed: &File, hear: &mut dyn FnMut(&[u8])) -> io::Result<Option<bool>> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let path = self.env.iter().find(|(name, _)| name == "PATH");
        let path = path.map_or(OsStr::new(USUAL_PATH), |(_, path)| path);
        let program = find_program("git", path).ok_or_else(missing)?;
        let mark = format!("install-{}", random::hex::<8>()?);
        let env = marked(self.env, &mark);
        let argv: Vec<OsString> = std::iter::once("git".into()).chain(self.arguments).collect();
        let null = File::open("/dev/null")?;
        let (mut said, theirs) = io::pipe()?;
        let _watching = Guard::shared().watch(&mark);
        let process = spawn(&Spawn {
            program: &program,
            argv: &argv,
            env: &env,
            cwd: self.folder,
            descriptors: vec![null.as_fd(), printed.as_fd(), theirs.as_fd()],
            terminal: false,
            cgroup: None,
        })
        .map_err(|error| error.error)?;
        drop(theirs);
        let ended = follow(&process, &mut said, Instant::now() + self.limit, hear);
        if !matches!(ended, Ok(true)) {
            end_call(&mark);
        }
        let status = loop {
            match waitpid(Some(process.pid), WaitOptions::empty()) {
                Err(Errno::INTR) => {}
                status => break status?,
            }
        };
        let success = status.is_some_and(|(_, status)| status.exit_status() == Some(0));
        Ok(ended?.then_some(success))
    }
}

/// Passes on what a process says until it has ended. Returns false if its time is up before.
fn follow(
    process: &Process,
    said: &mut io::PipeReader,
    until: Instant,
    hear: &mut dyn FnMut(&[u8]),
) -> io::Result<bool> {
    let mut buffer = [0; 4096];
    let mut open = true;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let mut fds = [PollFd::new(&process.pidfd, PollFlags::IN), PollFd::new(&*said, PollFlags::IN)];
        let watched = if open { &mut fds[..] } else { &mut fds[..1] };
        match poll(watched, Timespec::try_from(left).ok().as_ref()) {
            Ok(0) => return Ok(false),
            Err(Errno::INTR) => continue,
            polled => drop(polled?),
        }
        let [ended, speaks] = fds.map(|fd| !fd.revents().is_empty());
        // All that it has said first: its last words say why.
        if open && speaks {
            let count = said.read(&mut buffer)?;
            hear(&buffer[..count]);
            open = count > 0;
        } else if ended {
            return Ok(true);
        }
    }
}

/// Adds a mark to those that this process carries itself.
fn marked(mut env: Vec<(OsString, OsString)>, mark: &str) -> Vec<(OsString, OsString)> {
    match env.iter_mut().find(|(name, _)| name == MARKS) {
        Some((_, marks)) => {
            marks.push(":");
            marks.push(mark);
        }
        None => env.push((MARKS.into(), mark.into())),
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program that is called git and does this.
    fn run(script: &str, limit: Duration) -> (io::Result<Option<bool>>, String) {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", dir.path().join("git")).unwrap();
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let git = Git {
            folder: dir.path(),
            arguments: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), path.into()), (MARKS.into(), "outer".into())],
            limit,
        };
        let mut said = String::new();
        let ran = git.run(&tempfile::tempfile().unwrap(), &mut |bytes| {
            said.push_str(&String::from_utf8_lossy(bytes));
        });
        (ran, said)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn its_last_words_are_heard_and_what_it_left_holds_nobody_up() {
        let begun = Instant::now();
        let (ran, said) = run("echo one >&2; sleep 45 & echo two >&2; exit 3", LONG);
        assert_eq!((ran.unwrap(), said.as_str()), (Some(false), "one\ntwo\n"));
        assert!(begun.elapsed() < Duration::from_secs(40));
        let (ran, said) = run("echo ${HOSTEL_CALL%-*} >&2", LONG);
        assert_eq!((ran.unwrap(), said.as_str()), (Some(true), "outer:install\n"));
    }

    #[test]
    fn all_that_it_has_started_ends_with_its_time() {
        // It holds the pipe open: its end would not come before.
        let helper = "setsid sh -c 'sleep 45; sleep 45' & echo $! >&2; wait";
        let (ran, said) = run(helper, Duration::from_millis(500));
        assert_eq!(ran.unwrap(), None);
        let status = std::fs::read_to_string(format!("/proc/{}/stat", said.trim())).unwrap_or_default();
        assert!(status.is_empty() || status.contains(") Z "), "{status}");
    }

    #[test]
    fn a_missing_program_is_said_to_be_missing() {
        let env = vec![("PATH".into(), "/proc".into())];
        let git = Git { folder: Path::new("/"), arguments: vec![], env, limit: LONG };
        let error = git.run(&tempfile::tempfile().unwrap(), &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
