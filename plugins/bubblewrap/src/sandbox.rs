//! One task's sandbox: what is in it, and how a process is started there.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hostel_plugin_api::shell::{Launch, LocalTransport, Process, Shell, ShellEnvironment, Transport};
use hostel_plugin_api::{Environment, Error, ErrorKind, ExecIo, ExecOutcome, ExecRequest};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{WaitId, WaitIdOptions, waitid};

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

/// Where the shell writes its state, inside.
const RECORD: &str = "/run/hostel-record";

/// Runs a program in a session of its own, which takes the terminal (util-linux).
const TAKE_TERMINAL: &str = "/usr/bin/setsid";

/// The descriptor on which `bwrap` finds the command's variables.
const VARIABLES: &str = "4";

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
        let refuse = |kind, message: String| Error::new(kind, message).not_started();
        let Some(state_dir) = state_dir else {
            return Err(refuse(
                ErrorKind::UNSUPPORTED,
                "nothing may be kept, so there is no place for a sandbox".into(),
            ));
        };
        let folders = state_dir.join("sandbox");
        let workspace = workspace.map_or_else(|| folders.join("workspace"), Path::to_owned);
        let make = || -> io::Result<()> {
            fs::create_dir_all(folders.join("tmp"))?;
            fs::create_dir_all(&workspace)?;
            fs::write(folders.join("passwd"), format!("sandbox:x:{ID}:{ID}::{WORKSPACE}:/bin/bash\n"))?;
            fs::write(folders.join("group"), format!("sandbox:x:{ID}:\n"))
        };
        make().map_err(|error| {
            let place = folders.display();
            refuse(ErrorKind::IO, format!("failed to make the sandbox's folders in `{place}`: {error}"))
        })?;
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        // The state of a task lies four folders below Hostel's home.
        let home = state_dir.ancestors().nth(4).unwrap_or(state_dir);
        let own = real(&workspace).starts_with(real(home)) && !workspace.starts_with(&folders);
        if own || real(state_dir).starts_with(real(&workspace)) {
            let message = format!("the workspace `{}` holds Hostel's own files", workspace.display());
            let error = refuse(ErrorKind::INVALID_REQUEST, message);
            return Err(error.with_hint("name a folder of your project's instead"));
        }
        Ok(Self(Arc::new(Inner { program, folders, workspace, network, keep: persistent })))
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

    /// Returns `bwrap` and its options, up to the program to run. `record` is where the shell writes its state.
    fn command_line(&self, record: Option<&Path>, cwd: &Path) -> Vec<OsString> {
        let Inner { program, folders, workspace, network, .. } = &*self.0;
        let mut line = Line(vec![program.into()]);
        line.add(["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox"]);
        line.add(["--uid", ID, "--gid", ID, "--args", VARIABLES]);
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
        if let Some(file) = record {
            line.add([OsStr::new("--bind"), file.as_os_str(), OsStr::new(RECORD)]);
        }
        // What lies nowhere would be lost with the call, which nobody would be told.
        line.add(["--remount-ro", "/"]);
        line.add([OsStr::new("--chdir"), cwd.as_os_str(), OsStr::new("--")]);
        line.0
    }

    /// Asks inside whether `path` is a directory that can be entered: only there do its links lead where they lead.
    fn asks_inside(&self, path: &Path) -> io::Result<bool> {
        let mut argv = self.command_line(None, Path::new("/"));
        for word in ["/usr/bin/test", "-d", "", "-a", "-x", ""] {
            argv.push(if word.is_empty() { path.into() } else { word.into() });
        }
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let variables = variables(&[])?;
        let launch = Launch {
            argv,
            env: Vec::new(),
            cwd: Path::new("/"),
            stdin: null.as_fd(),
            output: null.as_fd(),
            script: null.as_fd(),
            record: Path::new("/dev/null"),
            extra: vec![variables.as_fd()],
            terminal: false,
            cgroup: None,
        };
        let process = LocalTransport::spawn(&launch).map_err(io::Error::other)?;
        let status = waitid(WaitId::PidFd(process.pidfd.as_fd()), WaitIdOptions::EXITED)?;
        Ok(status.is_some_and(|status| status.exit_status() == Some(0)))
    }
}

/// A command line that grows.
struct Line(Vec<OsString>);

impl Line {
    fn add<const N: usize>(&mut self, words: [impl AsRef<OsStr>; N]) {
        self.0.extend(words.map(|word| word.as_ref().to_owned()));
    }
}

/// Writes a command's variables as `bwrap` reads them. They go neither into its arguments, where all could see them, nor into
/// its own environment: `bwrap` runs outside, and a variable such as `LD_PRELOAD` would bring a file of the sandbox's to run
/// there.
fn variables(env: &[(OsString, OsString)]) -> io::Result<File> {
    let mut file = File::from(memfd_create("bubblewrap-variables", MemfdFlags::CLOEXEC)?);
    let mut bytes = b"--clearenv\0".to_vec();
    for (name, value) in env {
        for word in [b"--setenv", name.as_bytes(), value.as_bytes()] {
            bytes.extend_from_slice(word);
            bytes.push(0);
        }
    }
    file.write_all(&bytes)?;
    file.rewind()?;
    Ok(file)
}

impl Transport for Sandbox {
    fn shell(&self) -> Result<Shell, Error> {
        Shell::find_below(Path::new("/")).ok_or_else(|| {
            Error::new(ErrorKind::UNAVAILABLE, "there is no shell on this machine").not_started()
        })
    }

    fn record_path(&self, _outside: &Path) -> PathBuf {
        RECORD.into()
    }

    fn is_directory(&self, path: &Path) -> bool {
        let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let outside = match (path.strip_prefix(WORKSPACE), path.strip_prefix("/tmp")) {
            (Ok(rest), _) => self.0.workspace.join(rest),
            (_, Ok(rest)) => self.0.folders.join("tmp").join(rest),
            _ => return self.asks_inside(path).unwrap_or(false),
        };
        // Without links on the way the host sees what the sandbox sees.
        let base = if path.starts_with(WORKSPACE) { &self.0.workspace } else { &self.0.folders };
        let inner = outside.strip_prefix(base).unwrap_or(&outside);
        let same = plain
            && base
                .canonicalize()
                .is_ok_and(|base| outside.canonicalize().is_ok_and(|real| real == base.join(inner)));
        if same { LocalTransport.is_directory(&outside) } else { self.asks_inside(path).unwrap_or(false) }
    }

    fn is_front(&self) -> bool {
        true
    }

    fn start(&self, mut launch: Launch<'_>) -> Result<Process, Error> {
        let mut argv = self.command_line(Some(launch.record), launch.cwd);
        if launch.terminal && Path::new(TAKE_TERMINAL).exists() {
            // It is the shell's and not that of `bwrap`, which a Ctrl-C would end, and everything with it.
            argv.extend([TAKE_TERMINAL, "--ctty"].map(OsString::from));
            (launch.output, launch.terminal) = (launch.stdin, false);
        }
        argv.append(&mut launch.argv);
        let variables = variables(&launch.env).map_err(|error| {
            Error::new(ErrorKind::IO, format!("failed to hand over the variables: {error}")).not_started()
        })?;
        let extra = vec![variables.as_fd()];
        LocalTransport::spawn(&Launch { argv, env: Vec::new(), cwd: Path::new("/"), extra, ..launch })
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
