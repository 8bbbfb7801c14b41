//! Which addresses a name has, and who is asked for that.
//!
//! The plugin looks names up itself, and what it was told may not be what the keeper is told a moment later: large services answer with
//! a few of many addresses. So an address counts for a while after it was seen, and an unknown one is looked up anew at once.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::super::serve::lock;
use super::address::canonical;

/// How long an address is a name's after it was last seen to be.
const KEPT: Duration = Duration::from_secs(10 * 60);

/// How long no name is looked up a second time.
const PAUSE: Duration = Duration::from_secs(1);

/// Asks for the addresses of a name.
type Resolve = fn(&str) -> Vec<IpAddr>;

/// What is known of names.
pub(super) struct Names {
    resolve: Resolve,
    known: Mutex<HashMap<String, Arc<Mutex<Known>>>>,
}

#[derive(Default)]
struct Known {
    asked: Option<Instant>,
    seen: HashMap<IpAddr, Instant>,
}

impl Names {
    pub(super) fn new(resolve: Resolve) -> Self {
        Self { resolve, known: Mutex::default() }
    }

    /// Whether this address is the name's. It may take as long as the name servers do.
    pub(super) fn has(&self, name: &str, ip: IpAddr) -> bool {
        let known = Arc::clone(lock(&self.known).entry(name.to_owned()).or_default());
        // Whoever asks for the same name meanwhile waits, and has the same answer.
        let mut known = lock(&known);
        known.seen.retain(|_, seen| seen.elapsed() < KEPT);
        if known.seen.contains_key(&ip) {
            return true;
        }
        if known.asked.is_some_and(|asked| asked.elapsed() < PAUSE) {
            return false;
        }
        let found = (self.resolve)(name);
        let now = Instant::now();
        known.asked = Some(now);
        known.seen.extend(found.into_iter().map(|ip| (canonical(ip), now)));
        known.seen.contains_key(&ip)
    }
}

/// Asks as every program does: `/etc/hosts`, name servers, and what else `/etc/nsswitch.conf` says.
pub(super) fn by_system(name: &str) -> Vec<IpAddr> {
    (name, 0).to_socket_addrs().map_or_else(|_| Vec::new(), |found| found.map(|at| at.ip()).collect())
}

/// Returns the name servers of this machine.
pub(super) fn servers() -> Vec<IpAddr> {
    parse(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
}

fn parse(text: &str) -> Vec<IpAddr> {
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let servers = words.filter_map(|words| match words[..] {
        // What follows `%` is the interface.
        ["nameserver", address, ..] => address.split('%').next()?.parse().ok().map(canonical),
        _ => None,
    });
    let servers: Vec<IpAddr> = servers.collect();
    // See `man 5 resolv.conf`: then it is on this machine.
    if servers.is_empty() { vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] } else { servers }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn an_address_stays_a_names_and_an_unknown_one_is_asked_for_once_in_a_while() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        fn turn(_: &str) -> Vec<IpAddr> {
            let turn = u8::try_from(ASKED.fetch_add(1, Ordering::Relaxed)).unwrap();
            vec![[192, 0, 2, turn].into()]
        }
        let names = Names::new(turn);
        let ip = |last: u8| IpAddr::from([192, 0, 2, last]);
        assert!(names.has("a", ip(0)));
        assert!(!names.has("a", ip(1)), "it was just asked for");
        lock(&names.known)["a"].lock().unwrap().asked = None;
        assert!(names.has("a", ip(1)));
        assert!(names.has("a", ip(0)), "it was seen");
        assert_eq!(ASKED.load(Ordering::Relaxed), 2);
        // A machine that has just started has no such past.
        if let Some(past) = Instant::now().checked_sub(KEPT) {
            lock(&names.known)["a"].lock().unwrap().seen.insert(ip(0), past);
            assert!(!names.has("a", ip(0)), "long ago");
        }
        assert!(names.has("b", ip(2)), "each name has its own");
    }

    #[test]
    fn name_servers_are_read_from_their_file() {
        let text = "# nameserver 9.9.9.9\nsearch x\nnameserver 10.0.0.2\nnameserver fe80::1%eth0 # x\nnameserver no\n";
        let wanted: Vec<IpAddr> = vec!["10.0.0.2".parse().unwrap(), "fe80::1".parse().unwrap()];
        assert_eq!(parse(text), wanted);
        assert!(parse("").iter().all(IpAddr::is_loopback) && !parse("").is_empty());
    }
}
