//! Running one command and keeping what it prints.

mod cancel;
mod collect;
mod paced;
mod report;
mod screen;
mod spill;
mod words;

pub use cancel::Cancel;
pub use collect::{Collector, Kept};
pub use paced::{Paced, Patience};
pub use report::{Report, ReportError};
pub use screen::Screen;
pub use words::join;
