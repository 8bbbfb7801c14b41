//! Holds a worker to its plugin's permissions, by Landlock (files, TCP ports) and seccomp (system calls), and by its keeper (hosts).
//!
//! Both are given to this thread and pass on to every thread and process that it starts, and nobody can take them back. They
//! come before the library is opened, since its constructors are the plugin's code too. A plugin that may do everything is
//! not confined at all: confinement also keeps `sudo` and other programs of a higher standing from working in its commands.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::super::permissions::{Host, Network, Permissions};
use super::hosts::{self, Handover, HandoverError};
use super::message::Hello;
use super::{paths, syscalls};

/// What every program reads: libraries, names, zones, certificates, the machine's description. Nothing of any user's, and nothing
/// that only root may read: beside certificates lie private keys.
const SYSTEM: [&str; 34] = [
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
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/tls/openssl.d",
    "/etc/ca-certificates",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
    "/dev/urandom",
    "/dev/zero",
];

/// Where programs are, for a plugin that may start them.
const PROGRAMS: [&str; 5] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"];

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
    /// Its user's rights cannot be given up.
    #[error("failed to give up rights over the machine: {0}")]
    Rights(#[from] rustix::io::Errno),
    /// Nobody judges its connections.
    #[error(transparent)]
    Hosts(#[from] HandoverError),
}

/// Confines this thread and all that it starts; `gate` leads to the keeper, which judges connections. Returns a line for each
/// permission that the kernel cannot enforce.
pub(super) fn confine(hello: &Hello, gate: OwnedFd) -> Result<Vec<String>, ConfineError> {
    let (permissions, trapped) = (&hello.manifest.permissions, hello.trap_network);
    // First: what the keeper needs is out of reach once the rest is in force, and it takes over while that is done.
    let listen = if trapped { syscalls::trap } else { syscalls::listener };
    let handover = (trapped || names_hosts(permissions)).then(|| {
        // Of a socket that is not made nothing is taken.
        let programs = permissions.exec && !trapped;
        Handover::begin(gate, &permissions.network, programs, listen).inspect_err(|error| {
            tracing::debug!(%error, "connections cannot be handed to the keeper");
        })
    });
    let mut unenforced = if permissions.is_everything() { Vec::new() } else { hold_to(hello, permissions)? };
    let judged = match handover {
        Some(Ok(handover)) => {
            handover.finish()?;
            true
        }
        Some(Err(_)) => false,
        None => true,
    };
    match (judged, trapped) {
        (true, _) => {}
        (false, false) => unenforced.push(PORTS_ONLY.to_owned()),
        (false, true) => {
            syscalls::trap_alone()?;
            unenforced.push(UNSEEN.to_owned());
        }
    }
    Ok(unenforced)
}

/// What the kernel does by itself.
fn hold_to(hello: &Hello, permissions: &Permissions) -> Result<Vec<String>, ConfineError> {
    let mut unenforced = beyond_reach(permissions);
    for folder in hello.state_dirs.iter().chain([&hello.data_dir]) {
        crate::home::make_private(folder).map_err(|error| ConfineError::Folder(folder.clone(), error))?;
    }
    give_up_rights(permissions)?;
    unenforced.extend(files_and_ports(hello)?);
    syscalls::filter(permissions, hello.trap_network)?;
    Ok(unenforced)
}

/// Rights of root's over the machine and not over files, which no filter and no rule withholds: its clock, its log, its kernel, other
/// people's processes, and to be served before everybody else.
const OVER_THE_MACHINE: CapabilitySet = CapabilitySet::SYS_NICE
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_BOOT)
    .union(CapabilitySet::SYS_TIME)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_PACCT)
    .union(CapabilitySet::SYS_TTY_CONFIG)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::IPC_OWNER)
    .union(CapabilitySet::AUDIT_CONTROL)
    .union(CapabilitySet::AUDIT_READ)
    .union(CapabilitySet::AUDIT_WRITE)
    .union(CapabilitySet::MAC_ADMIN)
    .union(CapabilitySet::MAC_OVERRIDE)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::WAKE_ALARM)
    .union(CapabilitySet::BLOCK_SUSPEND);

