//! Old and new plugins on old and new hosts, in both places where plugins run: what must happen in each cell.
//!
//! `tests/abi` keeps the versions of the interface, and `cargo xtask test` builds a plugin of each and a host of the newer one.
//! The plugin's first line of output says which later fields have reached it: `none` where the host has sent no such field.

use std::fs;
use std::path::{Path, PathBuf};

use hostel_plugin_api::abi::root::API_VERSION;
use hostel_tests::{Home, Ran, built, finish, manifest, put};

/// A host, by the version of its interface.
#[derive(Debug, Clone, Copy)]
enum Host {
    /// Ours, of the version that `plugin-api` has.
    Own,
    /// The same with an interface that has grown.
    Newer,
}

use Host::{Newer, Own};

impl Host {
    fn version(self) -> &'static str {
        match self {
            Own => API_VERSION,
            Newer => "1.1.0",
        }
    }

    fn run(self, home: &Home, words: &[&str]) -> Ran {
        let program = match self {
            Own => built().join("hostel"),
            Newer => kept("hosts/1.1/hostel"),
        };
        finish(home.command(program.to_str().unwrap(), words), b"")
    }

    fn exec(self, home: &Home, command: &str) -> Ran {
        self.run(home, &["exec", "--json", "--backend", "abiprobe", "--", command])
    }
}

