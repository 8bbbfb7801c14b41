//! From a folder to providers: `Discovered` → `Verified` → `Opened`.
//!
//! What has not been verified cannot be opened: the types say so. Between the check and the opening the file could be
//! exchanged, so the bytes that were checked are copied into a sealed file in memory, and that is what the loader opens; an
//! update that writes over the file on disk then cannot pull the mapped pages from under a running host either.
//! A library is never unloaded, because nothing can tell whether threads, handlers or objects of its own still live.

use std::ffi::c_void;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use hostel_plugin_api::abi::ForeignProvider;
use hostel_plugin_api::abi::root::{CheckedRoot, ROOT_SYMBOL, RootError};
use hostel_plugin_api::{ErrorKind, Surroundings, TerminalEnvironmentProvider};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};
use object::read::{ReadCache, ReadRef};
use serde::{Deserialize, Serialize};

use super::error::{LoadError, Step};
use super::manifest::{Kind, Manifest};
use super::sealed::{Copied, CopyError, sealed_copy};
use super::{granted, preflight, trust};
use crate::home::Home;
use crate::registry::{check_name, fold};

/// `RTLD_NODELETE`: even a `dlclose` by the library itself leaves it mapped.
const RTLD_NODELETE: i32 = 0x1000;

/// More than this is no plugin.
const LONGEST: u64 = 1 << 30;

/// The library that was enabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Its file name.
    pub library: String,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// Its length in bytes.
    pub size: u64,
}

/// A folder with a manifest that was read.
#[derive(Debug, Clone)]
pub struct Discovered {
    /// The folder, without links.
    pub folder: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
}

/// A library whose file was checked, with a copy of what was.
#[derive(Debug)]
pub struct Verified {
    manifest: Manifest,
    path: PathBuf,
    copy: File,
    facts: preflight::Facts,
    pin: Pin,
}

/// A library that is loaded, and whose interface is ours.
pub struct Opened {
    manifest: Manifest,
    root: CheckedRoot,
}

/// A provider that a plugin registered.
pub struct Registered {
    /// The provider.
    pub provider: ForeignProvider,
    /// What it wants stripped, or why it could not say so.
    pub strip_env: Result<Vec<String>, String>,
}

impl Discovered {
    /// Returns what the plugin is told when it registers; `settings` are the user's for it.
    #[must_use]
    pub fn surroundings(&self, home: &Home, settings: serde_json::Value) -> Surroundings {
        Surroundings {
            host_version: env!("CARGO_PKG_VERSION").into(),
            plugin_dir: self.folder.clone(),
            data_dir: home.plugin_data(&self.manifest.name),
            settings,
        }
    }

    /// Checks the plugin's files: that nobody else may write to them, that the library is the one that was enabled (if
    /// `pin` is given), and that it can be a plugin of this host.
    ///
    /// # Errors
    ///
    /// Fails at the first step that does not pass. No code of the plugin has run.
    pub fn verify(&self, pin: Option<&Pin>) -> Result<Verified, LoadError> {
        let name = &self.manifest.name;
        let path = self.trusted_library()?;
        let Copied { file: copy, sha256, size } = sealed_copy(name, open(name, &path)?.take(LONGEST))
            .map_err(|error| not_copied(name, &path, error))?;
        let found = Pin { library: file_name(&path), sha256, size };
        if let Some(pin) = pin.filter(|pin| **pin != found) {
            let differs = if found.library == pin.library {
                format!("SHA-256 is {}…, was {}…", short(&found.sha256), short(&pin.sha256))
            } else {
                format!("it was `{}`", pin.library)
            };
            return Err(changed(name, &path, &differs));
        }
        let facts = self.preflight(&path, &ReadCache::new(&copy))?;
        granted::check_libraries(self, &facts.needed)?;
        Ok(Verified { manifest: self.manifest.clone(), path, copy, facts, pin: found })
    }

    /// Checks what can be checked without reading all of the library, for lists of what is not enabled.
    ///
    /// # Errors
    ///
    /// Fails at the first step that does not pass.
    pub fn glance(&self) -> Result<(), LoadError> {
        let name = &self.manifest.name;
        let path = self.trusted_library()?;
        let cache = ReadCache::new(open(name, &path)?);
        self.preflight(&path, &cache).map(drop)
    }

