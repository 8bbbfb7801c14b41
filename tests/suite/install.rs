//! `hostel plugins install`, `update` and `remove`, and the variables that they keep.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hostel_tests::{Home, finish, library, manifest, put};

/// Makes a plugin's folder somewhere, of this version.
pub(super) fn plugin(below: &Path, version: &str) -> PathBuf {
    let folder = below.join(format!("acmebox-{version}"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("plugin.yaml"),
        manifest("acmebox").replace("0.1.0", version) + "requires_env: [ACMEBOX_TOKEN]\n",
    )
    .unwrap();
    put(&library("acmebox"), &folder.join("libacmebox.so"));
    folder
}

fn packed(folder: &Path) -> PathBuf {
    let archive = folder.with_extension("x.tar.gz");
    let name = folder.file_name().unwrap();
    let tar = Command::new("tar")
        .arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(folder.parent().unwrap())
        .arg(name)
        .status();
    assert!(tar.unwrap().success());
    archive
}

/// Every file below a folder, with its contents.
fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

#[test]
fn from_an_archive_to_a_command_and_away_again() {
    let home = Home::new().with("ACMEBOX_TOKEN", "x");
    let work = tempfile::tempdir().unwrap();
    let archive = packed(&plugin(work.path(), "1.0"));
    let ran = home.hostel(&["plugins", "install", archive.to_str().unwrap()]).expect(0);
    assert!(ran.text().starts_with("installed acmebox 1.0\n"), "{ran:?}");
    assert!(ran.stderr.contains("note: nothing of it has run"), "{ran:?}");
    home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).fails(125, "is not enabled");
    home.hostel(&["plugins", "install", archive.to_str().unwrap()]).fails(1, "acmebox");
    let words = ["plugins", "install", archive.to_str().unwrap(), "--force", "--enable", "--yes"];
    let ran = home.hostel(&words).expect(0);
    assert!(
        ran.text().contains("enabled acmebox\n") && ran.stderr.contains("note: it may start programs"),
        "{ran:?}"
    );
    let ran = home.hostel(&["exec", "--backend", "acmebox", "--", "echo hi"]).expect(0);
    assert_eq!(ran.text(), "hi\n");
    // Nothing else is left in the folder of plugins.
    let left: Vec<_> =
        fs::read_dir(home.path().join("plugins")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["acmebox"]);
    let ran = home.hostel(&["plugins", "remove", "acmebox"]).expect(0);
    assert_eq!(ran.text(), "removed acmebox\n");
    assert!(!home.plugin("acmebox").exists() && !home.config().contains("acmebox"), "{}", home.config());
    home.hostel(&["plugins", "remove", "acmebox"]).fails(1, "acmebox");
    home.hostel(&["plugins", "remove", "../../etc"]).fails(1, "is not a name");
}

#[test]
fn an_update_is_fetched_from_the_same_place_and_must_be_enabled_again() {
    let home = Home::new().with("ACMEBOX_TOKEN", "x");
    let work = tempfile::tempdir().unwrap();
    let source = work.path().join("source");
    fs::rename(plugin(work.path(), "1.0"), &source).unwrap();
    let _ = home.hostel(&["plugins", "install", source.to_str().unwrap(), "--enable", "--yes"]).expect(0);
    let ran = home.hostel(&["plugins", "update", "acmebox"]).expect(0);
    assert_eq!(ran.text(), "acmebox 1.0 is up to date\n");
    let newer = fs::read_to_string(source.join("plugin.yaml")).unwrap().replace("1.0", "2.0");
    fs::write(source.join("plugin.yaml"), newer).unwrap();
    let mut library = fs::read(source.join("libacmebox.so")).unwrap();
    library.extend(b"padding");
    fs::write(source.join("libacmebox.so"), library).unwrap();
    let ran = home.hostel(&["plugins", "update", "acmebox"]).expect(0);
    assert!(ran.text().starts_with("installed acmebox 2.0 in place of 1.0\n"), "{ran:?}");
    home.hostel(&["exec", "--backend", "acmebox", "--", "true"])
        .fails(125, "is not the file that was enabled");
    let shown = home.hostel(&["plugins", "show", "acmebox"]).expect(0).text();
    assert!(shown.contains("changed:") && shown.contains("SHA-256"), "{shown}");
    fs::write(source.join("extra.txt"), "x").unwrap();
    let _ = home.hostel(&["plugins", "update", "acmebox", "--enable", "--yes"]).expect(0);
    let _ = home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).expect(0);
    // What cannot be enabled is not installed either: the old one stays, byte for byte.
    let before = tree(&home.plugin("acmebox"));
    fs::write(source.join("libacmebox.so"), "no library").unwrap();
    let ran = home.hostel(&["plugins", "update", "acmebox", "--enable", "--yes"]).expect(1);
    assert!(ran.stderr.contains("is not an ELF file"), "{ran:?}");
    put(&hostel_tests::library("misfit"), &source.join("libacmebox.so"));
    let ran = home.hostel(&["plugins", "update", "acmebox", "--enable", "--yes"]).expect(1);
    assert!(ran.stderr.contains("it registered `misfit`"), "{ran:?}");
    assert_eq!(tree(&home.plugin("acmebox")), before);
    let _ = home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).expect(0);
}

