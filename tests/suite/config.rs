//! `hostel config`: the file is the user's own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use hostel_tests::{Home, finish};

const FILE: &str = "# why: keep this first line\nterminal:\n  backend: local   # until the server is back\n  timeout: 60\n\n  env_note: \"größe 你好\"\n# fallback:\n#   model: x\nzeta: 1\nalpha: [a, b]   # order matters\n";

#[test]
fn an_edit_changes_what_was_asked_for_and_nothing_else() {
    let home = Home::new();
    home.set_config(FILE);
    home.add_plugin("acmebox", "acmebox");
    let _ = home.hostel(&["config", "set", "terminal.backend", "docker"]).expect(0);
    let edited = FILE.replace("local", "docker");
    assert_eq!(home.config(), edited);
    home.hostel(&["config", "set", "new.deep.key", "5"]).fails(1, "`new.deep.key` is not a known key");
    assert_eq!(home.config(), edited);
    let _ = home.hostel(&["config", "set", "--force", "new.deep.key", "5"]).expect(0);
    assert!(home.config().starts_with(&edited), "{}", home.config());
    assert_eq!(home.hostel(&["config", "get", "new.deep.key"]).expect(0).text(), "5\n");
    let _ = home.hostel(&["config", "unset", "new"]).expect(0);
    assert_eq!(home.config(), edited);
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    assert!(home.config().starts_with(&edited), "{}", home.config());
    let _ = home.hostel(&["plugins", "disable", "acmebox"]).expect(0);
    assert_eq!(home.config(), edited);
}

#[test]
fn the_keys_type_decides_and_both_yamls_read_the_same() {
    let home = Home::new();
    let set = |key: &str, value: &str| home.hostel(&["config", "set", key, value]);
    let get = |key: &str| home.hostel(&["config", "get", key]).expect(0).text();
    let _ = set("approvals.mode", "off").expect(0);
    assert!(home.config().contains("mode: \"off\""), "{}", home.config());
    assert_eq!(get("approvals.mode"), "off\n");
    set("terminal.timeout", "-5").fails(1, "`terminal.timeout`: `-5` is too small");
    let _ = set("terminal.timeout", "90").expect(0);
    assert!(home.config().contains("timeout: 90"), "{}", home.config());
    for value in [
        "null",
        "00701",
        "1.10",
        "{message}",
        "12:30:45",
        "1_000",
        "yes",
        "~",
        "a: b",
        "# x",
        "",
        " x ",
        "ö\"'\\",
    ] {
        let _ = home.hostel(&["config", "set", "--force", "acmebox.value", value]).expect(0);
        assert_eq!(get("acmebox.value"), format!("{value}\n"));
        let _ = home.hostel(&["config", "set", "terminal.backends.x.value", value]).expect(0);
        assert_eq!(get("terminal.backends.x.value"), format!("{value}\n"));
        // PyYAML reads YAML 1.1.
        let mut python = Command::new("python3");
        python.args([
            "-c",
            "import sys, yaml; print(yaml.safe_load(open(sys.argv[1]))['acmebox']['value'], end='')",
        ]);
        python.arg(home.path().join("config.yaml"));
        assert_eq!(finish(python, b"").expect(0).text(), value);
    }
    let _ = set("plugins.enabled", "a,b").expect(0);
    assert_eq!(get("plugins.enabled"), "[a, b]\n");
    let _ = set("plugins.enabled", "[c, d]").expect(0);
    assert_eq!(get("plugins.enabled"), "[c, d]\n");
    let _ = set("terminal.container_persistent", "false").expect(0);
    assert!(home.config().contains("container_persistent: false"), "{}", home.config());
    let before = home.config();
    set("agent.", "5").fails(1, "it has an empty part");
    set("a..b", "1").fails(1, "it has an empty part");
    set("approvals.mode", "manual").fails(1, "one of `ask`, `off`, `deny` is expected");
    set("terminal.container_persistent", "perhaps").fails(1, "`true` or `false` is expected");
    assert_eq!(home.config(), before);
}

