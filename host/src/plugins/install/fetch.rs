//! Getting the bytes of an archive, from this machine or another, into a file that nobody else can touch.
//!
//! The file has no name: what was hashed is what is unpacked, whatever happens to the original meanwhile, and nothing is left
//! behind if the process is killed.

use std::any::Any;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use super::address::{Address, without_query};
use super::error::InstallError;

/// A plugin's library has some megabytes; one with everything linked in and its debugging symbols has a hundred.
const MOST: u64 = 512 << 20;

/// How many servers may pass us on: a release's page leads to its storage in one or two steps.
const MOST_REDIRECTS: u32 = 5;

/// A server that says nothing for so long is not going to.
const SILENCE: Duration = Duration::from_secs(30);

/// So slow a connection takes longer than anybody waits: 512 MiB at 300 KB/s.
const ALTOGETHER: Duration = Duration::from_secs(30 * 60);

const CHECK: &str = "check the address; a browser should offer the file for download";
const AGAIN: &str = "try again, or download the file yourself and install that";

/// Who is told how a download goes.
pub trait Progress {
    /// A folder was made for what comes, which nobody else knows of.
    fn staged(&self, _folder: &Path) {}

    /// Returns what keeps a signal from ending this program as long as it is held: one folder is taking the place of another.
    fn undisturbed(&self) -> Box<dyn Any> {
        Box::new(())
    }

    /// Something begins; `total` is its length in bytes, where that is known.
    fn start(&self, what: &str, total: Option<u64>);

    /// Something begins of which it is only known how far a step of it has come.
    fn start_steps(&self, what: &str) {
        self.start(what, None);
    }

    /// A step of it has come so far, in percent.
    fn reached(&self, _step: &str, _percent: u8) {}

    /// So many more bytes have come.
    fn advance(&self, bytes: u64);

    /// It has ended, well or not.
    fn finish(&self);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _what: &str, _total: Option<u64>) {}

    fn advance(&self, _bytes: u64) {}

    fn finish(&self) {}
}

/// The bytes of an archive.
#[derive(Debug)]
pub(super) struct Fetched {
    /// A file without a name, at its beginning.
    pub(super) file: File,
    /// Its SHA-256, in hexadecimal.
    pub(super) sha256: String,
    /// Its length.
    pub(super) size: u64,
}

/// Why bytes did not arrive.
enum Broken {
    Large,
    Read(io::Error),
    Write(io::Error),
}

/// Downloads an archive; the file is made near `near`.
pub(super) fn download(url: &str, near: &Path, progress: &dyn Progress) -> Result<Fetched, InstallError> {
    let shown = without_query(url);
    let failed = |reason: String, hint: &'static str| InstallError::Download {
        address: shown.to_owned(),
        reason,
        hint,
    };
    let is_plain = Address::split(url).is_some_and(|address| address.scheme == "http");
    let answer = agent(is_plain).get(url).call();
    let mut response = answer.map_err(|error| {
        let (reason, hint) = explained(&error);
        failed(reason, hint)
    })?;
    if response.status().is_redirection() {
        return Err(failed("it leads on to another address".into(), "use that address"));
    }
    let total = response.body().content_length();
    if total.is_some_and(|total| total > MOST) {
        return Err(InstallError::Large(shown.to_owned()));
    }
    progress.start(shown, total);
    let received = receive(&mut response.body_mut().as_reader(), near, progress);
    progress.finish();
    received.map_err(|broken| match broken {
        Broken::Large => InstallError::Large(shown.to_owned()),
        Broken::Read(error) => failed(format!("the connection broke off: {error}"), AGAIN),
        Broken::Write(error) => InstallError::Write(near.to_owned(), error),
    })
}

/// Reads an archive on this machine; the copy is made near `near`.
pub(super) fn read(path: &Path, near: &Path) -> Result<Fetched, InstallError> {
    let unreadable = |error| InstallError::Read(path.to_owned(), error);
    // A pipe in its place would hold up whoever opens it.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is not a regular file")));
    }
    let mut file = File::open(path).map_err(unreadable)?;
    receive(&mut file, near, &Silent).map_err(|broken| match broken {
        Broken::Large => InstallError::Large(path.display().to_string()),
        Broken::Read(error) => unreadable(error),
        Broken::Write(error) => InstallError::Write(near.to_owned(), error),
    })
}

fn receive(from: &mut dyn Read, near: &Path, progress: &dyn Progress) -> Result<Fetched, Broken> {
    let mut file = tempfile::tempfile_in(near).map_err(Broken::Write)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut size: u64 = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Broken::Read(error)),
        };
        size += count as u64;
        if size > MOST {
            return Err(Broken::Large);
        }
        hash.update(&buffer[..count]);
        file.write_all(&buffer[..count]).map_err(Broken::Write)?;
        progress.advance(count as u64);
    }
    file.rewind().map_err(Broken::Write)?;
    let sha256 = hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    Ok(Fetched { file, sha256, size })
}

/// Makes the client. Without encryption only this machine itself is spoken to, directly, and it cannot pass us on.
fn agent(is_plain: bool) -> Agent {
    let roots = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    let mut config = Agent::config_builder()
        .https_only(!is_plain)
        .max_redirects(if is_plain { 0 } else { MOST_REDIRECTS })
        .tls_config(roots)
        .user_agent(concat!("hostel/", env!("CARGO_PKG_VERSION")))
        .timeout_resolve(Some(SILENCE))
        .timeout_connect(Some(SILENCE))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .timeout_global(Some(ALTOGETHER));
    if is_plain {
        config = config.proxy(None);
    }
    config.build().new_agent()
}

/// Says what went wrong without the addresses on the way, which may hold tokens.
fn explained(error: &ureq::Error) -> (String, &'static str) {
    match error {
        ureq::Error::StatusCode(code @ (401 | 403)) => (
            format!("the server wants a login (status {code})"),
            "download the file yourself and install that",
        ),
        ureq::Error::StatusCode(code) => (format!("the server answers with status {code}"), CHECK),
        ureq::Error::HostNotFound => ("there is no such host".into(), CHECK),
        ureq::Error::BadUri(_) => ("the server leads on to an address that makes no sense".into(), CHECK),
        ureq::Error::RequireHttpsOnly(_) => {
            ("the server leads on to an address without encryption".into(), AGAIN)
        }
        ureq::Error::TooManyRedirects => ("the server leads on and on to other addresses".into(), CHECK),
        ureq::Error::Timeout(_) => ("the server did not answer in time".into(), AGAIN),
        ureq::Error::Io(error) => (error.to_string(), AGAIN),
        ureq::Error::Rustls(error) => {
            let hint = "if it is a server of your own, make the system trust its certificate (or set `SSL_CERT_FILE`)";
            (error.to_string(), hint)
        }
        other => (other.to_string(), AGAIN),
    }
}