    fn preflight<'data>(
        &self,
        path: &Path,
        data: impl ReadRef<'data>,
    ) -> Result<preflight::Facts, LoadError> {
        let checked = preflight::check(data, self.manifest.api_version.as_deref());
        checked.map_err(|flaw| {
            let reason = format!("{} (`{}`)", flaw.reason, path.display());
            LoadError::new(&self.manifest.name, flaw.step, reason, flaw.hint)
        })
    }

    /// Returns the library's path, if nobody else may write to the folder, to what is in it, or to the folders above.
    pub(super) fn trusted_library(&self) -> Result<PathBuf, LoadError> {
        let name = &self.manifest.name;
        trust::check_folder(name, &self.folder)?;
        let path = self.library()?;
        let named = super::manifest::path_in(&self.folder).into_iter().chain([path.clone()]);
        // Whatever else lies there, and however much.
        named.into_iter().try_for_each(|path| trust::check(name, &path))?;
        Ok(path)
    }

    /// Whether there is a library in the plugin's folder.
    pub(super) fn has_library(&self) -> bool {
        self.library().is_ok()
    }

    /// Finds the library in the plugin's folder.
    fn library(&self) -> Result<PathBuf, LoadError> {
        let name = &self.manifest.name;
        let names = self.manifest.library_names();
        let found =
            names.iter().map(|file| self.folder.join(file)).find(|path| path.symlink_metadata().is_ok());
        let file_error = |reason: String, hint: String| LoadError::new(name, Step::File, reason, hint);
        let Some(path) = found else {
            let reason = format!("there is no `{}` in `{}`", names[0], self.folder.display());
            return Err(file_error(reason, format!("put the plugin's library there as `{}`", names[0])));
        };
        let real = path.canonicalize().map_err(|error| {
            file_error(
                format!("failed to follow `{}`: {error}", path.display()),
                "put the library itself there".into(),
            )
        })?;
        if !real.starts_with(&self.folder) {
            let reason = format!("`{}` is a link that leads out of the plugin's folder", path.display());
            return Err(file_error(reason, "put the library itself there".into()));
        }
        Ok(real)
    }
}

fn short(hex: &str) -> &str {
    hex.get(..12).unwrap_or(hex)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn changed(plugin: &str, path: &Path, differs: &str) -> LoadError {
    let reason = format!("`{}` is not the file that was enabled ({differs})", path.display());
    let hint = format!("if you changed it yourself, run `hostel plugins enable {plugin}` again");
    LoadError::new(plugin, Step::Checksum, reason, hint)
}

fn open(plugin: &str, path: &Path) -> Result<File, LoadError> {
    let failed =
        |reason: String| LoadError::new(plugin, Step::File, reason, "put a library there that you may read");
    let meta = fs::metadata(path)
        .map_err(|error| failed(format!("failed to read `{}`: {error}", path.display())))?;
    // A pipe in its place would block whoever opens it.
    if !meta.is_file() || meta.len() > LONGEST {
        return Err(failed(format!("`{}` is not a regular file of at most 1 GiB", path.display())));
    }
    File::open(path).map_err(|error| failed(format!("failed to read `{}`: {error}", path.display())))
}

fn not_copied(plugin: &str, path: &Path, error: CopyError) -> LoadError {
    match error {
        CopyError::Read(error) => {
            let reason = format!("failed to read `{}`: {error}", path.display());
            LoadError::new(plugin, Step::File, reason, "put a library there that you may read")
        }
        CopyError::Write(error) => {
            let reason = format!("no sealed copy of it could be made: {error}");
            LoadError::new(plugin, Step::Open, reason, "check the free memory").passing()
        }
    }
}

impl Verified {
    /// The library as it was found.
    #[must_use]
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// The version of the plugin API that it was built for.
    #[must_use]
    pub fn api_version(&self) -> &str {
        &self.facts.api_version
    }

    /// Loads the library, for the rest of the process, and checks its interface.
    ///
    /// # Errors
    ///
    /// Fails if the loader refuses it or its types are not ours.
    pub fn open(self) -> Result<Opened, LoadError> {
        if self.facts.needs_its_place {
            return open_at(self.manifest, &self.path, &self.path);
        }
        Sealed { manifest: self.manifest, path: self.path, file: self.copy }.open()
    }

    /// Returns the library as a file in memory that nobody can change, which another process can open as well. None where it
    /// looks for others beside itself, so that it must be opened where it lies.
    #[must_use]
    pub fn into_sealed(self) -> Option<File> {
        (!self.facts.needs_its_place).then_some(self.copy)
    }
}

impl Discovered {
    /// Takes the library from whoever has verified and sealed it.
    ///
    /// # Errors
    ///
    /// Fails if there is none in the folder.
    pub fn sealed(self, file: OwnedFd) -> Result<Sealed, LoadError> {
        Ok(Sealed { path: self.library()?, manifest: self.manifest, file: file.into() })
    }
}

/// A library that was verified, as a file that nobody can change.
#[derive(Debug)]
pub struct Sealed {
    manifest: Manifest,
    /// Where it came from, for messages.
    path: PathBuf,
    file: File,
}

impl Sealed {
    /// As [`Verified::open`].
    ///
    /// # Errors
    ///
    /// As [`Verified::open`].
    pub fn open(self) -> Result<Opened, LoadError> {
        // The loader knows libraries by their paths, so the descriptor stays open: were its number used again, the next plugin
        // would be taken for this one.
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.file.into_raw_fd()));
        open_at(self.manifest, &path, &self.path)
    }
}

