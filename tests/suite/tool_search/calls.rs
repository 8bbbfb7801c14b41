//! What a sandbox searches with, and calls of the tool.

use std::collections::BTreeSet;

use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use hostel_tests::{Home, strict};
use serde_json::Value;

/// What a sandbox has to search with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    Ripgrep,
    Grep,
    Busybox,
}

pub(super) use Engine::{Busybox, Grep, Ripgrep};

pub(super) const ENGINES: [Engine; 3] = [Ripgrep, Grep, Busybox];

/// Makes a `PATH` without ripgrep.
const WITHOUT_RIPGREP: &str = "mkdir programs && for name in sh bash env cat cut find grep head ls ln mkdir mkfifo mv chmod \
    readlink rm seq stat tail touch tr wc xargs; do ln -s \"$(command -v $name)\" programs/; done; \
    export PATH=$PWD/programs";

const ONLY_BUSYBOX: &str = "mkdir programs && busybox --install -s programs && export PATH=$PWD/programs";

impl Engine {
    /// Leaves the session in an empty folder, with nothing else to search with. Returns whether it could.
    pub(super) fn prepare(self, home: &Home) -> bool {
        match self {
            Ripgrep => {
                if home.exec("command -v rg").code != 0 {
                    assert!(!strict(), "ripgrep is not installed");
                    eprintln!("skipped: ripgrep is not installed");
                    return false;
                }
            }
            Grep => drop(home.exec(WITHOUT_RIPGREP).expect(0)),
            Busybox => drop(home.exec(ONLY_BUSYBOX).expect(0)),
        }
        let _ = home.exec("mkdir t && cd t").expect(0);
        true
    }

    /// Returns a home on this machine that is prepared.
    pub(super) fn home(self, road: Road) -> Option<TidyHome> {
        let home = TidyHome::new().by(road);
        self.prepare(&home).then_some(home)
    }
}

/// Calls the tool.
#[track_caller]
pub(super) fn search(home: &Home, arguments: &Value) -> Value {
    home.tool("search_files", arguments)
}

/// Searches for lines, which must go well.
#[track_caller]
pub(super) fn lines(home: &Home, arguments: &Value) -> Vec<(String, u64, String)> {
    let object = search(home, arguments);
    assert!(object["error"].is_null(), "{arguments} {object}");
    found(&object)
}

/// Returns the matches of a result in either form, without their neighbours.
pub(super) fn found(object: &Value) -> Vec<(String, u64, String)> {
    let mut found = Vec::new();
    let mut add = |path: &str, line: &Value| {
        if line["context"] != true {
            let content = line["content"].as_str().unwrap().to_owned();
            found.push((path.to_owned(), line["line"].as_u64().unwrap_or(0), content));
        }
    };
    for line in object["matches"].as_array().into_iter().flatten() {
        add(line["path"].as_str().unwrap(), line);
    }
    for (path, lines) in object["matches_by_file"].as_object().into_iter().flatten() {
        lines.as_array().unwrap().iter().for_each(|line| add(path, line));
    }
    found
}

/// Searches for lines, and returns which of which files match.
#[track_caller]
pub(super) fn places(home: &Home, arguments: &Value) -> BTreeSet<(String, u64)> {
    lines(home, arguments).into_iter().map(|(path, line, _)| (path, line)).collect()
}

pub(super) fn set(places: &[(&str, u64)]) -> BTreeSet<(String, u64)> {
    places.iter().map(|(path, line)| ((*path).to_owned(), *line)).collect()
}

/// Searches for files by name, which must go well.
#[track_caller]
pub(super) fn files(home: &Home, arguments: &Value) -> Vec<String> {
    let object = search(home, arguments);
    assert!(object["error"].is_null(), "{arguments} {object}");
    names(&object)
}

pub(super) fn names(object: &Value) -> Vec<String> {
    object["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Requires that a search fails, and returns why.
#[track_caller]
pub(super) fn failure(home: &Home, arguments: &Value) -> String {
    let object = search(home, arguments);
    object["error"].as_str().unwrap_or_else(|| panic!("{arguments} {object}")).to_owned()
}
