//! One task's sandbox: what is in it, and how a process is started there.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hostel_plugin_api::shell::{Launch, LocalTransport, Process, Shell, ShellEnvironment, Transport};
use hostel_plugin_api::{Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest};

/// Where the task's folder is, inside.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Who commands are, inside. Outside they are who Hostel is.
const ID: &str = "1000";

/// Folders at the root of a system whose programs are all below `/usr`, and where they lead.
const LINKS: [&str; 5] = ["bin", "sbin", "lib", "lib32", "lib64"];

/// What programs need of the host's `/etc`. The rest of it is nobody's business.
const ETC: [&str; 8] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "ssl/certs",
    "ssl/openssl.cnf",
    "nsswitch.conf",
];

/// The same, where there is a network.
const ETC_NETWORK: [&str; 4] = ["resolv.conf", "hosts", "services", "protocols"];

/// A sandbox, which is a folder and a command line.
#[derive(Clone)]
pub(crate) struct Sandbox(Arc<Inner>);

struct Inner {
    program: PathBuf,
    /// The folders of the task, on the host.
    folders: PathBuf,
    workspace: PathBuf,
    network: bool,
    keep: bool,
}

impl Sandbox {
    pub(crate) fn new(
        program: PathBuf,
        state_dir: Option<&Path>,
        workspace: Option<&Path>,
        network: bool,
        persistent: bool,
    ) -> Result<Self, Error> {
        let folders = match state_dir {
            Some(dir) => dir.join("sandbox"),
            None => std::env::temp_dir().join(format!("hostel-bubblewrap-{}", std::process::id())),
        };
        let workspace = workspace.map_or_else(|| folders.join("workspace"), Path::to_owned);
        let make = || -> io::Result<()> {
            fs::create_dir_all(folders.join("tmp"))?;
            fs::create_dir_all(&workspace)?;
            fs::write(folders.join("passwd"), format!("sandbox:x:{ID}:{ID}::{WORKSPACE}:/bin/bash\n"))?;
            fs::write(folders.join("group"), format!("sandbox:x:{ID}:\n"))
        };
        make().map_err(|error| {
            let message = format!("failed to make the sandbox's folders in `{}`: {error}", folders.display());
            Error::new(ErrorKind::IO, message).not_started()
        })?;
        Ok(Self(Arc::new(Inner {
            program,
            folders,
            workspace,
            network,
            keep: persistent && state_dir.is_some(),
        })))
    }

    /// Removes the task's folders, unless they are to be found again.
    fn remove(&self) -> Result<(), Error> {
        if self.0.keep {
            return Ok(());
        }
        match fs::remove_dir_all(&self.0.folders) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let message = format!("failed to remove `{}`: {error}", self.0.folders.display());
                Err(Error::new(ErrorKind::IO, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns `bwrap` and its options, up to the program to run.
    fn command_line(&self, launch: &Launch<'_>) -> Vec<OsString> {
        let Inner { program, folders, workspace, network, .. } = &*self.0;
        let mut line = Line(vec![program.into()]);
        line.add(["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox"]);
        line.add(["--uid", ID, "--gid", ID]);
        if *network {
            line.add(["--share-net"]);
        }
        line.add(["--ro-bind", "/usr", "/usr"]);
        for name in LINKS {
            let path = Path::new("/").join(name);
            match fs::read_link(&path) {
                Ok(target) => line.add([OsStr::new("--symlink"), target.as_os_str(), path.as_os_str()]),
                Err(_) => line.add([OsStr::new("--ro-bind-try"), path.as_os_str(), path.as_os_str()]),
            }
        }
        let more: &[&str] = if *network { &ETC_NETWORK } else { &[] };
        for name in ETC.iter().chain(more) {
            let path = Path::new("/etc").join(name);
            line.add([OsStr::new("--ro-bind-try"), path.as_os_str(), path.as_os_str()]);
        }
        for name in ["passwd", "group"] {
            let inside = Path::new("/etc").join(name);
            line.add([OsStr::new("--ro-bind"), folders.join(name).as_os_str(), inside.as_os_str()]);
        }
        line.add(["--proc", "/proc", "--dev", "/dev"]);
        line.add([OsStr::new("--bind"), folders.join("tmp").as_os_str(), OsStr::new("/tmp")]);
        line.add([OsStr::new("--bind"), workspace.as_os_str(), OsStr::new(WORKSPACE)]);
        line.add([OsStr::new("--bind"), launch.channel.as_os_str(), launch.channel.as_os_str()]);
        line.add([OsStr::new("--chdir"), launch.cwd.as_os_str(), OsStr::new("--")]);
        line.0
    }
}

/// A command line that grows.
struct Line(Vec<OsString>);

impl Line {
    fn add<const N: usize>(&mut self, words: [impl AsRef<OsStr>; N]) {
        self.0.extend(words.map(|word| word.as_ref().to_owned()));
    }
}

impl Transport for Sandbox {
    fn shell(&self) -> Result<Shell, Error> {
        let below_usr = Shell::find_below(Path::new("/")).filter(|shell| shell.path.parent().is_some());
        below_usr
            .ok_or_else(|| Error::new(ErrorKind::UNAVAILABLE, "there is no shell below `/usr`").not_started())
    }

    fn is_directory(&self, path: &Path) -> bool {
        let outside = match (path.strip_prefix(WORKSPACE), path.strip_prefix("/tmp")) {
            (Ok(rest), _) => self.0.workspace.join(rest),
            (_, Ok(rest)) => self.0.folders.join("tmp").join(rest),
            _ if path.starts_with("/usr")
                || LINKS.iter().any(|name| path.starts_with(Path::new("/").join(name))) =>
            {
                path.to_owned()
            }
            _ => return ["/", "/proc", "/dev", "/etc"].iter().any(|known| path == Path::new(known)),
        };
        LocalTransport.is_directory(&outside)
    }

    fn start(&self, mut launch: Launch<'_>) -> Result<Process, Error> {
        let mut argv = self.command_line(&launch);
        argv.append(&mut launch.argv);
        LocalTransport::spawn(&Launch { argv, cwd: Path::new("/"), ..launch })
    }
}

/// A session in a sandbox.
pub(crate) struct Session {
    pub(crate) session: ShellEnvironment<Sandbox>,
    pub(crate) sandbox: Sandbox,
}

impl Environment for Session {
    fn execute(&self, request: ExecRequest, io: &dyn ExecIo) -> Result<ExecOutcome, Error> {
        self.session.execute(request, io)
    }

    fn cleanup(&self) -> Result<(), Error> {
        self.session.cleanup()?;
        self.sandbox.remove()
    }
}
