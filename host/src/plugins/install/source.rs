//! What the user names as the source of a plugin.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::address::{Address, without_query};

/// The longest name of a branch, tag or commit.
const LONGEST_REFERENCE: usize = 200;

/// The two sorts of archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchiveKind {
    /// A tar archive, compressed with gzip.
    TarGz,
    /// A zip archive.
    Zip,
}

impl ArchiveKind {
    /// Returns the sort that a file's name stands for.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        if ends_in(name, ".tar.gz") || ends_in(name, ".tgz") {
            Some(Self::TarGz)
        } else if ends_in(name, ".zip") {
            Some(Self::Zip)
        } else {
            None
        }
    }
}

/// Where a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "at", rename_all = "snake_case")]
pub enum Source {
    /// A folder on this machine; it is copied.
    Folder(PathBuf),
    /// An archive on this machine.
    Archive(PathBuf),
    /// An archive elsewhere.
    Url {
        /// Its address.
        url: String,
        /// What it is.
        kind: ArchiveKind,
    },
    /// A git repository, here or elsewhere.
    Git {
        /// Its address or path.
        url: String,
        /// A branch, a tag, or a whole commit id; otherwise what the repository itself proposes.
        reference: Option<String>,
    },
}

/// Why a text is no source.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// There is no text.
    #[error("the source is empty")]
    Empty,
    /// It looks like a path, and nothing is there.
    #[error("there is no `{0}`")]
    Missing(String),
    /// Something is there that nothing can be installed from.
    #[error("`{0}` is neither a folder nor a `.tar.gz`, `.tgz` or `.zip` file")]
    NotArchive(String),
    /// An address of something else.
    #[error("`{0}` is the address of neither a `.tar.gz`, `.tgz` or `.zip` file nor a git repository")]
    Address(String),
    /// An address without encryption.
    #[error("`{0}` would come unencrypted, and anybody on the way could put another library in its place")]
    Plain(String),
    /// An address of another sort.
    #[error("`{0}://` is not fetched from")]
    Scheme(String),
    /// An address with a login.
    #[error("an address with a user or a password in it is not taken: it would be kept and shown")]
    Credentials,
    /// Not an address after all.
    #[error("`{0}` is not a usable address: {1}")]
    Malformed(String, &'static str),
    /// What stands after the `#` cannot be meant.
    #[error("`{0}` cannot be the name of a branch, tag or commit")]
    Reference(String),
    /// It cannot be looked at.
    #[error("failed to look at `{0}`: {1}")]
    Look(PathBuf, io::Error),
}

impl SourceError {
    /// Returns what to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(
            match self {
                Self::Credentials => "let git's own credential helper log in, or download the file and install that",
                Self::Plain(_) => "use its `https` address, or download the file and install that",
                Self::Reference(_) => "write it as git shows it, such as `#v1.2` or `#main`",
                Self::Look(..) => "check its permissions",
                Self::Malformed(..) => "write it as a browser shows it, with what is not ASCII as `%..`",
                Self::Empty | Self::Missing(_) | Self::NotArchive(_) | Self::Address(_) | Self::Scheme(_) => {
                    "a source is a folder, a `.tar.gz`, `.tgz` or `.zip` file, the `https` address of one, or a git repository: \
                     `https://….git`, `git+https://…`, `ssh://…`, `git@host:path`, `file://….git` or a path that ends in `.git`, \
                     with `#NAME` for a branch, tag or commit"
                }
            }
            .into(),
        )
    }
}

impl Source {
    /// Reads what the user has written. Paths become absolute.
    ///
    /// # Errors
    ///
    /// Fails if it is nothing that can be installed from.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        if text.trim().is_empty() {
            return Err(SourceError::Empty);
        }
        if let Some(address) = Address::split(text.strip_prefix("git+").unwrap_or(text)) {
            return from_address(text, &address);
        }
        if is_ssh_path(text) {
            let (url, reference) = text.split_once('#').map_or((text, None), |(url, name)| (url, Some(name)));
            return Ok(Self::Git { url: url.to_owned(), reference: checked_reference(reference)? });
        }
        from_path(text)
    }

    /// Returns the source without what must not be kept, and whether that is all of it.
    #[must_use]
    pub fn for_keeping(&self) -> (Self, bool) {
        match self {
            Self::Url { url, kind } => {
                let kept = without_query(url);
                (Self::Url { url: kept.to_owned(), kind: *kind }, kept == url)
            }
            Self::Folder(_) | Self::Archive(_) | Self::Git { .. } => (self.clone(), true),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) | Self::Archive(path) => write!(f, "{}", path.display()),
            Self::Url { url, .. } => f.write_str(without_query(url)),
            Self::Git { url, reference: None } => f.write_str(url),
            Self::Git { url, reference: Some(reference) } => write!(f, "{url}#{reference}"),
        }
    }
}

