//! What a plugin's code may do, by its manifest: `permissions`.
//!
//! A plugin that says nothing may read its own folder and write to its data folder, and that is all: no network, no programs.
//! The worker is held to it by the kernel; see `worker/confine.rs`.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The permissions of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Permissions {
    /// Whom it may speak to.
    pub network: Network,
    /// Paths below which it may read, besides its own folder.
    pub read: Vec<String>,
    /// Paths below which it may read and write, besides its data folder.
    pub write: Vec<String>,
    /// Whether it may start programs.
    pub exec: bool,
    /// Variables of the host's environment that it gets, besides those that it requires.
    pub env: Vec<String>,
}

/// Whom a plugin may speak to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Network {
    /// Nobody.
    #[default]
    None,
    /// Anybody.
    Any,
    /// These.
    Hosts(Vec<Host>),
}

/// One of the hosts that a plugin may speak to: `name`, `name:port`, `[address]:port` or `unix:path`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A machine by its name or address (of IPv6 in brackets), and a port of it.
    Tcp(String, u16),
    /// A socket on this machine.
    Unix(String),
}

/// The port of a host that names none.
const HTTPS: u16 = 443;

impl Host {
    fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return is_plain(path).then(|| Self::Unix(path.to_owned()));
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => {
                (name, port.parse().ok().filter(|port| *port != 0)?)
            }
            _ => (text, HTTPS),
        };
        if let Some(address) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            return address.parse::<Ipv6Addr>().is_ok().then(|| Self::Tcp(name.to_owned(), port));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'*');
        (!name.is_empty() && name.bytes().all(plain)).then(|| Self::Tcp(name.to_owned(), port))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(name, port) => write!(f, "{name}:{port}"),
            Self::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

impl From<Network> for Value {
    fn from(network: Network) -> Self {
        match network {
            Network::None => "none".into(),
            Network::Any => "any".into(),
            Network::Hosts(hosts) => hosts.iter().map(Host::to_string).collect(),
        }
    }
}

impl TryFrom<Value> for Network {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let wrong = "`none`, `any`, or a list of hosts such as `[api.example.com, db.example.com:5432, unix:/run/x.sock]`";
        match value {
            Value::Null => Ok(Self::None),
            Value::String(word) if word == "none" => Ok(Self::None),
            Value::String(word) if word == "any" => Ok(Self::Any),
            Value::Array(hosts) if hosts.is_empty() => Ok(Self::None),
            Value::Array(hosts) => {
                let hosts = hosts.iter().map(|host| Host::parse(host.as_str()?)).collect::<Option<_>>();
                hosts.map(Self::Hosts).ok_or(wrong)
            }
            _ => Err(wrong),
        }
    }
}

/// Returns whether a path can be granted: absolute (or below the user's home, `~/`), in the one form that says what it means. There is
/// no way back up, nothing that stands for nothing, and no way through a process, which ends who knows where.
pub(super) fn is_plain(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("~/").or_else(|| path.strip_prefix('/')) else { return false };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    let through = |prefix: &str| Path::new(path).starts_with(prefix);
    let of_process = rest.strip_prefix("proc/").and_then(|rest| rest.split('/').next()).is_some_and(|name| {
        name == "self" || name == "thread-self" || name.bytes().all(|byte| byte.is_ascii_digit())
    });
    (path == "/" || path == "~/" || rest.split('/').all(plain))
        && !(path.starts_with('/') && of_process)
        && !["/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"].into_iter().any(through)
}

impl Permissions {
    /// All there is, which confines nothing.
    #[must_use]
    pub fn all() -> Self {
        let everywhere = vec!["/".to_owned()];
        Self {
            network: Network::Any,
            read: everywhere.clone(),
            write: everywhere,
            exec: true,
            env: Vec::new(),
        }
    }

    /// Whether the file system is open as a whole.
    #[must_use]
    pub fn writes_everywhere(&self) -> bool {
        self.write.iter().any(|path| path == "/")
    }

    /// Whether every file can be read.
    #[must_use]
    pub fn reads_everywhere(&self) -> bool {
        self.writes_everywhere() || self.read.iter().any(|path| path == "/")
    }

