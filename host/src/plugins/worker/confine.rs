//! Holds a worker to its plugin's permissions, by Landlock (files, TCP ports) and seccomp (system calls).
//!
//! Both are given to this thread and pass on to every thread and process that it starts, and nobody can take them back. They
//! come before the library is opened, since its constructors are the plugin's code too. A plugin that may do everything is
//! not confined at all: confinement also keeps `sudo` and other programs of a higher standing from working in its commands.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::super::permissions::{Host, Network, Permissions};
use super::message::Hello;
use super::syscalls;

/// What every program reads: libraries, names, zones, certificates, the machine's description. Nothing of any user's.
const SYSTEM: [&str; 27] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/usr/share/ca-certificates",
    "/usr/share/locale",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
    "/dev/urandom",
    "/dev/zero",
];

/// The newest rules that are asked for. An older kernel enforces those that it knows.
const NEWEST: ABI = ABI::V6;

/// Why a worker could not be confined, which ends it.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfineError {
    /// Landlock refused the rules.
    #[error(transparent)]
    Rules(#[from] landlock::RulesetError),
    /// A folder cannot be made.
    #[error("failed to make `{0}`: {1}")]
    Folder(PathBuf, std::io::Error),
    /// The kernel refused the filter.
    #[error(transparent)]
    Calls(#[from] syscalls::FilterError),
}

/// Confines this thread and all that it starts. Returns a line for each permission that the kernel cannot enforce.
pub(super) fn confine(hello: &Hello) -> Result<Vec<String>, ConfineError> {
    let permissions = &hello.permissions;
    if hello.trap_network {
        syscalls::trap_network()?;
    }
    if permissions.is_everything() {
        return Ok(Vec::new());
    }
    let mut unenforced = limits_of(permissions);
    for folder in hello.state_dirs.iter().chain([&hello.data_dir]) {
        crate::home::make_private(folder).map_err(|error| ConfineError::Folder(folder.clone(), error))?;
    }
    unenforced.extend(files_and_ports(hello)?);
    syscalls::filter(permissions)?;
    Ok(unenforced)
}

/// What no kernel that we know can hold a plugin to, whatever it asks for.
pub(crate) fn limits_of(permissions: &Permissions) -> Vec<String> {
    let Network::Hosts(hosts) = &permissions.network else { return Vec::new() };
    let mut lines = Vec::new();
    if hosts.iter().any(|host| matches!(host, Host::Tcp(..))) {
        lines.push("the kernel holds it to the ports of its hosts, not to the hosts".to_owned());
    }
    if hosts.iter().any(|host| matches!(host, Host::Unix(_))) {
        lines.push("the kernel cannot tell one socket on this machine from another".to_owned());
    }
    lines
}

/// What this kernel can do of what is needed, for the doctor: none if it can do all.
#[must_use]
pub fn kernel_lacks() -> Option<String> {
    // The rules are made and not applied.
    let made = Ruleset::default()
        .set_compatibility_hard()
        .and_then(|rules| rules.handle_access(AccessFs::from_all(ABI::V1)))
        .and_then(Ruleset::create);
    if made.is_err() {
        return Some(
            "this kernel has no Landlock: a plugin's permissions for files are not enforced".to_owned(),
        );
    }
    let ports = Ruleset::default()
        .set_compatibility_hard()
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V4)))
        .and_then(Ruleset::create);
    ports.err().map(|_| "this kernel's Landlock knows no TCP ports (Linux 6.7 does)".to_owned())
}

/// Makes what the kernel does not know an error, in place of passing over it.
trait Hard: Sized {
    fn set_compatibility_hard(self) -> Result<Self, landlock::RulesetError>;
}

impl Hard for Ruleset {
    fn set_compatibility_hard(self) -> Result<Self, landlock::RulesetError> {
        use landlock::{CompatLevel, Compatible};
        Ok(self.set_compatibility(CompatLevel::HardRequirement))
    }
}

fn files_and_ports(hello: &Hello) -> Result<Vec<String>, ConfineError> {
    let permissions = &hello.permissions;
    let mut rules = Ruleset::default();
    let files = !permissions.writes_everywhere();
    if files {
        rules = rules.handle_access(AccessFs::from_all(NEWEST))?;
    }
    let ports = matches!(permissions.network, Network::Hosts(_));
    if ports {
        rules = rules.handle_access(AccessNet::ConnectTcp)?;
    }
    // Nobody outside may be signalled, nor spoken to by names that are no files.
    let mut rules = rules.scope(Scope::Signal | Scope::AbstractUnixSocket)?.create()?;
    if files {
        rules = grant_files(rules, hello)?;
    }
    if let Network::Hosts(hosts) = &permissions.network {
        let mut allowed: Vec<u16> = hosts
            .iter()
            .filter_map(|host| if let Host::Tcp(_, port) = host { Some(*port) } else { None })
            .collect();
        // Names are looked up over TCP where the answer is long.
        allowed.push(53);
        for port in allowed {
            rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
        }
    }
    let status = rules.restrict_self()?;
    let mut lines = Vec::new();
    if status.ruleset != RulesetStatus::FullyEnforced {
        lines.extend(kernel_lacks());
    }
    Ok(lines)
}

fn grant_files(mut rules: RulesetCreated, hello: &Hello) -> Result<RulesetCreated, ConfineError> {
    let permissions = &hello.permissions;
    let read = AccessFs::from_read(NEWEST);
    let read = if permissions.exec { read } else { read & !AccessFs::Execute };
    let all = AccessFs::from_all(NEWEST);
    let all = if permissions.exec { all } else { all & !AccessFs::Execute };
    let own = [hello.folder.clone(), PathBuf::from("/proc/self")];
    let readable = own
        .into_iter()
        .chain(SYSTEM.map(PathBuf::from))
        .chain(permissions.read.iter().filter_map(|path| expand(path)));
    for path in readable {
        rules = grant(rules, &path, read)?;
    }
    if permissions.exec {
        for path in ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"] {
            rules = grant(rules, Path::new(path), read)?;
        }
    }
    let own = hello.state_dirs.iter().chain([&hello.data_dir]).cloned().chain([PathBuf::from("/dev/null")]);
    for path in own.chain(permissions.write.iter().filter_map(|path| expand(path))) {
        rules = grant(rules, &path, all)?;
    }
    Ok(rules)
}

/// Allows `access` at and below `path`; what is not there cannot be allowed.
fn grant(
    rules: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, ConfineError> {
    let Ok(fd) = PathFd::new(path) else { return Ok(rules) };
    // Rights of folders are no rights of a file.
    let is_folder = fs::metadata(path).is_ok_and(|meta| meta.is_dir());
    let access = if is_folder { access } else { access & AccessFs::from_file(NEWEST) };
    Ok(rules.add_rule(PathBeneath::new(fd, access))?)
}

/// Returns the path that a permission means.
fn expand(path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(dirs::home_dir()?.join(rest)),
        None => Some(PathBuf::from(path)),
    }
}
