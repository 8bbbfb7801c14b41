//! Which files fit: one program in the sandbox lists them and looks for matches, and what it prints is filtered and put in order.

use std::time::{Duration, Instant};

use hostel_plugin_api::Ended;

use super::dialects::Patterns;
use super::names::in_order;
use super::place::{Own, Place, refused};
use super::query::{Query, What};
use super::records::{field, lines_of, records, text};
use crate::tools::call::Call;
use crate::tools::script::Script;
use crate::tools::session::Session;
use crate::tools::tool::Failure;

/// How long a search may take.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// How long the look at what was passed over may take, which only serves a remark.
const LIMIT_OF_REMARK: Duration = Duration::from_secs(5);

/// How many lines of problems are told.
const PROBLEMS: usize = 5;

const WALK: &str = concat!(
    include_str!("begin.sh"),
    include_str!("place.sh"),
    include_str!("match.sh"),
    include_str!("engine.sh"),
    include_str!("list.sh"),
    include_str!("walk.sh")
);

const PASSED_OVER: &str = concat!(
    include_str!("begin.sh"),
    include_str!("place.sh"),
    include_str!("list.sh"),
    include_str!("passed_over.sh")
);

/// What is asked of each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// How many lines match.
    Counts,
    /// Whether one matches.
    Names,
    /// When it was changed.
    Times,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Walked {
    /// Where.
    pub(super) place: Place,
    /// Which program, for the results.
    pub(super) engine: Engine,
    /// The files that fit, by path; those asked for times newest first.
    pub(super) files: Vec<File>,
    /// Why they are not all.
    pub(super) limit: Option<&'static str>,
    /// What could not be searched.
    pub(super) problems: Vec<String>,
    /// When the time for all of this is over.
    pub(super) deadline: Instant,
}

/// A file that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// Its path from the folder on that is searched.
    pub(super) name: Vec<u8>,
    /// How many of its lines match; 1 if nobody has asked.
    pub(super) count: u64,
    /// When it was changed, in a form that only serves to compare.
    time: Vec<u8>,
}

/// The program that matches, as the sandbox has found it to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Engine {
    pub(super) name: String,
    pub(super) options: String,
    pub(super) locale: String,
}

impl Engine {
    /// Returns what it is called.
    pub(super) fn shown(&self) -> &'static str {
        match self.name.as_str() {
            "rg" => "ripgrep",
            "perl" => "grep -P",
            "extended" => "grep -E",
            _ => "find",
        }
    }
}

/// Looks which files fit a query.
///
/// # Errors
///
/// Fails if the search could not be made. That only a part could be made is no error here.
pub(super) fn walk(session: &Session, call: &Call, query: &Query, asked: Asked) -> Result<Walked, Failure> {
    let deadline = Instant::now() + LIMIT;
    let names = match &query.what {
        What::Files { wanted, .. } => Some(wanted.names()).filter(|names| !names.is_empty()),
        What::Content { .. } => None,
    };
    let mut script = Script::new(WALK)
        .limit(LIMIT)
        .var("HOSTEL_ROOT", &query.path)
        .var("HOSTEL_NAMES", names.unwrap_or_else(|| query.globs.names()))
        .var("HOSTEL_FILES", if asked == Asked::Names { "1" } else { "" })
        .var("HOSTEL_CONTENT", if asked == Asked::Times { "" } else { "1" });
    if let What::Content { patterns, .. } = &query.what {
        script = with_patterns(script, patterns);
    }
    let ran = script.run_in_time(session, call)?;
    let mut printed = ran.output.as_slice();
    let timed_out = ran.ended == Ended::TIMEOUT;
    let place = match Place::read(&query.path, &mut printed) {
        Err(_) if timed_out => return Err(Failure::new("the search took too long to begin")),
        place => place?,
    };
    let own = Own::of(session);
    if place.is_hidden_itself(&own) {
        let path = query.path.escape_debug();
        return Err(Failure::new(format!("`{path}` is protected, and what it holds is not told")));
    }
    let engine = engine(&query.path, &mut printed)?;
    let read = records(printed);
    let limit = match (timed_out, ran.cut) {
        (true, _) => Some("search_timeout"),
        (_, true) => Some("output_limit"),
        _ => None,
    };
    let (Some(engine), true) = (engine, limit.is_some() || read.problems.is_some()) else {
        return Err(stopped());
    };
    let fits = |file: &File| fits(query, &place, &file.name) && !place.is_hidden(&file.name, &own);
    let mut files: Vec<File> =
        read.records.iter().filter_map(|record| file(record, asked)).filter(fits).collect();
    files.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| in_order(&one.name, &other.name)));
    let problems = lines_of(read.problems.as_deref().unwrap_or_default(), PROBLEMS);
    Ok(Walked { place, engine, files, limit, problems, deadline })
}

