//! What a plugin's code may do is what its manifest asks for and its user has seen, and the kernel holds it to that.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};

use hostel_tests::{Home, four_keys};

mod granting;
mod hosts;
mod trust;

/// A home with the spy, enabled and selected, whose manifest asks for this.
fn spy(permissions: &str) -> Home {
    let home = Home::new();
    let _ = install(&home, permissions).expect(0);
    let _ = home.hostel(&["config", "set", "terminal.backend", "spy"]).expect(0);
    home
}

fn install(home: &Home, permissions: &str) -> hostel_tests::Ran {
    let folder = home.add_manifest("spy", format!("{}{permissions}", four_keys("spy")));
    hostel_tests::put(&hostel_tests::library("hostile"), &folder.join("libspy.so"));
    home.hostel(&["plugins", "enable", "spy"])
}

/// Whether the kernel can enforce what is tested here; where everything is meant to be there, it must.
fn enforced(home: &Home) -> bool {
    let rows = home.hostel(&["doctor", "--json"]).json();
    let lacking =
        rows.as_array().unwrap().iter().any(|row| row["label"] == "permissions" && row["warning"] == true);
    if lacking {
        assert!(!hostel_tests::strict(), "the kernel cannot enforce permissions: {rows}");
        eprintln!("skipped: the kernel cannot enforce permissions");
    }
    !lacking
}

#[track_caller]
fn denied(home: &Home, command: &str) {
    let ran = home.exec(command).expect(1);
    let text = ran.text();
    assert!(
        text.contains("Permission denied") || text.contains("Operation not permitted"),
        "`{command}` was not denied: {ran:?}"
    );
}

#[track_caller]
fn allowed(home: &Home, command: &str) {
    let ran = home.exec(command);
    assert!(ran.code == 0 && ran.text().starts_with("ok: "), "`{command}`: {ran:?}");
}

/// System calls that reach beyond a process, with arguments that do no harm.
fn far_calls() -> Vec<String> {
    let user = 2;
    [
        vec![libc::SYS_setpriority, user, 0, 0],
        // `IOPRIO_WHO_USER`.
        vec![libc::SYS_ioprio_set, 3, 0, 0],
        vec![libc::SYS_shmctl, 0, 0],
        vec![libc::SYS_shmat, 0, 0],
        vec![libc::SYS_msgsnd, 0, 0],
        vec![libc::SYS_msgctl, 0, 0],
        vec![libc::SYS_semctl, 0, 0],
        vec![libc::SYS_semop, 0, 0],
        vec![libc::SYS_fanotify_init, 0, 0],
        vec![libc::SYS_inotify_init1, 0],
        // How long the kernel's log is.
        vec![libc::SYS_syslog, 10, 0],
        vec![libc::SYS_fspick, 0, 0],
        // To outlive the keeper.
        vec![libc::SYS_prctl, libc::PR_SET_PDEATHSIG.into(), 0],
        // To be served before everybody else; root could.
        vec![libc::SYS_setpriority, 0, 0, -20],
    ]
    .into_iter()
    .map(|numbers| {
        let words: Vec<String> = numbers.iter().map(libc::c_long::to_string).collect();
        format!("try-call {}", words.join(" "))
    })
    .collect()
}

