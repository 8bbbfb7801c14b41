//! The grammar of `hostel process`.

use std::time::Duration;

use clap::{ArgAction, Args, Subcommand, ValueEnum};

use super::args::seconds;
use super::process_log::Logs;
use crate::exec::Size;
use crate::processes::{Lifetime, parse_signal};

#[derive(Debug, Subcommand)]
pub(super) enum Process {
    /// Start a command in the background, and print the process's name
    #[command(after_help = "Examples:\n  hostel process start --notify -- 'cargo build --release'\n  \
                            hostel process start --watch 'listening on' -- ./server --port 8080\n  \
                            hostel process start --pty --lifetime detached -- python3\n  \
                            hostel process start --lifetime lease --lease 600 -- 'tail -f log'")]
    Start(Start),
    /// List the processes
    List {
        /// Only those of this task
        #[arg(long, value_name = "NAME")]
        task: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show how a process is, with the end of its output
    Poll(One),
    /// Show the output of a process
    #[command(after_help = "Examples:\n  hostel process logs proc_0123456789ab --follow\n  \
                            hostel process logs proc_0123456789ab --offset 1000 --limit 50")]
    Logs(Logs),
    /// Wait until a process has ended
    #[command(
        after_help = "Exit codes: the process's own; 124 not ended in time, 130 interrupted, 125 nobody knows,\n\
                            1 there is no such process"
    )]
    Wait {
        #[command(flatten)]
        one: One,
        /// Wait no longer than this
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        timeout: Option<Duration>,
    },
    /// End a process and everything that it has started
    Kill(One),
    /// Give a process something to read
    #[command(
        after_help = "Examples:\n  hostel process write proc_0123456789ab 'print(6 * 7)' --newline\n  \
                            hostel process write proc_0123456789ab --close < patch"
    )]
    Write {
        /// The process
        id: String,
        /// What to give it (default: standard input)
        #[arg(allow_hyphen_values = true)]
        data: Option<String>,
        /// Add a line end
        #[arg(long)]
        newline: bool,
        /// End its input behind that
        #[arg(long)]
        close: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the size of a process's terminal
    Resize {
        /// The process
        id: String,
        /// `ROWSxCOLUMNS`
        size: Size,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Send a signal to everything that a process has started
    Signal {
        /// The process
        id: String,
        /// A name, with or without `SIG`, or a number
        #[arg(value_parser = signal)]
        signal: i32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Prolong the lease of a process
    Renew {
        #[command(flatten)]
        one: One,
        /// By this much from now (default: as much as before)
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        lease: Option<Duration>,
    },
    /// Show what there is to tell of processes that were started with `--notify` or `--watch`
    Notices {
        /// Only those of this task
        #[arg(long, value_name = "NAME")]
        task: Option<String>,
        /// Show them again the next time
        #[arg(long)]
        keep: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A process, and how to print what comes of it.
#[derive(Debug, Args)]
pub(super) struct One {
    /// The process
    pub(super) id: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(super) struct Start {
    /// Use this backend instead of `terminal.backend`
    #[arg(long, value_name = "NAME")]
    pub(super) backend: Option<String>,
    /// Run it in the environment of this task
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(super) task: String,
    /// Run it in this directory
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<String>,
    /// Set a variable; `--env K` takes its value from Hostel's environment
    #[arg(long, value_name = "K=V", action = ArgAction::Append)]
    pub(super) env: Vec<String>,
    /// Let it be written to (otherwise it reads nothing)
    #[arg(long)]
    pub(super) stdin: bool,
    /// Run it on a terminal of its own
    #[arg(long)]
    pub(super) pty: bool,
    /// The size of the terminal (default: 30x120)
    #[arg(long, value_name = "ROWSxCOLUMNS", requires = "pty")]
    pub(super) size: Option<Size>,
    /// What it does not outlive
    #[arg(long, value_enum, default_value_t = Ends::Task)]
    pub(super) lifetime: Ends,
    /// How long its lease is
    #[arg(long, value_name = "SECONDS", value_parser = seconds, required_if_eq("lifetime", "lease"))]
    pub(super) lease: Option<Duration>,
    /// Tell its end in `notices`
    #[arg(long)]
    pub(super) notify: bool,
    /// Tell lines of its output in `notices` that contain this text; may be repeated
    #[arg(long, value_name = "TEXT", action = ArgAction::Append)]
    pub(super) watch: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// The command, as in `hostel exec`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

/// What a process does not outlive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Ends {
    /// Its task's environment
    Task,
    /// A time that `renew` prolongs
    Lease,
    /// Nothing: it runs until it is killed
    Detached,
}

impl From<Ends> for Lifetime {
    fn from(ends: Ends) -> Self {
        match ends {
            Ends::Task => Self::Task,
            Ends::Lease => Self::Lease,
            Ends::Detached => Self::Detached,
        }
    }
}

fn signal(text: &str) -> Result<i32, String> {
    parse_signal(text).ok_or_else(|| "a signal's name or number is expected, such as `INT` or `2`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_names_or_numbers() {
        assert_eq!((signal("int"), signal("9")), (Ok(2), Ok(9)));
        assert!(signal("0").is_err() && signal("nothing").is_err());
    }
}
