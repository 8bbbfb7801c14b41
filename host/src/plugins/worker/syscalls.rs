//! System calls that a confined worker may not make.
//!
//! A list of what is refused and not of what is allowed: a plugin brings any runtime it likes, and what that calls is not
//! known here. Refused are the calls that undo the rest, those that Landlock does not look at (the mode and owner of a file by
//! its path, other processes' limits and priorities, sockets of this machine), and those that the plugin's permissions leave out.

use std::io;
use std::os::fd::OwnedFd;

use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule, TargetArch};

use super::super::permissions::{Host, Network, Permissions};
use super::bpf::{JUMP_IF_AT_LEAST, LOAD, RETURN, Rules, compile, instruction};
use super::hosts;
use super::refused::{METADATA, NEVER, NEVER_HERE, OF_OTHERS, OLD_METADATA, PRIORITIES, SIGNALS, WATCHING};

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    /// The rules cannot be put into a program.
    #[error("the filter of system calls cannot be made: {0}")]
    Make(#[from] seccompiler::BackendError),
    /// The kernel does not take it.
    #[error("the filter of system calls was refused: {0}")]
    Apply(#[from] seccompiler::Error),
    /// Nobody can be asked.
    #[error("the calls that lead to other hosts cannot be handed to the keeper: {0}")]
    Listen(#[from] io::Error),
}

/// Opens a connection with its first data, past the rules for ports. See `man 2 send`.
const MSG_FASTOPEN: u64 = 0x2000_0000;

/// Kinds of connections to which the rules for ports do not apply.
const OTHER_PROTOCOLS: [i32; 3] = [libc::IPPROTO_SCTP, libc::IPPROTO_DCCP, libc::IPPROTO_MPTCP];

/// Makes a socket for packets of one's own making, whatever its family. See `man 7 packet`.
const SOCK_PACKET: i32 = 10;

/// Options that send what is for one address by way of another: the level and the option.
const DETOURS: [(i32, i32); 3] = [
    (libc::IPPROTO_IP, libc::IP_OPTIONS),
    (libc::IPPROTO_IPV6, libc::IPV6_RTHDR),
    (libc::IPPROTO_IPV6, IPV6_2292PKTOPTIONS),
];

/// Older than most tables.
const IPV6_2292PKTOPTIONS: i32 = 6;

/// The families of sockets that lead out of this machine.
const INTERNET: [i32; 2] = [libc::AF_INET, libc::AF_INET6];

/// Refuses them from here on, in this thread and all that it starts. Where sockets are `trapped`, those for other machines are left to
/// whoever traps them.
pub(super) fn filter(permissions: &Permissions, trapped: bool) -> Result<(), FilterError> {
    let mut refused: Rules = NEVER.into_iter().chain(NEVER_HERE).map(always).collect();
    for (call, argument) in OF_OTHERS {
        refused.insert(call, vec![SeccompRule::new(vec![is_not(argument, 0)?])?]);
    }
    for (call, one) in PRIORITIES {
        let others = [is_not(0, one)?, is_not(1, 0)?].map(|condition| SeccompRule::new(vec![condition]));
        refused.insert(call, others.into_iter().collect::<Result<_, _>>()?);
    }
    // The worker is to end with its keeper.
    let outlive = vec![is(0, PR_SET_PDEATHSIG)?, is_not(1, SIGKILL)?];
    refused.insert(libc::SYS_prctl, vec![SeccompRule::new(outlive)?]);
    if !permissions.reads_everywhere() {
        refused.extend(WATCHING.map(always));
    }
    if !permissions.writes_everywhere() {
        refused.extend(METADATA.into_iter().chain(OLD_METADATA).map(always));
        // Without a path it is about a descriptor.
        let path = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        refused.insert(libc::SYS_utimensat, vec![SeccompRule::new(vec![path])?]);
    }
    if !permissions.exec {
        refused.extend(without_programs()?);
        // Its flags lie in memory, where a filter cannot look; told that there is no such call, everybody uses the older one.
        install(Rules::from([always(libc::SYS_clone3)]), &errno(libc::ENOSYS))?;
    }
    refused.extend(sockets(&permissions.network, permissions.exec, trapped)?);
    refuse_other_numbering()?;
    install(refused, &errno(libc::EPERM))
}

const PR_SET_PDEATHSIG: u64 = libc::PR_SET_PDEATHSIG.unsigned_abs() as u64;
const SIGKILL: u64 = libc::SIGKILL.unsigned_abs() as u64;

fn always(call: i64) -> (i64, Vec<SeccompRule>) {
    (call, Vec::new())
}

fn errno(number: i32) -> SeccompAction {
    SeccompAction::Errno(number.unsigned_abs())
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}

/// The rules for a plugin that starts no programs: no processes either, and signals to itself only.
fn without_programs() -> Result<Rules, FilterError> {
    let mut refused: Rules = [
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_tkill,
        libc::SYS_pidfd_send_signal,
        libc::SYS_unshare,
    ]
    .into_iter()
    .map(always)
    .collect();
    // A thread is a clone as well, and is allowed.
    refused.insert(libc::SYS_clone, vec![SeccompRule::new(vec![has(0, libc::CLONE_THREAD as u64, 0)?])?]);
    #[cfg(target_arch = "x86_64")]
    refused.extend([libc::SYS_fork, libc::SYS_vfork].map(always));
    let own = u64::from(std::process::id());
    for (call, argument) in SIGNALS {
        refused.insert(call, vec![SeccompRule::new(vec![is_not(argument, own)?])?]);
    }
    Ok(refused)
}

/// The rules for the kinds of sockets that are left out.
fn sockets(network: &Network, programs: bool, trapped: bool) -> Result<Rules, FilterError> {
    // Pairs of other families are of no use to anybody, and lead to other machines.
    let mut pairs = vec![SeccompRule::new(vec![is_not(0, u64::from(libc::AF_UNIX.unsigned_abs()))?])?];
    if !programs || !spoken_to_here(network) {
        // One of a pair of datagram sockets can send to any socket of this machine that takes datagrams: the log, the service manager.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            pairs.push(SeccompRule::new(vec![has(1, 0xf, u64::from(kind.unsigned_abs()))?])?);
        }
    }
    let mut refused = Rules::from([(libc::SYS_socketpair, pairs)]);
    let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let mut allowed: Vec<i32> = match network {
        Network::None if trapped => Vec::new(),
        // Also the sockets of this machine: behind one of them may be an engine that starts containers.
        Network::None => {
            refused.extend([always(libc::SYS_socket)]);
            return Ok(refused);
        }
        // Programs speak to each other over sockets of this machine.
        Network::Any if programs => internet.into_iter().chain([libc::AF_UNIX]).collect(),
        Network::Any => internet.to_vec(),
        Network::Hosts(hosts) => {
            let unix = hosts.iter().any(|host| matches!(host, Host::Unix(_)));
            let tcp = hosts.iter().any(|host| matches!(host, Host::Tcp(..)));
            let unix = unix.then_some(libc::AF_UNIX);
            unix.into_iter().chain(internet.into_iter().filter(|_| tcp)).collect()
        }
    };
    if trapped {
        allowed.extend(INTERNET);
    }
    let none_of_them = allowed.into_iter().map(|family| is_not(0, u64::from(family.unsigned_abs())));
    let mut rules = vec![SeccompRule::new(none_of_them.collect::<Result<_, _>>()?)?];
    if trapped {
        refused.insert(libc::SYS_socket, rules);
        return Ok(refused);
    }
    // Packets of one's own making pass by all rules for connections.
    for family in INTERNET {
        for kind in [libc::SOCK_RAW, SOCK_PACKET] {
            let raw =
                [is(0, u64::from(family.unsigned_abs()))?, has(1, 0xf, u64::from(kind.unsigned_abs()))?];
            rules.push(SeccompRule::new(raw.into())?);
        }
    }
    if matches!(network, Network::Hosts(_)) {
        for protocol in OTHER_PROTOCOLS {
            rules.push(SeccompRule::new(vec![is(2, u64::from(protocol.unsigned_abs()))?])?);
        }
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            refused.insert(call, vec![SeccompRule::new(vec![has(flags, MSG_FASTOPEN, MSG_FASTOPEN)?])?]);
        }
        let early = [(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT)];
        let options = early.into_iter().chain(DETOURS).map(|(level, option)| {
            let these = [is(1, u64::from(level.unsigned_abs()))?, is(2, u64::from(option.unsigned_abs()))?];
            SeccompRule::new(these.into())
        });
        refused.insert(libc::SYS_setsockopt, options.collect::<Result<_, _>>()?);
        if !spoken_to_here(network) {
            // Without an address of its own a socket is given one, which no rule for ports sees.
            refused.insert(libc::SYS_listen, Vec::new());
        }
    }
    refused.insert(libc::SYS_socket, rules);
    Ok(refused)
}

