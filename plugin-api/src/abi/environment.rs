//! [`Environment`], its requests and its outcomes as they cross.

use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};

use abi_stable::StableAbi;
use abi_stable::sabi_trait;
use abi_stable::sabi_trait::prelude::TD_Opaque;
use abi_stable::std_types::{RBox, ROption, RResult, RStr, RString, RVec, Tuple2};

use super::error::AbiError;
use super::fields::{extra_from, extra_text, understood};
use super::guard::{guard, guard_or};
use super::io::{AbiExecIoRef, HostIo, PluginIo};
use crate::{Ended, Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest, Stdin};

/// The crossing form of [`ExecRequest`]. `stdin_fd` is −1, or a descriptor that stays the caller's.
#[repr(C)]
#[derive(StableAbi)]
pub struct AbiExecRequest {
    pub(crate) command: RString,
    pub(crate) cwd: ROption<RString>,
    pub(crate) env: RVec<Tuple2<RString, RString>>,
    pub(crate) stdin: RVec<u8>,
    pub(crate) stdin_fd: i32,
    pub(crate) call_id: RString,
    pub(crate) extra: RString,
}

/// The crossing form of [`ExecOutcome`]. `signal` is 0 where there was none.
#[repr(C)]
#[derive(StableAbi)]
pub struct AbiExecOutcome {
    pub(crate) exit_code: i32,
    pub(crate) ended: u32,
    pub(crate) signal: i32,
    pub(crate) cwd: ROption<RString>,
    pub(crate) warnings: RVec<RString>,
    pub(crate) extra: RString,
}

