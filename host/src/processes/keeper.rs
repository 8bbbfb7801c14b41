//! The process that looks after one background process.
//!
//! A process in the background outlives the command that started it, and somebody has to hold its call, take its output and
//! know its end. There is one keeper for each: they share nothing that could fail for all of them. It is a session of its
//! own, holds no descriptor of its starter's but the socket to it, and is ended by SIGTERM, which ends its process first.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hostel_plugin_api::{Error, ErrorKind, ExecRequest, Stdin};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::bell::Bell;
use super::call::{Call, CallIo};
use super::control::line;
use super::folder::{self, Folder};
use super::id::ProcessId;
use super::input::{Input, Target};
use super::list;
use super::log::LogWriter;
use super::record::{Keeper, Lifetime, Record, Status, after, now};
use super::serve::{Ears, Parts, Service};
use super::settings::Settings;
use super::start::{Order, Report, StartRequest, receive};
use crate::environments::Environments;
use crate::exec::Terminal;
use crate::guard::{Guard, this_program_serves_guards};
use crate::home::Home;
use crate::plugins::worker::this_program_serves_workers;
use crate::world::{Options, World};

/// The hidden command.
pub const PROCESS_KEEPER_COMMAND: &str = "process-keeper";

/// The longest lease, in seconds.
const LONGEST_LEASE: f64 = 1e9;

/// What makes programs written in Python print at once.
const UNBUFFERED: &str = "PYTHONUNBUFFERED";

/// Runs the keeper. Standard input is the socket to whoever starts the process.
#[must_use]
pub fn process_keeper_main(_words: &[String]) -> ExitCode {
    // Nobody reads what is printed here: what fails is told on the socket, or shows as its end.
    if keep().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn keep() -> io::Result<()> {
    rustix::thread::set_name(c"hostel-process")?;
    let mut link = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let null: OwnedFd = File::options().read(true).write(true).open("/dev/null")?.into();
    // The process shall not inherit the socket, and nothing else may read from it.
    rustix::stdio::dup2_stdin(&null)?;
    let signals = catch_signals()?;
    this_program_serves_workers();
    this_program_serves_guards();
    let Some(Order { home, request }) = receive(&link)? else { return Ok(()) };
    let begun = Home::at(home)
        .map_err(|error| invalid(error.to_string()))
        .and_then(|home| Ok((prepare(&home, &request)?, home)));
    let (prepared, home) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            // The starter may be gone.
            let _ = link.write_all(&line(&Report::from(&error)));
            return Ok(());
        }
    };
    let Prepared { service, lock, listener, environments, settings } = prepared;
    service.run(Ears { listener, link: Some(link), signals }, &environments);
    // Only now nobody can take this process for dead.
    drop(lock);
    list::prune(&home, &settings);
    Guard::shared().goodbye();
    Ok(())
}

/// Lets SIGTERM show on what is returned, and nothing come of the signals that a terminal sends.
fn catch_signals() -> io::Result<UnixStream> {
    for signal in [SIGHUP, SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let (bell, ring) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    ring.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGTERM, ring)?;
    Ok(bell)
}

/// All that is there once the call is being made.
struct Prepared {
    service: Service,
    lock: File,
    listener: UnixListener,
    environments: Arc<Environments>,
    settings: Settings,
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::INVALID_REQUEST, message).not_started()
}

fn failed(doing: &str, error: &io::Error) -> Error {
    Error::io(doing, error)
        .with_hint("check the permissions below Hostel's home, and the free space")
        .not_started()
}

/// Reads the configuration, takes a place among the processes, and makes the call.
fn prepare(home: &Home, request: &StartRequest) -> Result<Prepared, Error> {
    let options = Options { home: Some(home.clone()), backend: request.backend.clone() };
    let world = World::open(options).map_err(|error| {
        Error::new(ErrorKind::NOT_CONFIGURED, error.to_string())
            .with_hint("`hostel doctor` looks at all that is needed")
            .not_started()
    })?;
    let entry = Arc::clone(world.selected()?);
    let settings = Settings::read(&world.config).map_err(|error| invalid(error.to_string()))?;
    let lease = lease(request)?;
    let place = Place::take(home, request, entry.name(), &settings)?;
    let Place { folder, lock, listener, mut record } = place;
    record.warnings.clone_from(&world.remarks);
    let environments = Arc::new(Environments::of_keeper());
    let begin = || -> io::Result<Service> {
        let bell = Arc::new(Bell::new()?);
        let log = LogWriter::new(folder.path(), settings.log_max);
        let io = Arc::new(CallIo::new(log, request.watch.clone(), Arc::clone(&bell))?);
        let mut call = Call {
            environments: Arc::clone(&environments),
            world,
            entry,
            task: request.task.clone(),
            request: exec_request(request, &record),
            terminal: None,
        };
        let mut terminal = None;
        let mut input = None;
        if let Some(size) = request.pty {
            let (ours, commands) = Terminal::open(size.into())?;
            input = Some(Input::new(Target::Terminal(ours.try_clone()?), Arc::clone(&bell))?);
            terminal = Some(ours.try_clone()?);
            call.terminal = Some((ours, commands));
        } else if request.stdin {
            let (reader, writer) = io::pipe()?;
            input = Some(Input::new(Target::Pipe(writer.into()), Arc::clone(&bell))?);
            call.request.stdin = Stdin::Fd(reader.into());
        }
        folder.write_record(&record)?;
        call.begin(Arc::clone(&io))?;
        let lease = lease.map(|lease| Instant::now() + lease);
        let parts = Parts { record, io, bell, input, terminal, lease, grace: settings.grace };
        Ok(Service::new(home, &folder, parts))
    };
    match begin() {
        Ok(service) => Ok(Prepared { service, lock, listener, environments, settings }),
        Err(error) => {
            folder.remove();
            Err(failed("failed to start a process", &error))
        }
    }
}

