//! What a launcher says: one line for each thing, which nothing that a place prints of itself can be taken for.
//!
//! The output of a command is one stream, and a shell that greets, a login file that warns and a program of the script that has got hold of
//! a descriptor all write to it. So each line of a launcher begins with a word that was drawn for this one call:
//!
//! ```text
//! TOKEN KIND ID BASE64
//! ```
//!
//! | kind | says |
//! | --- | --- |
//! | `b` | the script is about to begin |
//! | `o`, `e` | it has printed this, on standard output or standard error |
//! | `c` | it calls a tool: a name, a line end, JSON. Where a `+` stands behind the id, more of it follows |
//! | `x` | it has ended: its exit code, and ` stopped` if it was told to |
//! | `f` | it could not be begun, and why |
//!
//! A line has 4096 bytes at the most, which a pipe takes whole, however many write to it. All other lines are what the place has said.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The longest line.
const LONGEST: usize = 4096;

/// The largest call: more than launchers let pass.
const LARGEST_CALL: usize = 9 * 1024 * 1024;

/// How much is kept of what the place has said.
const MOST_SAID: usize = 2000;

/// One thing that a launcher has said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The script is about to begin.
    Begun,
    /// It has printed this on standard output.
    Output(Vec<u8>),
    /// It has printed this on standard error.
    Errors(Vec<u8>),
    /// It calls a tool.
    Call(Request),
    /// It has ended, with an exit code.
    Ended(i32),
    /// It could not be begun.
    Failed(String),
}

/// A call of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Which one its answer is for.
    pub(super) id: String,
    /// The tool's name, a line end, and its arguments as JSON.
    pub(super) body: Vec<u8>,
}

/// Takes apart what a launcher says, as it comes.
pub(super) struct Frames {
    token: String,
    line: Vec<u8>,
    /// What there is so far of a call.
    call: Option<Request>,
    said: Vec<u8>,
}

impl Frames {
    /// Knows the launcher's lines by `token`.
    pub(super) fn new(token: &str) -> Self {
        Self { token: token.to_owned(), line: Vec::new(), call: None, said: Vec::new() }
    }

