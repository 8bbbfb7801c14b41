//! The layout of all that crosses, as text that is checked in as `abi-layout.txt`.
//!
//! Two builds of this crate that describe their types differently may not understand each other, and nobody would notice
//! before an old plugin meets a new host. So a change of the layout fails a test, which says what number it asks for. To write
//! the text anew once that number is raised:
//!
//! ```sh
//! HOSTEL_WRITE_LAYOUT=1 cargo test -p hostel-plugin-api layout
//! ```
//!
//! One line stands for one member, at the path by which it is first reached, and each type is described once. What may be
//! appended shows as lines that are added, and everything else as a line that is another or gone: hence the numbers of
//! members and the sizes in it, which tables of functions, the only types that may grow, do not have.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::fs;
use std::path::Path;

use abi_stable::StableAbi;
use abi_stable::std_types::UTypeId;
use abi_stable::type_layout::{TLData, TLField, TLFields, TLFunction, TypeLayout};

use super::root::{API_VERSION, PluginRoot_Ref};

/// Asks for the text to be written and not compared.
const WRITE: &str = "HOSTEL_WRITE_LAYOUT";

/// Goes through all types that the root module reaches.
#[derive(Default)]
struct Walk {
    lines: Vec<String>,
    described: HashSet<UTypeId>,
    /// Members that were appended to a table, with its path and their number. They come after all that the first version
    /// reaches, so that no appended member is the first to reach a type and moves its description.
    appended: VecDeque<(String, usize, TLField)>,
}

/// Returns the text for the types of this build.
fn text() -> String {
    let mut walk = Walk::default();
    walk.describe("", <PluginRoot_Ref as StableAbi>::LAYOUT);
    while let Some((path, number, member)) = walk.appended.pop_front() {
        walk.member(&path, number, &member);
    }
    format!("{}\n{}\n", head(), walk.lines.join("\n"))
}

fn head() -> String {
    format!("# What crosses in interface {API_VERSION}. Written by a test: see src/abi/snapshot.rs.")
}

impl Walk {
    fn describe(&mut self, path: &str, layout: &'static TypeLayout) {
        let data = layout.data();
        // An opaque type says nothing but its size, which stands where it is used. All of them have one identity.
        if matches!(data, TLData::Opaque) || !self.described.insert(layout.get_utypeid()) {
            return;
        }
        let (kind, members, first_version) = match data {
            TLData::Primitive(_) | TLData::Opaque => (None, None, usize::MAX),
            TLData::Struct { fields } => (Some("struct".to_owned()), Some(fields), usize::MAX),
            TLData::Union { fields } => (Some("union".to_owned()), Some(fields), usize::MAX),
            TLData::Enum(found) => {
                let counts = found.field_count.as_slice();
                let kind = format!("enum {} {counts:?} {:?}", found.variant_names, found.discriminants);
                (Some(kind), Some(found.fields), usize::MAX)
            }
            TLData::PrefixType(table) => {
                let first = usize::from(table.first_suffix_field);
                (Some(format!("table of {first} members at first")), Some(table.fields), first)
            }
        };
        if let (Some(kind), Some(members)) = (kind, &members) {
            self.heading(path, &kind, layout, members);
        }
        for (number, member) in members.iter().flat_map(TLFields::iter).enumerate() {
            if number < first_version {
                self.member(path, number, &member);
            } else {
                self.appended.push_back((path.to_owned(), number, member));
            }
        }
        // What a type refers to without holding it.
        for (number, member) in layout.phantom_fields().iter().enumerate() {
            self.member(path, number, &member);
        }
    }

