//! Says who may be reached, by `permissions.network`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::super::super::permissions::{Host, Network};
use super::address::{canonical, is_private};
use super::names::{self, Names};

/// The port of name servers.
const DOMAIN: u16 = 53;

/// How a machine is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// A connection.
    Stream,
    /// Packets.
    Datagram,
}

/// Decides for one plugin.
pub(super) struct Judge {
    hosts: Vec<Host>,
    names: Names,
    servers: fn() -> Vec<IpAddr>,
}

impl Judge {
    /// One that asks this machine's name servers.
    pub(super) fn new(network: Network) -> Self {
        let hosts = if let Network::Hosts(hosts) = network { hosts } else { Vec::new() };
        Self { hosts, names: Names::new(names::by_system), servers: names::servers }
    }

    /// Whether sockets of this machine may be spoken to. The kernel lets nobody make one otherwise.
    pub(super) fn allows_unix(&self) -> bool {
        self.hosts.iter().any(|host| matches!(host, Host::Unix(_)))
    }

    /// Decides whether somebody may be reached.
    ///
    /// # Errors
    ///
    /// Fails with the reason why not, if there is more to say than that nobody asked for it.
    pub(super) fn allows(&self, to: SocketAddr, by: By) -> Result<(), &'static str> {
        let (ip, port) = (canonical(to.ip()), to.port());
        if port == DOMAIN && (self.servers)().contains(&ip) {
            return Ok(());
        }
        // Nothing is sent to port 0: a packet socket is so asked which way it would take.
        let fits = |wanted: u16| wanted == port || (by == By::Datagram && port == 0);
        let named = self.hosts.iter().filter_map(|host| match host {
            Host::Tcp(name, wanted) if fits(*wanted) => Some(name.as_str()),
            _ => None,
        });
        let named: Vec<&str> = named.collect();
        if named.iter().any(|name| literal(name).contains(&ip)) {
            return Ok(());
        }
        if is_private(ip) {
            // Whoever owns a name can let it point here, to reach what only this machine can.
            return Err(
                "an address that is not of the internet must be in the list itself, and not by a name",
            );
        }
        // What begins with an asterisk cannot be asked for.
        let known = named.iter().any(|name| name.contains('*'))
            || named.iter().any(|name| literal(name).is_empty() && self.names.has(name, ip));
        if known { Ok(()) } else { Err("no host in the list has this address and port") }
    }
}

/// Returns the addresses that a host stands for without being looked up.
fn literal(name: &str) -> Vec<IpAddr> {
    if name.eq_ignore_ascii_case("localhost") {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse().ok().map(canonical).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(hosts: &[&str]) -> Judge {
        fn resolve(name: &str) -> Vec<IpAddr> {
            let found = match name {
                "api.example.com" => ["198.51.100.7", "2001:db8::7"],
                "bound.example.com" => ["127.0.0.1", "169.254.169.254"],
                _ => return Vec::new(),
            };
            found.iter().map(|ip| ip.parse().unwrap()).collect()
        }
        let Network::Hosts(hosts) = Network::try_from(json!(hosts)).unwrap() else { panic!("no list") };
        Judge { hosts, names: Names::new(resolve), servers: || vec!["10.0.0.2".parse().unwrap()] }
    }

    #[test]
    fn only_the_hosts_of_the_list_are_reached() {
        let judge = judge(&[
            "api.example.com",
            "bound.example.com:80",
            "localhost:8080",
            "10.1.1.1:5432",
            "169.254.169.254:81",
            "[::1]:9090",
            "*.example.org:444",
            "unix:/run/x.sock",
        ]);
        let allows = |to: &str, by| judge.allows(to.parse().unwrap(), by);
        for to in [
            "198.51.100.7:443",
            "[2001:db8::7]:443",
            "[::ffff:198.51.100.7]:443",
            "127.0.0.1:8080",
            "0.0.0.0:8080",
            "[::1]:8080",
            "[::]:8080",
            "[::ffff:127.0.0.1]:8080",
            "10.1.1.1:5432",
            "169.254.169.254:81",
            "[::1]:9090",
            "10.0.0.2:53",
            "192.0.2.1:444",
        ] {
            assert_eq!(allows(to, By::Stream), Ok(()), "{to}");
            assert_eq!(allows(to, By::Datagram), Ok(()), "{to}");
        }
        for to in [
            "198.51.100.7:80",
            "198.51.100.8:443",
            "127.0.0.2:8080",
            "127.0.0.1:9090",
            "127.0.0.1:80",
            "169.254.169.254:80",
            "10.1.1.1:443",
            "10.0.0.3:53",
            "10.0.0.2:443",
            "8.8.8.8:53",
            "127.0.0.1:444",
            "[fd00::1]:444",
            "[::ffff:127.0.0.2]:8080",
            "[2001:db8::8]:443",
        ] {
            assert!(allows(to, By::Stream).is_err(), "{to}");
            assert!(allows(to, By::Datagram).is_err(), "{to}");
        }
        // Which way it would go may be asked of whom it may speak to.
        assert!(allows("198.51.100.7:0", By::Datagram).is_ok());
        assert!(allows("198.51.100.7:0", By::Stream).is_err());
        assert!(allows("127.0.0.2:0", By::Datagram).is_err());
        assert!(judge.allows_unix());
        assert!(allows("169.254.169.254:80", By::Stream).unwrap_err().contains("and not by a name"));
    }
}
