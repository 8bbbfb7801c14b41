//! Where a command runs.

use std::path::{Component, Path, PathBuf};

use super::state::SessionState;
use super::transport::Transport;
use crate::{Error, ErrorKind};

/// The directory of a call.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// What the caller should know, where it is not the one in which the session stood.
    pub(super) vanished: Option<String>,
}

/// The directory in which a session starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) path: &'a Path,
    /// Whether a command has run there.
    pub(super) was_there: bool,
}

/// Finds the directory for a call. A named one must exist; one that vanished under the session gives way to the nearest
/// directory above it, with a warning.
pub(super) fn directory(
    transport: &dyn Transport,
    named: Option<&str>,
    state: &SessionState,
    start: Start<'_>,
    home: Option<&Path>,
) -> Result<Directory, Error> {
    let stands = state.cwd.as_deref().unwrap_or(start.path);
    if let Some(cwd) = named {
        if cwd.contains('\0') {
            let message = "the working directory holds a NUL character";
            return Err(Error::new(ErrorKind::BAD_CWD, message).not_started());
        }
        let path = clean(&stands.join(expand_home(cwd, home)));
        if transport.is_directory(&path) {
            return Ok(Directory { path, vanished: None });
        }
        let message =
            format!("the working directory `{}` does not exist or cannot be entered", path.display());
        let error = Error::new(ErrorKind::BAD_CWD, message).not_started();
        return Err(error.with_hint("name a directory that exists where the command runs"));
    }
    if state.cwd.is_none() && !start.was_there && !transport.is_directory(stands) {
        let message = format!(
            "the directory `{}`, in which the session starts, does not exist or cannot be entered",
            stands.display()
        );
        let error = Error::new(ErrorKind::BAD_CWD, message).not_started();
        return Err(error.with_hint("name another one, such as with `terminal.cwd`"));
    }
    let found = stands.ancestors().find(|path| transport.is_directory(path));
    let found = found.unwrap_or(Path::new("/")).to_owned();
    let vanished = (found != *stands).then(|| {
        format!("the directory `{}` is gone; this command ran in `{}`", stands.display(), found.display())
    });
    Ok(Directory { path: found, vanished })
}

fn expand_home(path: &str, home: Option<&Path>) -> PathBuf {
    match (home, path.strip_prefix('~')) {
        (Some(home), Some("")) => home.to_owned(),
        (Some(home), Some(rest)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

/// Takes `.` out of a path, and nothing else: `..` after a symbolic link is the kernel's to resolve.
fn clean(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}
