//! `hostel doctor`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use hostel_plugin_api::DoctorCheck;
use serde::Serialize;

use super::failure::{FAILED, Failure};
use super::print::Out;
use crate::config::Config;
use crate::home::Home;
use crate::plugins::worker::{kernel_lacks, not_enforceable};
use crate::plugins::{Catalog, Choice, Isolation, flaw_on_the_way};
use crate::registry::{Entry, Origin, Provider, ask, open_in_time};
use crate::world::{OpenError, Options, World};

#[derive(Serialize)]
struct Row {
    ok: bool,
    /// Whether it is worth a look though nothing fails.
    warning: bool,
    label: String,
    detail: String,
    source: String,
}

fn row(ok: bool, label: impl Into<String>, detail: impl Into<String>, source: impl Into<String>) -> Row {
    Row { ok, warning: false, label: label.into(), detail: detail.into(), source: source.into() }
}

pub(super) fn run(json: bool, out: &mut Out) -> Result<u8, Failure> {
    let rows = match World::open(Options::default()) {
        Ok(mut world) => {
            world.catalog.look_at_libraries();
            examine(&world)
        }
        Err(error) => without_world(error),
    };
    if json {
        out.json(&rows)?;
    } else {
        let line = |row: &Row| {
            let word = match (row.ok, row.warning) {
                (false, _) => "FAIL",
                (true, true) => "warn",
                (true, false) => "ok",
            };
            vec![word.to_owned(), row.label.clone(), row.detail.clone()]
        };
        out.table(&rows.iter().map(line).collect::<Vec<_>>())?;
    }
    Ok(if rows.iter().all(|row| row.ok) { 0 } else { FAILED })
}

/// What can be said where the configuration cannot be used: the plugins are looked at all the same.
fn without_world(error: OpenError) -> Vec<Row> {
    let mut rows = vec![row(false, "configuration", Failure::from(error).message, "hostel")];
    let home = Home::find().ok();
    if let Some(mut catalog) = home.map(|home| Catalog::scan(&home, &[], &[])) {
        catalog.look_at_libraries();
        rows.extend(plugins(&catalog, None));
    }
    rows
}

fn plugins(catalog: &Catalog, config: Option<&Config>) -> Vec<Row> {
    let candidates = catalog.candidates.iter().map(|candidate| {
        let label = format!("plugin {}", candidate.name);
        let source = format!("plugin:{}", candidate.name);
        if let Some(problem) = &candidate.problem {
            row(false, label, format!("{}: {}", candidate.path.display(), problem.reason()), source)
        } else {
            let enabled = candidate.choice == Choice::Enabled;
            let free = config.is_some_and(|config| {
                enabled && Isolation::of(config, &candidate.name) == Isolation::InProcess
            });
            let free =
                free.then(|| "it runs in Hostel's own process, not held to its permissions".to_owned());
            let asked = candidate.found.as_ref().filter(|_| enabled && free.is_none());
            let open = asked.map(|found| not_enforceable(&found.manifest.permissions)).unwrap_or_default();
            let remarks: Vec<String> = candidate.remark.iter().cloned().chain(free).chain(open).collect();
            let detail = [candidate.status().to_owned()].into_iter().chain(remarks.iter().cloned());
            let row = row(true, label, detail.collect::<Vec<_>>().join("; "), source);
            Row { warning: !remarks.is_empty(), ..row }
        }
    });
    let missing = catalog.missing.iter();
    let missing = missing
        .map(|name| row(false, format!("plugin {name}"), "it is enabled, but no folder has it", "hostel"));
    candidates.chain(missing).collect()
}

fn examine(world: &World) -> Vec<Row> {
    let mut rows = vec![home(&world.home)];
    let findings = world.check();
    if findings.is_empty() {
        rows.push(row(true, "configuration", world.home.config().display().to_string(), "hostel"));
    }
    rows.extend(
        findings
            .into_iter()
            .map(|finding| row(!finding.is_error, "configuration", finding.message, "hostel"))
            .map(|row| Row { warning: row.ok, ..row }),
    );
    rows.push(selected(world));
    rows.push(confinement());
    rows.extend(plugins(&world.catalog, Some(&world.config)));
    rows.extend(world.remarks.iter().map(|line| row(false, "plugins", line.clone(), "hostel")));
    // Side by side, so that one that hangs does not add to another.
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            world.registry.entries().into_iter().map(|entry| scope.spawn(move || provider(entry))).collect();
        rows.extend(asked.into_iter().filter_map(|rows| rows.join().ok()).flatten());
    });
    rows
}