#[test]
fn a_running_host_keeps_the_library_that_it_has() {
    for isolation in ["process", "in_process"] {
        let home = Home::new().with("ACMEBOX_TOKEN", "x");
        let work = tempfile::tempdir().unwrap();
        let (old, new) = (plugin(work.path(), "1.0"), plugin(work.path(), "2.0"));
        let _ = home.hostel(&["plugins", "install", old.to_str().unwrap(), "--enable", "--yes"]).expect(0);
        let _ = home.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
        let words = [
            "exec",
            "--backend",
            "acmebox",
            "--",
            "echo begun; while [ ! -e ../go ]; do sleep 0.05; done; echo done",
        ];
        let mut child = home.command("hostel", &words).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        let words = ["plugins", "install", new.to_str().unwrap(), "--force", "--enable", "--yes"];
        let _ = home.hostel(&words).expect(0);
        fs::write(home.path().join("state/tasks/acmebox/default/go"), "").unwrap();
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("done\n", Some(0)), "{isolation}");
    }
}

#[test]
fn a_download_is_checked_against_its_sum() {
    let home = Home::new();
    let work = tempfile::tempdir().unwrap();
    let archive = packed(&plugin(work.path(), "1.0"));
    let bytes = fs::read(&archive).unwrap();
    let sum = hostel::digest::sha256_hex(&bytes);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/acmebox.tar.gz", server.local_addr().unwrap());
    thread::spawn(move || {
        for stream in server.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
            stream.write_all(head.as_bytes()).unwrap();
            let _ = stream.write_all(&bytes);
        }
    });
    let wrong = "0".repeat(64);
    home.hostel(&["plugins", "install", &address, "--sha256", &wrong]).fails(1, &sum);
    assert!(!home.plugin("acmebox").exists());
    home.hostel(&["plugins", "install", &address, "--sha256", "abc"]).fails(1, "abc");
    let _ = home.hostel(&["plugins", "install", &address, "--sha256", &sum]).expect(0);
    assert!(home.plugin("acmebox").join("libacmebox.so").is_file());
    home.hostel(&["plugins", "install", "http://example.com/x.tar.gz"]).fails(1, "http");
    home.hostel(&["plugins", "install", "/no/such/thing"]).fails(1, "/no/such/thing");
}

