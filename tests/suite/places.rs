//! No home, no room, no right to write: one line, the right exit code, nothing lost.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use hostel_tests::{Home, built, finish};

#[test]
fn without_a_home_directory_there_is_a_hint() {
    let program = built().join("hostel");
    for (home, reason) in [("/dev/null", "is not a folder"), ("/dev/null/x", "")] {
        let mut command = Command::new(&program);
        command.args(["config", "set", "terminal.timeout", "5"]).env("HOSTEL_HOME", home);
        finish(command, b"").fails(1, reason);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(&program);
    command.args(["exec", "--", "true"]).env("HOSTEL_HOME", file.path());
    finish(command, b"").fails(125, "is not a folder, but Hostel's home should be there");
}

#[test]
fn a_relative_home_and_an_empty_variable_mean_what_they_say() {
    let home = Home::new();
    let mut command = home.command("hostel", &["config", "path"]);
    command.env("HOSTEL_HOME", "sub/home");
    let path = finish(command, b"").expect(0).text();
    assert_eq!(path.trim_end(), home.path().join("sub/home/config.yaml").to_str().unwrap());
    let mut command = home.command("hostel", &["config", "path"]);
    command.env("HOSTEL_HOME", "").env("HOME", home.path());
    let path = finish(command, b"").expect(0).text();
    assert_eq!(path.trim_end(), home.path().join(".hostel/config.yaml").to_str().unwrap());
}

#[test]
fn looking_around_makes_no_files() {
    let home = Home::new();
    let inner = home.path().join("inner");
    for words in [
        &["plugins", "list"][..],
        &["backends"],
        &["status"],
        &["config", "show"],
        &["doctor"],
        &["config", "get", "terminal.backend"],
    ] {
        let mut command = home.command("hostel", words);
        command.env("HOSTEL_HOME", &inner);
        let _ = finish(command, b"").expect(0);
    }
    assert!(!inner.exists());
}

/// Runs the rest of the test in a mount namespace with a small file system at the home, or says why it does not.
fn on_a_small_disk(home: &Home, script: &str) -> Option<hostel_tests::Ran> {
    let mount = format!("mount -t tmpfs -o size=256k none '{}' && {script}", home.path().display());
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "--user", "sh", "-c", &mount]);
    command
        .env("PATH", format!("{}:{}", built().display(), std::env::var("PATH").unwrap()))
        .env("HOSTEL_HOME", home.path());
    command.env_remove("HOSTEL_TERMINAL_BACKEND").current_dir("/").stdin(Stdio::null());
    let ran = finish(command, b"");
    if ran.stderr.contains("unshare:") || ran.stderr.contains("mount:") {
        assert!(!hostel_tests::strict(), "no small disk can be made here: {ran:?}");
        eprintln!("skipped: no small disk can be made here: {}", ran.stderr);
        return None;
    }
    Some(ran)
}

#[test]
fn a_full_disk_loses_nothing_that_was_there() {
    let home = Home::new();
    let script = "cd \"$HOSTEL_HOME\" && printf '# mine\\nterminal: {timeout: 9}\\n' > config.yaml && hostel exec -- 'export A=1' && \
                  { cat /dev/zero > filler 2>/dev/null; true; } && \
                  hostel config set terminal.timeout 10; echo \"code $?\"; cat config.yaml; ls -a | grep -c config-; \
                  hostel exec -- 'echo ran; export B=2'; echo \"code $?\"; rm filler; hostel exec -- 'echo $A'";
    let Some(ran) = on_a_small_disk(&home, script) else { return };
    let text = ran.text();
    assert!(text.starts_with("code 1\n# mine\nterminal: {timeout: 9}\n0\n"), "{ran:?}");
    assert!(text.ends_with("\n1\n"), "the session is still there: {ran:?}");
    assert!(
        ran.stderr.contains("No space left on device") && ran.stderr.contains("nothing was changed"),
        "{ran:?}"
    );
}

#[test]
fn a_full_disk_is_what_is_told_of_it() {
    let home = Home::new();
    let script = "cd \"$HOSTEL_HOME\" && hostel exec -- true && { cat /dev/zero > filler 2>/dev/null; true; } && \
                  hostel process start -- sleep 1; echo \"code $?\"; hostel doctor | grep home; ls state/processes | grep -c proc_";
    let Some(ran) = on_a_small_disk(&home, script) else { return };
    let text = ran.text();
    assert!(
        text.starts_with("code 1\n") && ran.stderr.contains("No space left on device"),
        "{text} {}",
        ran.stderr
    );
    // Nothing is left of what could not begin.
    assert!(text.ends_with("make room on that disk\n0\n"), "{text}");
}