/// What becomes of a plugin.
#[derive(Debug)]
enum Then {
    /// It runs commands, and hears this of the host's later fields.
    Runs { heard: &'static str },
    /// It is not loaded, at this step.
    Refused { step: &'static str, reason: Reason },
}

#[derive(Debug)]
enum Reason {
    /// The number that it says it was built for.
    Version(&'static str),
    /// This member.
    Member(&'static str),
}

use Reason::{Member, Version};
use Then::{Refused, Runs};

/// What a host that knows nothing of the later fields sends.
const SILENCE: &str = "region=none trace=none";

const MATRIX: [(&str, Host, Then); 8] = [
    ("1.0", Own, Runs { heard: SILENCE }),
    // It has no `region`, so the host goes by the default; the later fields pass it by.
    ("1.0", Newer, Runs { heard: r#"region="" trace="t1""# }),
    ("1.1", Own, Runs { heard: SILENCE }),
    ("1.1", Newer, Runs { heard: r#"region="north" trace="t1""# }),
    ("2.0", Own, Refused { step: "version", reason: Version("2.0.0") }),
    ("2.0", Newer, Refused { step: "version", reason: Version("2.0.0") }),
    ("lying", Own, Refused { step: "interface check", reason: Member("execute.param_1.call_id") }),
    ("lying", Newer, Refused { step: "interface check", reason: Member("execute.param_1.call_id") }),
];

const ISOLATIONS: [&str; 2] = ["process", "in_process"];

/// Returns the path of something that was built for these tests.
fn kept(name: &str) -> PathBuf {
    let path = built().parent().unwrap().join("abi").join(name);
    assert!(path.exists(), "there is no `{}`: run `cargo xtask test`, which builds it", path.display());
    path
}

fn library(plugin: &str) -> PathBuf {
    kept(&format!("plugins/{plugin}/libabiprobe.so"))
}

/// Makes a home that has the plugin built for this version of the interface.
fn home(isolation: &str, plugin: &str) -> (Home, PathBuf) {
    let home = Home::new();
    home.set_config(format!("plugins:\n  isolation: {isolation}\n"));
    let folder = home.add_manifest("abiprobe", manifest("abiprobe"));
    let installed = folder.join("libabiprobe.so");
    put(&library(plugin), &installed);
    (home, installed)
}

/// Requires that a command runs on `host`, and that the plugin hears this.
#[track_caller]
fn runs(home: &Home, host: Host, cell: &str, heard: &str) {
    let ran = host.exec(home, "echo hi; echo there >&2; exit 7");
    assert_eq!(ran.code, 7, "{cell}: {ran:?}");
    let report = ran.json();
    assert_eq!(report["output"], format!("{heard}\nhi\nthere\n"), "{cell}");
    assert_eq!(report["exit_code"], 7, "{cell}");
    // The plugin's own later field. Who does not know it passes it over.
    let answered = report["warnings"].as_array().unwrap().contains(&r#"it ran in "north""#.into());
    assert_eq!(answered, heard.contains("north"), "{cell}: {report}");
}

/// Requires a failure of one line, which is exactly this, and a hint; warnings may follow.
#[track_caller]
fn refused(ran: &Ran, cell: &str, code: i32, message: &str) {
    assert_eq!(ran.code, code, "{cell}: {ran:?}");
    let mut lines = ran.stderr.lines();
    assert_eq!(lines.next().unwrap_or_default(), format!("error: {message}"), "{cell}");
    assert!(lines.next().is_some_and(|line| line.starts_with("hint: ")), "{cell}: {ran:?}");
    assert!(lines.all(|line| line.starts_with("warning: ")), "{cell}: {ran:?}");
}

/// Exchanges the library of an enabled plugin, and the checksum that it is held to: so a library comes to a run that would
/// not have been enabled.
fn smuggle(home: &Home, plugin: &str, installed: &Path) {
    fs::remove_file(installed).unwrap();
    put(&library(plugin), installed);
    let bytes = fs::read(installed).unwrap();
    let path = home.path().join("state/plugins/abiprobe.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(record["pin"]["sha256"].is_string(), "{record}");
    record["pin"]["sha256"] = hostel::digest::sha256_hex(&bytes).into();
    record["pin"]["size"] = bytes.len().into();
    fs::write(path, record.to_string()).unwrap();
}

#[test]
fn every_plugin_meets_every_host() {
    for isolation in ISOLATIONS {
        for (plugin, host, then) in &MATRIX {
            let cell = format!("plugin {plugin} on {host:?}, {isolation}");
            let (home, installed) = home(isolation, plugin);
            let enabled = host.run(&home, &["plugins", "enable", "abiprobe"]);
            match then {
                Runs { heard } => {
                    assert_eq!(enabled.code, 0, "{cell}: {enabled:?}");
                    runs(&home, *host, &cell, heard);
                }
                Refused { step, reason } => {
                    let reason = match reason {
                        Version(theirs) => format!(
                            "the library was built for plugin API {theirs}, this Hostel has {} (`{}`)",
                            host.version(),
                            installed.canonicalize().unwrap().display()
                        ),
                        Member(member) => format!(
                            "its interface differs from this host's at `{member}`: its type is another"
                        ),
                    };
                    let message = format!("plugin `abiprobe` cannot be loaded ({step}): {reason}");
                    refused(&enabled, &cell, 1, &message);
                    put(&library("1.0"), &installed);
                    let enabled = host.run(&home, &["plugins", "enable", "abiprobe"]);
                    assert_eq!(enabled.code, 0, "{cell}: {enabled:?}");
                    smuggle(&home, plugin, &installed);
                    refused(&host.exec(&home, "true"), &cell, 125, &message);
                }
            }
        }
    }
}

#[test]
fn an_enabled_plugin_outlives_an_update_of_the_host_and_the_way_back() {
    for isolation in ISOLATIONS {
        for (plugin, host, then) in &MATRIX {
            let Runs { heard } = then else { continue };
            let other = match host {
                Own => Newer,
                Newer => Own,
            };
            let cell = format!("plugin {plugin} on {host:?}, enabled on {other:?}, {isolation}");
            let (home, _) = home(isolation, plugin);
            let enabled = other.run(&home, &["plugins", "enable", "abiprobe"]);
            assert_eq!(enabled.code, 0, "{cell}: {enabled:?}");
            runs(&home, *host, &cell, heard);
        }
    }
}
