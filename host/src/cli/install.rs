//! `hostel plugins install`, `update` and `remove`.

use std::any::Any;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::consent::{Act, agree};
use super::failure::Failure;
use super::plugins::{enable, introduce, readable};
use super::print::{Out, say, visible};
use super::{question, tidy};
use crate::dotenv;
use crate::home::Home;
use crate::plugins::install::{
    InstallError, InstallOptions, Installed, Placed, Progress, Source, Updated, install_then,
    remove as take_away, update_then,
};
use crate::plugins::{Asked, Discovered, Manifest, Record, sound};
use crate::world::{Options, World};

pub(super) fn install(
    source: &str,
    options: &InstallOptions,
    enabling: bool,
    yes: bool,
    out: &mut Out,
) -> Result<(), Failure> {
    let world = readable()?;
    let source = Source::parse(source)?;
    let mut enabled = Enabled::new(enabling, yes);
    let installed = install_then(&world.home, &source, options, &Bar::default(), &mut |found| {
        enabled.then(&world.home, found)
    })?;
    report(&installed, &enabled, out)
}

pub(super) fn update(name: &str, enabling: bool, yes: bool, out: &mut Out) -> Result<(), Failure> {
    let world = readable()?;
    let mut enabled = Enabled::new(enabling, yes);
    let updated =
        update_then(&world.home, name, &Bar::default(), &mut |found| enabled.then(&world.home, found))?;
    match updated {
        Updated::Already { name, version } => {
            out.line(&format!("{name} {version} is up to date"))?;
            // It may have been brought up to date before, and never enabled since.
            if enabling { enable(&readable()?, &name, yes, Act::Replacing, out) } else { Ok(()) }
        }
        Updated::Replaced(installed) => report(&installed, &enabled, out),
    }
}

/// What enabling has to say once all is in place.
struct Enabled {
    wanted: bool,
    yes: bool,
    manifest: Option<Manifest>,
    stored: Vec<String>,
    warnings: Vec<String>,
}

impl Enabled {
    fn new(wanted: bool, yes: bool) -> Self {
        Self { wanted, yes, manifest: None, stored: Vec::new(), warnings: Vec::new() }
    }

    /// Has the plugin agreed to, and asks its library, before it is put in place; there it is enabled.
    fn then(&mut self, home: &Home, found: &Discovered) -> Result<Placed, InstallError> {
        let after = |failure: Failure| InstallError::After { message: failure.message, hint: failure.hint };
        let name = &found.manifest.name;
        let open = |home: &Home| World::open(Options { home: Some(home.clone()), ..Options::default() });
        if !self.wanted {
            self.stored = ask_for(home, &found.manifest, self.yes).map_err(after)?;
            return Ok(Box::new(|_| Ok(())));
        }
        let world = open(home).map_err(|error| after(error.into()))?;
        agree(found, Record::load(home, name).as_ref(), Act::Replacing, self.yes).map_err(after)?;
        self.stored = ask_for(home, &found.manifest, self.yes).map_err(after)?;
        let asked = Asked::of(&world, found)?;
        self.warnings.clone_from(&asked.warnings);
        self.manifest = Some(found.manifest.clone());
        let home = home.clone();
        Ok(Box::new(move |found| {
            // Beside the others it may have a problem that it has not alone.
            let world = open(&home).map_err(|error| after(error.into()))?;
            sound(&world.catalog, &found.manifest.name)?;
            Ok(asked.enable(&home, found.folder.clone())?)
        }))
    }
}

fn report(installed: &Installed, enabled: &Enabled, out: &mut Out) -> Result<(), Failure> {
    let Installed { name, version, replaced, warnings, .. } = installed;
    let version = visible(version);
    out.line(&match replaced {
        Some(before) if *before != version => {
            format!("installed {name} {version} in place of {}", visible(before))
        }
        Some(_) => format!("installed {name} {version} again"),
        None => format!("installed {name} {version}"),
    })?;
    if replaced.is_some() {
        say("note", "what of Hostel runs already keeps the version that it has; restart it to use this one");
    }
    for warning in warnings.iter().chain(&enabled.warnings) {
        say("warning", warning);
    }
    match &enabled.manifest {
        Some(manifest) => {
            out.line(&format!("enabled {name}"))?;
            introduce(manifest, &enabled.stored);
        }
        None => say("note", &format!("nothing of it has run; enable it with `hostel plugins enable {name}`")),
    }
    Ok(())
}