#[test]
fn a_plugin_that_asks_for_nothing_gets_nothing() {
    let home = spy("");
    if !enforced(&home) {
        return;
    }
    let user = tempfile::tempdir().unwrap();
    let key = user.path().join("id_ed25519");
    fs::write(&key, "secret").unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = user.path().join("engine.sock");
    let _engine = UnixListener::bind(&socket).unwrap();
    let datagrams = user.path().join("log.sock");
    let _log = UnixDatagram::bind(&datagrams).unwrap();
    let key = key.display();
    for command in [
        format!("try-read {key}"),
        format!("try-write {}/new", user.path().display()),
        format!("try-remove {key}"),
        format!("try-list {}", user.path().display()),
        "try-read /etc/shadow".into(),
        "try-read /etc/passwd".into(),
        "try-list /etc/ssl/private".into(),
        format!("try-read {}/config.yaml", home.path().display()),
        format!("try-write {}/config.yaml", home.path().display()),
        format!("try-write {}/plugin.yaml", home.plugin("spy").display()),
        format!("try-read /proc/{}/cmdline", std::process::id()),
        "try-run /bin/true".into(),
        "try-fork".into(),
        format!("try-tcp {}", tcp.local_addr().unwrap()),
        "try-udp".into(),
        format!("try-unix {}", socket.display()),
        format!("try-signal {}", std::process::id()),
        format!("try-trace {}", std::process::id()),
        format!("try-limit {}", std::process::id()),
        format!("try-nice {}", std::process::id()),
        format!("try-chmod {key}"),
        format!("try-touch {key}"),
        "try-shared".into(),
        format!("try-datagram {}", datagrams.display()),
    ]
    .into_iter()
    .chain(far_calls())
    {
        let is_there = !command.ends_with("/private") || fs::exists("/etc/ssl/private").unwrap();
        if is_there {
            denied(&home, &command);
        }
    }
    if fs::exists("/etc/ssl/certs").unwrap() {
        allowed(&home, "try-list /etc/ssl/certs");
    }
    assert_eq!(fs::read_to_string(key.to_string()).unwrap(), "secret");
    for command in [
        format!("try-read {}/plugin.yaml", home.plugin("spy").display()),
        format!("try-write {}/data/spy/mine", home.path().display()),
        format!("try-write {}/state/tasks/spy/default/mine", home.path().display()),
        "try-thread".into(),
        "try-read /dev/urandom".replace("urandom", "null"),
    ] {
        allowed(&home, &command);
    }
    // A shell cannot be started either, and the hint says why.
    let ran = home.exec("echo hi").expect(125);
    assert!(
        ran.stderr.contains("hint: its manifest may not ask for this: `hostel plugins show spy`"),
        "{ran:?}"
    );
}

#[test]
fn a_link_that_the_plugin_has_laid_grants_nothing() {
    let user = tempfile::tempdir().unwrap();
    fs::write(user.path().join("secret"), "secret").unwrap();
    let home = Home::new();
    let data = home.path().join("data/spy");
    let data = data.display();
    let _ =
        install(&home, &format!("permissions: {{read: [{data}/cache], write: [{data}/out]}}\n")).expect(0);
    let _ = home.hostel(&["config", "set", "terminal.backend", "spy"]).expect(0);
    if !enforced(&home) {
        return;
    }
    let away = user.path().display();
    allowed(&home, &format!("try-plant {data}/cache {away}"));
    allowed(&home, &format!("try-plant {data}/out {away}"));
    // The next worker starts with the links in place.
    denied(&home, &format!("try-read {data}/cache/secret"));
    denied(&home, &format!("try-write {data}/out/new"));
    denied(&home, &format!("try-read {away}/secret"));
}

#[test]
fn an_ordinary_users_plugins_are_held_to_theirs_as_well() {
    if !hostel_tests::is_root() {
        // Then all other tests have shown it.
        return;
    }
    let home = spy("");
    if !enforced(&home) {
        return;
    }
    let program = tempfile::tempdir().unwrap();
    fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(hostel_tests::built().join("hostel"), program.path().join("hostel")).unwrap();
    let chown = std::process::Command::new("chown").args(["-R", "65534:65534"]).arg(home.path()).status();
    assert!(chown.unwrap().success());
    let bystander = program.path().join("own");
    fs::write(&bystander, "x").unwrap();
    std::os::unix::fs::chown(&bystander, Some(65534), Some(65534)).unwrap();
    let run = |words: &[&str]| {
        let mut command = home.command("setpriv", &[]);
        command = {
            let mut own = std::process::Command::new("setpriv");
            own.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            own
        };
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program.path().join("hostel"));
        command.args(words).env("HOSTEL_HOME", home.path()).current_dir("/");
        hostel_tests::finish(command, b"")
    };
    let mut sleeper = std::process::Command::new("setpriv");
    sleeper.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "60"]);
    let mut sleeper = sleeper.spawn().unwrap();
    let own = bystander.display();
    for command in [
        format!("try-read {own}"),
        format!("try-chmod {own}"),
        format!("try-limit {}", sleeper.id()),
        format!("try-nice {}", sleeper.id()),
        format!("try-signal {}", sleeper.id()),
        "try-run /bin/true".into(),
        "try-udp".into(),
    ] {
        let ran = run(&["exec", "--", &command]).expect(1);
        assert!(ran.text().contains("denied") || ran.text().contains("not permitted"), "{command}: {ran:?}");
    }
    let _ = run(&["exec", "--", "try-thread"]).expect(0);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    // The kit can look into a worker of theirs.
    let folder = home.plugin("spy");
    let report = run(&["plugins", "check", folder.to_str().unwrap(), "--json", "--only", "library."]).json();
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["rule"] == "library.end" && row["verdict"] == "passed"), "{report}");
}