/// Of no use without programs: with them one becomes somebody else, or takes back a limit.
const FOR_PROGRAMS: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_RESOURCE)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::KILL);

/// Whoever may change addresses and ways leads an allowed address anywhere else.
const OVER_THE_NETWORK: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW);

/// Gives up those of root's rights that nothing else withholds.
fn give_up_rights(permissions: &Permissions) -> Result<(), rustix::io::Errno> {
    let mut given = OVER_THE_MACHINE;
    if !permissions.exec {
        given |= FOR_PROGRAMS;
    }
    if names_hosts(permissions) {
        given |= OVER_THE_NETWORK;
    }
    let mut rights = capabilities(None)?;
    if !(rights.permitted | rights.inheritable).intersects(given) {
        return Ok(());
    }
    rights.effective -= given;
    rights.permitted -= given;
    rights.inheritable -= given;
    // Programs do not get it back: nobody below gains rights by starting one (`PR_SET_NO_NEW_PRIVS`).
    set_capabilities(None, rights)
}

/// What this system cannot hold a plugin with these permissions to, a line each.
#[must_use]
pub fn not_enforceable(permissions: &Permissions) -> Vec<String> {
    let mut lines = beyond_reach(permissions);
    if names_hosts(permissions) && !hosts::supported(permissions.exec) {
        lines.push(PORTS_ONLY.to_owned());
    }
    lines
}

/// How far a trap goes without a keeper that is asked.
pub(in super::super) const UNSEEN: &str =
    "this system does not show whether a program that the plugin starts reaches for another machine";

/// How far a list of hosts goes without a keeper that judges.
const PORTS_ONLY: &str =
    "the kernel holds it to the ports of its hosts, not to the hosts; UDP is open, for names";

/// Whether there is something for the keeper to judge.
fn names_hosts(permissions: &Permissions) -> bool {
    let Network::Hosts(hosts) = &permissions.network else { return false };
    hosts.iter().any(|host| matches!(host, Host::Tcp(..)))
}

/// What no system that we know can hold a plugin with these permissions to, a line each.
fn beyond_reach(permissions: &Permissions) -> Vec<String> {
    let Network::Hosts(hosts) = &permissions.network else { return Vec::new() };
    let mut lines = Vec::new();
    for host in hosts {
        if matches!(host, Host::Tcp(name, _) if name.contains('*')) {
            let line = "nobody can say which addresses it stands for, so every address of the internet has that port open";
            lines.push(format!("`{host}`: {line}"));
        }
    }
    if hosts.iter().any(|host| matches!(host, Host::Unix(_))) {
        lines.push("the kernel cannot tell one socket on this machine from another".to_owned());
    }
    lines
}

/// What this kernel cannot enforce of what it is asked to, a line each, for the doctor.
#[must_use]
pub fn kernel_lacks() -> Vec<String> {
    let mut lines = landlock_lacks();
    if !hosts::supported(true) {
        let what = if hosts::supported(false) { "of a plugin that starts programs " } else { "" };
        lines.push(format!(
            "this system cannot hand the connections {what}to its keeper: a list of hosts holds it to their ports only \
             (Linux 5.6 can, but a container may forbid it)"
        ));
    }
    lines
}

fn landlock_lacks() -> Vec<String> {
    // Rules are made and not applied; what the kernel does not know is an error, and not passed over.
    let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files = |abi| strict().handle_access(AccessFs::from_all(abi)).and_then(Ruleset::create).is_ok();
    let ports = || strict().handle_access(AccessNet::ConnectTcp).and_then(Ruleset::create).is_ok();
    let scopes = || strict().scope(Scope::Signal).and_then(Ruleset::create).is_ok();
    if !files(ABI::V1) {
        let line = "this kernel has no Landlock: a plugin's permissions for files are not enforced (Linux 5.13 has it)";
        return vec![line.to_owned()];
    }
    let lines = [
        (files(ABI::V3), "lets a plugin empty files that it may not write to (Linux 6.2 does not)"),
        (ports(), "knows no TCP ports (Linux 6.7 does)"),
        (scopes(), "lets a plugin that starts programs signal other processes (Linux 6.12 does not)"),
    ];
    let lacking = lines.into_iter().filter(|(has, _)| !has);
    lacking.map(|(_, line)| format!("this kernel's Landlock {line}")).collect()
}

