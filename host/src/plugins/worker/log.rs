//! The worker's log, which is the host's.

use std::fmt::Write as _;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::frame::Kind;
use super::masks::Masks;
use super::message::Record;
use super::serve::Writer;

/// Sends every record of this process to the host, up to `level`: 0 for none, 5 for all.
pub(super) fn forward_to(writer: Arc<Writer>, level: u8) {
    let filter = match level {
        0 => return,
        1 => LevelFilter::ERROR,
        2 => LevelFilter::WARN,
        3 => LevelFilter::INFO,
        4 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // There is no other one: this is the first that the process does.
    let _ = tracing::subscriber::set_global_default(Forward { writer, filter });
}

/// Returns the number of the highest level that is written down here.
pub(super) fn level() -> u8 {
    LevelFilter::current().into_level().map_or(0, number)
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

/// Writes a worker's record down.
pub(super) fn write(plugin: &str, record: &Record, masks: &Masks) {
    let (from, message) =
        (record.target.escape_debug(), masks.hide(&record.message).replace(char::is_control, " "));
    match record.level {
        1 => tracing::error!(target: "plugin", plugin, %from, "{message}"),
        2 => tracing::warn!(target: "plugin", plugin, %from, "{message}"),
        3 => tracing::info!(target: "plugin", plugin, %from, "{message}"),
        4 => tracing::debug!(target: "plugin", plugin, %from, "{message}"),
        _ => tracing::trace!(target: "plugin", plugin, %from, "{message}"),
    }
}

/// More of a record is cut off, in bytes.
const LONGEST: usize = 32 << 10;

struct Forward {
    writer: Arc<Writer>,
    filter: LevelFilter,
}

impl Subscriber for Forward {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.filter
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter)
    }

    fn new_span(&self, _attributes: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let target = line.from.unwrap_or_else(|| event.metadata().target().to_owned());
        if line.text.len() > LONGEST {
            line.text = line.text.chars().take(LONGEST / 4).collect();
        }
        let record = Record { level: number(*event.metadata().level()), target, message: line.text };
        // If it fails, the host is gone, and so is its log.
        let _ = self.writer.send_json(Kind::LOG, 0, &record);
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

/// One record as text: the message first, then ` name=value` for each field but those that say whose it is.
#[derive(Default)]
struct Line {
    text: String,
    from: Option<String>,
}

impl Line {
    fn field(&mut self, field: &Field, value: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => {
                let fields = std::mem::take(&mut self.text);
                write!(self.text, "{value}{fields}")
            }
            "plugin" => Ok(()),
            name => write!(self.text, " {name}={value}"),
        };
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "from" => self.from = Some(value.to_owned()),
            _ => self.field(field, format_args!("{value:?}")),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.field(field, format_args!("{value:?}"));
    }
}