/// What a search that has found nothing has left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// The one file that is named, by `file_glob`.
    pub(super) by_glob: bool,
    /// Files that nothing is told of, whatever they hold.
    pub(super) protected: bool,
    /// Files by a rule of the programs: hidden and ignored ones.
    pub(super) passed_over: bool,
}

/// Looks what a search has left out. What is protected is looked for by names alone: whether it would match is nobody's business.
pub(super) fn left_out(session: &Session, call: &Call, query: &Query) -> LeftOut {
    let script = Script::new(PASSED_OVER).limit(LIMIT_OF_REMARK).most(64 * 1024);
    let script = script.var("HOSTEL_ROOT", &query.path).var("HOSTEL_NAMES", query.globs.names());
    let Ok(ran) = script.run(session, call) else { return LeftOut::default() };
    let mut printed = ran.output.as_slice();
    let Ok(place) = Place::read(&query.path, &mut printed) else { return LeftOut::default() };
    let passed_over = field(&mut printed).is_some_and(|first| !first.is_empty());
    let own = Own::of(session);
    let names: Vec<&[u8]> =
        printed.split(|byte| *byte == 0).filter_map(|name| name.strip_prefix(b"./")).collect();
    LeftOut {
        by_glob: place.file && names.iter().any(|name| !query.globs.fits(name, &place.base)),
        protected: names.iter().any(|name| place.is_hidden(name, &own)),
        passed_over: !place.file && passed_over,
    }
}

/// Gives a program the pattern in all dialects.
pub(super) fn with_patterns(script: Script, patterns: &Patterns) -> Script {
    let script = script.var("HOSTEL_PATTERN", &patterns.ripgrep).var("HOSTEL_PERL", &patterns.perl);
    match &patterns.extended {
        Ok(extended) => script
            .var("HOSTEL_EXTENDED", &extended.pattern)
            .var("HOSTEL_CASE", if extended.ignores_case { "-i" } else { "" })
            .var("HOSTEL_WORDS", if extended.knows_words { "1" } else { "" })
            .var("HOSTEL_UNTRANSLATED", ""),
        Err(why) => script.var("HOSTEL_UNTRANSLATED", why),
    }
}

/// Says that the program in the sandbox was stopped by somebody else.
pub(super) fn stopped() -> Failure {
    Failure::new("the search was stopped before its end by something in the environment")
        .with_hint("search again")
}

/// Reads which program it is. None if nobody got so far.
fn engine(path: &str, printed: &mut &[u8]) -> Result<Option<Engine>, Failure> {
    let Some(name) = text(printed) else { return Ok(None) };
    if name == "no" {
        return Err(refused(path, printed));
    }
    let (Some(options), Some(locale)) = (text(printed), text(printed)) else { return Ok(None) };
    let (name, options, locale) = (name.into_owned(), options.into_owned(), locale.into_owned());
    Ok(Some(Engine { name, options, locale }))
}

fn fits(query: &Query, place: &Place, name: &[u8]) -> bool {
    let wanted = match &query.what {
        What::Files { wanted, .. } => wanted.fits(name, &place.base),
        What::Content { .. } => true,
    };
    wanted && query.globs.fits(name, &place.base)
}

/// Reads a record. Whatever else stands there is not one of ours.
fn file(record: &[u8], asked: Asked) -> Option<File> {
    let (name, count, time) = match asked {
        Asked::Names => (record, 1, &b""[..]),
        Asked::Counts => {
            let colon = record.iter().rposition(|byte| *byte == b':')?;
            (&record[..colon], str::from_utf8(&record[colon + 1..]).ok()?.parse().ok()?, &b""[..])
        }
        Asked::Times => {
            let slash = record.windows(3).position(|window| window == b" ./")?;
            (&record[slash + 1..], 1, &record[..slash])
        }
    };
    Some(File { name: name.strip_prefix(b"./")?.to_vec(), count, time: time.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_files() {
        let read = |record: &[u8], asked| file(record, asked).map(|file| (file.name, file.count));
        assert_eq!(read(b"./a:12:b.txt:3", Asked::Counts), Some((b"a:12:b.txt".to_vec(), 3)));
        assert_eq!(read(b"./a:12:b.txt", Asked::Names), Some((b"a:12:b.txt".to_vec(), 1)));
        let time = b"2026-11-30 05:06:58.616796922 +0000 ./a ./b";
        assert_eq!(read(time, Asked::Times), Some((b"a ./b".to_vec(), 1)));
        for noise in [&b"sh: warning: something"[..], b"./a", b"./a:x", b""] {
            assert_eq!(read(noise, Asked::Counts), None, "{noise:?}");
        }
    }
}