    /// Returns what can be said of some more output.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                frames.extend(self.read(&line));
            } else if self.line.len() > 2 * LONGEST {
                // The front of such a line is nothing of the launcher's.
                let rest = self.line.split_off(self.line.len() - LONGEST);
                let front = std::mem::replace(&mut self.line, rest);
                self.hear(&front);
            }
        }
        frames
    }

    /// Returns the last of what the place has said.
    pub(super) fn said(&mut self) -> String {
        let rest = std::mem::take(&mut self.line);
        self.hear(&rest);
        String::from_utf8_lossy(&self.said).trim().to_owned()
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.said.extend_from_slice(bytes);
        let over = self.said.len().saturating_sub(MOST_SAID);
        self.said.drain(..over);
    }

    fn read(&mut self, line: &[u8]) -> Option<Frame> {
        // Somebody may have begun the line.
        let token = self.token.as_bytes();
        let at = line.windows(token.len()).position(|window| window == token);
        let (front, own) = line.split_at(at.unwrap_or(line.len()));
        self.hear(front);
        let mut words = own.trim_ascii_end().split(|byte| *byte == b' ').skip(1);
        let (kind, id, data) =
            (words.next()?, words.next()?, BASE64.decode(words.next().unwrap_or_default()).ok()?);
        if words.next().is_some() {
            return None;
        }
        match kind {
            b"b" => Some(Frame::Begun),
            b"o" => Some(Frame::Output(data)),
            b"e" => Some(Frame::Errors(data)),
            b"c" => self.call(id, data),
            b"x" => {
                let said = String::from_utf8_lossy(&data);
                said.split(' ').next()?.parse().ok().map(Frame::Ended)
            }
            b"f" => Some(Frame::Failed(String::from_utf8_lossy(&data).trim().to_owned())),
            _ => None,
        }
    }

    /// Takes a piece of a call. The pieces of one follow upon another.
    fn call(&mut self, id: &[u8], data: Vec<u8>) -> Option<Frame> {
        let (id, more) = id.strip_suffix(b"+").map_or((id, false), |id| (id, true));
        if id.is_empty() || id.len() > 32 || !id.iter().all(u8::is_ascii_alphanumeric) {
            return None;
        }
        let id = String::from_utf8_lossy(id).into_owned();
        let request = match self.call.take().filter(|request| request.id == id) {
            Some(mut request) if request.body.len() + data.len() <= LARGEST_CALL => {
                request.body.extend(data);
                request
            }
            Some(_) => return None,
            None => Request { id, body: data },
        };
        if more {
            self.call = Some(request);
            return None;
        }
        Some(Frame::Call(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn line(kind: &str, id: &str, data: &str) -> String {
        format!("{TOKEN} {kind} {id} {}\n", BASE64.encode(data))
    }

    fn call(id: &str, body: &str) -> Frame {
        Frame::Call(Request { id: id.into(), body: body.into() })
    }

    #[test]
    fn lines_are_read_wherever_chunks_end() {
        let text = [
            "Welcome!\n".to_owned(),
            line("b", "0", ""),
            line("o", "0", "a\n"),
            "$ ".into(),
            line("e", "0", "b"),
            line("c", "1+", "terminal\n"),
            line("c", "1", "{}"),
            line("x", "0", "3 stopped"),
            "logout".into(),
        ]
        .concat();
        let expected = [
            Frame::Begun,
            Frame::Output(b"a\n".into()),
            Frame::Errors(b"b".into()),
            call("1", "terminal\n{}"),
            Frame::Ended(3),
        ];
        for size in [1, 7, 4096] {
            let mut frames = Frames::new(TOKEN);
            let read: Vec<_> = text.as_bytes().chunks(size).flat_map(|chunk| frames.take(chunk)).collect();
            assert_eq!(read, expected, "{size}");
            assert_eq!(frames.said(), "Welcome!\n$ logout");
        }
    }

    #[test]
    fn nothing_else_is_taken_for_one() {
        let mut frames = Frames::new(TOKEN);
        let long = "x".repeat(100_000);
        for text in [
            format!("{TOKEN}\n"),
            format!("{TOKEN} o\n"),
            format!("{TOKEN} o 0 !!!!\n"),
            format!("{TOKEN} o 0 YQ== more\n"),
            line("z", "0", "a"),
            line("x", "0", "soon"),
            line("c", "../x", "a"),
            line("c", &"1".repeat(33), "a"),
            line("c", "+", "a"),
            line("o", "0", "a").replace(TOKEN, "0123456789abcdee"),
            "\0\u{1}\n\n".into(),
            long.clone(),
        ] {
            assert!(frames.take(text.as_bytes()).is_empty(), "{text:.80}");
        }
        assert!(frames.line.len() <= 2 * LONGEST && frames.said.len() <= MOST_SAID);
        // What is too long for one hides none that follows.
        assert_eq!(frames.take(line("o", "0", "a").as_bytes()), [Frame::Output(b"a".into())]);
    }

    #[test]
    fn a_call_is_never_larger_than_it_may_be() {
        let mut frames = Frames::new(TOKEN);
        let piece = line("c", "7+", &"x".repeat(3000));
        for _ in 0..LARGEST_CALL / 3000 + 2 {
            assert!(frames.take(piece.as_bytes()).is_empty());
            assert!(frames.call.as_ref().is_none_or(|call| call.body.len() <= LARGEST_CALL));
        }
        // Another one begins anew.
        assert_eq!(frames.take(line("c", "8", "a").as_bytes()), [call("8", "a")]);
    }

    #[test]
    fn any_input_is_taken() {
        let parts =
            [TOKEN, " ", "\n", "c", "o", "x", "1", "+", "YQ==", "=", "\0", "\u{fffd}", &"A".repeat(3000)];
        let mut seed = 1_u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        for _ in 0..2000 {
            let text: String = (0..random(40)).map(|_| parts[random(parts.len())]).collect();
            let size = 1 + random(5000);
            let whole = Frames::new(TOKEN).take(text.as_bytes());
            let mut frames = Frames::new(TOKEN);
            let read: Vec<_> = text.as_bytes().chunks(size).flat_map(|chunk| frames.take(chunk)).collect();
            // Only of what is longer than a line may be, the front is let go sooner or later.
            if text.split('\n').all(|line| line.len() <= 2 * LONGEST) {
                assert_eq!(read, whole, "{text:.300}");
            }
            assert!(frames.said().len() <= 3 * MOST_SAID);
        }
    }
}
