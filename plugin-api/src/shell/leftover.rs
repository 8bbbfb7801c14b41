//! What a child in the background still writes after its command has ended.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::io::retry_on_intr;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::environ::MARK;
use super::spawn::{self, Spawn};
use super::transport::Process;

/// Lets somebody read what a child in the background will still write, so that it does not die of a closed pipe. The reader
/// ends with the last writer.
pub(super) fn swallow(output: &std::io::PipeReader) {
    let start = || -> io::Result<Process> {
        rustix::io::ioctl_fionbio(output, false)?;
        let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
        let program = ["/bin/cat", "/usr/bin/cat"].into_iter().find(|path| Path::new(path).exists());
        let argv = [program.ok_or(io::ErrorKind::NotFound)?.into()];
        let descriptors = vec![output.as_fd(), null.as_fd(), null.as_fd()];
        let program = argv.first().map_or(Path::new(""), Path::new);
        // No command of anybody's.
        let env = [(MARK.into(), "reader".into())];
        let spawn = Spawn {
            program,
            argv: &argv,
            env: &env,
            cwd: Path::new("/"),
            descriptors,
            terminal: false,
            cgroup: None,
        };
        spawn::spawn(&spawn).map_err(|failed| failed.error)
    };
    match start() {
        Ok(reader) => {
            let wait =
                move || retry_on_intr(|| waitid(WaitId::PidFd(reader.pidfd.as_fd()), WaitIdOptions::EXITED));
            // Without a thread it stays a zombie as long as we live.
            let _ = std::thread::Builder::new().name("reap".into()).spawn(wait);
        }
        Err(error) => tracing::debug!(%error, "nobody reads what is left in the background"),
    }
}