fn files_and_ports(hello: &Hello) -> Result<Vec<String>, ConfineError> {
    let permissions = &hello.manifest.permissions;
    let mut rules = Ruleset::default();
    let files = !permissions.writes_everywhere();
    if files {
        rules = rules.handle_access(AccessFs::from_all(NEWEST))?;
    }
    let ports = matches!(permissions.network, Network::Hosts(_));
    if ports {
        // Nobody is to call it: no rule allows that.
        rules = rules.handle_access(AccessNet::ConnectTcp | AccessNet::BindTcp)?;
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
    Ok(if status.ruleset == RulesetStatus::FullyEnforced { Vec::new() } else { landlock_lacks() })
}

fn grant_files(mut rules: RulesetCreated, hello: &Hello) -> Result<RulesetCreated, ConfineError> {
    let permissions = &hello.manifest.permissions;
    let read = AccessFs::from_read(NEWEST);
    let read = if permissions.exec { read } else { read & !AccessFs::Execute };
    let all = AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let all = if permissions.exec { all } else { all & !AccessFs::Execute };
    let own: Vec<PathBuf> = hello.state_dirs.iter().chain([&hello.data_dir]).cloned().collect();
    let written: Vec<PathBuf> = permissions.write.iter().filter_map(|path| expand(path)).collect();
    let zones: Vec<PathBuf> =
        own.iter().chain(&written).filter_map(|path| path.canonicalize().ok()).collect();
    let readable =
        [hello.folder.clone(), PathBuf::from("/proc/self")].into_iter().chain(SYSTEM.map(PathBuf::from));
    let programs = PROGRAMS.map(PathBuf::from).into_iter().filter(|_| permissions.exec);
    for path in readable.chain(programs).chain(permissions.read.iter().filter_map(|path| expand(path))) {
        rules = grant(rules, &path, &zones, read)?;
    }
    for path in own.into_iter().chain([PathBuf::from("/dev/null")]).chain(written) {
        rules = grant(rules, &path, &zones, all)?;
    }
    Ok(rules)
}

/// Allows `access` at and below `path`; what is not there cannot be allowed.
fn grant(
    rules: RulesetCreated,
    path: &Path,
    zones: &[PathBuf],
    access: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, ConfineError> {
    // The kernel's own link, which is nobody else's.
    let zones = if path.starts_with("/proc") { &[] } else { zones };
    let Some(granted) = paths::open(path, zones) else { return Ok(rules) };
    // Rights of folders are no rights of a file.
    let access = if granted.is_folder { access } else { access & AccessFs::from_file(NEWEST) };
    Ok(rules.add_rule(PathBeneath::new(granted.fd, access))?)
}

/// Returns the path that a permission means.
fn expand(path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(dirs::home_dir()?.join(rest)),
        None => Some(PathBuf::from(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_program_reads_holds_no_keys() {
        let private = [
            "/etc/ssl/private",
            "/etc/ssl/key.pem",
            "/etc/pki/tls/private",
            "/etc/pki/nssdb",
            "/etc/pki/entitlement",
            "/etc/shadow",
            "/etc/passwd",
            "/etc/ssh",
            "/usr/local/etc",
            "/usr/share/secrets",
            "/proc/1/environ",
            "/root",
            "/var/lib",
        ];
        for path in private {
            let open = SYSTEM.iter().chain(&PROGRAMS).find(|granted| Path::new(path).starts_with(granted));
            assert_eq!(open, None, "{path}");
        }
    }
}
