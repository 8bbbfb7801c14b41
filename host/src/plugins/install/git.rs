//! Fetching a git repository, by the user's own git.
//!
//! Only the files of one commit are wanted. Git must not ask anything, run anything that the repository brings along, or look
//! into a repository that happens to lie around us; everything else about it (proxies, certificates, credential helpers) stays
//! as the user has set it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::Duration;

use super::error::InstallError;
use super::fetch::Progress;
use super::git_run::Git;

/// How long one step may take.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// More than this of what it prints or says is of no use, in bytes.
const LONGEST: usize = 64 * 1024;

const SETTINGS: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    // The bytes of a library are its bytes.
    "core.autocrlf=false",
    "core.symlinks=true",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "transfer.bundleURI=false",
    "advice.detachedHead=false",
    // Of a pack that is kept as it comes, git tells how much has come.
    "fetch.unpackLimit=1",
    // A server that says nothing for half a minute is not going to: those that work tell of it every few seconds.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=30",
];

/// Variables that lead git to another repository or program than the one that is meant.
const FOREIGN: [&str; 14] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
];

const CHECK: &str = "check the address, and the branch, tag or whole commit id; `git ls-remote ADDRESS` must work \
     without asking anything";
const MISSING: &str = "install git, or take an archive or a folder instead";

/// Fetches the files of one commit into the new folder `into`. Returns the commit's id.
pub(super) fn fetch(
    url: &str,
    reference: Option<&str>,
    into: &Path,
    progress: &dyn Progress,
) -> Result<String, InstallError> {
    let failed = |(reason, hint)| InstallError::Git { address: url.to_owned(), reason, hint };
    fs::create_dir(into).map_err(|error| InstallError::Write(into.to_owned(), error))?;
    progress.start_steps(url);
    let fetched = steps(url, reference, into, progress);
    progress.finish();
    fetched.map_err(failed)
}

/// What went wrong, and what to do.
type Failed = (String, &'static str);

fn steps(url: &str, reference: Option<&str>, into: &Path, progress: &dyn Progress) -> Result<String, Failed> {
    // Not `clone`, which knows branches and tags only.
    run(into, &["init", "--quiet", "--template="], progress)?;
    let fetch = ["fetch", "--progress", "--depth=1", "--no-tags", "--no-recurse-submodules", "--"];
    run(into, &[&fetch[..], &[url, reference.unwrap_or("HEAD")]].concat(), progress)?;
    run(into, &["checkout", "--quiet", "--detach", "FETCH_HEAD"], progress)?;
    let commit = run(into, &["rev-parse", "--verify", "HEAD"], progress)?;
    Ok(commit.trim().to_owned())
}

/// Runs git in a folder. Returns what it printed.
fn run(folder: &Path, arguments: &[&str], progress: &dyn Progress) -> Result<String, Failed> {
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ("there is no `git` on this machine".to_owned(), MISSING),
        _ => (
            format!("failed to run git: {error}"),
            "check `TMPDIR`, the free space, and that `git` can be run",
        ),
    };
    // A file and not a pipe, so that nothing it prints can hold it up.
    let mut printed = tempfile::tempfile().map_err(broken)?;
    let mut said = Said::default();
    let git = Git {
        folder,
        arguments: SETTINGS
            .iter()
            .flat_map(|setting| ["-c", setting])
            .chain(arguments.iter().copied())
            .map(OsString::from)
            .collect(),
        env: environment(arguments),
        limit: LIMIT,
    };
    let success = git.run(&printed, &mut |bytes| said.hear(bytes, progress)).map_err(broken)?;
    match success {
        None => Err((format!("git did not end within {} minutes", LIMIT.as_secs() / 60), CHECK)),
        Some(false) => Err((reason(&said.text()), CHECK)),
        Some(true) => {
            let mut text = String::new();
            printed
                .rewind()
                .and_then(|()| printed.take(LONGEST as u64).read_to_string(&mut text))
                .map_err(broken)?;
            Ok(text)
        }
    }
}