    /// Whether nothing is withheld, so that the kernel need not be asked to withhold it.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.writes_everywhere() && self.exec && self.network == Network::Any
    }

    /// Says in plain words what the plugin may do, a line each.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.push(match &self.network {
            Network::None => "may not use the network".to_owned(),
            Network::Any if self.exec => {
                "may use the network, and every socket of this machine, freely".to_owned()
            }
            Network::Any => "may use the network freely".to_owned(),
            Network::Hosts(hosts) => {
                let hosts: Vec<String> = hosts.iter().map(Host::to_string).collect();
                format!("may speak to {}", hosts.join(", "))
            }
        });
        if self.writes_everywhere() {
            lines.push("may read and change every file that you may".to_owned());
        } else {
            lines.push(if self.reads_everywhere() {
                "may read every file that you may".to_owned()
            } else if self.read.is_empty() {
                "may read its own folder and no file of yours".to_owned()
            } else {
                format!("may read its own folder and {}", self.read.join(", "))
            });
            lines.push(if self.write.is_empty() {
                "may change nothing but its data and its tasks' folders".to_owned()
            } else {
                format!("may change its data and its tasks' folders and {}", self.write.join(", "))
            });
        }
        lines.push(if self.exec {
            "may start programs".to_owned()
        } else {
            "may not start programs".to_owned()
        });
        if !self.env.is_empty() {
            lines.push(format!("gets the variables {}", self.env.join(", ")));
        }
        lines
    }

    /// Says in plain words what is asked for here and was not granted in `before`, a line each.
    #[must_use]
    pub fn beyond(&self, before: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        match (&self.network, &before.network) {
            (Network::None, _) | (_, Network::Any) => {}
            (Network::Any, _) => lines.push("use the network freely".to_owned()),
            (Network::Hosts(hosts), before) => {
                let known: &[Host] = if let Network::Hosts(known) = before { known } else { &[] };
                let new = hosts.iter().filter(|host| !known.contains(host));
                lines.extend(new.map(|host| format!("speak to {host}")));
            }
        }
        let covered =
            |path: &str, by: &[String]| by.iter().any(|granted| Path::new(path).starts_with(granted));
        let unread =
            self.read.iter().filter(|path| !covered(path, &before.read) && !covered(path, &before.write));
        lines.extend(unread.map(|path| format!("read {path}")));
        lines.extend(
            self.write
                .iter()
                .filter(|path| !covered(path, &before.write))
                .map(|path| format!("change {path}")),
        );
        if self.exec && !before.exec {
            lines.push("start programs".to_owned());
        }
        lines.extend(
            self.env
                .iter()
                .filter(|name| !before.env.contains(name))
                .map(|name| format!("get the variable {name}")),
        );
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn permissions(value: Value) -> Permissions {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn hosts_are_read_and_written_in_one_form() {
        let network = permissions(json!({
            "network": ["a.example", "b:8080", "10.0.0.1", "[fd00::1]", "[::1]:80", "unix:/run/docker.sock"]
        }));
        let wanted = json!([
            "a.example:443",
            "b:8080",
            "10.0.0.1:443",
            "[fd00::1]:443",
            "[::1]:80",
            "unix:/run/docker.sock"
        ]);
        assert_eq!(Value::from(network.network), wanted);
        for wrong in [
            json!("all"),
            json!(["a b"]),
            json!(["a:0"]),
            json!(["unix:x"]),
            json!(["[::1"]),
            json!(["[::1]x"]),
            json!(["[localhost]:80"]),
            json!(["::1"]),
            json!([1]),
            json!(true),
            json!([""]),
        ] {
            assert!(Network::try_from(wrong.clone()).is_err(), "{wrong}");
        }
        assert_eq!(permissions(json!({})), Permissions::default());
    }

    #[test]
    fn only_what_is_more_than_before_is_named() {
        let before =
            permissions(json!({"network": ["a:1"], "read": ["/srv"], "write": ["/var/x"], "env": ["A"]}));
        assert!(before.beyond(&before).is_empty());
        assert!(Permissions::default().beyond(&before).is_empty());
        let less = permissions(json!({"read": ["/srv/inner", "/var/x/y"], "write": ["/var/x/z"]}));
        assert!(less.beyond(&before).is_empty(), "{:?}", less.beyond(&before));
        let more = permissions(json!({
            "network": ["a:1", "b:2"], "read": ["/srvs"], "write": ["/srv"], "exec": true, "env": ["A", "B"]
        }));
        assert_eq!(
            more.beyond(&before),
            ["speak to b:2", "read /srvs", "change /srv", "start programs", "get the variable B"]
        );
        assert_eq!(Permissions::all().beyond(&before).len(), 4);
        assert!(before.beyond(&Permissions::all()).len() == 1, "the variable");
    }

    #[test]
    fn paths_lead_nowhere_else() {
        for good in
            ["/", "/srv/x", "/srv/x/", "~/.config/acme", "~/", "/proc/cpuinfo", "/dev/fdx", "~/proc/1"]
        {
            assert!(is_plain(good), "{good}");
        }
        for bad in [
            "",
            "x",
            "../x",
            "/srv/../etc",
            "~",
            "~user/x",
            "~/../x",
            "//",
            "/./",
            "/.",
            "/srv//x",
            "/srv/./x",
            "~//",
            "/proc/self/root",
            "/proc/self",
            "/proc/thread-self/cwd",
            "/proc/1/root",
            "/dev/fd/3",
            "/dev/stdin",
        ] {
            assert!(!is_plain(bad), "{bad}");
        }
    }
}
