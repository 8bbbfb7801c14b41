//! One call on a provider, and all that can be seen of it.

use std::fmt;
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hostel::exec::{Cancel, Collector, Kept, Outputs, Size, Terminal};
use hostel_plugin_api::{ExecIo, ExecOutcome, Flow};

/// How long a call may take that names no limit.
const LIMIT: Duration = Duration::from_secs(30);

/// How much of an output is kept as the command line does it, in bytes.
const KEPT: usize = 1024 * 1024;

/// An answer that nobody had to wait for comes within this time, on a busy machine too. What is waited for in vain takes three times as long and more.
pub const PROMPT: Duration = Duration::from_secs(5);

/// What to run, and how.
#[derive(Debug, Clone, Default)]
pub struct Call {
    pub(crate) command: String,
    pub(crate) cwd: Option<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) limit: Option<Duration>,
    pub(crate) terminal: Option<Size>,
    pub(crate) typed: Vec<u8>,
    pub(crate) interrupted: bool,
    pub(crate) cancel: Option<Arc<Cancel>>,
    pub(crate) kept_only: Option<usize>,
    pub(crate) spilled_only: Option<u64>,
}

/// Runs `command` where the session stands.
impl From<&str> for Call {
    fn from(command: &str) -> Self {
        Self::new(command)
    }
}

/// Runs `command` where the session stands.
impl From<String> for Call {
    fn from(command: String) -> Self {
        Self::new(command)
    }
}

impl Call {
    /// Runs `command` where the session stands.
    #[must_use]
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), ..Self::default() }
    }

    /// Runs it in `dir`.
    #[must_use]
    pub fn within(mut self, dir: &str) -> Self {
        self.cwd = Some(dir.to_owned());
        self
    }

    /// Sets a variable for it.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets it read this, and then the end of input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Ends it after so many milliseconds.
    #[must_use]
    pub fn limit(mut self, milliseconds: u64) -> Self {
        self.limit = Some(Duration::from_millis(milliseconds));
        self
    }

    /// Runs it on a terminal of this size.
    #[must_use]
    pub fn on_terminal(mut self, size: Size) -> Self {
        self.terminal = Some(size);
        self
    }

    /// Types this on its terminal once it has printed something.
    #[must_use]
    pub fn typed(mut self, bytes: &[u8]) -> Self {
        bytes.clone_into(&mut self.typed);
        self
    }

    /// Cancels it once it has printed something.
    #[must_use]
    pub fn interrupted(mut self) -> Self {
        self.interrupted = true;
        self
    }

    /// Lets it be cancelled by this.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Arc<Cancel>) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Keeps no more of its output than head and tail, so many bytes of them.
    #[must_use]
    pub fn kept_only(mut self, bytes: usize) -> Self {
        self.kept_only = Some(bytes);
        self
    }

    /// Lets the file of its whole output hold no more than so many bytes.
    #[must_use]
    pub fn spilled_only(mut self, bytes: u64) -> Self {
        self.spilled_only = Some(bytes);
        self
    }
}

/// What came of a call.
pub struct Ran {
    /// What it printed, byte by byte; empty if only head and tail were to be kept.
    pub output: Vec<u8>,
    /// The same as faces show it.
    pub kept: Kept,
    /// The exit code.
    pub code: i32,
    /// How it ended, as machine-readable output names it.
    pub ended: &'static str,
    /// The number of the signal that killed the shell.
    pub signal: Option<i32>,
    /// Where the session stood in the end.
    pub cwd: Option<String>,
    /// What the user is told.
    pub warnings: Vec<String>,
    /// How long it took.
    pub took: Duration,
    /// After how long it had printed something.
    pub first_output: Option<Duration>,
}

/// Shows no more of an output than a person would read.
impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.kept.text.chars().take(2000).collect();
        f.debug_struct("Ran")
            .field("code", &self.code)
            .field("ended", &self.ended)
            .field("signal", &self.signal)
            .field("cwd", &self.cwd)
            .field("warnings", &self.warnings)
            .field("took", &self.took)
            .field("bytes", &self.kept.total)
            .field("output", &text)
            .finish_non_exhaustive()
    }
}

