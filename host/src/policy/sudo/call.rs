//! One call whose command may run `sudo`.
//!
//! The command is rewritten, and the password goes in front of its standard input: into no argument, variable, file or log. On
//! a terminal nothing is done, since `sudo` asks there itself. What a person typed is forgotten once `sudo` refuses it.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hostel_plugin_api::{Error, ExecOutcome, ExecRequest};

use super::rewrite::rewrite;
use super::source::{Answers, Ask, Found, VARIABLE};
use super::stdin::in_front;
use super::watch::{SharedIo, Watch};
use crate::home::Home;

/// Where a call is made.
pub struct Place<'a> {
    /// The home, whose `.env` may hold the password.
    pub home: &'a Home,
    /// The backend's name.
    pub backend: &'a str,
    /// The task.
    pub task: &'a str,
    /// Runs a command in the call's environment, and returns its exit code. None if it could not be run.
    pub run: &'a dyn Fn(ExecRequest, &SharedIo) -> Option<i32>,
}

/// What gives `sudo` its password in the calls of one process.
#[derive(Default)]
pub struct Sudo(Answers);

/// A call whose `sudo`s read their password.
pub struct Prepared {
    backend: String,
    task: String,
    found: Found,
    watch: Arc<Watch>,
    out_of_reach: usize,
}

impl Sudo {
    /// Makes one that can ask somebody.
    #[must_use]
    pub fn asking(ask: Box<dyn Ask>) -> Self {
        Self(Answers::of(ask))
    }

