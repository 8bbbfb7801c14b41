//! What a shell writes down at its exit.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{MemfdFlags, fstatvfs, memfd_create};

use super::remember::is_identifier;
use super::state::Function;
use super::{boot, exports};

/// More than this is no state that anybody needs.
const LONGEST: u64 = 16 * 1024 * 1024;

/// What most records need.
const USUAL: u64 = 16 * 1024;

/// No call takes as long.
const OLD: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Removes records that a host left behind which was killed.
pub(super) fn prune(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let modified = entry.metadata().and_then(|meta| meta.modified());
        if modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD)) {
            // Another process may have removed it just now.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// What a shell wrote down.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) cwd: PathBuf,
    pub(super) exported: BTreeMap<OsString, OsString>,
    /// What only bash tells.
    pub(super) bash: Option<BashRecorded>,
}

/// The part of a record that only bash writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BashRecorded {
    /// Options that were on before the command, and those that were on after it: `set:NAME`, `shopt:NAME`.
    pub(super) options: (BTreeSet<String>, BTreeSet<String>),
    pub(super) aliases: BTreeMap<OsString, OsString>,
    pub(super) functions: BTreeMap<OsString, Function>,
}

/// The file into which the shell writes its state.
#[derive(Debug)]
pub(super) enum Record {
    /// One that exists before the shell does, so that a changed `umask` does not matter, and goes with this object.
    Named(tempfile::NamedTempFile),
    /// One without a name, for a shell that is given its descriptor: nothing needs to be made on a disk.
    Nameless(File),
}

impl Record {
    pub(super) fn new_in(dir: &Path) -> io::Result<Self> {
        Ok(Self::Named(tempfile::Builder::new().prefix("call-").tempfile_in(dir)?))
    }

    pub(super) fn nameless() -> io::Result<Self> {
        Ok(Self::Nameless(memfd_create("hostel-record", MemfdFlags::CLOEXEC)?.into()))
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Named(file) => file.as_file().as_fd(),
            Self::Nameless(file) => file.as_fd(),
        }
    }

    /// Returns whether there is room for a record. A shell that finds none cannot say so.
    pub(super) fn has_room(&self) -> bool {
        let Self::Named(file) = self else { return true };
        // Some file systems cannot tell.
        fstatvfs(file.as_file()).map_or(true, |stat| stat.f_bavail.saturating_mul(stat.f_frsize) >= USUAL)
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Named(file) => file.path(),
            Self::Nameless(_) => Path::new("/dev/null"),
        }
    }

    /// Returns the state, or nothing where the shell did not come to write it.
    pub(super) fn read(self) -> Result<Option<Recorded>, String> {
        // Most fit, and are read in one go.
        let mut bytes = Vec::with_capacity(8 << 10);
        let mut file = match &self {
            Self::Named(file) => file.as_file(),
            Self::Nameless(file) => file,
        };
        let read = file.rewind().and_then(|()| file.take(LONGEST).read_to_end(&mut bytes));
        read.map_err(|error| error.to_string())?;
        let (before, rest) = in_front(&bytes);
        if rest.is_empty() {
            return Ok(None);
        }
        parse(before, rest)
            .map(Some)
            .ok_or_else(|| "the shell's record of it is damaged or cut short".to_owned())
    }
}

/// Takes off what is written before the shell's exit. Returns the options that were on before the command, where they stand there, and the rest.
fn in_front(bytes: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let off = |bytes: &[u8], kind: u8| {
        let end = bytes.iter().position(|byte| *byte == 0).filter(|_| bytes.first() == Some(&kind))?;
        Some((end, end + 1))
    };
    let Some((end, next)) = off(bytes, boot::BEFORE) else { return (None, bytes) };
    let (before, rest) = (&bytes[1..end], &bytes[next..]);
    let rest = off(rest, boot::TRAP).map_or(rest, |(_, next)| &rest[next..]);
    (Some(before), rest)
}

fn parse(before: Option<&[u8]>, bytes: &[u8]) -> Option<Recorded> {
    let mut fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    if fields.pop()? != boot::END_MARK {
        return None;
    }
    let (cwd, rest) = fields.split_first()?;
    let cwd = OsStr::from_bytes(cwd.strip_suffix(b"\n")?).into();
    // The builtin of a copy writes each variable by itself, and the options in one.
    let plain = rest.iter().take_while(|field| field.starts_with(&[VARIABLE])).count();
    if plain > 0 {
        let (variables, rest) = rest.split_at(plain);
        let exported = variables.iter().filter_map(|field| variable(&field[1..])).collect();
        let (options, rest) = rest.split_first()?;
        let split = options.iter().position(|byte| *byte == b' ')?;
        let bash = of_bash(&options[..split], &options[split + 1..], rest)?;
        return Some(Recorded { cwd, exported, bash: Some(bash) });
    }
    let (exported, rest) = rest.split_first()?;
    let exported = exports::parse(exported)?;
    let bash = match (before, rest) {
        (None, []) => None,
        (Some(before), [after, rest @ ..]) => Some(of_bash(before, after, rest)?),
        _ => return None,
    };
    Some(Recorded { cwd, exported, bash })
}