pub(super) fn remove(world: &World, name: &str, purge: bool, out: &mut Out) -> Result<(), Failure> {
    let removed = take_away(&world.home, &world.catalog, name, !purge)?;
    out.line(&format!("removed {name}"))?;
    for warning in &removed.warnings {
        say("warning", warning);
    }
    if let Some(linked) = &removed.linked {
        say("note", &format!("its folder was a link; `{}` was left alone", linked.display()));
    }
    if let Some(data) = removed.kept_data.filter(|_| !purge) {
        say("note", &format!("its own data is kept in `{}`; `--purge` removes that as well", data.display()));
    }
    Ok(())
}

/// Returns whether a variable is set to something.
pub(super) fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Asks for the variables that the plugin requires and that are not set, and keeps them in `.env`. Returns their names. Asks
/// nobody where nobody is there to answer.
pub(super) fn ask_for(home: &Home, manifest: &Manifest, yes: bool) -> Result<Vec<String>, Failure> {
    let mut stored = Vec::new();
    if yes || !question::somebody_is_there() {
        return Ok(stored);
    }
    let known = dotenv::load(home)?;
    for required in &manifest.requires_env {
        if is_set(&required.name) || known.get(&required.name).is_some() {
            continue;
        }
        let about = required.description.as_deref().map(visible);
        let url = required.url.as_deref().map(visible);
        for line in about.into_iter().chain(url) {
            say("note", &line);
        }
        let text = format!("{} (empty to leave it unset): ", required.name);
        let answer = question::ask(&text, required.secret).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => Failure::interrupted(),
            _ => Failure::new(format!("failed to read an answer: {error}")),
        })?;
        if !answer.trim().is_empty() {
            dotenv::set(home, &required.name, answer.trim())?;
            stored.push(required.name.clone());
        }
    }
    if !stored.is_empty() {
        say("note", &format!("kept {} in `{}`", stored.join(", "), home.path().join(".env").display()));
    }
    Ok(stored)
}

/// A download's progress, on a terminal only.
struct Bar(ProgressBar);

impl Default for Bar {
    fn default() -> Self {
        Self(ProgressBar::hidden())
    }
}

impl Bar {
    fn begin(&self, what: &str, form: &str, length: u64) {
        if !io::stderr().is_terminal() {
            return;
        }
        self.0.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        self.0.set_style(style(form));
        self.0.set_length(length);
        self.0.set_prefix(visible(what));
        self.0.enable_steady_tick(TICK);
    }
}

/// Makes a style of a form, which is a constant and sound.
fn style(form: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}

/// How often it is drawn where nothing moves.
const TICK: Duration = Duration::from_millis(100);

impl Progress for Bar {
    fn staged(&self, folder: &Path) {
        tidy::remove_on_signal(folder);
    }

    fn undisturbed(&self) -> Box<dyn Any> {
        Box::new(tidy::undisturbed())
    }

    fn start(&self, what: &str, total: Option<u64>) {
        let form = match total {
            Some(_) => "{prefix} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            None => "{spinner} {prefix} {bytes} {bytes_per_sec}",
        };
        self.begin(what, form, total.unwrap_or(0));
    }

    fn start_steps(&self, what: &str) {
        self.begin(what, "{spinner} {prefix}", 0);
    }

    fn reached(&self, step: &str, percent: u8) {
        if self.0.length() != Some(100) {
            self.0.set_style(style("{prefix} [{bar:30}] {percent}% {msg}"));
            self.0.set_length(100);
        }
        self.0.set_message(visible(step));
        self.0.set_position(percent.into());
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    fn finish(&self) {
        self.0.finish_and_clear();
    }
}