/// Returns a branch, tag or commit that git cannot take for an option or a pattern.
pub(super) fn checked_reference(name: Option<&str>) -> Result<Option<String>, SourceError> {
    let Some(name) = name else { return Ok(None) };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'+' | b'-');
    let first = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if !first || !name.bytes().all(plain) || name.contains("..") || name.len() > LONGEST_REFERENCE {
        return Err(SourceError::Reference(name.chars().take(LONGEST_REFERENCE).collect()));
    }
    Ok(Some(name.to_owned()))
}

fn from_address(text: &str, address: &Address<'_>) -> Result<Source, SourceError> {
    // First of all: everything after this may be shown.
    let is_ssh = address.scheme == "ssh";
    if address.user.is_some_and(|user| !is_ssh || user.contains(':')) {
        return Err(SourceError::Credentials);
    }
    let shown = || without_query(text).to_owned();
    let malformed = |why| Err(SourceError::Malformed(shown(), why));
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return malformed("it holds a space, a backslash, or something that is not ASCII");
    }
    let is_file = address.scheme == "file";
    match address.scheme.as_str() {
        "https" | "ssh" => {}
        "file" if matches!(address.host, "" | "localhost") => {}
        "file" => return malformed("a file on another machine cannot be read"),
        "http" if address.is_loopback() => {}
        "http" => return Err(SourceError::Plain(shown())),
        other => return Err(SourceError::Scheme(other.to_owned())),
    }
    if !is_file && !address.host.starts_with(|first: char| first.is_ascii_alphanumeric() || first == ':') {
        return malformed("it has no host");
    }
    if text.starts_with("git+") || is_ssh || ends_in(address.path.trim_end_matches('/'), ".git") {
        if address.has_query {
            return malformed("that of a git repository has no `?` part");
        }
        return Ok(Source::Git { url: address.text(), reference: checked_reference(address.fragment)? });
    }
    if is_file {
        return malformed("that of a file is its path, without `file://`");
    }
    let Some(kind) = ArchiveKind::of(address.path) else { return Err(SourceError::Address(shown())) };
    if address.fragment.is_some() {
        return malformed("that of an archive has no `#` part");
    }
    Ok(Source::Url { url: address.text(), kind })
}

/// Returns whether the text is of the form `user@host:path`, which git reads as an address.
fn is_ssh_path(text: &str) -> bool {
    let word = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(plain)
    };
    let Some((user, rest)) = text.split_once('@') else { return false };
    let Some((host, path)) = rest.split_once(':') else { return false };
    let path_is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    word(user) && word(host) && !path.is_empty() && !path.starts_with('-') && path_is_plain
}

fn from_path(text: &str) -> Result<Source, SourceError> {
    let (path, reference) = match text.rsplit_once('#') {
        Some((path, reference)) if is_repository(path) => (path, Some(reference)),
        _ => (text, None),
    };
    let absolute = std::path::absolute(path).map_err(|error| SourceError::Look(path.into(), error))?;
    let meta = match absolute.metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(SourceError::Missing(path.into()));
        }
        Err(error) => return Err(SourceError::Look(absolute, error)),
    };
    if meta.is_dir() && is_repository(path) {
        let url = absolute.to_string_lossy().into_owned();
        return Ok(Source::Git { url, reference: checked_reference(reference)? });
    }
    if meta.is_dir() {
        return Ok(Source::Folder(absolute));
    }
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match ArchiveKind::of(name) {
        Some(_) if meta.is_file() => Ok(Source::Archive(absolute)),
        _ => Err(SourceError::NotArchive(path.to_owned())),
    }
}

fn is_repository(path: &str) -> bool {
    ends_in(path.trim_end_matches('/'), ".git")
}

