//! The main job: drop a folder, enable, select, run.

use hostel_tests::{Home, finish, in_both_isolations};

in_both_isolations! {
    fn a_command_runs_through_a_plugin_that_was_dropped_in(isolation) {
        let home = Home::new().with("ACMEBOX_TOKEN", "demo");
        home.add_plugin("acmebox", "acmebox");
        let list = home.hostel(&["plugins", "list", "--json"]).expect(0).json();
        assert_eq!((&list[0]["name"], &list[0]["status"]), (&"acmebox".into(), &"not enabled".into()));
        let _ = home.exec("true").expect(0);
        let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
        let _ = home.hostel(&["config", "set", "plugins.settings.acmebox.isolation", isolation]).expect(0);
        let _ = home.hostel(&["config", "set", "terminal.backend", "acmebox"]).expect(0);
        let ran = home.exec("echo hi from $PWD; exit 7").expect(7);
        assert!(ran.text().starts_with("hi from /") && ran.text().ends_with("/box\n"), "{ran:?}");
        assert_eq!(ran.stderr, "");
        let list = home.hostel(&["plugins", "list", "--json"]).json();
        assert_eq!(list[0]["status"], "enabled");
        assert_eq!(
            home.config(),
            format!(
                "plugins:\n  enabled:\n    - acmebox\n  settings:\n    acmebox:\n      isolation: {isolation}\n\
                 terminal:\n  backend: acmebox\n"
            )
        );
    }
}

in_both_isolations! {
    fn the_program_answers_to_its_other_name(isolation) {
        let home = Home::new();
        home.add_plugin("acmebox", "acmebox");
        let _ = finish(home.command("host", &["plugins", "enable", "acmebox"]), b"").expect(0);
        let _ = home.hostel(&["config", "set", "plugins.settings.acmebox.isolation", isolation]).expect(0);
        let _ = finish(home.command("host", &["config", "set", "terminal.backend", "acmebox"]), b"").expect(0);
        home.exec("true").fails(125, "backend `acmebox` is not ready: AcmeBox is not configured");
    }
}

#[test]
fn a_disabled_plugin_is_not_loaded_and_disabling_leaves_no_trace() {
    let home = Home::new().with("ACMEBOX_TOKEN", "demo");
    home.set_config("# mine\nterminal: {timeout: 9}   # nine\n");
    home.add_plugin("acmebox", "acmebox");
    home.hostel(&["exec", "--backend", "acmebox", "--", "true"])
        .fails(125, "backend `acmebox` comes from plugin `acmebox`, which is not enabled");
    home.hostel(&["config", "set", "terminal.backend", "acmebox"]).fails(1, "is not enabled");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let _ = home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).expect(0);
    let _ = home.hostel(&["config", "set", "plugins.disabled", "acmebox"]).expect(0);
    home.hostel(&["exec", "--backend", "acmebox", "--", "true"])
        .fails(125, "which `plugins.disabled` forbids");
    assert_eq!(home.hostel(&["plugins", "list", "--json"]).json()[0]["status"], "disabled");
    let _ = home.hostel(&["config", "unset", "plugins.disabled"]).expect(0);
    let _ = home.hostel(&["plugins", "disable", "acmebox"]).expect(0);
    assert_eq!(home.config(), "# mine\nterminal: {timeout: 9}   # nine\n");
    home.hostel(&["plugins", "enable", "nosuch"]).fails(1, "there is no plugin `nosuch`");
    home.hostel(&["plugins", "disable", "nosuch"]).fails(1, "there is no plugin `nosuch`");
}

in_both_isolations! {
    fn backends_status_and_doctor_tell_the_same_story(isolation) {
        let home = Home::new();
        home.add_plugin("acmebox", "acmebox");
        let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
        let _ = home.hostel(&["config", "set", "plugins.settings.acmebox.isolation", isolation]).expect(0);
        let _ = home.hostel(&["config", "set", "terminal.backend", "acmebox"]).expect(0);
        let rows = home.hostel(&["backends", "--json"]).expect(0).json();
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "acmebox").unwrap().clone();
        assert_eq!(row["origin"], "plugin:acmebox");
        assert_eq!((&row["selected"], &row["status"]), (&true.into(), &"needs_setup".into()));
        assert_eq!(row["flags"]["strip_env_keys"][0], "ACMEBOX_TOKEN");
        assert_eq!(row["flags"]["skip_container_guards"], false);
        let local = rows.as_array().unwrap().iter().find(|row| row["name"] == "local").unwrap().clone();
        assert_eq!((&local["origin"], &local["status"]), (&"builtin".into(), &"ready".into()));
        assert!(home.hostel(&["status"]).expect(0).text().contains("needs_setup"));
        let rows = home.hostel(&["doctor", "--json"]).expect(1).json();
        let bad: Vec<_> = rows.as_array().unwrap().iter().filter(|row| row["ok"] == false).collect();
        assert_eq!(bad.len(), 1, "{rows}");
        assert_eq!(
            (&bad[0]["source"], &bad[0]["detail"]),
            (&"plugin:acmebox".into(), &"AcmeBox is not configured".into())
        );
        let ready = Home::new();
        let _ = ready.hostel(&["doctor"]).expect(0);
    }
}

#[test]
fn completions_and_help_come_without_a_home() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.hostel(&["completions", shell]).expect(0).stdout.len() > 1000);
    }
    let help = home.hostel(&["exec", "--help"]).expect(0).text();
    assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
    let _ = home.hostel(&["exec"]).expect(2);
    let _ = home.hostel(&["nosuch"]).expect(2);
}

in_both_isolations! {
    fn what_a_command_leaves_in_the_box_is_there_for_the_next(isolation) {
        let home = Home::new().with("ACMEBOX_TOKEN", "demo");
        home.add_plugin("acmebox", "acmebox");
        let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
        let _ = home.hostel(&["config", "set", "plugins.settings.acmebox.isolation", isolation]).expect(0);
        let _ = home.hostel(&["config", "set", "terminal.backend", "acmebox"]).expect(0);
        let _ = home.exec("echo data > kept.txt").expect(0);
        assert_eq!(home.exec("cat kept.txt").expect(0).text(), "data\n");
        let _ = home.hostel(&["config", "set", "terminal.container_persistent", "false"]).expect(0);
        assert_eq!(home.exec("cat kept.txt").expect(0).text(), "data\n");
        let _ = home.exec("cat kept.txt 2>/dev/null").expect(1);
    }
}
