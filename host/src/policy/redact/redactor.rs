//! Takes secrets out of output as it comes.
//!
//! A secret that comes in two pieces is one. So what may be its beginning is held back until that is decided, a few hundred bytes
//! at the most, and everything else passes at once.

use std::sync::Arc;

use super::secrets::{Found, Secrets};
use super::shapes;

/// Takes secrets out of one stream.
pub struct Redactor {
    secrets: Arc<Secrets>,
    /// What is not decided yet.
    held: Vec<u8>,
    /// The byte in front of what is held.
    before: Option<u8>,
    /// How many bytes of a private key were dropped, while one is being read.
    in_key: Option<usize>,
}

impl Redactor {
    /// Begins a stream.
    #[must_use]
    pub fn new(secrets: Arc<Secrets>) -> Self {
        Self { secrets, held: Vec::new(), before: None, in_key: None }
    }

    /// Returns what can be passed on of some more bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.pass(bytes, false)
    }

    /// Returns what was held back, once nothing more comes.
    pub fn finish(&mut self) -> Vec<u8> {
        self.pass(b"", true)
    }

    fn pass(&mut self, bytes: &[u8], all: bool) -> Vec<u8> {
        let joined;
        let mut rest = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.held);
            &joined
        };
        let mut out = Vec::with_capacity(rest.len());
        while !rest.is_empty() {
            if let Some(dropped) = self.in_key {
                let key = shapes::within_key(rest, dropped, all);
                self.in_key = key.goes_on.then_some(dropped + key.length);
                rest = &rest[key.length..];
                if key.waits {
                    break;
                }
                continue;
            }
            let at = self.secrets.next(rest).unwrap_or(rest.len());
            out.extend_from_slice(&rest[..at]);
            self.before = rest[..at].last().copied().or(self.before);
            rest = &rest[at..];
            let Some(first) = rest.first().copied() else { break };
            let length = match self.secrets.look(self.before, rest, all) {
                Found::Perhaps => break,
                Found::Nothing => {
                    out.push(first);
                    1
                }
                Found::Secret(length, mask) => {
                    out.extend_from_slice(mask.as_bytes());
                    length
                }
                Found::Key(length) => {
                    out.extend_from_slice(shapes::KEY_MASK.as_bytes());
                    self.in_key = Some(length);
                    length
                }
            };
            self.before = rest.get(length - 1).copied();
            rest = &rest[length..];
        }
        self.held = rest.to_vec();
        out
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use hostel_plugin_api::shell::StripList;

    use super::*;

    fn secrets() -> Arc<Secrets> {
        let strip = StripList::new(["TOKEN".to_owned()]);
        Arc::new(Secrets::new(&strip, [(OsString::from("TOKEN"), OsString::from("aaab-aaab-c"))]))
    }

    fn redacted<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut redactor = Redactor::new(secrets());
        let mut out: Vec<u8> = pieces.into_iter().flat_map(|piece| redactor.take(piece)).collect();
        out.extend(redactor.finish());
        assert!(redactor.held.is_empty());
        String::from_utf8(out).unwrap()
    }

    fn key() -> String {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n{body}\nAAAA==\n-----END RSA PRIVATE KEY-----\n")
    }

    #[test]
    fn where_pieces_end_makes_no_difference() {
        let text = format!(
            "aaab-aaab-aaab-c! {} x\nghp_{} then -----BEGIN PUBLIC KEY----- sk-x s- gh",
            key(),
            "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
        );
        let whole = redacted([text.as_bytes()]);
        assert_eq!(
            whole,
            "aaab-[redacted TOKEN]! [redacted private key]\n x\n[redacted GitHub token] then \
             -----BEGIN PUBLIC KEY----- sk-x s- gh"
        );
        for cut in 0..=text.len() {
            let (front, back) = text.as_bytes().split_at(cut);
            assert_eq!(redacted([front, back]), whole, "cut at {cut}");
        }
        assert_eq!(redacted(text.as_bytes().chunks(1)), whole);
        assert_eq!(redacted(text.as_bytes().chunks(7)), whole);
    }

    #[test]
    fn little_is_held_back_and_plain_text_passes_at_once() {
        let mut redactor = Redactor::new(secrets());
        assert_eq!(redactor.take(b"listening on 8080\n"), b"listening on 8080\n");
        for _ in 0..100_000 {
            redactor.take(b"sk-aaab-AKIA-----BEGIN PRIVATE KEY-----");
            assert!(redactor.held.len() < 2000);
        }
        let mut redactor = Redactor::new(secrets());
        let out = redactor.take(&b"s".repeat(10_000_000));
        assert!(out.len() + redactor.held.len() == 10_000_000 && redactor.held.len() < 10);
    }

    #[test]
    fn a_key_without_end_does_not_swallow_what_is_none() {
        let text = key().replace("-----END RSA PRIVATE KEY-----", "{\"more\": 1}");
        assert_eq!(redacted([text.as_bytes()]), "[redacted private key]{\"more\": 1}\n");
        let endless = format!("{}{}", &key()[..150], "A".repeat(200_000));
        assert!(redacted([endless.as_bytes()]).len() > 100_000);
    }
}
