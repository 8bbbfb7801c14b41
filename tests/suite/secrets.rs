//! Providers' secrets are absent from every command, whichever backend runs it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hostel_tests::{Home, in_both_isolations};

const QUESTION: &str =
    "env | grep -cE '^(MODAL_|DAYTONA_API_KEY|ACMEBOX_TOKEN|VERCEL_TOKEN|MISFIT_TOKEN)' || true";

fn home(isolation: &str) -> Home {
    let home = Home::new()
        .with("MODAL_TOKEN_ID", "zq-7731-m1")
        .with("DAYTONA_API_KEY", "zq-7731-d1")
        .with("VERCEL_TOKEN", "zq-7731-v1")
        .with("ACMEBOX_TOKEN", "zq-7731-a1")
        .with("MISFIT_TOKEN", "zq-7731-t1");
    for name in ["acmebox", "misfit"] {
        home.add_plugin(name, name);
        let _ = home.hostel(&["plugins", "enable", name]).expect(0);
    }
    let _ = home.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
    home
}

in_both_isolations! {
    fn no_backend_shows_any_providers_secret(isolation) {
        let home = home(isolation);
        for backend in ["local", "acmebox", "misfit"] {
            for _ in 0..2 {
                let ran = home.hostel(&["exec", "--backend", backend, "--", QUESTION]).expect(0);
                assert_eq!(ran.text(), "0\n", "{backend}");
            }
            let words = ["exec", "--backend", backend, "--env", "ACMEBOX_TOKEN=given-by-caller", "--", QUESTION];
            let ran = home.hostel(&words).expect(0);
            assert_eq!(ran.text(), "0\n", "{backend}");
            assert_eq!(ran.stderr, "warning: `ACMEBOX_TOKEN` was not passed: it is a provider's secret\n");
            let _ = home.hostel(&["exec", "--backend", backend, "--", "export MODAL_TOKEN_ID=again"]).expect(0);
            assert_eq!(home.hostel(&["exec", "--backend", backend, "--", QUESTION]).text(), "0\n", "{backend}");
        }
    }
}

#[test]
fn a_plugin_that_is_not_enabled_hides_nothing() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    home.add_plugin("acmebox", "acmebox");
    assert_eq!(home.exec("echo ${ACMEBOX_TOKEN-unset}").text(), "t\n");
}

#[test]
fn a_manifest_alone_is_enough_to_hide_a_secret() {
    let home = Home::new().with("VENDOR_KEY", "k").with("VENDOR_REGION", "r");
    let manifest = hostel_tests::manifest("vendor")
        + "requires_env: [VENDOR_KEY, {name: VENDOR_REGION, secret: false}]\n";
    home.add_manifest("vendor", manifest);
    let _ = home.hostel(&["config", "set", "plugins.enabled", "vendor"]).expect(0);
    assert_eq!(home.exec("echo ${VENDOR_KEY-unset} $VENDOR_REGION").text(), "unset r\n");
}

in_both_isolations! {
    fn secrets_reach_neither_files_nor_arguments_and_what_is_kept_is_private(isolation) {
        let home = home(isolation);
        for backend in ["local", "acmebox"] {
            let _ = home.hostel(&["exec", "--backend", backend, "--", "export A=1; cd /"]).expect(0);
        }
        let _ = home.exec_json(&["--max-output", "10"], "seq 1000");
        let arguments = home.exec(
            "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; done 2>/dev/null | grep -c 'zq-[7]731' || true",
        );
        assert_eq!(arguments.expect(0).text(), "0\n");
        let mut seen = 0;
        walk(home.path(), &mut |path| {
            let meta = fs::symlink_metadata(path).unwrap();
            if path.starts_with(home.path().join("plugins")) {
                return;
            }
            if meta.is_file() {
                seen += 1;
                let bytes = fs::read(path).unwrap();
                assert!(!bytes.windows(7).any(|window| window == b"zq-7731"), "{}", path.display());
            }
            let private = if meta.is_dir() { 0o700 } else { 0o600 };
            let mode = meta.permissions().mode() & 0o777;
            let expected = if path.ends_with("config.yaml") || path.ends_with("box") { mode } else { private };
            assert_eq!(mode, expected, "{}", path.display());
        });
        assert!(seen > 4);
    }
}

fn walk(dir: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        visit(&path);
        if path.is_dir() {
            walk(&path, visit);
        }
    }
}

// upstream #4427: the secrets of the host could be read from `/proc` by every command
#[test]
fn an_ordinary_users_command_cannot_read_the_hosts_own_environment() {
    if !hostel_tests::is_root() {
        return;
    }
    let home = Home::new();
    std::os::unix::fs::chown(home.path(), Some(65534), Some(65534)).unwrap();
    let program = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    fs::copy(hostel_tests::built().join("hostel"), program.path().join("hostel")).unwrap();
    let look =
        "for p in $PPID; do tr '\\0' '\\n' </proc/$p/environ; done 2>/dev/null | grep -c 'zq-[7]731' || true";
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program.path().join("hostel"));
    command
        .args(["exec", "--", look])
        .env("HOSTEL_HOME", home.path())
        .env("MODAL_TOKEN_SECRET", "zq-7731-secret")
        .current_dir("/");
    assert_eq!(hostel_tests::finish(command, b"").expect(0).text(), "0\n");
}

#[test]
fn a_secret_stays_hidden_whatever_becomes_of_its_plugins_folder() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    let folder = home.add_plugin("acmebox", "acmebox");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let question = "echo ${ACMEBOX_TOKEN-hidden}";
    home.add_manifest("aaa", hostel_tests::manifest("aaa") + "provides: [acmebox]\n");
    assert_eq!(home.exec(question).text(), "hidden\n");
    let _ = home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).expect(0);
    fs::write(folder.join("plugin.yaml"), "- broken\n").unwrap();
    assert_eq!(home.exec(question).text(), "hidden\n");
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(home.exec(question).text(), "hidden\n");
}

#[test]
fn what_a_manifest_called_a_secret_stays_one_when_the_folder_breaks() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t").with("VENDOR_KEY", "k");
    let folder = home.add_plugin("acmebox", "acmebox");
    let manifest = hostel_tests::manifest("acmebox") + "requires_env: [VENDOR_KEY]\n";
    fs::write(folder.join("plugin.yaml"), manifest).unwrap();
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let question = "echo ${VENDOR_KEY-hidden}";
    assert_eq!(home.exec(question).text(), "hidden\n");
    fs::write(folder.join("plugin.yaml"), "- broken\n").unwrap();
    assert_eq!(home.exec(question).text(), "hidden\n");
}
