//! Has the guard look after the reading of login files.
//!
//! A session's first command reads them, and what they start is to outlive it: so their processes carry a name of their own (`call_id`), and
//! the host that dies meanwhile leaves a shell behind which nobody waits for. But once the command has started they are read, and what they have
//! left, such as an agent for keys, is the session's: the death of this host must not end it. So they are guarded until the command
//! says that it has started, and no longer.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hostel_plugin_api::{ExecIo, ExecRequest, Flow};

use super::call_id::login_of;
use super::running::SharedIo;
use crate::guard::{Guard, Watching};

/// Whether an environment's login files have been read, as far as this process has seen.
#[derive(Clone, Default)]
pub(super) struct Login(Arc<AtomicBool>);

impl Login {
    /// Guards the login files that the call of `io` may read first, in the environment whose id is `id`. Returns the call's side.
    pub(super) fn watch(&self, id: Option<&str>, request: &mut ExecRequest, io: SharedIo) -> SharedIo {
        let Some(id) = id.filter(|_| !request.skips_login() && !self.0.load(Ordering::SeqCst)) else {
            return io;
        };
        let reading = login_of(id, &request.call_id);
        let watching = Mutex::new(Some(Guard::shared().watch(&reading)));
        let is_asked = request.tells_start();
        request.tell_start();
        Arc::new(Reading { io, is_read: self.clone(), watching, is_asked })
    }
}

/// The caller's side of a call that may read login files.
struct Reading {
    io: SharedIo,
    is_read: Login,
    watching: Mutex<Option<Watching<'static>>>,
    /// Whether the caller itself wants to know of the start.
    is_asked: bool,
}

impl ExecIo for Reading {
    fn output(&self, bytes: &[u8]) -> Flow {
        let watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner).take();
        if watching.is_some() {
            self.is_read.0.store(true, Ordering::SeqCst);
            if bytes.is_empty() && !self.is_asked {
                return Flow::Continue;
            }
        }
        self.io.output(bytes)
    }

    fn cancelled(&self) -> bool {
        self.io.cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        self.io.cancel_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        self.io.deadline()
    }
}
