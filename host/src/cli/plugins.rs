//! `hostel plugins`.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;

use super::args::Plugins;
use super::check;
use super::consent::{Act, agree};
use super::failure::Failure;
use super::install::{self, ask_for, is_set};
use super::print::{Out, say, visible};
use super::tidy;
use crate::plugins::check::Options;
use crate::plugins::install::InstallOptions;
use crate::plugins::{self, Candidate, Manifest};
use crate::world::{self, World};

pub(super) fn run(action: Plugins, out: &mut Out) -> Result<u8, Failure> {
    match action {
        // These two need no home.
        Plugins::New { name, path, api_path } => new(&name, path, api_path, out)?,
        Plugins::Check { path, release, only, settings, json } => {
            return check::run(
                &path,
                &Options { release, only, settings, on_room: Some(tidy::remove_on_signal) },
                json,
                out,
            );
        }
        Plugins::List { json } => list(&looked_at()?, json, out)?,
        Plugins::Show { name, json } => show(&looked_at()?, &name, json, out)?,
        Plugins::Enable { name, yes } => enable(&readable()?, &name, yes, Act::Enabling, out)?,
        Plugins::Install { source, sha256, reference, force, enable, yes } => {
            let options = InstallOptions { sha256, force, reference };
            install::install(&source, &options, enable, yes, out)?;
        }
        Plugins::Update { name, enable, yes } => install::update(&name, enable, yes, out)?,
        Plugins::Remove { name, purge } => install::remove(&readable()?, &name, purge, out)?,
        Plugins::Disable { name } => {
            let world = readable()?;
            let changed = plugins::disable(&world.home, &world.catalog, &name)?;
            out.line(&if changed { format!("disabled {name}") } else { format!("{name} was not enabled") })?;
        }
    }
    Ok(0)
}

/// Opens the world, whose plugins must be readable.
pub(super) fn readable() -> Result<World, Failure> {
    let world = World::open(world::Options::default())?;
    match &world.catalog.unread {
        Some(reason) => Err(Failure::new(reason).with_hint("it should be a folder that you may read")),
        None => Ok(world),
    }
}

/// Opens the world, and looks at every library.
fn looked_at() -> Result<World, Failure> {
    let mut world = readable()?;
    world.catalog.look_at_libraries();
    Ok(world)
}

fn new(name: &str, path: Option<PathBuf>, api_path: Option<PathBuf>, out: &mut Out) -> Result<(), Failure> {
    let folder = path.unwrap_or_else(|| name.into());
    let api = api_path.map_or(plugins::Api::Carried, plugins::Api::Path);
    for file in plugins::create(name, &folder, &api)? {
        out.line(&folder.join(file).display().to_string())?;
    }
    say("note", &format!("go on with `cd {}`, `cargo test`, `hostel plugins check .`", folder.display()));
    Ok(())
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    version: Option<&'a str>,
    description: Option<&'a str>,
    kind: String,
    provides: &'a [String],
    status: &'static str,
    error: Option<&'a str>,
    warnings: &'a [String],
    /// What would keep it from being enabled.
    remark: Option<&'a str>,
    path: String,
}

impl<'a> Row<'a> {
    fn of(candidate: &'a Candidate) -> Self {
        let manifest = candidate.found.as_ref().map(|found| &found.manifest);
        Self {
            name: &candidate.name,
            version: manifest.map(|manifest| manifest.version.as_str()),
            description: manifest.map(|manifest| manifest.description.as_str()),
            kind: manifest
                .map(|manifest| manifest.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(","))
                .unwrap_or_default(),
            provides: manifest.map(|manifest| manifest.provides.as_slice()).unwrap_or_default(),
            status: candidate.status(),
            error: candidate.problem.as_ref().map(plugins::Problem::reason),
            warnings: &candidate.warnings,
            remark: candidate.remark.as_deref(),
            path: candidate.path.to_string_lossy().into_owned(),
        }
    }
}

fn list(world: &World, json: bool, out: &mut Out) -> Result<(), Failure> {
    let rows: Vec<Row> = world.catalog.candidates.iter().map(Row::of).collect();
    if json {
        return Ok(out.json(&rows)?);
    }
    if rows.is_empty() {
        out.line(&format!("no plugins in {}", world.home.plugins().display()))?;
    } else {
        let mut table =
            vec![["NAME", "VERSION", "STATUS", "PROVIDES", "DESCRIPTION"].map(str::to_owned).to_vec()];
        for row in &rows {
            table.push(vec![
                row.name.to_owned(),
                row.version.unwrap_or("-").to_owned(),
                row.status.to_owned(),
                if row.provides.is_empty() { "-".to_owned() } else { row.provides.join(",") },
                row.error.or(row.description).unwrap_or_default().to_owned(),
            ]);
        }
        out.table(&table)?;
    }
    for row in &rows {
        let problem = row.error.or(row.remark).map(|error| format!("{}: {error}", row.path));
        let warnings = row.warnings.iter().map(|warning| format!("{}: {warning}", row.path));
        for line in problem.into_iter().chain(warnings) {
            say("warning", &line);
        }
    }
    for name in &world.catalog.missing {
        say(
            "warning",
            &format!("`plugins.enabled` names `{}`, but no folder has that plugin", visible(name)),
        );
    }
    Ok(())
}

