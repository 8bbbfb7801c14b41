//! The parts of an address, and what must hold before one is fetched from or shown.

use std::net::{Ipv4Addr, Ipv6Addr};

/// An address of the form `scheme://host/path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address<'text> {
    /// In lower case.
    pub(super) scheme: String,
    /// What stands before an `@`: a user, and perhaps a password.
    pub(super) user: Option<&'text str>,
    /// The host, without its port.
    pub(super) host: &'text str,
    /// From the first `/` on.
    pub(super) path: &'text str,
    /// Whether there is a `?` part, which may hold a token.
    pub(super) has_query: bool,
    /// What stands after the `#`.
    pub(super) fragment: Option<&'text str>,
    /// Everything after the scheme, without the fragment.
    rest: &'text str,
}

impl<'text> Address<'text> {
    /// Takes an address apart. None if the text is no address at all.
    pub(super) fn split(text: &'text str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let first = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        if !first || !scheme.bytes().all(plain) {
            return None;
        }
        let (rest, fragment) = match rest.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (rest, None),
        };
        let (before_query, has_query) = match rest.split_once('?') {
            Some((before, _)) => (before, true),
            None => (rest, false),
        };
        let (authority, path) = before_query.split_at(before_query.find('/').unwrap_or(before_query.len()));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let host = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
            Some((host, _)) => host,
            None => place.split(':').next().unwrap_or_default(),
        };
        Some(Self { scheme: scheme.to_ascii_lowercase(), user, host, path, has_query, fragment, rest })
    }

    /// Returns the address without its fragment.
    pub(super) fn text(&self) -> String {
        format!("{}://{}", self.scheme, self.rest)
    }

    /// Returns whether the host is this machine, written so that nobody else can be meant.
    pub(super) fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<Ipv4Addr>().is_ok_and(|host| host.is_loopback())
            || self.host.parse::<Ipv6Addr>().is_ok_and(|host| host.is_loopback())
    }
}

/// Returns an address without what may be a token in it, for messages and for keeping.
pub(super) fn without_query(text: &str) -> &str {
    text.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let address = Address::split("HTTPS://me:pw@Host.example:8443/a/b.tar.gz?t=1#v2").unwrap();
        assert_eq!((address.scheme.as_str(), address.user), ("https", Some("me:pw")));
        assert_eq!((address.host, address.path), ("Host.example", "/a/b.tar.gz"));
        assert_eq!((address.has_query, address.fragment), (true, Some("v2")));
        assert_eq!(address.text(), "https://me:pw@Host.example:8443/a/b.tar.gz?t=1");
        assert_eq!(without_query("https://h/a.zip?token=1#x"), "https://h/a.zip");
        for none in ["a/b", "://h/x", "1a://h", "a b://h", "git@host:a"] {
            assert!(Address::split(none).is_none(), "{none}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let loopback = |text: &str| Address::split(text).unwrap().is_loopback();
        for own in ["http://localhost/x", "http://127.0.0.1:80/x", "http://127.9.9.9/x", "http://[::1]:8/x"] {
            assert!(loopback(own), "{own}");
        }
        let others = [
            "http://localhost.example/x",
            "http://127.0.0.1.example/x",
            "http://127.1/x",
            "http://0.0.0.0/x",
            "http://[::2]/x",
            "http://127.0.0.1@example.org/x",
            "http:///x",
        ];
        for other in others {
            assert!(!loopback(other), "{other}");
        }
    }
}
