//! How a worker starts: it gives up all that it does not need before foreign code runs, and then loads the plugin.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use hostel_plugin_api::Surroundings;
use rustix::process::{
    DumpableBehavior, Pid, Signal, getppid, set_dumpable_behavior, set_parent_process_death_signal,
};

use super::super::error::{LoadError, Step};
use super::super::load::{Discovered, Registered, Sealed, Verified};
use super::confine::confine;
use super::frame::{Frame, FrameError, FrameReader, Kind};
use super::incoming::Incoming;
use super::log;
use super::message::{self, Hello, PROTOCOL, Welcome};
use super::serve::{Server, Writer};

/// Runs the worker of `keeper`: standard input is the socket, and `gate` leads to whoever judges its connections.
pub(super) fn worker_main(keeper: Pid, gate: OwnedFd) -> ExitCode {
    match enter(keeper, gate) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The host reads this as the worker's last words.
            let _ = writeln!(io::stderr(), "the worker could not start: {error}");
            ExitCode::FAILURE
        }
    }
}

fn enter(keeper: Pid, gate: OwnedFd) -> io::Result<()> {
    rustix::thread::set_name(c"hostel-worker")?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(keeper) {
        return Err(io::Error::other("its keeper has gone"));
    }
    // The copy is closed where another program is started; the original would be seen by all of them.
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let null: OwnedFd = fs::OpenOptions::new().read(true).open("/dev/null")?.into();
    rustix::stdio::dup2_stdin(&null)?;
    let writer = Arc::new(Writer::new(socket.try_clone()?));
    let mut reader = FrameReader::new(Incoming::new(socket));
    let hello = reader.read().map_err(io::Error::other)?;
    let hello: Hello = match hello.kind {
        Kind::HELLO => serde_json::from_slice(&hello.body)?,
        _ => return Err(io::Error::other("the host did not say hello")),
    };
    if hello.watched {
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    }
    log::forward_to(Arc::clone(&writer), hello.log_level);
    let welcome = |welcome: &Welcome| writer.send_json(Kind::HELLO, 0, welcome);
    match load(hello, &mut reader, gate) {
        Ok(Some(Loaded { registered, unenforced })) => {
            let providers = registered.iter().map(named).collect();
            welcome(&Welcome::Ready { protocol: PROTOCOL, providers, unenforced })?;
            let server = Server::new(reader, writer, registered);
            loop {
                // It comes back where enough others wait to read.
                server.follow();
                std::thread::park();
            }
        }
        // The host has no library for it.
        Ok(None) => Ok(()),
        Err(error) => {
            welcome(&Welcome::failed(error))?;
            // Whoever ends unasked has crashed, and this has not.
            while reader.read().is_ok_and(|frame| frame.kind != Kind::BYE) {}
            Ok(())
        }
    }
}

fn named(registered: &Registered) -> message::Registered {
    use hostel_plugin_api::TerminalEnvironmentProvider as _;
    message::Registered {
        name: registered.provider.name().to_owned(),
        strip_env_keys: registered.strip_env.clone().ok(),
        strip_env_error: registered.strip_env.clone().err(),
    }
}

/// The library before it is opened.
enum Library {
    Sealed(Sealed),
    Verified(Verified),
}

/// A plugin that is loaded.
struct Loaded {
    registered: Vec<Registered>,
    /// Permissions that the kernel cannot hold it to, a line each.
    unenforced: Vec<String>,
}

/// Holds this process to what the hello says, and loads the library, which comes after it. None if none comes.
fn load(
    hello: Hello,
    reader: &mut FrameReader<Incoming>,
    gate: OwnedFd,
) -> Result<Option<Loaded>, LoadError> {
    let name = &hello.manifest.name;
    let failed = |step, reason: String| LoadError::new(name, step, reason, "try again");
    if hello.protocol != PROTOCOL {
        return Err(failed(
            Step::Version,
            format!("the host speaks protocol {}, the worker {PROTOCOL}", hello.protocol),
        ));
    }
    let start = |what: &str, error: &dyn std::fmt::Display| {
        let reason = format!("its worker could not be {what}: {error}");
        LoadError::new(name, Step::Open, reason, "see `hostel doctor`")
    };
    let limits = hello.limits.apply(hello.manifest.permissions.exec);
    limits.map_err(|error| start("limited", &error))?;
    // Nothing of the plugin's has run yet, and no thread but this one: what is given up here is given up for all of it.
    let unenforced = confine(&hello, gate).map_err(|error| start("confined", &error))?;
    let Some(allowed) = allowed(reader).map_err(|error| failed(Step::File, error.to_string()))? else {
        return Ok(None);
    };
    let found = Discovered { folder: hello.folder.clone(), manifest: hello.manifest.clone() };
    // Whoever sends it has looked at it.
    let library = match (reader.inner().descriptor(), allowed.pin) {
        (Some(file), _) => Library::Sealed(found.sealed(file)?),
        (None, Some(pin)) => Library::Verified(found.verify(Some(&pin))?),
        (None, None) => return Err(failed(Step::File, "no library came from the host".into())),
    };
    let surroundings = Surroundings {
        host_version: hello.host_version,
        plugin_dir: hello.folder,
        data_dir: hello.data_dir,
        settings: hello.settings,
    };
    let opened = match library {
        Library::Sealed(sealed) => sealed.open()?,
        Library::Verified(verified) => verified.open()?,
    };
    Ok(Some(Loaded { registered: opened.register(surroundings)?, unenforced }))
}

/// Waits until the host allows the library to be loaded. None if it does not.
fn allowed(reader: &mut FrameReader<Incoming>) -> io::Result<Option<message::Library>> {
    loop {
        match reader.read() {
            Ok(Frame { kind: Kind::LIBRARY, body, .. }) => return Ok(Some(serde_json::from_slice(&body)?)),
            Ok(Frame { kind: Kind::BYE, .. }) | Err(FrameError::Closed) => return Ok(None),
            // A later version's.
            Ok(_) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
    }
}
