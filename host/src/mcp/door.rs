//! Who may come in over HTTP.
//!
//! Besides the secret, two headers are looked at, which a browser sets and a page cannot: a page on the net can have its name
//! lead to this machine, and then its scripts reach our port as if it were the page's own server.

use std::net::IpAddr;

use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, StatusCode, header};

use super::token::Token;

/// What is asked of a request before anything else is looked at.
pub(super) struct Door {
    token: Token,
    /// Names under which the server may be reached, besides `localhost` and addresses.
    names: Vec<String>,
}

impl Door {
    pub(super) fn new(token: Token, names: Vec<String>) -> Self {
        Self { token, names }
    }

    /// Lets a request in.
    ///
    /// # Errors
    ///
    /// Fails with the status and the reason of the refusal.
    pub(super) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), (StatusCode, &'static str)> {
        let host = match headers.get(header::HOST) {
            Some(host) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            None => uri.authority().cloned(),
        };
        let host = host.ok_or((StatusCode::BAD_REQUEST, "the request names no host"))?;
        // An address as such cannot be made to lead somewhere else.
        if !self.is_ours(host.host()) && address(host.host()).is_none() {
            return Err((
                StatusCode::FORBIDDEN,
                "the `Host` of the request is not this server's (`--allow-host` names further ones)",
            ));
        }
        if let Some(origin) = headers.get(header::ORIGIN) {
            let origin = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
            let from = origin.as_ref().and_then(Uri::authority);
            let is_ours = |from: &Authority| *from == host || self.is_ours(from.host());
            if !from.is_some_and(is_ours) {
                return Err((StatusCode::FORBIDDEN, "the `Origin` of the request is somebody else's page"));
            }
        }
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer);
        if shown.is_some_and(|shown| self.token.is(shown)) {
            return Ok(());
        }
        Err((
            StatusCode::UNAUTHORIZED,
            "the request carries no token of this server: send `Authorization: Bearer TOKEN`",
        ))
    }

    /// Whether `host` is this machine, or a name that was allowed.
    fn is_ours(&self, host: &str) -> bool {
        host.eq_ignore_ascii_case("localhost")
            || address(host).is_some_and(|address| address.is_loopback())
            || self.names.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(&'static str, &str)]) -> u16 {
        let door = Door::new(Token::new("secret").unwrap(), vec!["box.example".into()]);
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        door.check(&headers, &Uri::from_static("/mcp")).err().map_or(200, |(status, _)| status.as_u16())
    }

    #[test]
    fn only_the_secret_opens() {
        let with = |value: &str| check(&[("host", "localhost:1"), ("authorization", value)]);
        assert_eq!(with("Bearer secret"), 200);
        assert_eq!(with("bearer  secret"), 200);
        for wrong in ["Bearer Secret", "Bearer", "secret", "Basic secret", "Bearer secret x", ""] {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert_eq!(check(&[("host", "localhost")]), 401);
        assert_eq!(check(&[("authorization", "Bearer secret")]), 400);
    }

    #[test]
    fn names_of_others_are_refused() {
        let from = |host: &str, origin: Option<&str>| {
            let mut pairs = vec![("host", host), ("authorization", "Bearer secret")];
            pairs.extend(origin.map(|origin| ("origin", origin)));
            check(&pairs)
        };
        for host in ["localhost:80", "127.0.0.1:7", "[::1]:7", "192.0.2.1", "BOX.example:443"] {
            assert_eq!(from(host, None), 200, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example"] {
            assert_eq!(from(host, None), 403, "{host}");
        }
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1", "https://box.example"]
        {
            assert_eq!(from("localhost:80", Some(origin)), 200, "{origin}");
        }
        for origin in ["http://evil.example", "null", "http://192.0.2.1", "file://", ""] {
            assert_eq!(from("localhost:80", Some(origin)), 403, "{origin}");
        }
        assert_eq!(from("192.0.2.1:80", Some("http://192.0.2.1:80")), 200);
    }
}