/// Returns how long the process may run without a renewal.
fn lease(request: &StartRequest) -> Result<Option<Duration>, Error> {
    match (request.lifetime, request.lease_s) {
        (Lifetime::Lease, None) => {
            Err(invalid("a lease needs a length").with_hint("give it in seconds, such as `--lease 60`"))
        }
        (Lifetime::Lease, Some(seconds)) => lease_of(seconds).map(Some),
        (_, Some(_)) => Err(invalid("only a process whose lifetime is a lease can have one")),
        (_, None) => Ok(None),
    }
}

/// Reads the length of a lease.
pub(super) fn lease_of(seconds: f64) -> Result<Duration, Error> {
    let wrong = || invalid(format!("a lease must be from 0.001 to {LONGEST_LEASE} seconds long"));
    if !(0.001..=LONGEST_LEASE).contains(&seconds) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

fn exec_request(request: &StartRequest, record: &Record) -> ExecRequest {
    let mut made = ExecRequest::new(request.command.clone());
    made.cwd.clone_from(&request.cwd);
    if !request.env.iter().any(|(name, _)| name == UNBUFFERED) {
        made.env.push((UNBUFFERED.into(), "1".into()));
    }
    made.env.extend(request.env.iter().cloned());
    made.call_id.clone_from(&record.call_id);
    // Where it ends up says nothing of where the session's next command should begin.
    made.run_in_background();
    made.tell_start();
    made
}

/// A place among the processes of a home.
struct Place {
    folder: Folder,
    lock: File,
    listener: UnixListener,
    record: Record,
}

impl Place {
    fn take(home: &Home, request: &StartRequest, backend: &str, settings: &Settings) -> Result<Self, Error> {
        let making = |error: io::Error| failed("failed to make the folder of a process", &error);
        let lease_until = lease(request)?.map(after);
        let _alone = folder::lock_root(home).map_err(making)?;
        let running = list::alive(home).map_err(making)?;
        if running >= settings.max_running {
            let message = format!("{running} processes are running, which is the most that may");
            let hint = "end one with `hostel process kill`, or raise `processes.max_running`";
            return Err(Error::new(ErrorKind::QUOTA, message).with_hint(hint).not_started());
        }
        let id = ProcessId::random().map_err(making)?;
        let folder = Folder::of(home, &id);
        folder.create().map_err(making)?;
        let settle = || -> io::Result<_> { Ok((folder.keep()?, folder.listen()?)) };
        let (lock, listener) = settle().map_err(|error| {
            folder.remove();
            making(error)
        })?;
        let record = Record {
            call_id: id.as_str().to_owned(),
            id,
            command: request.command.clone(),
            backend: backend.to_owned(),
            task: request.task.clone(),
            cwd: request.cwd.clone(),
            pty: request.pty,
            stdin: request.stdin || request.pty.is_some(),
            started_at: now(),
            lifetime: request.lifetime,
            lease_s: request.lease_s,
            lease_until,
            keeper: Keeper::this(),
            status: Status::Running,
            exit_code: None,
            signal: None,
            ended: None,
            ended_at: None,
            completion_reason: None,
            termination_source: None,
            error: None,
            warnings: Vec::new(),
            notify: request.notify,
            watch: request.watch.clone(),
        };
        Ok(Self { folder, lock, listener, record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(lifetime: Lifetime, lease_s: Option<f64>) -> StartRequest {
        StartRequest { lifetime, lease_s, ..StartRequest::default() }
    }

    #[test]
    fn a_lease_has_a_length_and_nothing_else_has() {
        assert_eq!(lease(&request(Lifetime::Lease, Some(0.5))).unwrap(), Some(Duration::from_millis(500)));
        assert_eq!(lease(&request(Lifetime::Task, None)).unwrap(), None);
        for (lifetime, seconds) in [
            (Lifetime::Lease, None),
            (Lifetime::Detached, Some(1.0)),
            (Lifetime::Lease, Some(f64::NAN)),
            (Lifetime::Lease, Some(-1.0)),
            (Lifetime::Lease, Some(1e300)),
        ] {
            assert!(lease(&request(lifetime, seconds)).is_err(), "{lifetime:?} {seconds:?}");
        }
    }

    #[test]
    fn python_prints_at_once_unless_the_caller_says_otherwise() {
        let record = super::super::record::tests::sample();
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let env = |env: &[(&str, &str)]| {
            exec_request(&StartRequest { env: owned(env), ..StartRequest::default() }, &record).env
        };
        assert_eq!(env(&[("A", "b")]), owned(&[("PYTHONUNBUFFERED", "1"), ("A", "b")]));
        assert_eq!(env(&[("PYTHONUNBUFFERED", "")]), owned(&[("PYTHONUNBUFFERED", "")]));
    }

    #[test]
    fn no_more_processes_run_than_may() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home")).unwrap();
        let settings =
            Settings { log_max: 1, max_running: 1, keep_finished: Duration::ZERO, grace: Duration::ZERO };
        let take = || Place::take(&home, &request(Lifetime::Task, None), "local", &settings);
        let first = take().unwrap();
        assert_eq!(take().err().unwrap().kind(), ErrorKind::QUOTA);
        drop(first);
        assert!(take().is_ok());
    }
}
