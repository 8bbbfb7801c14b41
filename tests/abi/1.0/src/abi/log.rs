//! Log records, from the plugin's own copy of `tracing` to the host's.
//!
//! A library's dispatcher and panic hook are its own, so without this a plugin's records would go nowhere and its panics
//! straight to the user's terminal.

use std::fmt::Write as _;
use std::sync::Arc;

use abi_stable::sabi_trait;
use abi_stable::sabi_trait::prelude::TD_Opaque;
use abi_stable::std_types::{RBox, RStr};
use tracing_core::field::{Field, Visit};
use tracing_core::{Event, Level, LevelFilter, Metadata, Subscriber, dispatcher, span};

use super::guard::guard_or;

/// The host's log, as a plugin sees it. The level runs from 1 (error) to 5 (trace).
#[sabi_trait]
pub trait AbiLog: Send + Sync + 'static {
    /// Returns the highest level that the host writes down, or 0 for none.
    fn log_level(&self) -> u8;
    /// Writes one record down.
    #[sabi(last_prefix_field)]
    fn log(&self, level: u8, target: RStr<'_>, message: RStr<'_>);
}

/// The object that crosses.
pub(crate) type AbiLogBox = AbiLog_TO<RBox<()>>;

/// The plugin's side: sends every record and panic of this library to the host.
pub(crate) fn forward_to(host: AbiLogBox) {
    let host = Arc::new(host);
    let hook = Arc::clone(&host);
    std::panic::set_hook(Box::new(move |info| {
        let text = info.to_string().replace('\n', " ");
        hook.log(number(Level::ERROR), RStr::from_str("panic"), RStr::from_str(&text));
    }));
    // A plugin that has installed a subscriber of its own keeps it.
    let _ = dispatcher::set_global_default(dispatcher::Dispatch::new(Forward(host)));
}

fn number(level: Level) -> u8 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        _ => 5,
    }
}

struct Forward(Arc<AbiLogBox>);

impl Subscriber for Forward {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && number(*metadata.level()) <= self.0.log_level()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match self.0.log_level() {
            0 => LevelFilter::OFF,
            1 => LevelFilter::ERROR,
            2 => LevelFilter::WARN,
            3 => LevelFilter::INFO,
            4 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        })
    }

    fn new_span(&self, _attributes: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        let metadata = event.metadata();
        self.0.log(number(*metadata.level()), RStr::from_str(metadata.target()), RStr::from_str(&line.0));
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

/// One record as text: the message first, then ` name=value` for each field.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = if field.name() == "message" {
            let fields = std::mem::take(&mut self.0);
            write!(self.0, "{value:?}{fields}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
    }
}

/// The host's side: puts a plugin's records under the plugin's name.
pub(crate) struct HostLog {
    plugin: String,
}

impl HostLog {
    pub(crate) fn crossing(plugin: &str) -> AbiLogBox {
        AbiLog_TO::from_value(Self { plugin: plugin.to_owned() }, TD_Opaque)
    }
}

impl AbiLog for HostLog {
    fn log_level(&self) -> u8 {
        guard_or(0, || match tracing_core::LevelFilter::current().into_level() {
            Some(level) => number(level),
            None => 0,
        })
    }

    fn log(&self, level: u8, target: RStr<'_>, message: RStr<'_>) {
        guard_or((), || {
            let (plugin, target, message) = (self.plugin.as_str(), target.as_str(), message.as_str());
            match level {
                1 => tracing::error!(target: "plugin", plugin, from = target, "{message}"),
                2 => tracing::warn!(target: "plugin", plugin, from = target, "{message}"),
                3 => tracing::info!(target: "plugin", plugin, from = target, "{message}"),
                4 => tracing::debug!(target: "plugin", plugin, from = target, "{message}"),
                _ => tracing::trace!(target: "plugin", plugin, from = target, "{message}"),
            }
        });
    }
}