impl Ran {
    /// The output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Requires an exit code.
    ///
    /// # Panics
    ///
    /// Panics if it is another.
    #[track_caller]
    #[must_use]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Requires an exit code and an output.
    ///
    /// # Panics
    ///
    /// Panics if either is another.
    #[track_caller]
    #[must_use]
    pub fn is(self, code: i32, output: &str) -> Self {
        assert_eq!((self.code, self.text().as_str()), (code, output), "{self:?}");
        self
    }

    /// Requires success and an output.
    ///
    /// # Panics
    ///
    /// Panics if it failed, or printed anything else.
    #[track_caller]
    #[must_use]
    pub fn prints(self, output: &str) -> Self {
        self.is(0, output)
    }

    /// Requires that nobody had to wait.
    ///
    /// # Panics
    ///
    /// Panics if somebody had to.
    #[track_caller]
    #[must_use]
    pub fn prompt(self) -> Self {
        assert!(self.took < PROMPT, "{self:?}");
        self
    }

    /// Requires that the call was ended at its limit of so many milliseconds, and not much later: a grace of one second, and
    /// five for a machine that is busy. What is not ended takes twenty.
    ///
    /// # Panics
    ///
    /// Panics if it was not.
    #[track_caller]
    #[must_use]
    pub fn times_out(self, milliseconds: u64) -> Self {
        assert_eq!((self.code, self.ended), (124, "timeout"), "{self:?}");
        let limit = Duration::from_millis(milliseconds);
        assert!(self.took >= limit && self.took < limit + Duration::from_secs(6), "{self:?}");
        self
    }
}

/// The caller's side of a running call.
pub(crate) struct Watching {
    start: Instant,
    deadline: Instant,
    cancel: Arc<Cancel>,
    interrupted: bool,
    seen: Mutex<Seen>,
}

struct Seen {
    output: Option<Vec<u8>>,
    collector: Option<Collector>,
    first: Option<Duration>,
    /// What is typed at the first output, and where.
    typed: Option<(Terminal, Vec<u8>)>,
}

impl Watching {
    pub(crate) fn new(call: &Call, mut outputs: Outputs, terminal: Option<Terminal>) -> Self {
        outputs.each = call.spilled_only.unwrap_or(outputs.each);
        let start = Instant::now();
        let kept = call.kept_only.unwrap_or(KEPT);
        let seen = Seen {
            output: call.kept_only.is_none().then(Vec::new),
            collector: Some(Collector::new(kept, outputs)),
            first: None,
            typed: terminal.map(|terminal| (terminal, call.typed.clone())),
        };
        Self {
            start,
            deadline: start + call.limit.unwrap_or(LIMIT),
            cancel: call
                .cancel
                .clone()
                .unwrap_or_else(|| Arc::new(Cancel::new().expect("there are descriptors left"))),
            interrupted: call.interrupted,
            seen: Mutex::new(seen),
        }
    }

    /// Ends the looking on.
    pub(crate) fn finish(&self, outcome: ExecOutcome) -> Ran {
        let took = self.start.elapsed();
        let mut seen = self.seen();
        Ran {
            output: seen.output.take().unwrap_or_default(),
            kept: seen.collector.take().expect("it is asked once").finish(),
            code: outcome.exit_code,
            ended: outcome.ended.as_str(),
            signal: outcome.signal,
            cwd: outcome.cwd,
            warnings: outcome.warnings,
            took,
            first_output: seen.first,
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExecIo for Watching {
    fn output(&self, bytes: &[u8]) -> Flow {
        let mut seen = self.seen();
        if bytes.is_empty() {
            return Flow::Continue;
        }
        if let Some(output) = &mut seen.output {
            output.extend_from_slice(bytes);
        }
        if let Some(collector) = &mut seen.collector {
            collector.take(bytes);
        }
        if seen.first.is_none() {
            seen.first = Some(self.start.elapsed());
            if let Some((terminal, typed)) = seen.typed.take() {
                (&terminal).write_all(&typed).expect("a terminal takes what is typed");
            }
            if self.interrupted {
                self.cancel.cancel();
            }
        }
        Flow::Continue
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.cancel.as_fd())
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline)
    }
}

/// Makes these calls at the same moment, each on a thread of its own, and waits for all.
pub fn at_once(count: usize, call: impl Fn(usize) + Sync) {
    let begin = std::sync::Barrier::new(count);
    let (begin, call) = (&begin, &call);
    std::thread::scope(|scope| {
        for number in 0..count {
            scope.spawn(move || {
                begin.wait();
                call(number);
            });
        }
    });
}