fn home(home: &Home) -> Row {
    let path = home.path();
    let usable =
        |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    let inner = [path.join("state"), path.join("state/tasks"), home.outputs()];
    if let Some(bad) =
        inner.iter().find(|path| path.symlink_metadata().is_ok() && (!path.is_dir() || usable(path).is_err()))
    {
        return row(
            false,
            "home",
            format!("`{}` is not a folder that can be written to", bad.display()),
            "hostel",
        );
    }
    if usable(path).is_ok()
        && let Err(error) = has_room(path)
    {
        let line = format!("`{}` cannot be written to: {error}; make room on that disk", path.display());
        return row(false, "home", line, "hostel");
    }
    match usable(path) {
        Ok(()) => match flaw(home) {
            None => row(true, "home", path.display().to_string(), "hostel"),
            Some(flaw) => {
                Row { warning: true, ..row(true, "home", format!("no plugin is loaded: {flaw}"), "hostel") }
            }
        },
        Err(rustix::io::Errno::NOENT) => {
            row(true, "home", format!("{} (made when first needed)", path.display()), "hostel")
        }
        Err(error) => {
            row(false, "home", format!("`{}` cannot be written to: {error}", path.display()), "hostel")
        }
    }
}

/// Writes a page to a file that has no name, to see whether there is room for one.
fn has_room(folder: &Path) -> std::io::Result<()> {
    tempfile::tempfile_in(folder)?.write_all(&[0; 4096])
}

/// Returns why the home, or the way to it, is not only the user's to write to.
fn flaw(home: &Home) -> Option<String> {
    let folder = home.plugins().canonicalize().or_else(|_| home.path().canonicalize()).ok()?;
    flaw_on_the_way(&folder).map(|flaw| format!("{}; {}", flaw.reason, flaw.hint))
}

/// Whether the kernel can hold plugins to their permissions.
fn confinement() -> Row {
    let lacking = kernel_lacks();
    if lacking.is_empty() {
        return row(true, "permissions", "plugins are held to theirs by Landlock and seccomp", "hostel");
    }
    Row { warning: true, ..row(true, "permissions", lacking.join("; "), "hostel") }
}

fn selected(world: &World) -> Row {
    match (world.config.backend(), world.selected()) {
        (Ok(setting), Ok(entry)) => match open_in_time(entry) {
            Ok(_) => {
                row(true, "selected backend", format!("{} (from {})", entry.name(), setting.origin), "hostel")
            }
            Err(error) => row(
                false,
                "selected backend",
                format!("{} (from {})", error.message(), setting.origin),
                "hostel",
            ),
        },
        (Err(error), _) => row(false, "selected backend", error.to_string(), "hostel"),
        (_, Err(error)) => row(false, "selected backend", error.to_string(), "hostel"),
    }
}

/// The rows that a backend has to say itself. One that cannot be used because nobody wants it says nothing.
fn provider(entry: &Arc<Entry>) -> Vec<Row> {
    if entry.closed_because().is_some() {
        return Vec::new();
    }
    let source = match entry.origin() {
        Origin::Builtin => entry.name().to_owned(),
        Origin::Plugin(_) => entry.origin().to_string(),
    };
    let label = format!("{} backend", entry.name());
    let provider: Provider = match open_in_time(entry) {
        Ok(provider) => provider,
        Err(error) => return vec![row(false, label, error.message(), source)],
    };
    let silent = vec![DoctorCheck::fail(label, "it did not answer within 2 s")];
    let checks = ask(
        &provider,
        "doctor_checks",
        silent,
        hostel_plugin_api::TerminalEnvironmentProvider::doctor_checks,
    );
    checks.into_iter().map(|check| row(check.ok, check.label, check.detail, source.clone())).collect()
}
