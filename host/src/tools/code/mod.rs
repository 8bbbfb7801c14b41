//! The tool `execute_code`: a script that calls the other tools.
//!
//! | file | holds |
//! | --- | --- |
//! | `tool.rs`, `input.rs`, `result.rs`, `told.rs`, `limits.rs` | what an agent gives and gets |
//! | `launch.rs`, `environ.rs`, `python/`, `node/`, `bash/` | how a script is brought to its place, and what runs there |
//! | `left.rs`, `sweep.sh` | what a launcher that was killed has left |
//! | `frames.rs`, `hearing.rs` | what comes back from there |
//! | `running.rs`, `answers.rs` | one run, and the calls that it makes |

mod answers;
mod environ;
mod frames;
mod hearing;
mod input;
mod launch;
mod left;
mod limits;
mod result;
mod running;
mod told;
mod tool;

pub(super) use tool::ExecuteCode;