/// The crossing form of [`Environment`].
#[sabi_trait]
pub trait AbiEnvironment: Send + Sync + 'static {
    /// As [`Environment::execute`].
    fn execute(&self, request: AbiExecRequest, io: AbiExecIoRef<'_>) -> RResult<AbiExecOutcome, AbiError>;
    /// As [`Environment::cleanup`].
    fn cleanup(&self) -> RResult<(), AbiError>;
    /// As [`Environment::persist`].
    fn persist(&self) -> RResult<(), AbiError>;
    /// As [`Environment::read_file`].
    fn read_file(&self, path: RStr<'_>) -> RResult<RVec<u8>, AbiError>;
    /// As [`Environment::write_file`].
    #[sabi(last_prefix_field)]
    fn write_file(
        &self,
        path: RStr<'_>,
        contents: abi_stable::std_types::RSlice<'_, u8>,
    ) -> RResult<(), AbiError>;
}

/// The object that crosses.
pub(crate) type AbiEnvironmentBox = AbiEnvironment_TO<RBox<()>>;

/// The plugin's side: guards a plugin's environment, its destructor included.
pub(crate) struct PluginEnvironment(ManuallyDrop<Box<dyn Environment>>);

impl PluginEnvironment {
    pub(crate) fn crossing(environment: Box<dyn Environment>) -> AbiEnvironmentBox {
        AbiEnvironment_TO::from_value(Self(ManuallyDrop::new(environment)), TD_Opaque)
    }
}

impl Drop for PluginEnvironment {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and nothing reads the field after it.
        guard_or((), || unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

impl AbiEnvironment for PluginEnvironment {
    fn execute(&self, request: AbiExecRequest, io: AbiExecIoRef<'_>) -> RResult<AbiExecOutcome, AbiError> {
        guard("execute", || {
            let outcome = self.0.execute(request.try_into()?, &PluginIo::new(io))?;
            Ok(outcome.into())
        })
    }

    fn cleanup(&self) -> RResult<(), AbiError> {
        guard("cleanup", || self.0.cleanup())
    }

    fn persist(&self) -> RResult<(), AbiError> {
        guard("persist", || self.0.persist())
    }

    fn read_file(&self, path: RStr<'_>) -> RResult<RVec<u8>, AbiError> {
        guard("read_file", || Ok(self.0.read_file(path.as_str())?.into()))
    }

    fn write_file(
        &self,
        path: RStr<'_>,
        contents: abi_stable::std_types::RSlice<'_, u8>,
    ) -> RResult<(), AbiError> {
        guard("write_file", || self.0.write_file(path.as_str(), contents.as_slice()))
    }
}

/// The host's side: a plugin's environment, looking like any other.
pub(crate) struct ForeignEnvironment(pub(crate) AbiEnvironmentBox);

impl Environment for ForeignEnvironment {
    fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        let held = match &request.stdin {
            Stdin::Fd(fd) => Some(fd.try_clone().map_err(|error| {
                Error::new(ErrorKind::IO, format!("failed to pass standard input on: {error}")).not_started()
            })?),
            _ => None,
        };
        let mut crossing = AbiExecRequest::from(request);
        crossing.stdin_fd = held.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let host = HostIo(io);
        let outcome = self.0.execute(crossing, host.crossing()).into_result();
        drop(held);
        Ok(outcome?.into())
    }

    fn cleanup(&self) -> Result<(), Error> {
        Ok(self.0.cleanup().into_result()?)
    }

    fn persist(&self) -> Result<(), Error> {
        Ok(self.0.persist().into_result()?)
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, Error> {
        Ok(self.0.read_file(path.into()).into_result()?.into_vec())
    }

    fn write_file(&self, path: &str, contents: &[u8]) -> Result<(), Error> {
        Ok(self.0.write_file(path.into(), contents.into()).into_result()?)
    }
}

impl From<ExecRequest> for AbiExecRequest {
    fn from(request: ExecRequest) -> Self {
        Self {
            command: request.command.into(),
            cwd: request.cwd.map(RString::from).into(),
            env: request.env.into_iter().map(|(name, value)| Tuple2(name.into(), value.into())).collect(),
            stdin: match request.stdin {
                Stdin::Bytes(bytes) => bytes.into(),
                Stdin::Empty | Stdin::Fd(_) => RVec::new(),
            },
            stdin_fd: -1,
            call_id: request.call_id.into(),
            extra: extra_text(&request.extra),
        }
    }
}

impl TryFrom<AbiExecRequest> for ExecRequest {
    type Error = Error;

    fn try_from(request: AbiExecRequest) -> Result<Self, Error> {
        let stdin = match (request.stdin_fd, request.stdin.is_empty()) {
            (fd, _) if fd >= 0 => {
                // SAFETY: the host keeps the descriptor open until the call returns, and the borrow ends with this line.
                let copy = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
                Stdin::Fd(copy.map_err(|error| {
                    Error::new(ErrorKind::IO, format!("failed to take over standard input: {error}"))
                        .not_started()
                })?)
            }
            (_, true) => Stdin::Empty,
            (_, false) => Stdin::Bytes(request.stdin.into_vec()),
        };
        Ok(Self {
            command: request.command.into_string(),
            cwd: request.cwd.map(RString::into_string).into_option(),
            env: request
                .env
                .into_iter()
                .map(|Tuple2(name, value)| (name.into_string(), value.into_string()))
                .collect(),
            stdin,
            call_id: request.call_id.into_string(),
            extra: understood(&request.extra)?,
        })
    }
}

impl From<ExecOutcome> for AbiExecOutcome {
    fn from(outcome: ExecOutcome) -> Self {
        Self {
            exit_code: outcome.exit_code,
            ended: outcome.ended.0,
            signal: outcome.signal.unwrap_or(0),
            cwd: outcome.cwd.map(RString::from).into(),
            warnings: outcome.warnings.into_iter().map(RString::from).collect(),
            extra: extra_text(&outcome.extra),
        }
    }
}

impl From<AbiExecOutcome> for ExecOutcome {
    fn from(outcome: AbiExecOutcome) -> Self {
        Self {
            exit_code: outcome.exit_code,
            ended: Ended(outcome.ended),
            signal: (outcome.signal != 0).then_some(outcome.signal),
            cwd: outcome.cwd.map(RString::into_string).into_option(),
            warnings: outcome.warnings.into_iter().map(RString::into_string).collect(),
            extra: extra_from(&outcome.extra),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::Flow;

    struct Echo;
    impl Environment for Echo {
        fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
            assert_ne!(request.command, "panic", "asked to");
            io.output(request.command.as_bytes());
            match request.stdin {
                Stdin::Bytes(bytes) => {
                    io.output(&bytes);
                }
                Stdin::Fd(fd) => {
                    let mut bytes = Vec::new();
                    std::fs::File::from(fd).read_to_end(&mut bytes).unwrap();
                    io.output(&bytes);
                }
                Stdin::Empty => {}
            }
            let mut outcome = ExecOutcome::signalled(9);
            outcome.cwd = request.cwd;
            outcome.warnings =
                request.env.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            outcome.extra = request.extra;
            outcome.extra.insert("call".into(), request.call_id.into());
            Ok(outcome)
        }
        fn cleanup(&self) -> Result<(), Error> {
            panic!("in cleanup")
        }
    }
    impl Drop for Echo {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }

    struct Sink(std::sync::Mutex<Vec<u8>>);
    impl ExecIo for Sink {
        fn output(&self, bytes: &[u8]) -> Flow {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Flow::Continue
        }
        fn cancelled(&self) -> bool {
            false
        }
    }

    fn run(stdin: Stdin) -> (Vec<u8>, ExecOutcome) {
        let environment = ForeignEnvironment(PluginEnvironment::crossing(Box::new(Echo)));
        let sink = Sink(std::sync::Mutex::default());
        let mut request = ExecRequest::new("command");
        request.cwd = Some("/tmp".into());
        request.env = vec![("A".into(), "1".into())];
        request.extra.insert("later".into(), true.into());
        request.call_id = "call7".into();
        request.stdin = stdin;
        let outcome = environment.execute(request, &sink).unwrap();
        (sink.0.into_inner().unwrap(), outcome)
    }

    #[test]
    fn requests_and_outcomes_survive_the_round_trip() {
        let (output, outcome) = run(Stdin::Bytes(b"\0stdin".to_vec()));
        assert_eq!(output, b"command\0stdin");
        assert_eq!((outcome.exit_code, outcome.ended, outcome.signal), (137, Ended::SIGNAL, Some(9)));
        assert_eq!(outcome.cwd.as_deref(), Some("/tmp"));
        assert_eq!(outcome.warnings, ["A=1"]);
        assert_eq!(outcome.extra["later"], true);
        assert_eq!(outcome.extra["call"], "call7");
        assert_eq!(run(Stdin::Empty).0, b"command");
    }

    #[test]
    fn a_later_field_that_must_be_understood_is_refused() {
        let environment = ForeignEnvironment(PluginEnvironment::crossing(Box::new(Echo)));
        let mut request = ExecRequest::new("command");
        request.extra.insert("!teleport".into(), true.into());
        let error = environment.execute(request, &Sink(std::sync::Mutex::default())).unwrap_err();
        assert!(error.kind() == ErrorKind::UNSUPPORTED && !error.may_have_started());
    }

    #[test]
    fn a_descriptor_crosses_as_standard_input() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b" from a pipe").unwrap();
        drop(writer);
        assert_eq!(run(Stdin::Fd(reader.into())).0, b"command from a pipe");
    }

    #[test]
    fn panics_in_calls_and_destructors_are_errors() {
        let environment = ForeignEnvironment(PluginEnvironment::crossing(Box::new(Echo)));
        let sink = Sink(std::sync::Mutex::default());
        let error = environment.execute(ExecRequest::new("panic"), &sink).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PANICKED);
        assert_eq!(environment.cleanup().unwrap_err().message(), "`cleanup` panicked: in cleanup");
        drop(environment);
    }
}
