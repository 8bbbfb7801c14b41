//! The shipped sandbox.

use std::fs;
use std::process::Command;

use hostel_tests::{Home, finish, in_both_isolations};

fn home(isolation: &str) -> Home {
    let home = Home::new();
    home.add_plugin("bubblewrap", "bubblewrap");
    let _ = home.hostel(&["plugins", "enable", "bubblewrap"]).expect(0);
    let _ = home.hostel(&["config", "set", "terminal.backend", "bubblewrap"]).expect(0);
    let _ = home.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
    home
}

/// Says whether the test can run; where everything is meant to be installed, it must.
fn installed() -> bool {
    let works = Command::new("bwrap")
        .args(["--ro-bind", "/", "/", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        assert!(!hostel_tests::strict(), "`bwrap` does not work here");
        eprintln!("skipped: `bwrap` is not installed or does not work here");
    }
    works
}

in_both_isolations! {
    fn a_sandbox_has_its_own_root_and_keeps_the_tasks_folder(isolation) {
        if !installed() {
            return;
        }
        let home = home(isolation);
        let secret = home.path().join("secret.txt");
        fs::write(&secret, "s3cret").unwrap();
        let ran = home.exec(&format!("pwd; id -u; ls /home /root {} 2>&1 | grep -c 'No such file'; ls /sys/class/net 2>/dev/null; echo x > kept; echo y > /tmp/mine", secret.display()));
        assert_eq!(ran.expect(0).text(), "/workspace\n1000\n3\n");
        assert_eq!(
            home.exec("cat kept /tmp/mine; touch /usr/x 2>/dev/null || echo read-only").expect(0).text(),
            "x\ny\nread-only\n"
        );
        assert_eq!(home.hostel(&["exec", "--task", "other", "--", "ls; ls /tmp"]).expect(0).text(), "");
        // What would be gone with the command is refused.
        let lost = "for path in /data /opt/x /etc/x /x/y; do mkdir -p $path 2>&1 | grep -c 'Read-only'; done";
        assert_eq!(home.exec(lost).text(), "1\n1\n1\n1\n");
        let _ = home.exec("cd /tmp; export A=1").expect(0);
        assert_eq!(
            home.exec("echo $A $PWD; grep -c CapEff:.*0000000000000000 /proc/self/status").expect(0).text(),
            "1 /tmp\n1\n"
        );
    }
}

in_both_isolations! {
    fn codes_signals_and_timeouts_are_the_commands_own(isolation) {
        if !installed() {
            return;
        }
        let home = home(isolation);
        for (command, code) in
            [("exit 7", 7), ("kill -9 $$", 137), ("nosuchcommand_q", 127), ("cat <<E\nx\nE", 0)]
        {
            let _ = home.exec(command).expect(code);
        }
        // Two of this test run side by side.
        let own = isolation.len();
        let command = format!("echo a; setsid sleep 7971.{own} & sleep 7972.{own}");
        let ran = home.hostel(&["exec", "--timeout", "1", "--", &command]).expect(124);
        assert_eq!(ran.text(), "a\n");
        let left = Command::new("pgrep").args(["-f", &format!("sleep 797[12].{own}")]).output().unwrap();
        assert!(left.stdout.is_empty(), "{left:?}");
        home.hostel(&["exec", "--cwd", "/nope", "--", "true"]).fails(126, "does not exist");
    }
}

in_both_isolations! {
    fn a_folder_of_the_users_becomes_the_workspace_on_request(isolation) {
        if !installed() {
            return;
        }
        let home = home(isolation);
        let project = tempfile::tempdir().unwrap();
        fs::write(project.path().join("a.txt"), "hello").unwrap();
        let key = "terminal.backends.bubblewrap.workspace";
        let _ = home.hostel(&["config", "set", key, project.path().to_str().unwrap()]).expect(0);
        assert_eq!(home.exec("cat a.txt; echo b > b.txt").expect(0).text(), "hello");
        assert_eq!(fs::read_to_string(project.path().join("b.txt")).unwrap(), "b\n");
        let _ = home.hostel(&["config", "set", key, "/no/such/folder"]).expect(0);
        home.exec("true").fails(125, "backend `bubblewrap`: `workspace` must be the absolute path of a folder");
    }
}

in_both_isolations! {
    fn without_bwrap_the_hint_says_how_to_install_it(isolation) {
        let home = home(isolation);
        let mut command = home.command("hostel", &["backends", "--json"]);
        command.env("PATH", "/nowhere");
        let rows = finish(command, b"").expect(0).json();
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "bubblewrap").unwrap().clone();
        assert_eq!(row["status"], "needs_setup");
        assert!(row["detail"].as_str().unwrap().contains("apt-get install bubblewrap"), "{row}");
        let mut command = home.command("hostel", &["exec", "--", "true"]);
        command.env("PATH", "/nowhere");
        finish(command, b"").fails(125, "`bwrap` is not on the path");
    }
}

