//! Signals to a shell.
//!
//! One that interrupts is for the command that runs; one that ends is for the shell as well. While a call runs, both cancel it, and
//! the shell sees afterwards whether to leave. At the prompt our main thread stands in a read that nothing takes back, so there
//! the thread that hears the signal lets everything go and ends the process itself.

use std::io::{self, IsTerminal, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

use super::call::Io;
use super::print::say;
use crate::environments::Environments;
use crate::exec::ignored_signals;
use crate::guard::Guard;

/// Turns off what the line editor turns on (bracketed paste), and leaves its line.
const LEAVE_EDITOR: &[u8] = b"\x1b[?2004l\n";

/// Hears the signals of one shell.
pub(super) struct Signals {
    now: Arc<Mutex<Now>>,
    /// Whether the next signal has its usual effect.
    over: Arc<AtomicBool>,
}

/// What is going on.
#[derive(Default)]
struct Now {
    running: Option<Arc<Io>>,
    /// The signal that ends the shell.
    ending: Option<i32>,
}

/// One signal that is heard.
struct Heard {
    signal: i32,
    /// It ends the shell, and not only a command.
    ends: bool,
    came: Arc<AtomicBool>,
}

impl Signals {
    /// Begins to hear. Where a person types, `Ctrl-C` and `Ctrl-\` are for the command alone. `end` is called with the signal that
    /// ends the shell while no call runs, and does not come back. What our starter has told us to ignore is ignored.
    pub(super) fn hear(is_person: bool, end: impl Fn(i32) + Send + 'static) -> io::Result<Self> {
        let (bell, ring) = io::pipe()?;
        let (now, over) = (Arc::<Mutex<Now>>::default(), Arc::<AtomicBool>::default());
        let ignored = ignored_signals();
        let mut heard = Vec::new();
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
            if ignored & (1 << (signal - 1)) != 0 {
                continue;
            }
            let ends = !is_person || matches!(signal, SIGTERM | SIGHUP);
            let came = Arc::<AtomicBool>::default();
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&over))?;
            // Before the bell, so that whoever hears it finds who rang.
            flag::register(signal, Arc::clone(&came))?;
            pipe::register(signal, ring.try_clone()?)?;
            heard.push(Heard { signal, ends, came });
        }
        let theirs = Arc::clone(&now);
        thread::Builder::new().name("signals".into()).spawn(move || listen(bell, &heard, &theirs, &end))?;
        Ok(Self { now, over })
    }

    /// Says that a call runs. It is cancelled at once if the shell is to end.
    pub(super) fn running(&self, io: &Arc<Io>) {
        let mut now = lock(&self.now);
        if now.ending.is_some() {
            io.interrupt();
        }
        now.running = Some(Arc::clone(io));
    }

    /// Says that no call runs. Returns the exit code if the shell is to end.
    pub(super) fn waiting(&self) -> Option<u8> {
        let mut now = lock(&self.now);
        now.running = None;
        now.ending.map(|signal| u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }

    /// Gives the signals their usual effect again.
    pub(super) fn over(&self) {
        // Whoever is ending the process holds the lock until it has ended.
        let _now = lock(&self.now);
        self.over.store(true, Ordering::SeqCst);
    }
}

fn listen(mut bell: PipeReader, heard: &[Heard], now: &Mutex<Now>, end: &impl Fn(i32)) {
    let mut buffer = [0; 64];
    while bell.read(&mut buffer).is_ok_and(|count| count > 0) {
        for one in heard.iter().filter(|one| one.came.swap(false, Ordering::SeqCst)) {
            let mut now = lock(now);
            if let Some(io) = &now.running {
                io.interrupt();
                if one.ends {
                    now.ending = Some(one.signal);
                }
            } else if one.ends {
                end(one.signal);
            }
        }
    }
}

fn lock(now: &Mutex<Now>) -> MutexGuard<'_, Now> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what ends the process at the prompt: it gives the terminal back as it is now, and lets all environments go.
pub(super) fn leave(environments: &Arc<Environments>) -> impl Fn(i32) + Send + 'static {
    let environments = Arc::clone(environments);
    let stdin = io::stdin();
    let before = if stdin.is_terminal() { tcgetattr(stdin.as_fd()).ok() } else { None };
    move |signal| {
        if let Some(before) = &before {
            // The terminal may be what has gone.
            let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, before);
            if io::stdout().is_terminal() {
                let _ = io::stdout().write_all(LEAVE_EDITOR).and_then(|()| io::stdout().flush());
            }
        }
        for line in environments.close() {
            say("warning", &line);
        }
        Guard::shared().goodbye();
        exit(128 + signal);
    }
}
