//! A plugin reaches the hosts of its list, and nobody else, whichever way it tries.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use hostel_tests::{Home, Ran};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

use super::{allowed, denied, enforced, install, spy};

/// A stranger's address that leads to this machine as well.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The same port of this machine under two addresses.
struct Doors {
    port: u16,
    good: TcpListener,
    bad: TcpListener,
    packets: UdpSocket,
    bad_packets: UdpSocket,
}

impl Doors {
    fn open() -> Self {
        // The second may be taken; then there is another first.
        let open = || {
            let good = TcpListener::bind("127.0.0.1:0").ok()?;
            let port = good.local_addr().ok()?.port();
            Some(Self {
                port,
                good,
                bad: TcpListener::bind((STRANGER, port)).ok()?,
                packets: UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?,
                bad_packets: UdpSocket::bind((STRANGER, port)).ok()?,
            })
        };
        let doors = (0..50).find_map(|_| open()).expect("a port that is free under both addresses");
        doors.bad.set_nonblocking(true).unwrap();
        doors.bad_packets.set_nonblocking(true).unwrap();
        doors
    }

    fn good(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    fn bad(&self) -> SocketAddr {
        (STRANGER, self.port).into()
    }

    /// Requires that nobody has been where nobody may go.
    #[track_caller]
    fn untouched(&self) {
        assert!(self.bad.accept().is_err(), "somebody has connected to the stranger");
        assert!(self.bad_packets.recv(&mut [0]).is_err(), "somebody has sent to the stranger");
    }
}

/// A home whose plugin may speak to these. None if this system cannot hold it to them.
fn speaking_to(hosts: &[String], more: &str) -> Option<Home> {
    let home = spy(&format!("permissions: {{network: [{}]{more}}}\n", hosts.join(", ")));
    enforced(&home).then_some(home)
}

fn quoted(host: impl std::fmt::Display) -> String {
    format!("\"{host}\"")
}

/// Sees to the listener of the slow one: it has room for nobody.
fn full() -> (std::os::fd::OwnedFd, Vec<std::net::TcpStream>, SocketAddr) {
    let slow = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&slow, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    listen(&slow, 0).unwrap();
    let at: SocketAddr = getsockname(&slow).unwrap().try_into().unwrap();
    let wait = std::time::Duration::from_millis(200);
    let waiting = (0..8).map_while(|_| std::net::TcpStream::connect_timeout(&at, wait).ok()).collect();
    (slow, waiting, at)
}

#[test]
fn only_its_hosts_are_reached_by_whatever_call() {
    let doors = Doors::open();
    let Some(home) = speaking_to(&[quoted(doors.good())], "") else { return };
    let (good, bad, port) = (doors.good(), doors.bad(), doors.port);
    allowed(&home, &format!("try-tcp {good}"));
    allowed(&home, &format!("try-tcp localhost:{port}"));
    allowed(&home, &format!("try-late {good}"));
    for call in ["try-udp-to", "try-udp-via", "try-message", "try-messages"] {
        allowed(&home, &format!("{call} {good}"));
        doors.packets.recv(&mut [0; 8]).unwrap();
    }
    // How much was sent stands where the kernel would have written it.
    let ran = home.exec(&format!("try-messages {good}")).expect(0);
    assert!(ran.text().contains("2 of [3, 3]"), "{ran:?}");
    for call in ["try-tcp", "try-late", "try-udp-to", "try-udp-via", "try-message", "try-messages"] {
        denied(&home, &format!("{call} {bad}"));
        denied(&home, &format!("{call} 192.0.2.1:{port}"));
    }
    denied(&home, &format!("try-tcp 127.0.0.1:{}", port.wrapping_add(1).max(1)));
    // Nobody listens to names there.
    denied(&home, "try-udp-to 192.0.2.1:53");
    denied(&home, "try-udp-via 192.0.2.1:53");
    denied(&home, "try-tcp 192.0.2.1:53");
    denied(&home, "try-detour");
    denied(&home, "try-frames");
    // Nor does anybody come in.
    denied(&home, "try-listen");
    for harmless in ["try-interfaces", "try-thread"] {
        allowed(&home, harmless);
    }
    doors.untouched();
    drop(doors.good);
    // What the kernel says comes back as it is.
    let ran = home.exec(&format!("try-tcp {good}")).expect(1);
    assert!(ran.text().contains("refused"), "{ran:?}");
    let ran = home.exec(&format!("try-late {good}")).expect(1);
    assert!(ran.text().contains("refused"), "{ran:?}");
}

#[test]
fn nobody_is_let_in_from_another_machine_by_one_that_speaks_to_this_one() {
    let door = tempfile::tempdir().unwrap();
    let list = ["127.0.0.1:9".to_owned(), quoted(format!("unix:{}/x", door.path().display()))];
    let Some(home) = speaking_to(&list, &format!(", write: [{}]", door.path().display())) else { return };
    denied(&home, "try-listen");
    allowed(&home, &format!("try-listen-here {}/own", door.path().display()));
}

#[test]
fn name_servers_are_asked() {
    let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let server =
        text.lines().find_map(|line| line.strip_prefix("nameserver ")?.trim().parse::<IpAddr>().ok());
    let Some(server) = server else { return };
    let Some(home) = speaking_to(&["api.example.com".into()], "") else { return };
    let at = SocketAddr::from((server, 53));
    for call in ["try-udp-to", "try-udp-via", "try-message", "try-messages"] {
        let ran = home.exec(&format!("{call} {at}"));
        // Whether there is a way to it is another question.
        assert!(!ran.text().contains("denied") && !ran.text().contains("not permitted"), "{ran:?}");
    }
    denied(&home, &format!("try-udp-to {}", SocketAddr::from((server, 54))));
}

#[test]
fn an_address_that_changes_while_it_is_judged_gets_nobody_through() {
    let doors = Doors::open();
    let Some(home) = speaking_to(&[quoted(doors.good())], "") else { return };
    let (good, bad) = (doors.good(), doors.bad());
    let accepting = doors.good.try_clone().unwrap();
    std::thread::spawn(move || while accepting.accept().is_ok() {});
    let ran = home.exec(&format!("try-race {good} {bad}")).expect(0);
    let count = |text: &str, name: &str| -> u32 {
        let rest = text.split_once(name).map_or("", |(_, rest)| rest);
        rest.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let text = ran.text();
    assert!(count(&text, "wrong=") == 0, "{text}");
    // Both were tried.
    assert!(count(&text, "reached=") > 0 && count(&text, "denied=") > 0, "{text}");
    let text = home.exec(&format!("try-swap {good} {bad}")).expect(0).text();
    assert!(count(&text, "sent=") > 0, "{text}");
    doors.untouched();
}

#[test]
fn programs_that_it_starts_are_held_to_them_as_well() {
    let doors = Doors::open();
    let Some(home) = speaking_to(&[quoted(doors.good())], ", exec: true, read: [/proc]") else { return };
    let (good, port) = (doors.good(), doors.port);
    let dial = |by: &str, to: IpAddr| home.exec(&format!("echo x > /dev/{by}/{to}/{port} && echo ok: sent"));
    let sent = |ran: Ran| assert!(ran.code == 0 && ran.text() == "ok: sent\n", "{ran:?}");
    let refused = |ran: Ran| assert!(ran.code == 1 && ran.text().contains("denied"), "{ran:?}");
    sent(dial("tcp", good.ip()));
    sent(dial("udp", good.ip()));
    doors.packets.recv(&mut [0; 8]).unwrap();
    for by in ["tcp", "udp"] {
        refused(dial(by, STRANGER.into()));
    }
    // And those that these start.
    let nested = format!("bash -c 'bash -c \"echo x > /dev/tcp/{STRANGER}/{port}\"; true'");
    assert!(home.exec(&nested).text().contains("denied"));
    doors.untouched();
    // Nor can root lead an allowed address elsewhere: neither right is there, of 12 and 13.
    let rights = home.exec(
        "while read a b; do [ $a = CapEff: ] && echo $((0x$b & 0x3000)); done < /proc/self/status; true",
    );
    assert_eq!(rights.expect(0).text(), "0\n");
    // What the worker and its programs send each other arrives, descriptors as well.
    let ran = home.exec("try-rights").expect(0);
    assert!(ran.text().contains("through"), "{ran:?}");
    let many = "for i in 1 2 3 4 5; do echo $i; done | sort -r | head -n 1";
    for _ in 0..4 {
        assert_eq!(home.exec(many).expect(0).text(), "5\n");
    }
}

#[test]
fn a_peer_that_does_not_answer_holds_up_nobody_else() {
    let doors = Doors::open();
    let (_slow, _waiting, at) = full();
    let Some(home) = speaking_to(&[quoted(doors.good()), quoted(at)], "") else { return };
    let ran = home.exec(&format!("try-beside {at} {}", doors.good())).expect(0);
    assert!(ran.took < std::time::Duration::from_secs(20), "{ran:?}");
}

#[test]
fn the_newer_internet_is_judged_in_all_its_forms() {
    let Ok(six) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
        assert!(!hostel_tests::strict(), "this machine has no IPv6");
        return;
    };
    let port = six.local_addr().unwrap().port();
    let (Ok(_four), Ok(stranger)) =
        (TcpListener::bind((Ipv4Addr::LOCALHOST, port)), TcpListener::bind((STRANGER, port)))
    else {
        // Somebody has the port under the other address.
        return;
    };
    stranger.set_nonblocking(true).unwrap();
    let Some(home) = speaking_to(&[quoted(format!("localhost:{port}"))], "") else { return };
    for good in ["[::1]", "127.0.0.1", "[::ffff:127.0.0.1]", "[::]", "0.0.0.0"] {
        allowed(&home, &format!("try-tcp {good}:{port}"));
    }
    for bad in ["[::ffff:127.0.0.2]", "[2001:db8::1]", "[fe80::1]", "[::ffff:169.254.169.254]", "127.0.0.2"] {
        denied(&home, &format!("try-tcp {bad}:{port}"));
        denied(&home, &format!("try-udp-to {bad}:{port}"));
    }
    let Some(home) = speaking_to(&[quoted(format!("[::1]:{port}"))], "") else { return };
    allowed(&home, &format!("try-tcp [::1]:{port}"));
    allowed(&home, &format!("try-udp-to [::1]:{port}"));
    denied(&home, &format!("try-tcp 127.0.0.1:{port}"));
    assert!(stranger.accept().is_err());
}

#[test]
fn sockets_of_this_machine_stay_open_beside_hosts() {
    let doors = Doors::open();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("engine.sock");
    let _engine = UnixListener::bind(&path).unwrap();
    let hosts = [quoted(doors.good()), quoted(format!("unix:{}", path.display()))];
    let Some(home) = speaking_to(&hosts, "") else { return };
    allowed(&home, &format!("try-unix {}", path.display()));
    allowed(&home, &format!("try-tcp {}", doors.good()));
    denied(&home, &format!("try-tcp {}", doors.bad()));
    let Some(home) = speaking_to(&hosts[..1], "") else { return };
    denied(&home, &format!("try-unix {}", path.display()));
}

#[test]
fn an_ordinary_users_plugin_is_judged_without_being_open_to_others() {
    if !hostel_tests::is_root() {
        // Then all other tests have shown it.
        return;
    }
    let doors = Doors::open();
    let Some(home) = speaking_to(&[quoted(doors.good())], ", exec: true") else { return };
    let program = tempfile::tempdir().unwrap();
    fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(hostel_tests::built().join("hostel"), program.path().join("hostel")).unwrap();
    let chown = std::process::Command::new("chown").args(["-R", "65534:65534"]).arg(home.path()).status();
    assert!(chown.unwrap().success());
    let run = |command: &str| {
        let mut own = std::process::Command::new("setpriv");
        let template = home.command("setpriv", &[]);
        own.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        own.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program.path().join("hostel"));
        own.args(["exec", "--", command]).env("HOSTEL_HOME", home.path()).current_dir("/");
        hostel_tests::finish(own, b"")
    };
    let (good, bad, port) = (doors.good(), doors.bad(), doors.port);
    for call in ["try-tcp", "try-late", "try-udp-to", "try-message", "try-messages"] {
        let _ = run(&format!("{call} {good}")).expect(0);
        let ran = run(&format!("{call} {bad}")).expect(1);
        assert!(ran.text().contains("denied"), "{call}: {ran:?}");
    }
    let ran = run(&format!("echo x > /dev/tcp/{}/{port} && echo ok", good.ip()));
    assert!(ran.code == 0, "{ran:?}");
    let ran = run(&format!("echo x > /dev/tcp/{STRANGER}/{port}")).expect(1);
    assert!(ran.text().contains("denied"), "{ran:?}");
    doors.untouched();
}

#[test]
fn whoever_was_refused_stands_in_the_log() {
    let doors = Doors::open();
    let Some(home) = speaking_to(&[quoted(doors.good())], "") else { return };
    let bad = doors.bad();
    let ran = home.hostel(&["-v", "exec", "--", &format!("try-tcp {bad}")]).expect(1);
    assert!(ran.stderr.contains(&format!("refused to reach `{bad}`")), "{ran:?}");
}

#[test]
fn what_a_list_cannot_say_is_said() {
    let home = Home::new();
    let ran = install(&home, "permissions: {network: [api.example.com]}\n").expect(0);
    if enforced(&home) {
        assert!(!ran.stderr.contains("not to the hosts"), "{ran:?}");
    }
    let ran = install(&home, "permissions: {network: [\"*.example.com\", \"unix:/run/x.sock\"]}\n").expect(0);
    assert!(ran.stderr.contains("`*.example.com:443`: nobody can say which addresses"), "{ran:?}");
    assert!(ran.stderr.contains("cannot tell one socket on this machine from another"), "{ran:?}");
}