/// Returns the whole environment that git runs in.
fn environment(arguments: &[&str]) -> Vec<(OsString, OsString)> {
    // Of the rest, some run programs, and some send unencrypted. Plain `http` reaches this only for this machine itself.
    let is_plain = arguments.iter().any(|argument| argument.starts_with("http://"));
    let mut own = vec![
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", ""),
        ("SSH_ASKPASS", ""),
        ("GIT_ALLOW_PROTOCOL", if is_plain { "http" } else { "https:ssh:file" }),
        ("LC_ALL", "C"),
    ];
    if std::env::var_os("GIT_SSH_COMMAND").is_none() && std::env::var_os("GIT_SSH").is_none() {
        own.push(("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"));
    }
    let replaced =
        |name: &OsString| FOREIGN.iter().chain(own.iter().map(|(own, _)| own)).any(|other| name == other);
    let kept = std::env::vars_os().filter(|(name, _)| !replaced(name));
    kept.chain(own.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

/// What git says: how far it is, and why it failed.
#[derive(Default)]
struct Said {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// All that is no news of progress.
    kept: Vec<u8>,
}

impl Said {
    fn hear(&mut self, bytes: &[u8], progress: &dyn Progress) {
        for byte in bytes {
            // News of progress are written over one another.
            let ends = matches!(byte, b'\r' | b'\n');
            if ends || self.line.len() < LONGEST {
                self.line.push(*byte);
            }
            if ends {
                let line = std::mem::take(&mut self.line);
                match step(&String::from_utf8_lossy(&line)) {
                    Some((step, percent)) => progress.reached(&step, percent),
                    None if *byte == b'\n' => self.keep(&line),
                    None => {}
                }
            }
        }
    }

    fn keep(&mut self, line: &[u8]) {
        self.kept.extend_from_slice(line);
        // Why it failed comes last.
        self.kept.drain(..self.kept.len().saturating_sub(LONGEST));
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&[&self.kept[..], &self.line].concat()).into_owned()
    }
}

/// Reads news of progress, such as `Receiving objects:  45% (9/20), 1.20 MiB | 1.00 MiB/s`: the step, with what has come, and its
/// percents.
fn step(line: &str) -> Option<(String, u8)> {
    let (before, after) = line.split_once('%')?;
    let (name, percent) = before.rsplit_once(':')?;
    // What a server counts and compresses before is no progress of ours, and what it says may be anything.
    let step = match name {
        "Receiving objects" => "receiving objects",
        "Resolving deltas" => "resolving deltas",
        _ => return None,
    };
    let percent = percent.trim().parse().ok().filter(|percent| *percent <= 100)?;
    let come = after.split_once("), ").map(|(_, come)| come.trim().trim_end_matches("done."));
    let come = come.map(|come| come.trim_end_matches(", ")).filter(|come| !come.is_empty());
    Some((come.map_or_else(|| step.to_owned(), |come| format!("{step}, {come}")), percent))
}

/// Finds the line in which git says what is wrong.
fn reason(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find_map(|line| line.strip_prefix("fatal: ")).or_else(|| lines().next_back());
    line.map_or_else(|| "git says nothing".to_owned(), |line| line.chars().take(300).collect())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_reason_is_the_line_that_ended_git() {
        assert_eq!(
            reason("warning: x\nfatal: couldn't find remote ref no\nmore\n"),
            "couldn't find remote ref no"
        );
        assert_eq!(reason("one\ntwo\n\n"), "two");
        assert_eq!(reason(""), "git says nothing");
    }

    struct Reached(RefCell<Vec<(String, u8)>>);

    impl Progress for Reached {
        fn start(&self, _what: &str, _total: Option<u64>) {}

        fn reached(&self, step: &str, percent: u8) {
            self.0.borrow_mut().push((step.to_owned(), percent));
        }

        fn advance(&self, _bytes: u64) {}

        fn finish(&self) {}
    }

    #[test]
    fn progress_is_told_from_what_went_wrong_wherever_the_pieces_end() {
        let text = "remote: Counting objects:  50% (1/2)\rReceiving objects:  45% (9/20), 1.20 MiB | 1.00 MiB/s\r\
            Receiving objects: 100% (20/20), done.\nResolving deltas:   0% (0/3)\rx: 300%\nfatal: no";
        for size in [1, 7, 1000] {
            let (reached, mut said) = (Reached(RefCell::default()), Said::default());
            for piece in text.as_bytes().chunks(size) {
                said.hear(piece, &reached);
            }
            let wanted = [
                ("receiving objects, 1.20 MiB | 1.00 MiB/s", 45),
                ("receiving objects", 100),
                ("resolving deltas", 0),
            ];
            assert_eq!(reached.0.take(), wanted.map(|(step, percent)| (step.to_owned(), percent)));
            assert_eq!(reason(&said.text()), "no");
            said.hear(&vec![b'x'; LONGEST], &reached);
            said.hear(b"\nfatal: at the end\n", &reached);
            assert_eq!(said.text().len(), LONGEST);
            assert_eq!(reason(&said.text()), "at the end");
        }
    }
}
