//! O-23 and O-24: secrets are in no process that an agent starts, by whatever tool and however often, and cannot be read from those of the host.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use hostel_tests::mcp_stdio::McpStdio;
use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use hostel_tests::{built, by_both_roads, is_root};
use serde_json::json;

use super::case::Case;

by_both_roads! { o_23_secrets_are_in_no_process }

fn o_23_secrets_are_in_no_process(road: Road) {
    let home = TidyHome::new().by(road);
    let home = home.with("MODAL_TOKEN_ID", "m1").with("DAYTONA_API_KEY", "d1").with("ACMEBOX_TOKEN", "a1");
    home.add_plugin("acmebox", "acmebox");
    let _ = home.hostel(&["plugins", "enable", "acmebox", "--yes"]).expect(0);
    for name in [".bashrc", ".profile"] {
        fs::write(home.path().join(name), "export DAYTONA_API_KEY=d2\n").unwrap();
    }
    let seen = home.path().join("rg.env");
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let rg = format!("#!/bin/sh\nenv >> '{}'\nexec grep \"$@\"\n", seen.display());
    fs::write(bin.join("rg"), rg).unwrap();
    fs::set_permissions(bin.join("rg"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let case = Case::of(home.with("PATH", &path));
    let q = "env | grep -cE '^(MODAL_|DAYTONA_API_KEY|ACMEBOX_TOKEN)' || true";
    case.x(q, 0, "0");
    case.x(q, 0, "0");
    for pty in [false, true] {
        case.ends(&case.bg(q, &json!({ "pty": pty })), 0, "0\n");
    }
    case.write("f", "a\n");
    let value = case.tool("search_files", &json!({ "pattern": "a", "path": "." }));
    assert_eq!(value["total_count"], 1, "{value}");
    let seen = fs::read_to_string(seen).unwrap();
    let secret = |line: &&str| {
        ["MODAL_", "DAYTONA_API_KEY", "ACMEBOX_TOKEN"].iter().any(|name| line.starts_with(name))
    };
    assert_eq!(seen.lines().find(secret), None);
    assert!(seen.contains("PATH="), "{seen}");
}

/// As an ordinary user, to whom the kernel shows what other processes of that user were started with.
#[test]
fn o_24_what_the_host_was_given_cannot_be_read() {
    if !is_root() {
        return;
    }
    let home = TidyHome::new();
    let program = tempfile::tempdir().unwrap();
    fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(built().join("hostel"), program.path().join("hostel")).unwrap();
    chown(home.path(), Some(64324), Some(64324)).unwrap();
    let mut command = home.command("hostel", &[]);
    let variables: Vec<_> =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    command = Command::new("setpriv");
    command
        .args(["--reuid=64324", "--regid=64324", "--clear-groups"])
        .arg(program.path().join("hostel"))
        .arg("mcp");
    command.envs(variables).env("MODAL_TOKEN_SECRET", "zq-7731-secret").current_dir(home.path());
    let mut server = McpStdio::begin(command);
    for look in [
        "true",
        "true",
        "for p in $PPID $(ps -o ppid= -p $PPID); do tr '\\0' '\\n' </proc/$p/environ; done 2>/dev/null | grep -c 'zq-[7]731' || true",
        "for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' <$f; done 2>/dev/null | grep -c 'zq-[7]731' || true",
        "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f; done 2>/dev/null | grep -c 'zq-[7]731' || true",
    ] {
        let value = server.call("terminal", &json!({ "command": look }));
        let output = value["output"].as_str().unwrap();
        assert!(value["exit_code"] == 0 && ["", "0\n"].contains(&output), "{look}: {value}");
    }
    drop(server);
    let found = Command::new("grep").args(["-rl", "zq-7731-secret"]).arg(home.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    let open = Command::new("find")
        .arg(home.path())
        .args(["-mindepth", "1", "-perm", "/077", "!", "-type", "l"])
        .output();
    assert_eq!(String::from_utf8_lossy(&open.unwrap().stdout), "");
}
