//! What holds of every provider, and of each in the same way.
//!
//! There is one table of cases for all of them. Each case is a function that gets a provider with a session of its own, and says
//! where it does not apply and why; each class of cases is one test for each provider.
//!
//! | file | holds |
//! | --- | --- |
//! | `subjects.rs` | the tests: one for each provider, way of running it, and class |
//! | `round.rs` | how the cases of a class are run |
//! | `case.rs` | what a case is, and where all are listed |
//! | `casebook/` | cases of public bug reports, by their number |
//! | the others | the cases, a class each |

mod background;
mod case;
mod casebook;
mod concurrency;
mod encoding;
mod ends;
mod input;
mod large;
mod leaks;
mod login;
mod output;
mod quoting;
mod round;
mod signals;
mod state;
mod subjects;
mod trees;
mod values;
