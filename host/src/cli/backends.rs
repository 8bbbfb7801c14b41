//! `hostel backends` and `hostel status`.

use std::sync::Arc;

use hostel_plugin_api::{ErrorKind, Probe};
use serde::Serialize;
use serde_json::{Value, json};

use super::failure::Failure;
use super::print::{Out, say};
use crate::registry::{Entry, Flags, Origin, ask, open_in_time};
use crate::world::World;

#[derive(Serialize)]
struct Row {
    name: String,
    origin: String,
    selected: bool,
    status: &'static str,
    detail: String,
    display_name: String,
    description: String,
    flags: Value,
}

impl Row {
    fn of(entry: &Arc<Entry>, selected: Option<&str>) -> Self {
        let mut row = Self {
            name: entry.name().to_owned(),
            origin: entry.origin().to_string(),
            selected: selected == Some(entry.name()),
            status: "unavailable",
            detail: String::new(),
            display_name: entry.name().to_owned(),
            description: entry.description().to_owned(),
            flags: json!({}),
        };
        let provider = match open_in_time(entry) {
            Ok(provider) => provider,
            Err(error) => {
                if error.kind() == ErrorKind::NOT_CONFIGURED {
                    row.status = "needs_setup";
                }
                row.detail = match error.hint().filter(|_| *entry.origin() != Origin::Builtin) {
                    Some(hint) => format!("{}; {hint}", error.message()),
                    None => error.message().to_owned(),
                };
                return row;
            }
        };
        let silent =
            (Probe::unavailable("it did not answer within 2 s"), row.name.clone(), row.description.clone());
        // One question, so that a provider that hangs costs its two seconds once.
        let (probe, display_name, description) = ask(&provider, "probe", silent, |provider| {
            (provider.probe(), provider.display_name(), provider.description())
        });
        row.status = probe.status.as_str();
        row.detail = probe.detail;
        row.display_name = display_name;
        row.description = description;
        row.flags = serde_json::to_value(Flags::read(&provider)).unwrap_or_default();
        row
    }
}

/// Asks all backends side by side, so that one that hangs costs two seconds and not two for each.
fn rows(world: &World) -> Vec<Row> {
    let selected = world.selected().ok().map(|entry| entry.name());
    std::thread::scope(|scope| {
        let entries = world.registry.entries();
        let asked: Vec<_> =
            entries.into_iter().map(|entry| scope.spawn(move || Row::of(entry, selected))).collect();
        asked.into_iter().filter_map(|row| row.join().ok()).collect()
    })
}

pub(super) fn list(world: &World, json: bool, out: &mut Out) -> Result<(), Failure> {
    let rows = rows(world);
    if json {
        out.json(&rows)?;
    } else {
        let mut table = vec![["", "NAME", "ORIGIN", "STATUS", "DESCRIPTION"].map(str::to_owned).to_vec()];
        for row in &rows {
            let mark = if row.selected { "*" } else { "" };
            let about = if row.detail.is_empty() {
                row.description.clone()
            } else {
                format!("{} ({})", row.description, row.detail)
            };
            table.push(vec![
                mark.to_owned(),
                row.name.clone(),
                row.origin.clone(),
                row.status.to_owned(),
                about,
            ]);
        }
        out.table(&table)?;
    }
    if let Err(error) = world.selected() {
        say("warning", error.message());
    }
    for line in &world.remarks {
        say("warning", line);
    }
    Ok(())
}

pub(super) fn status(world: &World, json: bool, out: &mut Out) -> Result<(), Failure> {
    let setting = world.config.backend()?;
    let name = setting.value.as_str().unwrap_or_default().to_owned();
    let row = world.selected().map(|entry| Row::of(entry, Some(entry.name())));
    let (state, detail) = match &row {
        Ok(row) => (row.status, row.detail.clone()),
        Err(error) => ("unknown", error.message().to_owned()),
    };
    let counted = |status: &str| {
        world.catalog.candidates.iter().filter(|candidate| candidate.status() == status).count()
    };
    let (enabled, bad) = (counted("enabled"), counted("error") + counted("rejected"));
    if json {
        return Ok(out.json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "home": world.home.path(),
            "backend": {"name": name, "origin": setting.origin.to_string(), "status": state, "detail": detail},
            "plugins": {"found": world.catalog.candidates.len(), "enabled": enabled, "bad": bad},
        }))?);
    }
    let state = if detail.is_empty() { state.to_owned() } else { format!("{state} ({detail})") };
    out.table(&[
        vec!["version:".into(), env!("CARGO_PKG_VERSION").into()],
        vec!["home:".into(), world.home.path().display().to_string()],
        vec!["backend:".into(), format!("{name} (from {})", setting.origin)],
        vec!["state:".into(), state],
        vec![
            "plugins:".into(),
            format!("{} found, {enabled} enabled, {bad} unusable", world.catalog.candidates.len()),
        ],
    ])?;
    Ok(())
}