#[test]
fn what_it_asks_for_it_gets_and_no_more() {
    let user = tempfile::tempdir().unwrap();
    let (open, closed) = (user.path().join("open"), user.path().join("closed"));
    for folder in [&open, &closed] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("file"), "text").unwrap();
    }
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (open, closed) = (open.display(), closed.display());
    let home = spy(&format!("permissions: {{read: [{open}]}}\n"));
    if !enforced(&home) {
        return;
    }
    allowed(&home, &format!("try-read {open}/file"));
    denied(&home, &format!("try-write {open}/file"));
    denied(&home, &format!("try-read {closed}/file"));
    let home = spy(&format!("permissions: {{write: [{open}]}}\n"));
    allowed(&home, &format!("try-write {open}/file"));
    allowed(&home, &format!("try-read {open}/file"));
    denied(&home, &format!("try-write {closed}/file"));
    let home = spy("permissions: {exec: true}\n");
    allowed(&home, "try-run /bin/true");
    allowed(&home, "try-fork");
    denied(&home, "try-udp");
    denied(&home, &format!("try-read {closed}/file"));
    // Nor the sockets of this machine: not even by one of a pair, for which no socket has to be made.
    let datagrams = user.path().join("log.sock");
    let log = UnixDatagram::bind(&datagrams).unwrap();
    log.set_nonblocking(true).unwrap();
    let send = format!("try-datagram {}", datagrams.display());
    denied(&home, &send);
    denied(&spy("permissions: {exec: true, network: [api.example.com]}\n"), &send);
    assert!(log.recv(&mut [0; 8]).is_err(), "something has arrived");
    let unix = format!("permissions: {{exec: true, network: [\"unix:{}\"]}}\n", datagrams.display());
    allowed(&spy(&unix), &send);
    allowed(&spy("permissions: {exec: true, network: any}\n"), &send);
    let home = spy("permissions: {network: any}\n");
    allowed(&home, &format!("try-tcp {}", tcp.local_addr().unwrap()));
    allowed(&home, "try-udp");
    denied(&home, "try-run /bin/true");
    let port = tcp.local_addr().unwrap().port();
    let home = spy(&format!("permissions: {{network: [\"localhost:{port}\"]}}\n"));
    allowed(&home, &format!("try-tcp 127.0.0.1:{port}"));
    denied(&home, &format!("try-tcp {}", other.local_addr().unwrap()));
}

#[test]
fn enabling_shows_what_it_may_do_and_more_must_be_granted_again() {
    let home = Home::new();
    let ran = install(&home, "permissions: {network: [api.example.com], env: [MISFIT]}\n").expect(0);
    for line in [
        "it may speak to api.example.com:443",
        "it may read its own folder and no file of yours",
        "it may change nothing but its data and its tasks' folders",
        "it may not start programs",
        "it gets the variables MISFIT",
    ] {
        assert!(ran.text().contains(line) || ran.stderr.contains(line), "{line}: {ran:?}");
    }
    let manifest = home.plugin("spy").join("plugin.yaml");
    let asks =
        |permissions: &str| fs::write(&manifest, format!("{}{permissions}", four_keys("spy"))).unwrap();
    asks("permissions: {network: [api.example.com, evil.example.com], write: [~/.ssh], exec: true}\n");
    home.hostel(&["exec", "--backend", "spy", "--", "try-thread"]).fails(
        125,
        "its manifest now asks for more than was granted: to speak to evil.example.com:443, to change ~/.ssh, to start programs",
    );
    let shown = home.hostel(&["plugins", "show", "spy"]).expect(0).text();
    assert!(shown.contains("asks for more than was granted"), "{shown}");
    // Less needs no new word.
    asks("");
    let _ = home.hostel(&["exec", "--backend", "spy", "--", "try-thread"]).expect(0);
    for (wrong, reason) in [
        ("permissions: all\n", "`permissions` must be a map"),
        ("permissions: {exec: maybe}\n", "`permissions.exec` must be true or false"),
        (
            "permissions: {network: everywhere}\n",
            "`permissions.network` must be `none`, `any`, or a list of hosts",
        ),
        ("permissions: {read: [../x]}\n", "`permissions.read` must be a list of paths"),
        ("permissions: {read: /x}\n", "`permissions.read` must be a list of paths"),
        ("permissions: {env: [\"A B\"]}\n", "`permissions.env` must be a list of the names of variables"),
        ("files: [../x]\n", "`files` must be a list of paths below the plugin's own folder"),
    ] {
        asks(wrong);
        home.hostel(&["plugins", "enable", "spy"]).fails(1, reason);
    }
    // A variable that it requires is asked for as well.
    asks("requires_env: [AWS_SECRET_ACCESS_KEY]\n");
    home.hostel(&["exec", "--backend", "spy", "--", "try-thread"])
        .fails(125, "more than was granted: to get the variable AWS_SECRET_ACCESS_KEY");
    asks("permissions: {netwrok: any}\n");
    let ran = home.hostel(&["plugins", "list"]).expect(0);
    assert!(ran.stderr.contains("`netwrok` is not a key of `permissions`"), "{ran:?}");
}