/// Whether a plugin that starts programs may speak to sockets of this machine.
fn spoken_to_here(network: &Network) -> bool {
    match network {
        Network::None => false,
        Network::Any => true,
        Network::Hosts(hosts) => hosts.iter().any(|host| matches!(host, Host::Unix(_))),
    }
}

/// Has every call that can reach an address handed to whoever holds the listener, from here on, in this thread and all that it
/// starts: see `hosts`. What is refused by another filter is refused still.
pub(super) fn listener() -> Result<OwnedFd, FilterError> {
    let named = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let handed = Rules::from([
        always(libc::SYS_connect),
        // Without an address it goes to whom the socket is connected to, as `write` does.
        (libc::SYS_sendto, vec![SeccompRule::new(vec![named])?]),
        // Whether there is one stands in memory, where a filter cannot look.
        always(libc::SYS_sendmsg),
        always(libc::SYS_sendmmsg),
        // Of which kind the socket is, a filter cannot see.
        always(libc::SYS_listen),
    ]);
    handing_over(handed)
}

/// Has every socket that leads out of this machine handed to whoever holds the listener, as [`listener`] does with calls: to see
/// whether one is made.
pub(super) fn trap() -> Result<OwnedFd, FilterError> {
    handing_over(to_the_internet()?)
}