#[test]
fn an_output_that_finds_no_room_is_still_shown() {
    let home = Home::new();
    let Some(ran) = on_a_small_disk(&home, "hostel exec --json --max-output 1000 -- 'seq 1 200000'") else {
        return;
    };
    let object = ran.expect(0).json();
    assert!(object["output"].as_str().unwrap().ends_with("200000\n"));
    assert!(object["warnings"][0].as_str().unwrap().contains("holds only the beginning"), "{object}");
}

#[test]
fn a_home_that_may_not_be_written_to_is_told() {
    if !hostel_tests::is_root() {
        return;
    }
    let home = Home::new();
    home.set_config("terminal: {timeout: 9}\n");
    fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .unwrap();
    fs::copy(built().join("hostel"), program.path().join("hostel")).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program.path().join("hostel"));
        command.args(words).env("HOSTEL_HOME", home.path()).current_dir("/");
        finish(command, b"")
    };
    run(&["config", "set", "terminal.timeout", "5"]).fails(1, "Permission denied");
    run(&["exec", "--", "true"]).fails(125, "Permission denied");
    assert_eq!(home.config(), "terminal: {timeout: 9}\n");
}

#[test]
fn something_else_in_a_files_place_holds_nobody_up() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    home.add_plugin("acmebox", "acmebox");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let _ = home.exec("cd /usr").expect(0);
    for file in ["state/plugins/acmebox.json", "state/tasks/local/default/shell/session"] {
        let path = home.path().join(file);
        for make in ["mkfifo \"$1\"", "ln -s /dev/zero \"$1\""] {
            fs::remove_file(&path).unwrap();
            assert!(Command::new("sh").args(["-c", make, "sh"]).arg(&path).status().unwrap().success());
            let ran = home.hostel(&["exec", "--timeout", "5", "--", "echo hi"]).expect(0);
            assert_eq!(ran.text(), "hi\n");
            assert!(ran.stderr.starts_with("warning: ") && ran.took < Duration::from_secs(4), "{ran:?}");
        }
    }
    let _ = home.exec("export BACK=1").expect(0);
    assert_eq!(home.exec("echo $BACK").expect(0).text(), "1\n");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    assert_eq!(home.exec("true").expect(0).stderr, "");
}

#[test]
fn nor_does_something_else_in_the_place_of_a_lock() {
    let home = Home::new();
    let cases: [(&str, &[&str], i32); 4] = [
        ("state/tasks/local/default/shell/login.lock", &["exec", "--", "echo hi"], 0),
        ("state/tasks/local/default/shell/lock", &["exec", "--", "export A=1; echo hi"], 0),
        ("state/locks/config", &["config", "set", "terminal.timeout", "9"], 1),
        ("state/processes/lock", &["process", "start", "--", "true"], 1),
    ];
    for (file, words, code) in cases {
        for make in ["mkfifo \"$1\"", "ln -s /dev/zero \"$1\"", "mkdir \"$1\""] {
            let path = home.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            assert!(Command::new("sh").args(["-c", make, "sh"]).arg(&path).status().unwrap().success());
            let ran = home.hostel(words).expect(code);
            assert!(ran.stderr.contains("is not a regular file; remove it"), "{file}, {make}: {ran:?}");
            assert!(ran.took < Duration::from_secs(4), "{file}, {make}: {ran:?}");
            assert_eq!(ran.text(), if code == 0 { "hi\n" } else { "" });
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
            let _ = fs::remove_dir_all(home.path().join("state/tasks"));
        }
    }
}

#[test]
fn a_link_to_a_configuration_that_is_gone_is_no_empty_one() {
    let home = Home::new();
    std::os::unix::fs::symlink("nowhere/config.yaml", home.path().join("config.yaml")).unwrap();
    home.exec("echo hi").fails(125, "is a link to a file that is not there");
    home.hostel(&["config", "set", "terminal.timeout", "9"])
        .fails(1, "is a link to a file that is not there");
}

#[test]
fn a_folder_of_plugins_that_cannot_be_read_takes_only_the_plugins_away() {
    let home = Home::new();
    fs::write(home.path().join("plugins"), "not a folder").unwrap();
    let ran = home.exec("echo hi").expect(0);
    assert_eq!(ran.text(), "hi\n");
    assert!(ran.stderr.starts_with("warning: failed to list"), "{ran:?}");
    home.hostel(&["plugins", "list"]).fails(1, "failed to list");
    let _ = home.hostel(&["doctor"]).expect(1);
}