#[test]
fn in_the_hosts_own_process_nothing_is_enforced_and_that_is_said() {
    let home = Home::new();
    home.set_config("plugins: {isolation: in_process}\n");
    let ran = install(&home, "").expect(0);
    assert!(ran.stderr.contains("warning: it runs in Hostel's own process"), "{ran:?}");
    let rows = home.hostel(&["doctor", "--json"]).json();
    let row = rows.as_array().unwrap().iter().find(|row| row["label"] == "plugin spy").unwrap().clone();
    assert!(row["detail"].as_str().unwrap().contains("not held to its permissions"), "{row}");
}

#[test]
fn other_files_of_a_plugin_are_pinned_as_well() {
    let home = Home::new();
    let folder = home.add_manifest("spy", four_keys("spy") + "files: [data/table.txt]\n");
    hostel_tests::put(&hostel_tests::library("hostile"), &folder.join("libspy.so"));
    home.hostel(&["plugins", "enable", "spy"]).fails(1, "`data/table.txt`");
    fs::create_dir(folder.join("data")).unwrap();
    fs::write(folder.join("data/table.txt"), "one\n").unwrap();
    let _ = home.hostel(&["plugins", "enable", "spy"]).expect(0);
    let _ = home.hostel(&["exec", "--backend", "spy", "--", "try-thread"]).expect(0);
    fs::OpenOptions::new()
        .append(true)
        .open(folder.join("data/table.txt"))
        .unwrap()
        .write_all(b"two\n")
        .unwrap();
    home.hostel(&["exec", "--backend", "spy", "--", "try-thread"])
        .fails(125, "is not the file that was enabled");
    let shown = home.hostel(&["plugins", "show", "spy"]).expect(0).text();
    assert!(shown.contains("data/table.txt") && shown.contains("8 bytes, was 4"), "{shown}");
    let _ = home.hostel(&["plugins", "enable", "spy"]).expect(0);
    let _ = home.hostel(&["exec", "--backend", "spy", "--", "try-thread"]).expect(0);
    // What is named no more would be pinned no more.
    fs::write(folder.join("plugin.yaml"), four_keys("spy")).unwrap();
    home.hostel(&["exec", "--backend", "spy", "--", "try-thread"])
        .fails(125, "no longer names `data/table.txt`");
    fs::write(folder.join("plugin.yaml"), four_keys("spy") + "files: [data/table.txt]\n").unwrap();
    // Nor may others write to it, or it lead out.

    fs::set_permissions(folder.join("data"), fs::Permissions::from_mode(0o777)).unwrap();
    home.hostel(&["exec", "--backend", "spy", "--", "try-thread"]).fails(125, "others may write to");
    fs::set_permissions(folder.join("data"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(folder.join("data/table.txt")).unwrap();
    symlink("/etc/hostname", folder.join("data/table.txt")).unwrap();
    home.hostel(&["exec", "--backend", "spy", "--", "try-thread"])
        .fails(125, "leads out of the plugin's folder");
}