#[test]
fn a_file_that_cannot_be_read_is_neither_written_nor_passed_over() {
    let home = Home::new();
    let path = home.path().join("config.yaml");
    let bad: [&[u8]; 5] = [
        b"terminal: {backend: local}\nbroken: [unclosed\n",
        b"terminal:\n\tbackend: local\n",
        b"- a\n- b\n",
        b"terminal: {backend: local}\n---\nb: 1\n",
        b"terminal: {backend: local}\nx: \xff\n",
    ];
    for bytes in bad {
        home.set_config(bytes);
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        home.hostel(&["config", "set", "terminal.backend", "docker"]).fails(1, "config.yaml`, line ");
        home.hostel(&["config", "get", "terminal.backend"]).fails(1, "config.yaml`");
        home.hostel(&["plugins", "disable", "x"]).fails(1, "config.yaml`");
        home.exec("touch ran").fails(125, "config.yaml`");
        let _ = home.hostel(&["doctor"]).expect(1);
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    }
    assert!(!home.path().join("ran").exists());
    for (text, after) in [
        ("", "terminal:\n  backend: docker\n"),
        ("# only\n# comments\n", "# only\n# comments\nterminal:\n  backend: docker\n"),
    ] {
        home.set_config(text);
        let _ = home.hostel(&["config", "set", "terminal.backend", "docker"]).expect(0);
        assert_eq!(home.config(), after);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    home.hostel(&["config", "set", "terminal.backend", "docker"]).fails(1, "is not a file");
    home.exec("true").fails(125, "is not a file");
    fs::remove_dir(&path).unwrap();
    home.set_config("terminal: {backend: local}\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    home.hostel(&["config", "set", "terminal.backend", "docker"]).fails(1, "the file is read-only");
    assert_eq!(home.config(), "terminal: {backend: local}\n");
}

#[test]
fn sections_lists_and_scalars_are_not_run_over() {
    let home = Home::new();
    let file = "terminal: {backend: local, timeout: 60}\nhooks:\n  - {name: a, run: x}\n  - {name: b, run: y}\nmodel: tiny\n";
    home.set_config(file);
    let set = |key: &str, value: &str| home.hostel(&["config", "set", key, value]);
    for (key, reason) in [
        ("terminal", "it is a section"),
        ("hooks[1].run", "is not a key"),
        ("hooks.7.run", "is not a known key"),
        ("model.name", "is not a known key"),
        ("hooks.x", "is not a known key"),
        ("terminall.backend", "is not a known key"),
    ] {
        set(key, "docker").fails(1, reason);
        assert_eq!(home.config(), file);
    }
    assert!(set("terminall.backend", "docker").stderr.contains("did you mean `terminal.backend`?"));
    for (key, reason) in [
        ("hooks.7.run", "it has 2"),
        ("model.name", "`model` holds a value"),
        ("hooks.x", "`hooks` holds a value"),
        ("hooks", "is a list in the file"),
    ] {
        home.hostel(&["config", "set", "--force", key, "z"]).fails(1, reason);
        assert_eq!(home.config(), file);
    }
    let _ = set("hooks.1.run", "z").expect(0);
    assert_eq!(home.config(), file.replace("run: y", "run: z"));
    home.hostel(&["config", "unset", "terminal.nosuch"]).fails(1, "`terminal.nosuch` is not set in the file");
}

#[test]
fn get_show_check_path_and_edit() {
    let home = Home::new();
    let _ = home.hostel(&["config", "check"]).expect(0);
    assert_eq!(home.hostel(&["config", "get", "terminal.timeout"]).expect(0).text(), "180\n");
    home.hostel(&["config", "get", "terminal.cwd"]).fails(1, "`terminal.cwd` is not set");
    home.hostel(&["config", "get", "terminal.timout"]).fails(1, "is not set");
    home.set_config(
        "terminal:\n  docker_image: deb\n  timeout: soon\nterminall: {x: 1}\nacme: {token: s3cret}\n",
    );
    let check = home.hostel(&["config", "check"]).expect(1).text();
    assert!(
        check.contains("error: `terminal.timeout` is `soon`")
            && check.contains("older name of `terminal.docker.image`"),
        "{check}"
    );
    home.exec("true").fails(125, "`terminal.timeout`");
    let _ = home.hostel(&["config", "set", "terminal.timeout", "9"]).expect(0);
    let mut command = home.command("hostel", &["config", "show", "--origin"]);
    command.env("HOSTEL_TERMINAL_BACKEND", "docker");
    let shown = finish(command, b"").expect(0).text();
    assert!(
        shown.contains("terminal.backend = docker")
            && shown.contains("(environment: HOSTEL_TERMINAL_BACKEND)"),
        "{shown}"
    );
    assert!(
        shown.contains("terminal.docker_image = deb")
            && shown.contains("config.yaml)")
            && shown.contains("(default)"),
        "{shown}"
    );
    assert!(!shown.contains("s3cret"), "{shown}");
    let path = home.hostel(&["config", "path"]).expect(0).text();
    assert_eq!(path.trim_end(), home.path().join("config.yaml").to_str().unwrap());
    let mut command = home.command("hostel", &["config", "edit"]);
    command.env("EDITOR", "sh -c 'echo \"terminal: {timeout: 5}\" > \"$1\"' editor");
    assert_eq!(finish(command, b"").expect(0).text(), "the configuration is in order\n");
    assert_eq!(home.config(), "terminal: {timeout: 5}\n");
}

#[test]
fn two_writers_at_once_lose_nothing() {
    let home = Home::new();
    home.set_config("# mine\n");
    std::thread::scope(|scope| {
        for number in 0..10 {
            let home = &home;
            scope.spawn(move || {
                let key = format!("sandbox.k{number}");
                home.hostel(&["config", "set", &key, "1"]).expect(0).text()
            });
        }
    });
    for number in 0..10 {
        assert_eq!(home.hostel(&["config", "get", &format!("sandbox.k{number}")]).expect(0).text(), "1\n");
    }
    assert!(home.config().starts_with("# mine\n"));
}

#[test]
fn an_unknown_backend_cannot_be_selected_and_an_override_is_told() {
    let home = Home::new();
    home.hostel(&["config", "set", "terminal.backend", "dokcer"]).fails(1, "there is no backend `dokcer`");
    let mut command = home.command("hostel", &["config", "set", "terminal.backend", "local"]);
    command.env("HOSTEL_TERMINAL_BACKEND", "docker");
    let ran = finish(command, b"").expect(0);
    assert_eq!(ran.stderr, "warning: environment: HOSTEL_TERMINAL_BACKEND overrides this setting\n");
}

#[test]
fn what_keeps_commands_from_running_can_be_mended_by_set() {
    let home = Home::new();
    home.set_config("plugins: {enabled: acmebox}\n");
    home.exec("true").fails(125, "`plugins.enabled`");
    let _ = home.hostel(&["config", "set", "plugins.enabled", "[]"]).expect(0);
    let _ = home.exec("true").expect(0);
}

#[test]
fn no_comment_is_lost_with_a_list() {
    let home = Home::new();
    let set = |value: &str| home.hostel(&["config", "set", "plugins.enabled", value]);
    home.set_config("plugins:\n  enabled: [a, b] # why\n");
    let _ = set("b,c").expect(0);
    assert_eq!(home.config(), "plugins:\n  enabled: [b, c] # why\n");
    home.set_config("plugins:\n  enabled:\n    - a # about a\n    - b # about b\n");
    let _ = set("b,c").expect(0);
    assert_eq!(home.config(), "plugins:\n  enabled:\n    - b # about b\n    - c\n");
    let spread = "plugins:\n  enabled: [\n    a, # keep\n    b ]\n";
    home.set_config(spread);
    let _ = set("a,c").expect(0);
    assert_eq!(home.config(), spread.replace("b ]", "c ]"));
    // In another order it could not stay where it is.
    home.set_config(spread);
    set("b,a").fails(1, "a comment would be lost");
    assert_eq!(home.config(), spread);
    let ended = "---\n# a\n...\n";
    home.set_config(ended);
    let _ = home.hostel(&["config", "set", "terminal.timeout", "9"]).expect(0);
    assert_eq!(home.config(), "---\n# a\nterminal:\n  timeout: 9\n...\n");
    let _ = home.hostel(&["config", "unset", "terminal.timeout"]).expect(0);
    assert_eq!(home.config(), ended);
}

#[test]
fn a_check_lists_all_that_is_wrong_also_what_a_plugin_declared() {
    let home = Home::new();
    home.add_plugin("misfit", "misfit");
    let _ = home.hostel(&["plugins", "enable", "misfit"]).expect(0);
    let check = || home.hostel(&["config", "check"]);
    home.set_config(
        "plugins: {enabled: [misfit]}\nterminal: {timout: null, backends: {misfit: {loud: text}}}\n",
    );
    let said = check().expect(1).text();
    assert!(said.contains("`terminal.timout` is unknown"), "{said}");
    assert!(said.contains("error: `terminal.backends.misfit`: `loud`"), "{said}");
    home.set_config("plugins: {enabled: 5}\nterminal: {timeout: soon}\n");
    let said = check().expect(1).text();
    assert!(said.contains("`plugins.enabled`") && said.contains("`terminal.timeout`"), "{said}");
}