/// Serves one folder over TLS, with a certificate that an authority of its own has signed: says its port, and runs until its standard
/// input ends.
const SERVER: &str = r#"
import http.server, os, ssl, sys, threading
os.chdir(sys.argv[1])
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("leaf.pem", "leaf.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
"#;

/// Makes an authority and a certificate for `localhost`.
const CERTIFICATES: &str = r"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -subj /CN=ca -days 2
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout leaf.key -out leaf.csr -subj /CN=localhost
printf 'subjectAltName=DNS:localhost\n' > leaf.ext
openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out leaf.pem -days 2 -extfile leaf.ext
";

#[test]
fn a_download_is_only_taken_from_whom_the_certificate_names() {
    let home = Home::new();
    let work = tempfile::tempdir().unwrap();
    let archive = packed(&plugin(work.path(), "1.0"));
    let mut made = Command::new("sh");
    made.args(["-ec", CERTIFICATES]).current_dir(work.path()).stderr(Stdio::null());
    if !made.status().is_ok_and(|status| status.success()) {
        assert!(!hostel_tests::strict(), "`openssl` is not installed");
        eprintln!("skipped: `openssl` is not installed");
        return;
    }
    let mut server = Command::new("python3");
    server
        .args(["-c", SERVER])
        .arg(work.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let name = archive.file_name().unwrap().to_str().unwrap();
    let address = format!("https://localhost:{}/{name}", port.trim());
    home.hostel(&["plugins", "install", &address]).fails(1, "ertificate");
    assert!(!home.plugin("acmebox").exists());
    let mut command = home.command("hostel", &["plugins", "install", &address]);
    command.env("SSL_CERT_FILE", work.path().join("ca.pem"));
    let _ = finish(command, b"").expect(0);
    assert!(home.plugin("acmebox").join("libacmebox.so").is_file());
    drop(server.stdin.take());
    server.wait().unwrap();
}

#[test]
fn variables_are_asked_for_once_and_kept_where_no_command_sees_them() {
    let home = Home::new();
    home.add_plugin("acmebox", "acmebox");
    let manifest = manifest("acmebox") + "requires_env: [{name: ACMEBOX_TOKEN, description: any text}]\n";
    fs::write(home.plugin("acmebox").join("plugin.yaml"), manifest).unwrap();
    // `script` gives it a terminal.
    let hostel = home.command("hostel", &[]).get_program().to_string_lossy().into_owned();
    let mut script = Command::new("script");
    script.args(["-qec", &format!("{hostel} plugins enable acmebox"), "/dev/null"]);
    script.env("HOSTEL_HOME", home.path()).env_remove("ACMEBOX_TOKEN").env("TERM", "dumb");
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = script.spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut seen = String::new();
    let until = Instant::now() + Duration::from_secs(20);
    let mut bytes = [0; 4096];
    while !seen.contains("ACMEBOX_TOKEN (empty to leave it unset): ") {
        assert!(Instant::now() < until, "{seen}");
        let read = screen.read(&mut bytes).unwrap();
        assert!(read > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    thread::sleep(Duration::from_millis(200));
    typed.write_all(b"t0ken in .env\n").unwrap();
    screen.read_to_string(&mut seen).unwrap();
    assert!(child.wait().unwrap().success(), "{seen}");
    assert!(!seen.contains("t0ken"), "{seen}");
    let file = home.path().join(".env");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains("t0ken in .env"));
    // Both ways of running it find it there, and no command does, whichever backend runs it.
    for isolation in ["process", "in_process"] {
        let _ = home.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
        for backend in ["acmebox", "local"] {
            let ran = home.hostel(&[
                "exec",
                "--backend",
                backend,
                "--",
                "echo ${ACMEBOX_TOKEN-hidden}; env | grep -c t0ken",
            ]);
            assert_eq!(ran.expect(1).text(), "hidden\n0\n", "{isolation} {backend}");
        }
    }
    // What is set in the environment comes first, and a file that others may read is not used.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).expect(125);
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains("is not ready"), "{ran:?}");
    let mut command = home.command("hostel", &["exec", "--backend", "acmebox", "--", "true"]);
    command.env("ACMEBOX_TOKEN", "other");
    let _ = finish(command, b"").expect(0);
}

#[test]
fn signatures_are_checked_and_can_be_required() {
    let home = Home::new().with("ACMEBOX_TOKEN", "x");
    let keys = tempfile::tempdir().unwrap();
    let minisign = |words: &[&str]| {
        let ran = Command::new("minisign").args(words).current_dir(keys.path()).stdin(Stdio::null()).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    if !minisign(&["-v"]) {
        assert!(!hostel_tests::strict(), "`minisign` is not installed");
        eprintln!("skipped: `minisign` is not installed");
        return;
    }
    let key = |name: &str| {
        assert!(minisign(&["-G", "-W", "-p", &format!("{name}.pub"), "-s", &format!("{name}.key")]));
        let text = fs::read_to_string(keys.path().join(format!("{name}.pub"))).unwrap();
        text.lines().nth(1).unwrap().to_owned()
    };
    let (mine, other) = (key("mine"), key("other"));
    home.add_plugin("acmebox", "acmebox");
    let folder = home.plugin("acmebox");
    let sign = |by: &str, file: &str| {
        let file = folder.join(file);
        assert!(minisign(&["-S", "-s", &format!("{by}.key"), "-m", file.to_str().unwrap()]));
    };
    let enable = || home.hostel(&["plugins", "enable", "acmebox"]);
    let _ = home.hostel(&["config", "set", "plugins.require_signature", "true"]).expect(0);
    enable().fails(1, "a signature is required, and no key is trusted");
    let _ = home.hostel(&["config", "set", "plugins.trusted_keys", &format!("[{mine}]")]).expect(0);
    enable().fails(1, "no trusted key has signed all of its files");
    sign("mine", "libacmebox.so");
    enable().fails(1, "`plugin.yaml.minisig`");
    sign("other", "plugin.yaml");
    enable().fails(1, "no trusted key has signed all of its files");
    sign("mine", "plugin.yaml");
    let _ = enable().expect(0);
    for isolation in ["process", "in_process"] {
        let _ = home.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
        let _ = home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).expect(0);
    }
    // A manifest that was changed after it was signed is refused, whether signatures are required or not.
    let yaml = fs::read_to_string(folder.join("plugin.yaml")).unwrap();
    fs::write(folder.join("plugin.yaml"), yaml.clone() + "homepage: x\n").unwrap();
    enable().fails(1, "the signature of `plugin.yaml` does not fit");
    let _ = home.hostel(&["config", "unset", "plugins.require_signature"]).expect(0);
    enable().fails(1, "the signature of `plugin.yaml` does not fit");
    home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).fails(125, "does not fit");
    fs::write(folder.join("plugin.yaml"), yaml).unwrap();
    let _ = home.hostel(&["config", "set", "plugins.trusted_keys", &format!("[{other}]")]).expect(0);
    let _ = enable().expect(0);
    let _ = home.hostel(&["config", "set", "plugins.trusted_keys", "[nonsense]"]).expect(0);
    enable().fails(1, "`nonsense` is no minisign public key");
}
