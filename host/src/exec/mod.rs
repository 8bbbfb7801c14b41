//! Running one command and keeping what it prints.

mod cancel;
pub mod clean;
mod collect;
mod line;
mod outputs;
mod paced;
mod report;
mod screen;
mod sequences;
mod spill;
pub mod terminal;
mod words;

pub use cancel::Cancel;
pub(crate) use cancel::ignored_signals;
pub use collect::{Collector, Kept};
pub use outputs::Outputs;
pub use paced::{Paced, Patience};
pub use report::{Report, ReportError, exit_code_of};
pub use screen::Screen;
pub use terminal::{Size, Terminal};
pub use words::{in_quotes, join};
