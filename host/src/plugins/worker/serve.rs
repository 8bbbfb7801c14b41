//! The worker's side: reads frames, and makes the calls that they ask for.
//!
//! Whichever thread is free reads the next frame; when that is a call it passes the reading on to another and makes the call
//! itself. So a call costs one wake-up and no hand-over, and many can be in flight.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use hostel_plugin_api::abi::ForeignProvider;
use hostel_plugin_api::{Environment, Error, ErrorKind, Stdin, TerminalEnvironmentProvider};
use serde::Serialize;
use serde_json::Value;

use super::super::load::Registered;
use super::frame::{self, FrameError, FrameReader, Kind};
use super::incoming::Incoming;
use super::message::{Attribute, Call, Reply};
use super::running::Running;
use super::values::{Check, Input, Outcome, Verdict};

/// Threads that wait for their turn to read. More than these end when they have nothing to do.
const SPARE: usize = 4;

/// The exit code of a worker that can read nothing more though the host is there.
pub(super) const LOST_CONNECTION: i32 = 77;

/// The environments, calls and socket of one worker.
pub(super) struct Server {
    reading: Mutex<Reading>,
    pub(super) writer: Arc<Writer>,
    providers: Vec<Registered>,
    environments: Mutex<HashMap<u64, Arc<dyn Environment>>>,
    last_environment: AtomicU64,
    running: Mutex<HashMap<u32, Arc<Running>>>,
    waiting: AtomicUsize,
}

/// The reading end of the socket, and what has come for calls that have not.
struct Reading {
    frames: FrameReader<Incoming>,
    data: HashMap<u32, Vec<u8>>,
}

/// The writing end of the socket, a frame at a time.
pub(super) struct Writer(Mutex<UnixStream>);

