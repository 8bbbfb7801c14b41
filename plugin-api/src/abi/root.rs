//! The root module: the one thing that the host looks up in a library by name.
//!
//! The host reads two symbols. [`VERSION_SYMBOL`] is plain text that can be read from the file without running any of it.
//! [`ROOT_SYMBOL`] leads to the root module, together with a description of every type that it reaches, which the host
//! compares with its own before it calls anything.

#![allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::expl_impl_clone_on_copy,
    reason = "the ABI layer's macro writes it so"
)]
#![allow(non_camel_case_types, reason = "the ABI layer ends the names of prefix types in `_Ref`")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::PoisonError;

use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::{CheckingGlobals, check_layout_compatibility_with_globals};
pub use abi_stable::library::LibHeader;
use abi_stable::library::{
    __call_root_module_loader, AbiHeaderRef, CheckTypeLayout, RootModule, RootModuleResult,
};
use abi_stable::prefix_type::PrefixTypeTrait;
use abi_stable::sabi_types::VersionStrings;
use abi_stable::std_types::RResult;
use abi_stable::type_layout::TypeLayout;

use super::difference::first_difference;
use super::error::AbiError;
use super::guard::guard;
use super::log::forward_to;
use super::provider::ForeignProvider;
use super::registration::{self, AbiRegistrationBox, HostRegistration};
use crate::context::Surroundings;
use crate::{Error, PluginContext};

/// The version of the interface between host and library.
///
/// It is not this crate's version: the crate also holds the shared shell session, which is linked into each library and may
/// change without touching what crosses.
pub const API_VERSION: &str = "1.0.0";

/// Name of the symbol that holds [`version_note`].
pub const VERSION_SYMBOL: &str = "hostel_plugin_api_version";

/// Name of the symbol that leads to the root module.
pub const ROOT_SYMBOL: &str = "hostel_plugin_root";

/// What the version note starts with; the version follows, then NULs.
pub const VERSION_PREFIX: &str = "hostel-plugin-api ";

/// Length of the version note in bytes.
pub const VERSION_NOTE_LEN: usize = 48;

/// Returns the text that a library carries under [`VERSION_SYMBOL`].
#[must_use]
pub const fn version_note() -> [u8; VERSION_NOTE_LEN] {
    let mut note = [0; VERSION_NOTE_LEN];
    let (prefix, version) = (VERSION_PREFIX.as_bytes(), API_VERSION.as_bytes());
    let mut i = 0;
    while i < prefix.len() {
        note[i] = prefix[i];
        i += 1;
    }
    let mut j = 0;
    while j < version.len() {
        note[i + j] = version[j];
        j += 1;
    }
    note
}

/// The root module. Later fields go to the end, as `missing_field(option)`.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRoot_Ref, prefix_fields = PluginRoot_Prefix)))]
#[sabi(missing_field(panic))]
pub struct PluginRoot {
    /// Lets the plugin register what it offers.
    #[sabi(last_prefix_field)]
    pub(crate) register: extern "C" fn(AbiRegistrationBox) -> RResult<(), AbiError>,
}

impl RootModule for PluginRoot_Ref {
    abi_stable::declare_root_module_statics! {PluginRoot_Ref}
    const BASE_NAME: &'static str = "hostel_plugin";
    const NAME: &'static str = "hostel_plugin";
    const VERSION_STRINGS: VersionStrings = VersionStrings::new(API_VERSION);
}

/// The plugin's side: what [`export_plugin!`](crate::export_plugin) makes of a plugin.
pub trait PluginEntry: 'static {
    /// Offers the plugin's providers.
    ///
    /// # Errors
    ///
    /// Fails if the plugin cannot work at all here.
    fn register(context: &mut PluginContext) -> Result<(), Error>;
}

/// Returns the header that a library exports under [`ROOT_SYMBOL`].
#[must_use]
pub const fn header<E: PluginEntry>() -> LibHeader {
    // SAFETY: `construct` returns the root module whose type is named here, and asks for its layout to be checked.
    unsafe { LibHeader::from_constructor::<PluginRoot_Ref>(construct::<E>, CheckTypeLayout::Yes) }
}

extern "C" fn construct<E: PluginEntry>() -> RootModuleResult {
    __call_root_module_loader(|| PluginRoot { register: register::<E> }.leak_into_prefix())
}

extern "C" fn register<E: PluginEntry>(host: AbiRegistrationBox) -> RResult<(), AbiError> {
    guard("register", || {
        forward_to(host.log());
        let mut context = registration::context(&host);
        E::register(&mut context)?;
        registration::hand_over(context, &host);
        Ok(())
    })
}

/// Why a library's root module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// The library was made with another version of the ABI layer.
    #[error("its ABI header is not that of `abi_stable` 0.11")]
    Header,
    /// The library claims another major version of this interface.
    #[error("it was built for plugin API {found}, this host has {API_VERSION}")]
    Version {
        /// The library's version.
        found: String,
    },
    /// A type differs.
    #[error("its interface differs from this host's at `{member}`: {difference}")]
    Layout {
        /// Path of the first member that differs.
        member: String,
        /// In what it differs.
        difference: String,
    },
    /// The library's constructor failed.
    #[error("its root module could not be made: {0}")]
    Construct(String),
    /// `register` failed.
    #[error("its `register` failed: {0}")]
    Register(Error),
}

/// The host's side: a library's root module whose layout has been checked.
#[derive(Clone, Copy)]
pub struct CheckedRoot(PluginRoot_Ref);

