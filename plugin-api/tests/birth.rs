//! A process that is born in a cgroup differs from others in nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use hostel_plugin_api::shell::{Spawn, spawn};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

#[macro_use]
#[path = "parts/cgroup.rs"]
mod cgroup;

/// Starts a shell by the spawn function, and returns its cgroup and what else it says of itself, or why it could not be started.
fn started(
    cgroup: Option<BorrowedFd<'_>>,
    program: &str,
    cwd: &str,
) -> Result<(String, String), Option<i32>> {
    let (mut output, end) = std::io::pipe().unwrap();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let path = ptsname(&terminal, Vec::new()).unwrap();
    let other: OwnedFd = {
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap()
    };
    let _open = File::open("/dev/null").unwrap();
    let script = "grep ^0:: /proc/self/cgroup
        grep -E '^Sig(Pnd|Blk|Ign|Cgt)' /proc/self/status; ls /proc/$$/fd; tty <&0 | grep -c pts; pwd; env | grep -v ^_=; ulimit -n
        test \"$(ps -o sid= -p $$)\" -eq $$ && test \"$(ps -o tty= -p $$ | cut -d/ -f1)\" = pts && echo leader";
    let process = spawn(&Spawn {
        program: Path::new(program),
        argv: &["sh".into(), "-c".into(), script.into()],
        env: &[("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "b\nc".into())],
        cwd: Path::new(cwd),
        descriptors: vec![other.as_fd(), end.as_fd(), end.as_fd()],
        terminal: true,
        cgroup,
    })
    .map_err(|failed| failed.error.raw_os_error())?;
    drop(end);
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    let ended = waitid(WaitId::PidFd(process.pidfd.as_fd()), WaitIdOptions::EXITED).unwrap().unwrap();
    assert_eq!(ended.exit_status(), Some(0), "{said}");
    let (cgroup, rest) = said.split_once('\n').unwrap();
    Ok((cgroup.into(), rest.into()))
}

#[test]
fn a_process_that_is_born_in_a_cgroup_is_like_any_other() {
    let parent = cgroup_or_skip!();
    let folder = parent.join(format!("hostel-test-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let opened = File::open(&folder).unwrap();
    let (ours, plain) = started(None, "/bin/sh", "/usr").unwrap();
    assert!(plain.contains("leader") && plain.contains("SigBlk:\t0000000000000000"), "{plain}");
    let (born_in, said) = started(Some(opened.as_fd()), "/bin/sh", "/usr").unwrap();
    assert_eq!((Path::new(&born_in).file_name(), said), (folder.file_name(), plain.clone()));
    for (program, cwd) in [("/no/such", "/usr"), ("/etc/passwd", "/usr"), ("/bin/sh", "/no/such")] {
        let wrong = started(None, program, cwd).unwrap_err();
        assert!(wrong.is_some(), "{program} {cwd}");
        assert_eq!(started(Some(opened.as_fd()), program, cwd).unwrap_err(), wrong, "{program} {cwd}");
    }
    fs::remove_dir(&folder).unwrap();
    // One that is gone, and a folder that is none.
    for other in [opened, File::open("/var/tmp").unwrap()] {
        let found = started(Some(other.as_fd()), "/bin/sh", "/usr").unwrap();
        assert_eq!(found, (ours.clone(), plain.clone()));
    }
}