/// Returns whether a name ends in `ending`, in capitals or not.
fn ends_in(name: &str, ending: &str) -> bool {
    let end = name.len().checked_sub(ending.len()).and_then(|at| name.get(at..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(url: &str, reference: Option<&str>) -> Source {
        Source::Git { url: url.to_owned(), reference: reference.map(str::to_owned) }
    }

    fn url(url: &str, kind: ArchiveKind) -> Source {
        Source::Url { url: url.to_owned(), kind }
    }

    #[test]
    fn each_sort_of_source_is_known() {
        let cases = [
            ("https://h/a/x.tar.gz", url("https://h/a/x.tar.gz", ArchiveKind::TarGz)),
            ("HTTPS://h/x.TGZ", url("https://h/x.TGZ", ArchiveKind::TarGz)),
            ("https://h/x.zip?v=2", url("https://h/x.zip?v=2", ArchiveKind::Zip)),
            ("http://127.0.0.1:9/x.zip", url("http://127.0.0.1:9/x.zip", ArchiveKind::Zip)),
            ("http://[::1]:9/x.zip", url("http://[::1]:9/x.zip", ArchiveKind::Zip)),
            ("https://h/a/x.git", git("https://h/a/x.git", None)),
            ("https://h/a/x.git#v1.2", git("https://h/a/x.git", Some("v1.2"))),
            ("git+https://h/a/x#main", git("https://h/a/x", Some("main"))),
            ("git+https://h/x.zip", git("https://h/x.zip", None)),
            ("git@h.example:a/x", git("git@h.example:a/x", None)),
            ("git@h:a/x.git#feature/one", git("git@h:a/x.git", Some("feature/one"))),
            ("ssh://git@h/a/x", git("ssh://git@h/a/x", None)),
            ("file:///srv/x.git", git("file:///srv/x.git", None)),
        ];
        for (text, expected) in cases {
            assert_eq!(Source::parse(text).expect(text), expected, "{text}");
        }
    }

    #[test]
    fn paths_are_looked_at_and_become_absolute() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        for folder in ["plugin", "repo.git", "folder.zip"] {
            std::fs::create_dir(at(folder)).unwrap();
        }
        std::fs::write(at("x.zip"), "").unwrap();
        std::fs::write(at("x.txt"), "").unwrap();
        assert_eq!(Source::parse(&at("plugin")).unwrap(), Source::Folder(at("plugin").into()));
        assert_eq!(Source::parse(&at("folder.zip")).unwrap(), Source::Folder(at("folder.zip").into()));
        assert_eq!(Source::parse(&at("x.zip")).unwrap(), Source::Archive(at("x.zip").into()));
        assert_eq!(
            Source::parse(&format!("{}#v1", at("repo.git"))).unwrap(),
            git(&at("repo.git"), Some("v1"))
        );
        assert!(matches!(Source::parse(&at("x.txt")), Err(SourceError::NotArchive(_))));
        assert!(matches!(Source::parse(&at("none.zip")), Err(SourceError::Missing(_))));
    }

    #[test]
    fn what_is_refused_is_refused_with_a_reason_and_without_secrets() {
        let cases = [
            ("", "is empty"),
            ("no-such-thing", "there is no `no-such-thing`"),
            ("http://h.example/x.zip", "unencrypted"),
            ("http://localhost.example/x.zip", "unencrypted"),
            ("git+http://h.example/x", "unencrypted"),
            ("ftp://h/x.zip", "`ftp://` is not fetched from"),
            ("git://h/x.git", "`git://` is not fetched from"),
            ("ext::sh -c true", "there is no"),
            ("https://h/page.html?token=hunter2", "the address of neither"),
            ("https://me:hunter2@h/x.zip", "a user or a password"),
            ("https://hunter2@h/x.git", "a user or a password"),
            ("ftp://me:hunter2@h/x", "a user or a password"),
            ("ssh://git:hunter2@h/x", "a user or a password"),
            ("https://h/x.zip#sha256=1", "no `#` part"),
            ("https:///x.zip", "no host"),
            ("https://-oProxy/x.git", "no host"),
            ("https://h/a b.zip", "holds a space"),
            ("file:///tmp/x.zip", "without `file://`"),
            ("file://other/x.git", "another machine"),
            ("https://h/x.git#--upload-pack=x", "branch, tag or commit"),
            ("https://h/x.git#a..b", "branch, tag or commit"),
            ("git@h:-oProxyCommand=x", "there is no"),
        ];
        for (text, expected) in cases {
            let error = Source::parse(text).expect_err(text);
            let message = error.to_string();
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!message.contains("hunter2"), "{message}");
            assert!(error.hint().is_some_and(|hint| !hint.contains("hunter2")), "{text}");
        }
    }

    #[test]
    fn a_query_is_neither_shown_nor_kept() {
        let source = Source::parse("https://h/x.zip?token=hunter2").unwrap();
        assert_eq!(source.to_string(), "https://h/x.zip");
        let (kept, whole) = source.for_keeping();
        assert_eq!((kept, whole), (url("https://h/x.zip", ArchiveKind::Zip), false));
        let text = serde_json::to_string(&git("git@h:x", Some("v1"))).unwrap();
        assert_eq!(serde_json::from_str::<Source>(&text).unwrap(), git("git@h:x", Some("v1")));
        let folder = Source::Folder("/srv/x".into());
        let text = serde_json::to_string(&folder).unwrap();
        assert_eq!(serde_json::from_str::<Source>(&text).unwrap(), folder);
    }
}