impl CheckedRoot {
    /// Checks the library's header, version and layout, in this order, and makes its root module.
    ///
    /// The library may be older or newer than the host: it is enough that each member that both know is the same.
    ///
    /// # Errors
    ///
    /// Fails with the first thing that does not fit. Nothing of the plugin's own has then run but its constructors.
    ///
    /// # Safety
    ///
    /// `symbol` is the address of a [`ROOT_SYMBOL`] in a library that stays loaded for the rest of the process, and it
    /// really is what [`export_plugin!`](crate::export_plugin) put there.
    pub unsafe fn from_symbol(symbol: NonNull<c_void>) -> Result<Self, RootError> {
        // SAFETY: an `AbiHeaderRef` is one pointer to a header, which the caller promises, and which lives for ever.
        let header = unsafe { std::mem::transmute::<NonNull<c_void>, AbiHeaderRef>(symbol) };
        let header = header.upgrade().map_err(|_| RootError::Header)?;
        let found = header.version_strings().version.as_str().to_owned();
        if major(&found) != major(API_VERSION) {
            return Err(RootError::Version { found });
        }
        let host = <PluginRoot_Ref as StableAbi>::LAYOUT;
        let plugin = header.layout().ok_or(RootError::Header)?;
        compare(host, plugin)?;
        // SAFETY: one of the two checks has proved that every member that both sides know is the same, and prefix types
        // carry their own member count, so that one that is missing is reported or defaulted and never read.
        let root = unsafe { header.init_root_module_with_unchecked_layout::<PluginRoot_Ref>() };
        root.map(Self).map_err(|error| RootError::Construct(error.to_string().replace('\n', " ")))
    }

    /// Calls the plugin's `register`, and returns what it registered.
    ///
    /// # Errors
    ///
    /// Fails if `register` failed or panicked, or a provider could not say its name.
    pub fn register(
        self,
        plugin: &str,
        surroundings: Surroundings,
    ) -> Result<Vec<ForeignProvider>, RootError> {
        let (host, providers) = HostRegistration::crossing(plugin, surroundings);
        let registered = self.0.register()(host).into_result();
        registered.map_err(|error| RootError::Register(error.into()))?;
        let providers = std::mem::take(&mut *providers.lock().unwrap_or_else(PoisonError::into_inner));
        providers.into_iter().map(ForeignProvider::new).collect::<Result<_, _>>().map_err(RootError::Register)
    }
}

/// Accepts a plugin that is newer than the host, or older: one of the two must know all that the other does, and the same.
fn compare(host: &'static TypeLayout, plugin: &'static TypeLayout) -> Result<(), RootError> {
    // Fresh globals each time: shared ones would make one plugin's acceptance depend on those loaded before it.
    let newer = check_layout_compatibility_with_globals(host, plugin, &CheckingGlobals::new());
    let Err(errors) = newer else { return Ok(()) };
    let older = check_layout_compatibility_with_globals(plugin, host, &CheckingGlobals::new());
    older.map_err(|_| {
        let (member, difference) = first_difference(&errors);
        RootError::Layout { member, difference }
    })
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Entry;
    impl PluginEntry for Entry {
        fn register(_context: &mut PluginContext) -> Result<(), Error> {
            Ok(())
        }
    }
    static HEADER: LibHeader = header::<Entry>();

    #[test]
    fn a_header_of_our_own_is_accepted() {
        // SAFETY: the static is a header that this crate made, and lives for ever.
        assert!(unsafe { CheckedRoot::from_symbol(NonNull::from(&HEADER).cast()) }.is_ok());
    }

    /// One trait as three versions have it.
    macro_rules! version {
        ($name:ident, $answer:ty, $($more:item)*) => {
            #[allow(clippy::cast_ptr_alignment, reason = "the ABI layer's macro reads its tables so")]
            mod $name {
                use abi_stable::std_types::RBox;
                use abi_stable::{StableAbi, sabi_trait};

                #[sabi_trait]
                pub trait Shared {
                    #[sabi(last_prefix_field)]
                    fn answer(&self) -> $answer;
                    $($more)*
                }

                pub(super) const LAYOUT: &abi_stable::type_layout::TypeLayout =
                    <Shared_TO<'static, RBox<()>> as StableAbi>::LAYOUT;
            }
        };
    }
    version!(first, u32,);
    version!(
        appended,
        u32,
        fn later(&self) -> u32 {
            7
        }
    );
    version!(changed, u64,);

    #[test]
    fn either_side_may_be_the_older_one_and_a_changed_member_is_refused() {
        assert!(compare(first::LAYOUT, first::LAYOUT).is_ok());
        assert!(compare(first::LAYOUT, appended::LAYOUT).is_ok(), "a newer plugin");
        assert!(compare(appended::LAYOUT, first::LAYOUT).is_ok(), "an older plugin");
        for (host, plugin) in [(first::LAYOUT, changed::LAYOUT), (changed::LAYOUT, appended::LAYOUT)] {
            let refused = compare(host, plugin).unwrap_err();
            assert!(
                matches!(&refused, RootError::Layout { member, .. } if member.contains("answer")),
                "{refused}"
            );
        }
    }

    #[test]
    fn the_version_of_the_abi_layer_is_the_one_that_was_measured() {
        let header = abi_stable::library::AbiHeader::VALUE;
        assert_eq!((header.abi_major, header.abi_minor), (0, 11));
    }

    #[test]
    fn the_version_note_is_text_that_ends_in_nul() {
        let note = version_note();
        let text = std::str::from_utf8(&note).unwrap().trim_end_matches('\0');
        assert_eq!(text, format!("{VERSION_PREFIX}{API_VERSION}"));
        assert_eq!(note[VERSION_NOTE_LEN - 1], 0);
    }
}
