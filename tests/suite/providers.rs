//! Providers that panic, hang, lie and refuse.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use hostel_tests::{Home, Ran, in_both_isolations};

/// A home in which the fixture is enabled while it behaves, and selected.
fn enabled(isolation: &str) -> Home {
    let home = Home::new();
    home.add_plugin("misfit", "misfit");
    let _ = home.hostel(&["plugins", "enable", "misfit"]).expect(0);
    let _ = home.hostel(&["config", "set", "terminal.backend", "misfit"]).expect(0);
    let _ = home.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
    home
}

fn behaving(home: &Home, behaviour: &str, words: &[&str]) -> Ran {
    let mut command = home.command("hostel", words);
    command.env("MISFIT", behaviour);
    hostel_tests::finish(command, b"")
}

in_both_isolations! {
    fn a_register_that_misbehaves_is_refused_at_enable_and_at_use(isolation) {
        let cases = [
            ("register-panic", "its `register` failed: `register` panicked: register panics"),
            ("register-error", "its `register` failed: there is no licence"),
            ("nothing", "it registered no provider"),
            ("twice", "it registered `misfit` twice"),
            ("foreign", "it registered `other`, but its manifest provides `misfit`"),
            ("reserved", "`docker` is the name of a backend that is built into Hostel"),
            ("bad-name", "`../evil` is not a name"),
        ];
        let home = enabled(isolation);
        for (behaviour, reason) in cases {
            let fresh = Home::new();
            fresh.add_plugin("misfit", "misfit");
            behaving(&fresh, behaviour, &["plugins", "enable", "misfit"]).fails(1, reason);
            assert_eq!(fresh.config(), "");
            behaving(&home, behaviour, &["exec", "--", "true"]).fails(125, reason);
            let _ = behaving(&home, behaviour, &["backends"]).expect(0);
        }
        assert_eq!(behaving(&home, "", &["exec", "--", "echo hi"]).expect(0).text(), "hi\n");
    }
}

in_both_isolations! {
    fn attributes_that_panic_give_their_defaults_and_guards_stay_on(isolation) {
        let home = enabled(isolation);
        let rows = behaving(&home, "", &["backends", "--json"]).expect(0).json();
        let row = |rows: &serde_json::Value| {
            rows.as_array().unwrap().iter().find(|row| row["name"] == "misfit").unwrap().clone()
        };
        assert_eq!(row(&rows)["display_name"], "Misfit");
        // It claims to skip the guards, but it is no container.
        assert_eq!(row(&rows)["flags"]["skip_container_guards"], false);
        let rows = behaving(&home, "most-attributes", &["backends", "--json"]).expect(0).json();
        let flags = row(&rows)["flags"].clone();
        for (flag, default) in [
            ("is_remote", true.into()),
            ("is_container", true.into()),
            ("skip_container_guards", false.into()),
            ("session_isolated_when_nonpersistent", false.into()),
            ("costs_to_create", true.into()),
            ("default_cwd", serde_json::Value::Null),
            ("guest_home", serde_json::Value::Null),
            ("cache_path_base", serde_json::Value::Null),
            ("env_description", "a misfit environment (likely Linux)".into()),
        ] {
            assert_eq!(flags[flag], default, "{flag}");
        }
        assert_eq!(row(&rows)["display_name"], "misfit");
        assert_eq!(row(&rows)["description"], "Run commands in a misfit environment");
        // A provider that cannot say what its secrets are is closed, so what it is shows from its record.
        let rows = behaving(&home, "attributes", &["backends", "--json"]).expect(0).json();
        assert_eq!(row(&rows)["status"], "unavailable");
        assert!(
            row(&rows)["detail"].as_str().unwrap().contains("cannot say which of its secrets to hide"),
            "{rows}"
        );
        behaving(&home, "attributes", &["exec", "--", "touch ran"])
            .fails(125, "cannot say which of its secrets to hide");
        behaving(&home, "strip-panic", &["exec", "--", "touch ran"])
            .fails(125, "cannot say which of its secrets to hide");
        assert!(!home.path().join("ran").exists());
        let fresh = Home::new();
        fresh.add_plugin("misfit", "misfit");
        behaving(&fresh, "strip-panic", &["plugins", "enable", "misfit"])
            .fails(1, "it cannot say which variables are its secrets");
        let _ = behaving(&home, "attributes", &["doctor"]).expect(1);
        let _ = behaving(&home, "attributes", &["plugins", "list"]).expect(0);
    }
}

in_both_isolations! {
    fn names_that_cannot_be_stripped_are_passed_over_and_the_others_are_honoured(isolation) {
        let home = enabled(isolation).with("MISFIT_TOKEN", "t0ken");
        let ran = behaving(&home, "strip-nonsense", &["plugins", "enable", "misfit"]).expect(0);
        assert!(
            ran.stderr.contains("warning: `misfit` wants `A=B` stripped, which is no variable's name"),
            "{ran:?}"
        );
        let ran =
            behaving(&home, "strip-nonsense", &["exec", "--", "env | grep -c MISFIT_TOKEN || true"]).expect(0);
        assert_eq!(ran.text(), "0\n");
    }
}

in_both_isolations! {
    fn an_environment_that_cannot_be_made_is_an_error_and_never_another_backend(isolation) {
        let home = enabled(isolation);
        let ran = behaving(&home, "create-error", &["exec", "--", "touch ran"]).expect(125);
        assert_eq!(ran.stderr, "error: backend `misfit`: the vendor is closed today\nhint: come back tomorrow\n");
        behaving(&home, "create-panic", &["exec", "--", "touch ran"])
            .fails(125, "backend `misfit`: `create_environment` panicked: creation panics");
        assert!(!home.path().join("ran").exists());
    }
}

