//! What a client is told at the beginning: what lasts between calls, and where they act.
//!
//! To say what is in a sandbox one has to look, and looking may make one, start a plugin, or hang. So it is done on a thread, once for
//! each client, only where it costs nothing, and nobody waits for it for long.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::system::uname;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::session::Client;
use crate::policy::{cwd, hints};
use crate::registry::Flags;
use crate::tools::{Call, Script};

/// How long a client waits.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long looking around may take.
const LOOKING: Duration = Duration::from_secs(30);

/// What lasts, whatever the place.
const LASTING: &str = "The working directory, exported variables, functions and aliases of `terminal` last from one call to the next. \
                       What runs for long goes into the background and is looked after with `process`.";

/// What one client is told.
#[derive(Default)]
pub(super) struct Instructions(Mutex<Option<watch::Receiver<Option<String>>>>);

impl Instructions {
    /// Returns what `client` is told.
    pub(super) async fn of(&self, client: &Arc<Client>) -> String {
        let mut found = self.look(client);
        let hints = match tokio::time::timeout(PATIENCE, found.wait_for(Option::is_some)).await {
            Ok(Ok(hints)) => hints.clone(),
            // Too late, or the thread has panicked.
            _ => None,
        };
        let hints = hints.unwrap_or_else(|| unseen(client));
        format!("{LASTING}\n\n{hints}")
    }

    /// Returns where the hints come out, and begins to look around if nobody has. What was found, or not, holds from then on.
    fn look(&self, client: &Arc<Client>) -> watch::Receiver<Option<String>> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found
            .get_or_insert_with(|| {
                let (sender, receiver) = watch::channel(None);
                let client = Arc::clone(client);
                // All who wait may have given up.
                spawn_blocking(move || sender.send(Some(look(&client))).ok());
                receiver
            })
            .clone()
    }
}

/// Returns what is told of a place that could not be seen.
fn unseen(client: &Client) -> String {
    let name = client.session.entry().name();
    hints::elsewhere(name, &format!("a {name} environment (likely Linux)"), None)
}

/// Looks around.
fn look(client: &Arc<Client>) -> String {
    let entry = client.session.entry();
    let Ok(provider) = entry.provider() else { return unseen(client) };
    let flags = Flags::read(&provider);
    if !flags.is_remote && !flags.is_container {
        return hints::on_the_host(&here(client, &flags));
    }
    let place = if flags.costs_to_create { None } else { there(client) };
    hints::elsewhere(entry.name(), &flags.env_description, place.as_ref())
}

/// Returns what is known of this machine.
fn here(client: &Client, flags: &Flags) -> hints::Place {
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let (system, path) = (uname(), |path: std::path::PathBuf| path.to_string_lossy().into_owned());
    let configured = client.session.world().config.text("terminal.cwd").ok().flatten();
    let start = cwd::start(configured.as_deref(), flags);
    hints::Place {
        os: Some(format!("{} ({})", text(system.sysname()), text(system.release()))),
        user: None,
        home: dirs::home_dir().map(path),
        cwd: start.or_else(|| std::env::current_dir().ok().map(path)),
    }
}

/// Looks around in the sandbox of `client`.
fn there(client: &Arc<Client>) -> Option<hints::Place> {
    let call = Call::new().ok()?;
    let _flight = client.calls.begin(call.cancel());
    let script = Script::new(hints::LOOK).without_login().limit(LOOKING).most(64 * 1024);
    match script.run(&client.session, &call) {
        Ok(ran) => hints::Place::read(&ran.output),
        Err(error) => {
            tracing::debug!(%error, "failed to look around");
            None
        }
    }
}