in_both_isolations! {
    fn a_sandbox_that_cannot_be_made_is_no_exit_code_of_the_commands(isolation) {
        if !installed() {
            return;
        }
        let home = home(isolation);
        let tools = tempfile::tempdir().unwrap();
        fs::write(tools.path().join("bwrap"), "#!/bin/sh\necho 'bwrap: no namespaces here' >&2\nexit 1\n")
            .unwrap();
        fs::set_permissions(tools.path().join("bwrap"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let mut command = home.command("hostel", &["exec", "--json", "--", "true"]);
        command.env("PATH", format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap()));
        let object = finish(command, b"").expect(125).json();
        assert!(object["exit_code"].is_null() && object["ended"].is_null(), "{object}");
        assert!(object["error"]["message"].as_str().unwrap().ends_with("bwrap: no namespaces here"), "{object}");
        assert_eq!(object["output"], "");
    }
}

in_both_isolations! {
    fn nothing_that_a_command_sets_runs_outside(isolation) {
        if !installed() {
            return;
        }
        let home = home(isolation);
        let flag = home.path().join("escaped.flag");
        let library = home.path().join("evil.so");
        let source = format!(
            "#include <fcntl.h>\n__attribute__((constructor)) static void run(void) {{ open(\"{}\", O_CREAT, 0600); }}\n",
            flag.display()
        );
        hostel_tests::compile_c(&source, &library, &[]);
        let mut command = home.command("hostel", &["exec", "--stdin", "--", "cat > evil.so; ls -l evil.so"]);
        command.env("PATH", std::env::var("PATH").unwrap());
        let _ = finish(command, &fs::read(&library).unwrap()).expect(0);
        let workspace = home.path().join("state/tasks/bubblewrap/default/sandbox/workspace/evil.so");
        assert!(workspace.exists());
        let preload = format!("export LD_PRELOAD={}", workspace.display());
        let _ = home.exec(&preload);
        let _ = home.exec("true");
        let variable = format!("LD_PRELOAD={}", workspace.display());
        let _ = home.hostel(&["exec", "--env", &variable, "--", "true"]);
        assert!(!flag.exists(), "a file of the sandbox's ran outside");
        let look = "find / -xdev -name 'call-*' -o -xdev -name session 2>/dev/null | wc -l; ls /run /tmp";
        let seen = home.hostel(&["exec", "--task", "fresh", "--", look]);
        assert_eq!(
            seen.text(),
            "0\n/run:\nhostel-record\n\n/tmp:\n",
            "nothing of Hostel's own but the record of this call"
        );
    }
}

in_both_isolations! {
    fn links_and_dots_mean_what_they_mean_inside(isolation) {
        if !installed() {
            return;
        }
        let home = home(isolation);
        let _ = home.exec("mkdir -p a/deep && ln -s /workspace/a b && ln -s /root out && cd b").expect(0);
        let ran = home.exec("pwd").expect(0);
        assert_eq!((ran.text().as_str(), ran.stderr.as_str()), ("/workspace/b\n", ""));
        assert_eq!(
            home.hostel(&["exec", "--cwd", "/workspace/a/deep/..", "--", "ls"]).expect(0).text(),
            "deep\n"
        );
        assert_eq!(home.hostel(&["exec", "--cwd", "/usr/bin", "--", "pwd"]).expect(0).text(), "/usr/bin\n");
        home.hostel(&["exec", "--cwd", "/workspace/out", "--", "true"]).fails(126, "does not exist");
        home.hostel(&["exec", "--cwd", home.path().to_str().unwrap(), "--", "true"]).fails(126, "does not exist");
    }
}

in_both_isolations! {
    fn hostels_own_files_cannot_be_the_workspace(isolation) {
        if !installed() {
            return;
        }
        let home = home(isolation);
        let key = "terminal.backends.bubblewrap.workspace";
        let _ = home.hostel(&["config", "set", key, home.path().to_str().unwrap()]).expect(0);
        home.exec("true").fails(125, "holds Hostel's own files");
    }
}