    fn heading(&mut self, path: &str, kind: &str, layout: &'static TypeLayout, members: &TLFields) {
        let path = if path.is_empty() { "root" } else { path };
        let count =
            if layout.is_prefix_kind() { String::new() } else { format!(" of {} members", members.len()) };
        let never_zero = if layout.is_nonzero() { ", never zero" } else { "" };
        let checks = layout.extra_checks().map_or_else(String::new, |checks| {
            format!(", {}", checks.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
        });
        let (repr, package) = (layout.repr_attr(), layout.package());
        self.lines.push(format!(
            "{path} = {} is {kind}{count}{}, {repr:?}, from {package}{never_zero}{checks}",
            layout.full_type(),
            size(layout)
        ));
    }

    fn member(&mut self, path: &str, number: usize, member: &TLField) {
        let own = join(path, member.name());
        let layout = member.layout();
        let what = if member.is_function() { "function".to_owned() } else { layout.full_type().to_string() };
        let lifetimes = lifetimes(member.lifetime_indices().as_slice());
        self.lines.push(format!("{own}: {what}, member {number}{}{lifetimes}", size(layout)));
        for function in member.function_range() {
            let at = if member.is_function() { own.clone() } else { join(&own, function.name.as_str()) };
            self.function(&at, &function);
        }
        // Steps that every pointer and object has would only make paths longer.
        let wrapping = matches!(member.name(), "0" | "obj");
        self.describe(if wrapping { path } else { &own }, layout);
    }

    fn function(&mut self, at: &str, function: &TLFunction) {
        let unsafety = if function.fn_qualifs.is_unsafe() { "unsafe" } else { "safe" };
        let lifetimes = lifetimes(function.paramret_lifetime_indices.as_slice());
        let count = function.param_type_layouts.len();
        // The ABI layer compares the names of parameters, too.
        let names = function.param_names;
        self.lines.push(format!("{at}: {unsafety}, takes {count} ({names}){lifetimes}"));
        for (number, layout) in function.param_type_layouts.iter().enumerate() {
            self.value(&format!("{at}.param_{number}"), layout());
        }
        if let Some(layout) = function.return_type_layout() {
            self.value(&format!("{at}.__returns"), layout());
        }
    }

    /// A parameter, or what is returned.
    fn value(&mut self, own: &str, layout: &'static TypeLayout) {
        self.lines.push(format!("{own}: {}{}", layout.full_type(), size(layout)));
        self.describe(own, layout);
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns how large a type is, unless it may grow.
fn size(layout: &TypeLayout) -> String {
    if layout.is_prefix_kind() {
        format!(", align {}", layout.alignment())
    } else {
        format!(", size {}, align {}", layout.size(), layout.alignment())
    }
}

fn lifetimes(indices: &[impl fmt::Debug]) -> String {
    if indices.is_empty() { String::new() } else { format!(", lifetimes {indices:?}") }
}

/// What has become of the layout that is checked in.
#[derive(Debug, PartialEq)]
enum Change {
    Nothing,
    /// Only lines were added, of which this is the first.
    Appended(String),
    /// This line is another or gone.
    Broken(String),
}

fn change(before: &str, now: &str) -> Change {
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let (before, now) = (lines(before), lines(now));
    let mut added = None;
    let mut rest = now.into_iter();
    for line in before {
        loop {
            match rest.next() {
                Some(next) if next == line => break,
                Some(next) => added = added.or(Some(next)),
                None => return Change::Broken(line),
            }
        }
    }
    added.or_else(|| rest.next()).map_or(Change::Nothing, Change::Appended)
}

/// Says which number to raise, and what else to do.
fn advice(change: &Change) -> String {
    let write =
        format!("write `plugin-api/abi-layout.txt` anew: {WRITE}=1 cargo test -p hostel-plugin-api layout");
    match change {
        Change::Nothing => format!("only the version in its head is another; {write}"),
        Change::Appended(line) => format!(
            "the interface has grown, first by\n    {line}\nplugins that exist still fit. Unless that was done since the last \
             release, raise the minor number of `API_VERSION` in `src/abi/root.rs` and freeze the interface of that release \
             in `tests/abi`; then {write}"
        ),
        Change::Broken(line) => format!(
            "the interface is another, first where it had\n    {line}\nno plugin that exists fits any more. If that is meant, \
             raise the major number of `API_VERSION` in `src/abi/root.rs` and freeze the interface of the last release in \
             `tests/abi`; then {write}"
        ),
    }
}

#[test]
fn the_layout_is_the_one_that_is_checked_in() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("abi-layout.txt");
    let now = text();
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, now).unwrap();
        return;
    }
    let before = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; {WRITE}=1 writes it", path.display()));
    assert!(before == now, "{}", advice(&change(&before, &now)));
}

#[test]
fn the_layout_names_members_by_their_paths() {
    let text = text();
    assert_eq!(text, self::text(), "it is the same each time");
    let has = |part: &str| text.lines().any(|line| line.contains(part));
    assert!(has("register.param_0: AbiRegistration_TO"), "{text}");
    assert!(has(".execute.param_1.stdin_fd: i32, member 4, size 4, align 4"), "{text}");
    assert!(has(".create_environment.param_1.timeout_ns: u64, member 2, size 8, align 8"), "{text}");
}

#[test]
fn what_is_appended_to_the_layout_asks_for_a_minor_version() {
    let before = "# 1.0.0\na = A is table\na.x: u32\nb: u64\n";
    let grown = "# 1.1.0\na = A is table\na.x: u32\nb: u64\na.y: u8\n";
    assert_eq!(change(before, grown), Change::Appended("a.y: u8".into()));
    let between = "# 1.1.0\na = A is table\na.x: u32\na.y: u8\nb: u64\na.z: u8\n";
    assert_eq!(change(before, between), Change::Appended("a.y: u8".into()));
    let advice = advice(&change(before, grown));
    assert!(advice.contains("raise the minor number of `API_VERSION`") && advice.contains("a.y"), "{advice}");
    assert_eq!(change(before, "a = A is table\na.x: u32\nb: u64\n"), Change::Nothing);
}

#[test]
fn what_the_layout_has_lost_or_changed_asks_for_a_major_version() {
    let before = "a.x: u32, member 0\na.y: u8, member 1\n";
    for now in [
        "a.x: u32, member 0\n",
        "a.x: u64, member 0\na.y: u8, member 1\n",
        "a.y: u8, member 1\na.x: u32, member 0\n",
        "a.x: u32, member 0\na.new: u8, member 1\na.y: u8, member 2\n",
        "",
    ] {
        let change = change(before, now);
        assert!(matches!(change, Change::Broken(_)), "{now}");
        assert!(advice(&change).contains("raise the major number of `API_VERSION`"));
    }
    let renamed = change(before, "a.x: u32, member 0\na.z: u8, member 1\n");
    assert_eq!(renamed, Change::Broken("a.y: u8, member 1".into()));
}
