//! The beginning of a worker, from the host's side: hello, then the library, then its welcome.
//!
//! Two things take long then, and neither needs the other: two processes come up, and a library is read, hashed and sealed. So they go on side by
//! side. The worker learns at once all that it needs to hold itself to, and does that; the library follows when it has been found
//! to be the right one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::load::Pin;
use super::frame::Kind;
use super::link::Link;
use super::masks::Masks;
use super::message::{Hello, Library, Welcome};
use super::slot::{Death, End, Slot};
use super::start::Started;

/// How long a worker may take from its library to its welcome. A plugin's `register` may do some work once.
const WELCOME: Duration = Duration::from_secs(10);

/// A worker that has been told who it is, and waits for its library.
pub(super) struct Greeting {
    link: Arc<Link>,
    welcome: Arc<Slot>,
}

impl Greeting {
    /// Says hello to a worker that was started; `on_death` is told when it has ended without having been told to.
    pub(super) fn hello(
        plugin: &str,
        started: Started,
        hello: &Hello,
        masks: Arc<Masks>,
        on_death: impl FnOnce(&Death) + Send + 'static,
    ) -> Result<Self, Arc<Death>> {
        let (link, welcome) =
            Link::open(plugin, started, masks, on_death).map_err(|error| refused(&error))?;
        let hello = serde_json::to_vec(hello).map_err(|error| refused(&error.into()))?;
        link.say(Kind::HELLO, 0, &hello);
        Ok(Self { link, welcome })
    }

    /// Ends it: there is no library for it.
    pub(super) fn abandon(self) {
        self.link.part();
    }

    /// Gives it its library, and waits until it has loaded that; `library` is none where it is to be opened in its place.
    pub(super) fn library(self, library: Option<File>, pin: Pin) -> Result<(Arc<Link>, Welcome), Arc<Death>> {
        let Self { link, welcome } = self;
        let body = Library { pin: library.is_none().then_some(pin) };
        let body = serde_json::to_vec(&body).map_err(|error| refused(&error.into()))?;
        // If it fails, the worker is gone, which the thread that reads finds out.
        match library {
            Some(library) => drop(link.write_with(Kind::LIBRARY, 0, &body, library.as_fd())),
            None => link.say(Kind::LIBRARY, 0, &body),
        }
        let mut answer = welcome.wait(Instant::now() + WELCOME);
        if answer.is_none() {
            link.kill(&format!("was not ready within {} s", WELCOME.as_secs()));
            answer = welcome.wait(Instant::now() + WELCOME);
        }
        match answer.and_then(|(_, end)| end) {
            Some(End::Reply(text)) => match serde_json::from_slice(&text) {
                Ok(welcome) => Ok((link, welcome)),
                Err(error) => {
                    link.kill("answered with something else than a welcome");
                    Err(refused(&error.into()))
                }
            },
            Some(End::Died(death)) => Err(death),
            None => Err(refused(&io::ErrorKind::TimedOut.into())),
        }
    }
}

fn refused(error: &io::Error) -> Arc<Death> {
    let how = format!("could not be spoken to: {error}");
    Arc::new(Death { how, last_words: None, from_outside: false })
}