/// Begins a variable in the record of a copy.
const VARIABLE: u8 = 1;

/// Reads `NAME=VALUE`, as a program gets it. What a shell would not list as a variable of its own is passed over.
fn variable(text: &[u8]) -> Option<(OsString, OsString)> {
    let split = text.iter().position(|byte| *byte == b'=')?;
    let name = OsStr::from_bytes(&text[..split]);
    is_identifier(name).then(|| (name.to_owned(), OsString::from_vec(text[split + 1..].to_vec())))
}

fn of_bash(before: &[u8], after: &[u8], rest: &[&[u8]]) -> Option<BashRecorded> {
    let (aliases, functions) = match rest {
        [aliases] => (aliases, BTreeMap::new()),
        [aliases, _names, list, texts @ ..] => (aliases, functions(list, texts)?),
        _ => return None,
    };
    let options = (options(before)?, options(after)?);
    Some(BashRecorded { options, aliases: exports::parse_aliases(aliases)?, functions })
}

/// Reads `$SHELLOPTS/$BASHOPTS`: names with colons between them.
fn options(text: &[u8]) -> Option<BTreeSet<String>> {
    let (set, shopt) = std::str::from_utf8(text).ok()?.split_once('/')?;
    let named = |kind: &'static str, names: &str| {
        let names: Vec<String> = names.split(':').filter(|name| is_option(name)).map(str::to_owned).collect();
        names.into_iter().map(move |name| format!("{kind}:{name}"))
    };
    Some(named("set", set).chain(named("shopt", shopt)).collect())
}

/// Returns whether this may be the name of an option: it is handed to the shell as it is.
pub(super) fn is_option(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Puts the lines of `declare -F` and the texts of `declare -f` together.
fn functions(list: &[u8], texts: &[&[u8]]) -> Option<BTreeMap<OsString, Function>> {
    let lines: Vec<&[u8]> =
        list.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"declare ")).collect();
    if lines.len() != texts.len() {
        return None;
    }
    let mut functions = BTreeMap::new();
    for (line, text) in lines.into_iter().zip(texts) {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let (_, flags, name) = (words.next()?, words.next()?, words.next()?);
        // One that was a trap's or whose name the shell cannot take back prints nothing.
        if !text.is_empty() {
            let function = Function { text: text.to_vec(), exported: flags.contains(&b'x') };
            functions.insert(OsString::from_vec(name.to_vec()), function);
        }
    }
    Some(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_whole_or_not_at_all() {
        let bytes = b"\x02braceexpand/extglob\0\x03trap -- 'echo' EXIT\n\0/srv\n\0declare -x A=\"1\"\n\0braceexpand:noglob/\0alias ll='ls -l'\n\0f\ng\n\0declare -f f\ndeclare -fx g\n\0f () \n{ \n    echo\n}\n\0g () \n{ \n    :\n}\n\0end";
        let parsed = |bytes: &'static [u8]| {
            let (before, rest) = in_front(bytes);
            parse(before, rest)
        };
        let recorded = parsed(bytes).unwrap();
        let bash = recorded.bash.as_ref().unwrap();
        assert_eq!(
            (recorded.cwd.as_path(), &recorded.exported["A".as_ref() as &OsStr]),
            (Path::new("/srv"), &"1".into())
        );
        assert_eq!(bash.aliases["ll".as_ref() as &OsStr], "ls -l");
        assert!(bash.options.1.contains("set:noglob") && !bash.options.1.contains("shopt:extglob"));
        assert!(
            !bash.functions["f".as_ref() as &OsStr].exported
                && bash.functions["g".as_ref() as &OsStr].exported
        );
        let native = b"/srv\n\0\x01A=one\ntwo\0\x01X.Y=1\0braceexpand/ braceexpand:noglob/\0\0end";
        let recorded = parsed(native).unwrap();
        assert_eq!(
            (recorded.exported.len(), &recorded.exported["A".as_ref() as &OsStr]),
            (1, &"one\ntwo".into())
        );
        assert!(recorded.bash.unwrap().options.1.contains("set:noglob"));
        for cut in 0..bytes.len() {
            assert_eq!(parsed(&bytes[..cut]), None, "cut at {cut}");
        }
        assert_eq!(parsed(b"/\n\0\0end").unwrap().bash, None);
        // A shell that did not come to its exit.
        assert_eq!(in_front(b"\x02braceexpand/\0"), (Some(b"braceexpand/".as_slice()), b"".as_slice()));
        assert!(in_front(b"\x02braceexpand/\0\x03\0").1.is_empty());
    }
}