impl Writer {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self(Mutex::new(socket))
    }

    pub(super) fn send(&self, kind: Kind, call: u32, body: &[u8]) -> io::Result<()> {
        frame::write(&*lock(&self.0), kind, call, body)
    }

    pub(super) fn send_json(&self, kind: Kind, call: u32, message: &impl Serialize) -> io::Result<()> {
        self.send(kind, call, &serde_json::to_vec(message)?)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call that was read, with what came before it.
struct Asked {
    id: u32,
    call: Call,
    running: Arc<Running>,
    data: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

impl Server {
    pub(super) fn new(
        frames: FrameReader<Incoming>,
        writer: Arc<Writer>,
        providers: Vec<Registered>,
    ) -> Arc<Self> {
        Arc::new(Self {
            reading: Mutex::new(Reading { frames, data: HashMap::new() }),
            writer,
            providers,
            environments: Mutex::default(),
            last_environment: AtomicU64::new(0),
            running: Mutex::default(),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Serves until the host says good-bye or is gone, which ends the process.
    pub(super) fn follow(self: &Arc<Self>) {
        loop {
            // One that only looks in is not counted: whoever makes a call meanwhile would leave the reading to it.
            let joined = |waiting: usize| (waiting < SPARE).then_some(waiting + 1);
            if self.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, joined).is_err() {
                return;
            }
            let asked = {
                let mut reading = lock(&self.reading);
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                let asked = loop {
                    let asked = self.read(&mut reading);
                    if !matches!(asked.call, Call::Attribute { .. }) {
                        break asked;
                    }
                    // Cheap by its contract, or else the worker is killed: to wake another reader would cost more.
                    self.make(asked);
                };
                self.let_another_read();
                asked
            };
            self.make(asked);
        }
    }

    /// Makes a call, and sends what came of it.
    fn make(&self, asked: Asked) {
        let (id, method) = (asked.id, asked.call.name());
        let served = catch_unwind(AssertUnwindSafe(|| self.serve(asked)));
        let panicked = || Err(Error::new(ErrorKind::PANICKED, format!("`{method}` panicked")));
        let reply = match served.unwrap_or_else(|_| panicked()) {
            Ok(value) => Reply::Ok(value),
            Err(error) => Reply::Error(error.into()),
        };
        lock(&self.running).remove(&id);
        if self.writer.send_json(Kind::RESULT, id, &reply).is_err() {
            let what = Error::new(ErrorKind::OTHER, format!("the answer of `{method}` is too long"));
            // If this fails as well, the host is gone, and the next read ends the process.
            let _ = self.writer.send_json(Kind::RESULT, id, &Reply::Error(what.into()));
        }
    }

    /// Sees to it that frames are read while this thread makes a call.
    fn let_another_read(self: &Arc<Self>) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            let server = Arc::clone(self);
            // Without one the frames wait until this call has ended.
            let _ = thread::Builder::new().name("call".into()).spawn(move || server.follow());
        }
    }

    /// Reads up to the next call.
    fn read(&self, reading: &mut Reading) -> Asked {
        let Reading { frames, data } = reading;
        loop {
            let frame = match frames.read() {
                Ok(frame) => frame,
                // The host is gone; the keeper sees to the rest.
                Err(FrameError::Closed) => std::process::exit(0),
                // The plugin may have closed the socket under us.
                Err(_) => std::process::exit(LOST_CONNECTION),
            };
            let running = lock(&self.running).get(&frame.call).cloned();
            match (frame.kind, running) {
                (Kind::BYE, _) => std::process::exit(0),
                (Kind::CANCEL, Some(running)) => running.cancel(),
                (Kind::STOP, Some(running)) => running.stop(),
                (Kind::CREDIT, Some(running)) => {
                    running.grant(frame.body.try_into().map_or(0, u32::from_le_bytes) as usize);
                }
                (Kind::DATA, _) => data.entry(frame.call).or_default().extend(frame.body),
                (Kind::CALL, _) => match serde_json::from_slice::<Call>(&frame.body) {
                    Ok(call) => {
                        let descriptor = match &call {
                            Call::Execute { request, .. } if request.stdin == Input::Descriptor => {
                                frames.inner().descriptor()
                            }
                            _ => None,
                        };
                        let running = Arc::new(Running::default());
                        lock(&self.running).insert(frame.call, Arc::clone(&running));
                        let data = data.remove(&frame.call).unwrap_or_default();
                        return Asked { id: frame.call, call, running, data, descriptor };
                    }
                    Err(error) => {
                        let what = format!("a call that cannot be read: {error}");
                        let failure = Error::new(ErrorKind::UNSUPPORTED, what).not_started();
                        // If this fails, the host is gone, and the next read ends the process.
                        let _ =
                            self.writer.send_json(Kind::RESULT, frame.call, &Reply::Error(failure.into()));
                    }
                },
                // Of a call that has ended, or a later version's.
                _ => {}
            }
        }
    }

    fn serve(&self, asked: Asked) -> Result<Value, Error> {
        let Asked { id, call, running, data, descriptor } = asked;
        match call {
            Call::Attribute { provider, attribute } => attribute_of(self.provider(&provider)?, attribute),
            Call::PostSetup { provider } => self.provider(&provider)?.post_setup().and_then(|()| json(&())),
            Call::ResolveConfig { provider, config } => self.provider(&provider)?.resolve_config(config),
            Call::CheckRequirements { provider, config } => {
                self.provider(&provider)?.check_requirements(&config).and_then(|()| json(&()))
            }
            Call::CreateEnvironment { provider, request } => {
                let environment = self.provider(&provider)?.create_environment((*request).into())?;
                let number = self.last_environment.fetch_add(1, Ordering::Relaxed) + 1;
                lock(&self.environments).insert(number, Arc::from(environment));
                json(&number)
            }
            Call::Execute { environment, request } => {
                let environment = self.environment(environment)?;
                let stdin = match (request.stdin, descriptor) {
                    (Input::Empty, _) => Stdin::Empty,
                    (Input::Data, _) => Stdin::Bytes(data),
                    (Input::Descriptor, Some(descriptor)) => Stdin::Fd(descriptor),
                    (Input::Descriptor, None) => {
                        let message = "the command's standard input did not arrive";
                        return Err(Error::new(ErrorKind::IO, message).not_started());
                    }
                };
                let io = running.io(id, &self.writer, request.remaining_us)?;
                let outcome = environment.execute((*request).into_request(stdin), &io)?;
                json(&Outcome::from(outcome))
            }
            Call::Cleanup { environment } => {
                self.environment(environment)?.cleanup().and_then(|()| json(&()))
            }
            Call::Persist { environment } => {
                self.environment(environment)?.persist().and_then(|()| json(&()))
            }
            Call::ReadFile { environment, path } => {
                let contents = self.environment(environment)?.read_file(&path)?;
                running.io(id, &self.writer, None)?.send(&contents);
                json(&())
            }
            Call::WriteFile { environment, path } => {
                self.environment(environment)?.write_file(&path, &data).and_then(|()| json(&()))
            }
            Call::Release { environment } => {
                let released = lock(&self.environments).remove(&environment);
                drop(released);
                json(&())
            }
        }
    }

    fn provider(&self, name: &str) -> Result<&ForeignProvider, Error> {
        let found = self.providers.iter().find(|registered| registered.provider.name() == name);
        found.map(|registered| &registered.provider).ok_or_else(|| {
            Error::new(ErrorKind::NOT_FOUND, format!("the plugin has no provider `{name}`")).not_started()
        })
    }

    fn environment(&self, number: u64) -> Result<Arc<dyn Environment>, Error> {
        lock(&self.environments).get(&number).cloned().ok_or_else(|| {
            Error::new(ErrorKind::LOST, format!("the worker has no environment {number}")).not_started()
        })
    }
}

fn json(value: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| Error::new(ErrorKind::OTHER, error.to_string()))
}

/// Reads an attribute. One that panics is an error here: the host has its default.
fn attribute_of(provider: &ForeignProvider, attribute: Attribute) -> Result<Value, Error> {
    match attribute {
        Attribute::IsAvailable => json(&provider.try_is_available()?),
        Attribute::DisplayName => json(&provider.try_display_name()?),
        Attribute::Description => json(&provider.try_description()?),
        Attribute::Probe => json(&Verdict::from(provider.try_probe()?)),
        Attribute::SetupInstructions => json(&provider.try_setup_instructions()?),
        Attribute::DoctorChecks => {
            json(&provider.try_doctor_checks()?.into_iter().map(Check::from).collect::<Vec<_>>())
        }
        Attribute::IsRemote => json(&provider.try_is_remote()?),
        Attribute::EnvDescription => json(&provider.try_env_description()?),
        Attribute::IsContainer => json(&provider.try_is_container()?),
        Attribute::SkipContainerGuards => json(&provider.try_skip_container_guards()?),
        Attribute::CachePathBase => json(&provider.try_cache_path_base()?),
        Attribute::StripEnvKeys => json(&provider.try_strip_env_keys()?),
        Attribute::SessionIsolatedWhenNonpersistent => {
            json(&provider.try_session_isolated_when_nonpersistent()?)
        }
        Attribute::DefaultCwd => json(&provider.try_default_cwd()?),
        Attribute::GuestHome => json(&provider.try_guest_home()?),
        Attribute::CostsToCreate => json(&provider.try_costs_to_create()?),
        Attribute::ConfigSchema => json(&provider.try_config_schema()?),
    }
}