/// Ends the process that makes such a socket, where nobody can be asked.
pub(super) fn trap_alone() -> Result<(), FilterError> {
    install(to_the_internet()?, &SeccompAction::KillProcess)
}

fn to_the_internet() -> Result<Rules, FilterError> {
    let rules = INTERNET.map(|family| SeccompRule::new(vec![is(0, u64::from(family.unsigned_abs()))?]));
    Ok(Rules::from([(libc::SYS_socket, rules.into_iter().collect::<Result<_, _>>()?)]))
}

fn handing_over(handed: Rules) -> Result<OwnedFd, FilterError> {
    // The compiler does not know this action, so it is put in the place of one that is not used.
    let mut program = compile(handed, &SeccompAction::Trap, OWN)?;
    for step in program.iter_mut().filter(|step| step.code == RETURN && step.k == libc::SECCOMP_RET_TRAP) {
        step.k = libc::SECCOMP_RET_USER_NOTIF;
    }
    Ok(hosts::install(&program)?)
}

/// The same calls under a second set of numbers (x32), which some kernels have and the rules above do not know.
#[cfg(target_arch = "x86_64")]
fn refuse_other_numbering() -> Result<(), FilterError> {
    const SECOND_SET: u32 = 0x4000_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let program = [
        // The number of the call is what comes first.
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_IF_AT_LEAST, 0, 1, SECOND_SET),
        instruction(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
        instruction(RETURN, 0, 0, ALLOW),
    ];
    Ok(seccompiler::apply_filter(&program)?)
}

#[cfg(not(target_arch = "x86_64"))]
fn refuse_other_numbering() -> Result<(), FilterError> {
    Ok(())
}

#[cfg(target_arch = "x86_64")]
const OWN: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const OWN: TargetArch = TargetArch::aarch64;

fn install(matched: Rules, action: &SeccompAction) -> Result<(), FilterError> {
    Ok(seccompiler::apply_filter(&compile(matched, action, OWN)?)?)
}