in_both_isolations! {
    fn an_execute_that_panics_is_an_error_and_the_next_one_works(isolation) {
        let home = enabled(isolation);
        let ran = behaving(&home, "exec-panic", &["exec", "--", "boom"]).expect(125);
        assert!(ran.stderr.starts_with("error: backend `misfit`: `execute` panicked: "), "{ran:?}");
        let ran = behaving(&home, "exec-panic", &["exec", "--", "echo hi"]).expect(0);
        assert_eq!(ran.text(), "hi\n");
        assert_eq!(
            ran.stderr,
            "warning: cleaning up task `default` on `misfit` failed: `cleanup` panicked: cleanup panics\n"
        );
        let object = behaving(&home, "exec-panic", &["exec", "--json", "--", "boom"]).expect(125).json();
        assert_eq!((&object["error"]["kind"], &object["ended"]), (&"panicked".into(), &"lost".into()));
        for _ in 0..2 {
            let _ = behaving(&home, "exec-panic", &["plugins", "list"]).expect(0);
        }
    }
}

in_both_isolations! {
    fn an_exit_code_that_no_command_has_is_no_success(isolation) {
        let home = enabled(isolation);
        behaving(&home, "exit-code", &["exec", "--", "true"])
            .fails(125, "it reported exit code -1, which no command has");
    }
}

in_both_isolations! {
    fn a_probe_that_hangs_is_not_waited_for(isolation) {
        let home = enabled(isolation);
        let ran = behaving(&home, "slow", &["backends", "--json"]).expect(0);
        assert!(ran.took < Duration::from_secs(8), "{ran:?}");
        let rows = ran.json();
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "misfit").unwrap().clone();
        assert_eq!(
            (&row["status"], &row["detail"]),
            (&"unavailable".into(), &"it did not answer within 2 s".into())
        );
    }
}

in_both_isolations! {
    fn a_plugins_records_come_out_of_the_hosts_log(isolation) {
        let home = enabled(isolation);
        let ran = home.hostel(&["-v", "exec", "--", "true"]).expect(0);
        assert!(
            ran.stderr.contains("misfit runs a command") && ran.stderr.contains("plugin=\"misfit\""),
            "{ran:?}"
        );
        assert_eq!(home.exec("true").stderr, "");
    }
}

in_both_isolations! {
    fn a_plugins_settings_are_typed_by_what_it_declared(isolation) {
        let home = enabled(isolation);
        let set = |key: &str, value: &str| {
            home.hostel(&["config", "set", &format!("terminal.backends.misfit.{key}"), value])
        };
        let _ = set("loud", "yes").expect(0);
        set("size", "huge").fails(1, "one of `small`, `large` is expected");
        let _ = set("size", "small").expect(0);
        assert!(
            home.config().contains("loud: true") && home.config().contains("size: small"),
            "{}",
            home.config()
        );
        set("luod", "yes").fails(1, "`terminal.backends.misfit.luod` is not a key that backend `misfit` reads");
        home.set_config(
            "terminal: {backend: misfit, backends: {misfit: {loud: perhaps}}}\nplugins: {enabled: [misfit]}\n",
        );
        home.exec("true")
            .fails(125, "`terminal.backends.misfit`: `loud` is `perhaps`: `true` or `false` is expected");
    }
}

#[test]
fn a_backend_that_is_missing_or_misspelt_never_becomes_another() {
    let home = Home::new();
    for (name, reason) in [
        ("dokcer", "there is no backend `dokcer`"),
        ("\"\"", "the backend name is empty"),
        ("docker", "is not part of this version"),
        ("gone", "there is no backend `gone`"),
    ] {
        home.set_config(format!("terminal:\n  backend: {name}\n"));
        home.exec("echo ran > where.txt").fails(125, reason);
    }
    for text in [
        "terminal: docker\n",
        "terminal: [docker]\n",
        "terminal: !foo {backend: docker}\n",
        "terminal.backend: docker\n",
        "base: &x {backend: docker}\nterminal: {<<: *x}\n",
        "terminal: {Backend: docker}\n",
        "plugins: acmebox\n",
        "approvals: {mode: manual}\n",
    ] {
        home.set_config(text);
        let ran = home.exec("echo ran > where.txt").expect(125);
        assert!(ran.stderr.starts_with("error: "), "{text}: {ran:?}");
    }
    home.set_config("terminal:\n  backend: local\n");
    let mut command = home.command("hostel", &["exec", "--", "echo ran > where.txt"]);
    command.env("HOSTEL_TERMINAL_BACKEND", "ssh");
    hostel_tests::finish(command, b"").fails(125, "backend `ssh` is not part of this version");
    let mut command = home.command("hostel", &["exec", "--", "echo ran > where.txt"]);
    command.env("HOSTEL_TERMINAL_BACKEND", OsString::from_vec(b"local\xff".to_vec()));
    hostel_tests::finish(command, b"").fails(125, "there is no backend");
    assert!(!home.path().join("where.txt").exists());
}

in_both_isolations! {
    fn a_provider_that_ignores_its_deadline_is_left_behind(isolation) {
        let home = enabled(isolation);
        let ran = behaving(&home, "hang", &["exec", "--timeout", "0.5", "--", "true"]).expect(124);
        assert!(ran.took < Duration::from_secs(9), "{ran:?}");
        assert!(
            ran.stderr.contains(match isolation {
                "process" => "warning: backend `misfit` did not stop the command in time; its process was killed",
                _ => "warning: backend `misfit` did not stop the command in time; it may still be running",
            }),
            "{ran:?}"
        );
    }
}
