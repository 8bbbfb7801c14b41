//! The macro that turns a crate into a plugin.

/// Makes the library's entry points from a function `fn(&mut PluginContext) -> Result<(), Error>`.
///
/// Use it once, at the root of a crate of type `cdylib`. It refuses to compile under `panic = "abort"`, which would make
/// every panic of the plugin the end of the host.
#[macro_export]
macro_rules! export_plugin {
    ($register:path) => {
        #[cfg(panic = "abort")]
        ::core::compile_error!(
            "a Hostel plugin must be built with `panic = \"unwind\"`: under `panic = \"abort\"` a panic ends the host"
        );

        #[doc(hidden)]
        pub struct __HostelPlugin;

        impl $crate::abi::root::PluginEntry for __HostelPlugin {
            fn register(context: &mut $crate::PluginContext) -> ::core::result::Result<(), $crate::Error> {
                $register(context)
            }
        }

        #[doc(hidden)]
        #[unsafe(no_mangle)]
        #[allow(unsafe_code, non_upper_case_globals, reason = "the symbol's name is the ABI's")]
        pub static hostel_plugin_root: $crate::abi::root::LibHeader = $crate::abi::root::header::<__HostelPlugin>();

        #[doc(hidden)]
        #[unsafe(no_mangle)]
        #[allow(unsafe_code, non_upper_case_globals, reason = "the symbol's name is the ABI's")]
        pub static hostel_plugin_api_version: [u8; $crate::abi::root::VERSION_NOTE_LEN] =
            $crate::abi::root::version_note();
    };
}