/// Loads the library at `path`, which people know as `shown`, and checks its interface.
fn open_at(manifest: Manifest, path: &Path, shown: &Path) -> Result<Opened, LoadError> {
    let symbol = load(path, &shown.display().to_string()).map_err(|reason| {
        let hint =
            format!("`ldd '{}'` shows what it needs; install that, or rebuild it here", shown.display());
        LoadError::new(&manifest.name, Step::Open, reason, hint)
    })?;
    // SAFETY: the library is never unloaded, and its version note says that `export_plugin!` made the symbol.
    let root = unsafe { CheckedRoot::from_symbol(symbol) };
    let root = root.map_err(|error| {
        let step = if matches!(error, RootError::Version { .. }) { Step::Version } else { Step::Layout };
        let hint = "take a version of the plugin that was built for this version of Hostel";
        LoadError::new(&manifest.name, step, error.to_string(), hint)
    })?;
    Ok(Opened { manifest, root })
}

/// Opens a library that was verified and returns the address of its root symbol.
fn load(path: &Path, shown: &str) -> Result<NonNull<c_void>, String> {
    let flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    // SAFETY: this runs the library's constructors, which is what the user has agreed to by enabling it.
    let opened = unsafe { Library::open(Some(path), flags) };
    let opened = opened.map_err(|error| loader_message(&error, path, shown))?;
    // SAFETY: only the symbol's address is taken; nothing is read through it here.
    let symbol = unsafe { opened.get::<*mut c_void>(ROOT_SYMBOL.as_bytes()) }.map(Symbol::as_raw_ptr);
    let address = symbol.map_err(|error| loader_message(&error, path, shown))?;
    // It stays for the rest of the process.
    std::mem::forget(opened);
    NonNull::new(address).ok_or_else(|| format!("`{ROOT_SYMBOL}` has no address"))
}

fn loader_message(error: &libloading::Error, path: &Path, shown: &str) -> String {
    let text = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let text = text.lines().next().unwrap_or_default().replace(&path.display().to_string(), shown);
    text.trim_matches(['"', ' ']).to_owned()
}

impl Opened {
    /// Calls the plugin's `register`, and checks what it registered against its manifest.
    ///
    /// # Errors
    ///
    /// Fails if `register` does, or registers nothing, one name twice, or a name that is not its own.
    pub fn register(self, surroundings: Surroundings) -> Result<Vec<Registered>, LoadError> {
        let name = &self.manifest.name;
        let failed = |reason: String, hint: &str| LoadError::new(name, Step::Register, reason, hint);
        let ask_author = "this is a bug in the plugin; report it to its author";
        let providers = self.root.register(name, surroundings).map_err(|error| {
            let hint = match &error {
                RootError::Register(error) if error.kind() != ErrorKind::PANICKED => {
                    error.hint().map(str::to_owned)
                }
                _ => None,
            };
            LoadError::new(
                name,
                Step::Register,
                error.to_string(),
                hint.unwrap_or_else(|| ask_author.to_owned()),
            )
        })?;
        if providers.is_empty() {
            return Err(failed("it registered no provider".into(), ask_author));
        }
        if !self.manifest.kinds.contains(&Kind::Backend) {
            let reason = "it registered a terminal environment, but its manifest's `kind` is `sandbox`";
            return Err(failed(reason.into(), "write `kind: [backend, sandbox]` into `plugin.yaml`"));
        }
        let mut seen = Vec::new();
        for provider in &providers {
            let own = provider.name();
            check_name(own).map_err(|error| failed(error.to_string(), ask_author))?;
            if !self.manifest.provides.iter().any(|provided| provided == own) {
                let provided = self.manifest.provides.join("`, `");
                let reason = format!("it registered `{own}`, but its manifest provides `{provided}`");
                return Err(failed(reason, "list the name under `provides` in `plugin.yaml`"));
            }
            if seen.contains(&fold(own)) {
                return Err(failed(format!("it registered `{own}` twice"), ask_author));
            }
            seen.push(fold(own));
        }
        if let Some(missing) = self.manifest.provides.iter().find(|provided| !seen.contains(&fold(provided)))
        {
            let reason = format!("its manifest provides `{missing}`, but it did not register that");
            return Err(failed(reason, "take the name out of `provides` in `plugin.yaml`"));
        }
        let registered = |provider: ForeignProvider| {
            let strip_env = provider.try_strip_env_keys().map_err(|error| error.to_string());
            Registered { provider, strip_env }
        };
        Ok(providers.into_iter().map(registered).collect())
    }
}
