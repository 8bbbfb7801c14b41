//! Downloads, from a server on this machine.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use super::*;

/// Answers requests with these, one each. Returns its address.
fn serve(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                if line.is_empty() {
                    break;
                }
            }
            // Who has read enough may have left.
            let _ = stream.write_all(&answer);
        }
    });
    format!("http://{address}")
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn whole(body: &[u8]) -> Vec<u8> {
    answer(&format!("200 OK\r\nContent-Length: {}", body.len()), body)
}

/// An archive of a plugin.
fn archive(version: &str) -> Vec<u8> {
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(encoder);
    let files = [("plugin.yaml", manifest("acme", version).into_bytes()), ("libacme.so", library(version))];
    for (name, contents) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, format!("acme-{version}/{name}"), contents.as_slice()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

#[derive(Default)]
struct Seen(RefCell<Vec<String>>, RefCell<u64>);

impl Progress for Seen {
    fn start(&self, what: &str, total: Option<u64>) {
        self.0.borrow_mut().push(format!("{} {}", what.rsplit('/').next().unwrap(), total.is_some()));
    }

    fn advance(&self, bytes: u64) {
        *self.1.borrow_mut() += bytes;
    }

    fn finish(&self) {
        self.0.borrow_mut().push("end".into());
    }
}

fn get(home: &Home, url: &str, sha256: Option<&str>, progress: &Seen) -> Result<Installed, InstallError> {
    let options = InstallOptions { sha256: sha256.map(str::to_owned), ..Default::default() };
    install(home, &Source::parse(url)?, &options, progress)
}

#[test]
fn an_archive_is_downloaded_checked_and_updated() {
    let (_dir, home) = home();
    let (first, second) = (archive("1"), archive("2"));
    let sha256 = crate::digest::sha256_hex(&first);
    let address = serve([&first, &first, &first, &second].map(|body| whole(body)).to_vec());
    let url = format!("{address}/acme.tar.gz");
    let error = get(&home, &url, Some(&"0".repeat(64)), &Seen::default()).unwrap_err();
    assert!(error.to_string().contains(&sha256), "{error}");
    assert!(listed(&home.plugins()).is_empty());
    let seen = Seen::default();
    assert_eq!(get(&home, &url, Some(&sha256.to_uppercase()), &seen).unwrap().version, "1");
    assert_eq!(*seen.0.borrow(), ["acme.tar.gz true", "end"]);
    assert_eq!(*seen.1.borrow(), first.len() as u64);
    assert_eq!(Receipt::load(&home, "acme").unwrap().sha256, Some(sha256));
    assert!(matches!(update(&home, "acme", &Silent).unwrap(), Updated::Already { .. }));
    assert!(matches!(update(&home, "acme", &Silent).unwrap(), Updated::Replaced(_)));
    assert_eq!(version(&home, "acme"), "2");
}

#[test]
fn what_a_server_may_answer_instead_changes_nothing() {
    let (_dir, home) = home();
    let body = archive("1");
    let cases = [
        (answer("404 Not Found\r\nContent-Length: 0", b""), "the server answers with status 404"),
        (answer("401 Unauthorized\r\nContent-Length: 0", b""), "wants a login"),
        (
            answer("302 Found\r\nContent-Length: 0\r\nLocation: http://h/x.zip", b""),
            "leads on to another address",
        ),
        (answer("200 OK\r\nContent-Length: 600000000", b""), "larger than 512 MiB"),
        (answer(&format!("200 OK\r\nContent-Length: {}", body.len() + 1), &body), "the connection broke off"),
        (whole(b"<p>login</p>"), "it is not a gzip-compressed tar archive"),
        (whole(&body[..body.len() - 20]), "it is damaged"),
        (b"what?\r\n\r\n".to_vec(), "failed to download"),
    ];
    let address = serve(cases.iter().map(|(answer, _)| answer.clone()).collect());
    for (_, expected) in cases {
        let url = format!("{address}/acme.tar.gz?token=hunter2");
        let error = get(&home, &url, None, &Seen::default()).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(expected) && !message.contains("hunter2"), "{expected}: {message}");
        assert!(error.hint().is_some(), "{message}");
    }
    assert!(listed(&home.plugins()).is_empty());
}

#[test]
fn an_address_with_a_query_is_used_and_not_kept() {
    let (_dir, home) = home();
    let address = serve(vec![whole(&archive("1"))]);
    get(&home, &format!("{address}/acme.tar.gz?token=hunter2"), None, &Seen::default()).unwrap();
    let text = fs::read_to_string(home.plugin_records().join("acme.source.json")).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let error = update(&home, "acme", &Silent).unwrap_err();
    assert!(matches!(error, InstallError::PartlyKept { .. }), "{error}");
}
