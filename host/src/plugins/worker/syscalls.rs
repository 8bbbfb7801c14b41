//! System calls that a confined worker may not make.
//!
//! A list of what is refused and not of what is allowed: a plugin brings any runtime it likes, and what that calls is not
//! known here. Refused are the calls that undo the rest, and those that the plugin's permissions leave out.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use super::super::permissions::{Host, Network, Permissions};

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    /// The rules cannot be put into a program.
    #[error("the filter of system calls cannot be made: {0}")]
    Make(#[from] seccompiler::BackendError),
    /// The kernel does not take it.
    #[error("the filter of system calls was refused: {0}")]
    Apply(#[from] seccompiler::Error),
}

/// Calls that reach into other processes, into the kernel's set-up, or around this filter, and that no provider needs.
const NEVER: [i64; 32] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    // Its operations pass by filters.
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_lookup_dcookie,
];

/// Calls that start programs or make processes.
const PROGRAMS: [i64; 2] = [libc::SYS_execve, libc::SYS_execveat];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refuses them from here on, in this thread and all that it starts.
pub(super) fn filter(permissions: &Permissions) -> Result<(), FilterError> {
    let mut refused: Rules = NEVER.into_iter().map(|call| (call, Vec::new())).collect();
    if !permissions.exec {
        refused.extend(PROGRAMS.into_iter().map(|call| (call, Vec::new())));
        // A thread is a clone as well, and is allowed.
        let thread = libc::CLONE_THREAD as u64;
        let no_thread = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(thread), 0)?;
        refused.insert(libc::SYS_clone, vec![SeccompRule::new(vec![no_thread])?]);
        #[cfg(target_arch = "x86_64")]
        refused.extend([libc::SYS_fork, libc::SYS_vfork].map(|call| (call, Vec::new())));
        // Its flags lie in memory, where a filter cannot look; told that there is no such call, everybody uses the older one.
        apply(Rules::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    }
    refused.extend(sockets(&permissions.network, permissions.exec)?);
    apply(refused, libc::EPERM)
}

/// The rules for the kinds of sockets that are left out.
fn sockets(network: &Network, programs: bool) -> Result<Rules, FilterError> {
    let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let allowed: Vec<i32> = match network {
        // Also the sockets of this machine: behind one of them may be an engine that starts containers.
        Network::None => return Ok(Rules::from([(libc::SYS_socket, Vec::new())])),
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
    let none_of_them = allowed.into_iter().map(|family| {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))
    });
    let rule = SeccompRule::new(none_of_them.collect::<Result<_, _>>()?)?;
    Ok(Rules::from([(libc::SYS_socket, vec![rule])]))
}

#[cfg(target_arch = "x86_64")]
const OWN: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const OWN: TargetArch = TargetArch::aarch64;

fn apply(refused: Rules, answer: i32) -> Result<(), FilterError> {
    install(refused, SeccompAction::Errno(answer.unsigned_abs()))
}

/// Ends the process when it makes a socket that leads out of this machine.
pub(super) fn trap_network() -> Result<(), FilterError> {
    let internet = [libc::AF_INET, libc::AF_INET6].map(|family| {
        let family = u64::from(family.unsigned_abs());
        SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, family)?])
    });
    let rules = internet.into_iter().collect::<Result<_, _>>()?;
    install(Rules::from([(libc::SYS_socket, rules)]), SeccompAction::KillProcess)
}

fn install(matched: Rules, action: SeccompAction) -> Result<(), FilterError> {
    let filter = SeccompFilter::new(matched, SeccompAction::Allow, action, OWN)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter(&program)?)
}