    /// Rewrites the command of a call and puts the password in front of its standard input, if a `sudo` in it may ask for one
    /// and there is one. The call must then be made with [`Prepared::io`].
    ///
    /// # Errors
    ///
    /// Fails with nothing started if the person who was asked wants the command not to run.
    pub fn prepare(
        &self,
        place: &Place<'_>,
        request: &mut ExecRequest,
        io: &SharedIo,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Prepared>, Error> {
        if request.wants_terminal() {
            return Ok(None);
        }
        let Some(rewritten) = rewrite(&request.command) else { return Ok(None) };
        let start = Instant::now();
        let Some(found) = self.0.find(place, request, io, warnings)? else { return Ok(None) };
        let asked = if found.configured { Duration::ZERO } else { start.elapsed() };
        let lines = found.password.lines(rewritten.passwords);
        let stdin = in_front(lines, std::mem::take(&mut request.stdin));
        let failed = |error: io::Error| Error::io("failed to give `sudo` its password", &error).not_started();
        request.stdin = stdin.map_err(failed)?;
        request.command = rewritten.command;
        Ok(Some(Prepared {
            backend: place.backend.to_owned(),
            task: place.task.to_owned(),
            watch: Arc::new(Watch::new(Arc::clone(io), Arc::clone(&found.password), asked)),
            found,
            out_of_reach: rewritten.out_of_reach,
        }))
    }

    /// Adds to the outcome of a call what became of its `sudo`s: `sudo_auth_failed` if one refused the password, and
    /// `sudo_cache_cleared` if that was forgotten, so that the next call asks for it.
    pub fn finish(&self, call: &Prepared, outcome: &mut ExecOutcome) {
        let seen = call.watch.finish();
        let mut warn = |warning: String| outcome.warnings.push(warning);
        if seen.masked {
            warn("the password for `sudo` stood in the output, and was taken out of it".into());
        }
        if call.out_of_reach > 0 && outcome.exit_code != 0 {
            let count = call.out_of_reach;
            warn(format!(
                "{count} `sudo` in a pipe, with a redirected input or in the background was given no password"
            ));
        }
        if !seen.refused {
            return;
        }
        outcome.extra.insert("sudo_auth_failed".into(), true.into());
        if call.found.configured {
            warn(format!("`sudo` refused the password in `{VARIABLE}`"));
            return;
        }
        warn("`sudo` refused the password; the next command that needs it asks again".into());
        if self.0.forget(&call.backend, &call.task, &call.found.password) {
            outcome.extra.insert("sudo_cache_cleared".into(), true.into());
        }
    }
}

impl Prepared {
    /// Returns the caller's side with which the call is to be made.
    #[must_use]
    pub fn io(&self) -> SharedIo {
        Arc::<Watch>::clone(&self.watch)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    use std::sync::Mutex;

    use hostel_plugin_api::{ErrorKind, ExecIo, Flow, Stdin};

    use super::*;

    struct Deaf;

    impl ExecIo for Deaf {
        fn output(&self, _: &[u8]) -> Flow {
            Flow::Continue
        }

        fn cancelled(&self) -> bool {
            false
        }
    }

    /// Gives these answers, one after the other.
    #[derive(Clone, Default)]
    struct Person(Arc<Mutex<Vec<io::Result<Option<String>>>>>);

    impl Person {
        fn says(answers: impl IntoIterator<Item = io::Result<Option<&'static str>>>) -> Self {
            let mut answers: Vec<_> =
                answers.into_iter().map(|answer| answer.map(|answer| answer.map(str::to_owned))).collect();
            answers.reverse();
            Self(Arc::new(Mutex::new(answers)))
        }

        fn unasked(&self) -> usize {
            self.0.lock().unwrap().len()
        }
    }

    impl Ask for Person {
        fn ask(&self, question: &str, limit: Duration) -> io::Result<Option<String>> {
            assert!(question.contains("task `t` on `b`") && limit == Duration::from_secs(45), "{question}");
            self.0.lock().unwrap().pop().expect("asked too often")
        }
    }

    struct Fixture {
        _dir: tempfile::TempDir,
        home: Home,
        /// What the probe ends with.
        probe: Option<i32>,
        probes: Mutex<usize>,
        warnings: Vec<String>,
    }

    impl Fixture {
        fn new(probe: Option<i32>) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let home = Home::at(dir.path().to_owned()).unwrap();
            Self { _dir: dir, home, probe, probes: Mutex::new(0), warnings: Vec::new() }
        }

        fn call(&mut self, sudo: &Sudo, request: &mut ExecRequest) -> Result<Option<Prepared>, Error> {
            let run = |request: ExecRequest, io: &SharedIo| {
                assert!(request.command == "sudo -n true" && request.runs_in_background());
                assert!(request.skips_login());
                assert!(request.env == [("A".into(), "1".into())] && io.deadline().is_some());
                *self.probes.lock().unwrap() += 1;
                self.probe
            };
            let place = Place { home: &self.home, backend: "b", task: "t", run: &run };
            let io: SharedIo = Arc::new(Deaf);
            sudo.prepare(&place, request, &io, &mut self.warnings)
        }

        fn probes(&self) -> usize {
            *self.probes.lock().unwrap()
        }
    }

    fn request(command: &str) -> ExecRequest {
        let mut request = ExecRequest::new(command);
        request.env.push(("A".into(), "1".into()));
        request
    }

    fn fed(request: &ExecRequest) -> &[u8] {
        match &request.stdin {
            Stdin::Bytes(bytes) => bytes,
            _ => b"",
        }
    }

    #[test]
    fn nothing_is_asked_where_nothing_could_be_given() {
        let mut fixture = Fixture::new(Some(1));
        let sudo = Sudo::asking(Box::new(Person::default()));
        for command in ["true", "sudo -n id", "echo sudo", "a | sudo b"] {
            let mut request = request(command);
            assert!(fixture.call(&sudo, &mut request).unwrap().is_none());
            assert!(request.command == command && matches!(request.stdin, Stdin::Empty), "{command}");
        }
        let mut on_terminal = request("sudo id");
        on_terminal.run_on(File::open("/dev/null").unwrap().into());
        assert!(fixture.call(&sudo, &mut on_terminal).unwrap().is_none());
        assert!(fixture.call(&Sudo::default(), &mut request("sudo id")).unwrap().is_none());
        assert_eq!((on_terminal.command.as_str(), fixture.probes()), ("sudo id", 0));
    }