fn show(world: &World, name: &str, json: bool, out: &mut Out) -> Result<(), Failure> {
    let Some(candidate) = world.catalog.get(name) else {
        return Err(plugins::EnableError::Unknown(name.to_owned()).into());
    };
    let row = Row::of(candidate);
    let manifest = candidate.found.as_ref().map(|found| &found.manifest);
    let checked = candidate
        .found
        .as_ref()
        .map(|found| found.verify(candidate.record.as_ref().map(|record| &record.pin)));
    let differences = match (&candidate.found, &candidate.record) {
        (Some(found), Some(record)) => plugins::differences(found, record),
        _ => Vec::new(),
    };
    let permissions = manifest.map(|manifest| manifest.asked().words()).unwrap_or_default();
    let loadable = match &checked {
        _ if row.error.is_some() => row.error.map(str::to_owned),
        Some(Err(error)) => Some(error.to_string()),
        Some(Ok(_)) | None => None,
    };
    let required: Vec<_> =
        manifest.map(|manifest| manifest.requires_env.as_slice()).unwrap_or_default().iter().collect();
    if json {
        let mut value = serde_json::to_value(&row).unwrap_or_default();
        let more = json!({
            "author": manifest.and_then(|manifest| manifest.author.as_ref()),
            "homepage": manifest.and_then(|manifest| manifest.homepage.as_ref()),
            "license": manifest.and_then(|manifest| manifest.license.as_ref()),
            "requires_env": required.iter().map(|required| json!({
                "name": required.name, "description": required.description, "url": required.url,
                "secret": required.secret, "set": is_set(&required.name),
            })).collect::<Vec<_>>(),
            "permissions": manifest.map(|manifest| &manifest.permissions),
            "differences": differences,
            "record": candidate.record,
            "problem": loadable,
        });
        if let (Some(value), serde_json::Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        return Ok(out.json(&value)?);
    }
    let mut table: Vec<Vec<String>> = Vec::new();
    let mut add = |label: &str, text: Option<&str>| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            table.push(vec![format!("{label}:"), visible(text)]);
        }
    };
    add("name", Some(row.name));
    add("version", row.version);
    add("description", row.description);
    add("kind", Some(&row.kind));
    add("provides", Some(&row.provides.join(", ")));
    add("author", manifest.and_then(|manifest| manifest.author.as_deref()));
    add("homepage", manifest.and_then(|manifest| manifest.homepage.as_deref()));
    add("license", manifest.and_then(|manifest| manifest.license.as_deref()));
    add("folder", Some(&row.path));
    add("status", Some(row.status));
    if let Some(record) = &candidate.record {
        add("library", Some(&format!("{} ({} bytes)", record.pin.library, record.pin.size)));
        add("sha256", Some(&record.pin.sha256));
        add("built for", Some(&format!("plugin API {}", record.api_version)));
        let stripped: Vec<&str> = record
            .providers
            .iter()
            .flat_map(|provider| provider.strip_env_keys.iter().map(String::as_str))
            .collect();
        add("hides", Some(&stripped.join(", ")));
    }
    for required in required {
        let state = if is_set(&required.name) { "set" } else { "not set" };
        let about = required.description.as_deref().unwrap_or_default();
        let url = required.url.as_deref().map(|url| format!(" ({url})")).unwrap_or_default();
        add(
            "wants",
            Some(&format!(
                "{}: {state}{}{about}{url}",
                required.name,
                if about.is_empty() { "" } else { "; " }
            )),
        );
    }
    for line in &permissions {
        add("permission", Some(line));
    }
    for line in &differences {
        add("changed", Some(line));
    }
    add("problem", loadable.as_deref());
    for warning in row.warnings {
        add("warning", Some(warning));
    }
    Ok(out.table(&table)?)
}

pub(super) fn enable(world: &World, name: &str, yes: bool, act: Act, out: &mut Out) -> Result<(), Failure> {
    let wanted = world.catalog.get(name).filter(|candidate| candidate.problem.is_none());
    let stored = match wanted.and_then(|candidate| Some((candidate, candidate.found.as_ref()?))) {
        Some((candidate, found)) => {
            agree(found, candidate.record.as_ref(), act, yes)?;
            ask_for(&world.home, &found.manifest, yes)?
        }
        None => Vec::new(),
    };
    let (candidate, warnings) = plugins::enable(world, name)?;
    out.line(&format!("enabled {name}"))?;
    for warning in warnings {
        say("warning", &warning);
    }
    if let Some(found) = &candidate.found {
        introduce(&found.manifest, &stored);
    }
    Ok(())
}

/// Says what a plugin that was enabled may do, what it still wants, and how to use it.
pub(super) fn introduce(manifest: &Manifest, stored: &[String]) {
    for line in manifest.asked().words() {
        say("note", &format!("it {line}"));
    }
    for required in manifest.requires_env.iter().filter(|required| !stored.contains(&required.name)) {
        if !is_set(&required.name) {
            let about = required.description.as_deref().map(|about| format!(" ({})", visible(about)));
            let about = about.unwrap_or_default();
            say("note", &format!("it wants the variable `{}`{about}, which is not set", required.name));
        }
    }
    if manifest.kinds.contains(&plugins::Kind::Backend) {
        say("note", &format!("select it with `hostel config set terminal.backend {}`", manifest.provides[0]));
    }
}
