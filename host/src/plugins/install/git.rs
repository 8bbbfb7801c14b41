//! Fetching a git repository, by the user's own git.
//!
//! Only the files of one commit are wanted. Git must not ask anything, run anything that the repository brings along, or look
//! into a repository that happens to lie around us; everything else about it (proxies, certificates, credential helpers) stays
//! as the user has set it.

use std::fs;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::error::InstallError;
use super::fetch::Progress;

/// How long one step may take.
const LIMIT: Duration = Duration::from_secs(10 * 60);

const SETTINGS: [&str; 9] = [
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
    progress.start(url, None);
    let fetched = steps(url, reference, into);
    progress.finish();
    fetched.map_err(failed)
}

/// What went wrong, and what to do.
type Failed = (String, &'static str);

fn steps(url: &str, reference: Option<&str>, into: &Path) -> Result<String, Failed> {
    // Not `clone`, which knows branches and tags only.
    run(into, &["init", "--quiet", "--template="])?;
    let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--"];
    run(into, &[&fetch[..], &[url, reference.unwrap_or("HEAD")]].concat())?;
    run(into, &["checkout", "--quiet", "--detach", "FETCH_HEAD"])?;
    let commit = run(into, &["rev-parse", "--verify", "HEAD"])?;
    Ok(commit.trim().to_owned())
}

/// Runs git in a folder. Returns what it printed.
fn run(folder: &Path, arguments: &[&str]) -> Result<String, Failed> {
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ("there is no `git` on this machine".to_owned(), MISSING),
        _ => (
            format!("failed to run git: {error}"),
            "check `TMPDIR`, the free space, and that `git` can be run",
        ),
    };
    // Files and not pipes, so that nothing it says can hold it up.
    let (mut printed, mut said) =
        (tempfile::tempfile().map_err(broken)?, tempfile::tempfile().map_err(broken)?);
    let mut command = Command::new("git");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command.arg("-C").arg(folder).args(arguments);
    for variable in FOREIGN {
        command.env_remove(variable);
    }
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ASKPASS", "").env("SSH_ASKPASS", "");
    // Of the rest, some run programs, and some send unencrypted. Plain `http` reaches this only for this machine itself.
    let is_plain = arguments.iter().any(|argument| argument.starts_with("http://"));
    command.env("GIT_ALLOW_PROTOCOL", if is_plain { "http" } else { "https:ssh:file" });
    if std::env::var_os("GIT_SSH_COMMAND").is_none() && std::env::var_os("GIT_SSH").is_none() {
        command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes");
    }
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command.stdout(printed.try_clone().map_err(broken)?).stderr(said.try_clone().map_err(broken)?);
    let mut child = command.spawn().map_err(broken)?;
    let until = Instant::now() + LIMIT;
    let status = loop {
        match child.try_wait().map_err(broken)? {
            Some(status) => break status,
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            None => {
                // It may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err((format!("git did not end within {} minutes", LIMIT.as_secs() / 60), CHECK));
            }
        }
    };
    let text = |file: &mut fs::File| -> io::Result<String> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.take(64 * 1024).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    if status.success() {
        return text(&mut printed).map_err(broken);
    }
    Err((reason(&text(&mut said).map_err(broken)?), CHECK))
}

/// Finds the line in which git says what is wrong.
fn reason(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find_map(|line| line.strip_prefix("fatal: ")).or_else(|| lines().next_back());
    line.map_or_else(|| "git says nothing".to_owned(), |line| line.chars().take(300).collect())
}

#[cfg(test)]
mod tests {
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
}