    #[test]
    fn nobody_is_asked_where_sudo_needs_no_password_or_is_not_there() {
        for (probe, asked) in [(Some(0), false), (Some(127), false), (Some(1), true), (None, true)] {
            let mut fixture = Fixture::new(probe);
            let person = Person::says([Ok(None)]);
            let sudo = Sudo::asking(Box::new(person.clone()));
            assert!(fixture.call(&sudo, &mut request("sudo id")).unwrap().is_none());
            assert_eq!((person.unasked() == 0, fixture.probes()), (asked, 1), "{probe:?}");
        }
    }

    #[test]
    fn an_answer_is_kept_until_it_is_refused() {
        let mut fixture = Fixture::new(Some(1));
        let person = Person::says([Ok(Some("first")), Ok(Some("second"))]);
        let sudo = Sudo::asking(Box::new(person.clone()));
        for _ in 0..2 {
            let mut request = request("sudo a; sudo b");
            request.stdin = Stdin::Bytes(b"rest".to_vec());
            let call = fixture.call(&sudo, &mut request).unwrap().unwrap();
            assert_eq!(request.command, "sudo -k -S -p '' a; sudo -k -S -p '' b");
            assert_eq!(fed(&request), b"first\nfirst\nrest");
            let mut outcome = ExecOutcome::exited(0);
            call.io().output(b"fine");
            sudo.finish(&call, &mut outcome);
            assert!(outcome.warnings.is_empty() && outcome.extra.is_empty(), "{outcome:?}");
        }
        let call = fixture.call(&sudo, &mut request("sudo a; b | sudo c")).unwrap().unwrap();
        let mut outcome = ExecOutcome::exited(1);
        call.io().output(b"Sorry, try again.\nfirst");
        sudo.finish(&call, &mut outcome);
        assert_eq!(outcome.extra["sudo_auth_failed"], true);
        assert_eq!(outcome.extra["sudo_cache_cleared"], true);
        let warnings = outcome.warnings.join("\n");
        assert!(warnings.contains("refused") && warnings.contains("1 `sudo` in a pipe"), "{warnings}");
        assert!(warnings.contains("taken out") && !warnings.contains("first"), "{warnings}");
        let mut again = request("sudo a");
        let _ = fixture.call(&sudo, &mut again).unwrap().unwrap();
        assert_eq!((fed(&again), person.unasked(), fixture.probes()), (&b"second\n"[..], 0, 2));
    }

    #[test]
    fn what_is_configured_is_never_asked_for_or_forgotten() {
        let mut fixture = Fixture::new(Some(1));
        let file = fixture.home.path().join(".env");
        let mut file =
            File::options().create(true).write(true).truncate(true).mode(0o600).open(file).unwrap();
        file.write_all(b"SUDO_PASSWORD=\n").unwrap();
        let sudo = Sudo::asking(Box::new(Person::default()));
        let mut request = request("sudo a");
        let call = fixture.call(&sudo, &mut request).unwrap().unwrap();
        assert_eq!((fed(&request), fixture.probes()), (&b"\n"[..], 0));
        let mut outcome = ExecOutcome::exited(1);
        call.io().output(b"sudo: 1 incorrect password attempt\n");
        sudo.finish(&call, &mut outcome);
        assert!(outcome.extra.len() == 1 && outcome.extra["sudo_auth_failed"] == true);
        assert_eq!(outcome.warnings, ["`sudo` refused the password in `SUDO_PASSWORD`"]);
    }

    #[test]
    fn a_person_can_decline_and_can_stop_the_command() {
        let mut fixture = Fixture::new(Some(1));
        let person = Person::says([
            Ok(Some("")),
            Err(io::ErrorKind::Interrupted.into()),
            Err(io::Error::other("no terminal")),
        ]);
        let sudo = Sudo::asking(Box::new(person));
        assert!(fixture.call(&sudo, &mut request("sudo a")).unwrap().is_none());
        let error = fixture.call(&sudo, &mut request("sudo a")).err().unwrap();
        assert!(error.kind() == ErrorKind::CANCELLED && !error.may_have_started());
        assert!(fixture.warnings.is_empty());
        assert!(fixture.call(&sudo, &mut request("sudo a")).unwrap().is_none());
        assert!(fixture.warnings[0].contains("no terminal"), "{:?}", fixture.warnings);
    }
}
