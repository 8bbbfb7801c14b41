//! `hostel shell`: at a terminal, and without one.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::time::{Duration, Instant};

use hostel::exec::{Size, Terminal};
use hostel_tests::marked::Mark;
use hostel_tests::{Home, Ran, finish};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

fn script(home: &Home, words: &[&str], text: &str) -> Ran {
    let words: Vec<&str> = ["shell"].iter().chain(words).copied().collect();
    finish(home.command("hostel", &words), text.as_bytes())
}

#[test]
fn a_script_runs_line_by_line_in_one_session() {
    let home = Home::new();
    let ran = script(&home, &[], "cd /\npwd\nexport A=1\necho $A; false\n").expect(1);
    assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("/\n1\n", ""));
    assert_eq!(home.exec("pwd").text(), "/\n");
    assert_eq!(script(&home, &["--task", "other"], "echo ${A-unset}").expect(0).text(), "unset\n");
    assert!(!home.path().join("state/history").exists());
}

#[test]
fn a_command_of_several_lines_is_one() {
    let text = "for x in 1 2\ndo\n echo $x\ndone\n\n# a comment\ncat <<'E'\n$x '\nE\necho \"a\nb\"\n";
    assert_eq!(script(&Home::new(), &[], text).expect(0).text(), "1\n2\n$x '\na\nb\n");
}

#[test]
fn a_command_does_not_read_the_script() {
    assert_eq!(script(&Home::new(), &[], "cat\necho next\n").expect(0).text(), "next\n");
}

#[test]
fn exit_leaves_and_an_error_does_not() {
    let home = Home::new();
    assert_eq!(script(&home, &[], "(exit 7)\nexit\necho never\n").expect(7).text(), "");
    assert_eq!(script(&home, &[], "exit 4\necho never\n").expect(4).text(), "");
    let ran = script(&home, &["--timeout", "0.3"], "sleep 30\necho $?\n").expect(0);
    assert!(ran.stderr.starts_with("note: the command was ended at its limit of 0.3 s\n"), "{ran:?}");
    assert!(ran.took < Duration::from_secs(20), "{ran:?}");
    let ran = script(&home, &[], "a \0b\necho next\n").expect(0);
    assert!(ran.stderr.starts_with("error: ") && ran.text() == "next\n", "{ran:?}");
    script(&home, &["--backend", "nosuch"], "echo never\n").fails(125, "there is no backend `nosuch`");
}

/// A shell at a terminal of its own.
struct Typed {
    terminal: Terminal,
    shell: Child,
}

impl Typed {
    fn begin(home: &Home, words: &[&str]) -> Self {
        let (terminal, commands) = Terminal::open(Size { rows: 24, columns: 200 }).unwrap();
        let words: Vec<&str> = ["shell"].iter().chain(words).copied().collect();
        let mut command = home.command("hostel", &words);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        command.stdin(commands.try_clone().unwrap()).stdout(commands.try_clone().unwrap()).stderr(commands);
        let shell = command.spawn().unwrap();
        Self { terminal, shell }
    }

    fn keys(&self, keys: &str) {
        (&self.terminal).write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until this was printed.
    fn until(&self, wanted: &str) -> String {
        let end = Instant::now() + Duration::from_secs(30);
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(wanted) {
            let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).unwrap();
            let ready = poll(&mut [PollFd::new(&self.terminal, PollFlags::IN)], Some(&left)).unwrap();
            // By bytes, so that nothing after it is taken.
            let mut byte = [0];
            let count = if ready > 0 { (&self.terminal).read(&mut byte).unwrap() } else { 0 };
            assert!(count > 0, "{wanted:?} did not come: {:?}", String::from_utf8_lossy(&seen));
            seen.push(byte[0]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    }

    fn ends(mut self) -> Option<i32> {
        self.shell.wait().unwrap().code()
    }
}

#[test]
fn a_person_has_a_prompt_and_a_terminal() {
    let home = Home::new();
    let typed = Typed::begin(&home, &["--task", "t"]);
    typed.until("local:t ~ $ ");
    typed.keys("test -t 0 && test -t 1 && echo it-is-$((40+2))\r");
    typed.until("it-is-42\r\n");
    typed.until("local:t ~ $ ");
    typed.keys("echo 'a\r");
    typed.until("> ");
    typed.keys("b'; (exit 3)\r");
    typed.until("a\r\nb\r\n");
    typed.until("local:t ~ [3] \x1b[31m$\x1b[0m ");
    typed.keys("cd /\r");
    typed.until("local:t / $ ");
    typed.keys(" echo not-ke''pt\r");
    typed.until("not-kept\r\n");
    typed.until("local:t / $ ");
    typed.keys("echo up-$((1+1)); read -r x; echo got-$x\r");
    typed.until("up-2");
    typed.keys("word\r");
    typed.until("got-word");
    typed.until("local:t / $ ");
    typed.keys("given up\x03");
    typed.until("local:t / $ ");
    typed.keys("exit 5\r");
    assert_eq!(typed.ends(), Some(5));
    let file = home.path().join("state/history");
    let history = fs::read_to_string(&file).unwrap();
    assert!(history.contains("echo 'a\\nb'; (exit 3)\n") && !history.contains("not-ke"), "{history}");
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_interruption_ends_the_command_alone() {
    let home = Home::new();
    for words in [&[][..], &["--no-pty"]] {
        let typed = Typed::begin(&home, words);
        typed.until(" $ ");
        let mark = Mark::new();
        typed.keys(&format!("sleep {mark}\r"));
        // A shell that is about to start a program when Ctrl-C comes goes on with it.
        mark.appear(1);
        if words.is_empty() {
            typed.keys("\x03");
        } else {
            // The terminal is not that of its session, so that no key makes a signal.
            kill_process(Pid::from_child(&typed.shell), Signal::INT).unwrap();
        }
        typed.until("[130] ");
        typed.keys("echo still-$((1+1))\r");
        typed.until("still-2");
        typed.until(" $ ");
        typed.keys("\x04");
        assert_eq!(typed.ends(), Some(0));
    }
}

#[test]
fn a_signal_ends_the_command_and_the_shell() {
    let home = Home::new();
    let typed = Typed::begin(&home, &[]);
    typed.until(" $ ");
    typed.keys("half a li");
    typed.until("half a li");
    kill_process(Pid::from_child(&typed.shell), Signal::TERM).unwrap();
    assert_eq!(typed.ends(), Some(143));
    let typed = Typed::begin(&home, &[]);
    typed.until(" $ ");
    typed.keys("echo up-$((1+1)); sleep 60\r");
    typed.until("up-2");
    let start = Instant::now();
    kill_process(Pid::from_child(&typed.shell), Signal::HUP).unwrap();
    assert_eq!(typed.ends(), Some(129));
    assert!(start.elapsed() < Duration::from_secs(20));
}
