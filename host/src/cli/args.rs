//! The grammar of the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;

use super::env::Env;

/// A terminal in any sandbox, for agents and people
#[derive(Debug, Parser)]
#[command(
    name = "hostel",
    version,
    about,
    arg_required_else_help = true,
    after_help = "Examples:\n  hostel exec -- 'cargo test 2>&1 | tail'     run a command where `terminal.backend` says\n  \
                  hostel plugins enable acmebox               let a plugin's backends be used\n  \
                  hostel config set terminal.backend acmebox  choose one\n  \
                  hostel doctor                               diagnose problems\n\n\
                  Exit codes: 0 done, 1 failed, 2 wrong usage; those of `exec` are in `hostel exec --help`"
)]
pub(super) struct Arguments {
    /// Log to stderr (-vv, -vvv: more)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(super) verbose: u8,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a command in the selected backend
    Exec(Exec),
    /// Type commands into a task's session
    Shell(super::shell::Shell),
    /// List, show, enable and disable plugins
    #[command(
        after_help = "Examples:\n  hostel plugins list\n  hostel plugins show acmebox\n  hostel plugins enable acmebox"
    )]
    Plugins {
        #[command(subcommand)]
        action: Plugins,
    },
    /// List the backends and whether each can be used
    #[command(
        after_help = "Examples:\n  hostel backends\n  hostel backends --json | jq '.[] | select(.status == \"ready\") | .name'"
    )]
    Backends {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run commands in the background
    #[command(after_help = "Examples:\n  hostel process start -- 'npm run dev'\n  hostel process list\n  \
                            hostel process logs --follow proc_0123456789ab\n  hostel process kill proc_0123456789ab")]
    Process {
        #[command(subcommand)]
        action: super::process::Process,
    },
    /// Call one of the tools that agents are given
    Tool(super::tool::Tool),
    /// Serve the tools to clients of the Model Context Protocol
    Mcp(super::mcp::Mcp),
    /// List and clean up the environments of tasks
    #[command(after_help = "Examples:\n  hostel env list\n  hostel env cleanup build")]
    Env {
        #[command(subcommand)]
        action: Env,
    },
    /// Allow and refuse what agents have asked for
    #[command(
        after_help = "Examples:\n  hostel config set approvals.tools terminal,patch\n  hostel approvals list\n  \
                            hostel approvals allow appr_0123456789ab\n  \
                            hostel approvals deny appr_0123456789ab --reason 'use make clean'"
    )]
    Approvals {
        #[command(subcommand)]
        action: super::approvals::Approvals,
    },
    /// Show what is selected, and from where
    #[command(after_help = "Example:\n  HOSTEL_TERMINAL_BACKEND=local hostel status")]
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Diagnose problems; exit code 1 if there are any
    #[command(
        after_help = "Examples:\n  hostel doctor\n  hostel doctor --json | jq '.[] | select(.ok == false)'"
    )]
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Read and change the configuration
    #[command(
        after_help = "Examples:\n  hostel config show --origin\n  hostel config get terminal.backend\n  \
                            hostel config set terminal.backend acmebox\n  hostel config unset terminal.cwd\n  hostel config edit"
    )]
    Config {
        #[command(subcommand)]
        action: Config,
    },
    /// Print a completion script
    #[command(
        after_help = "Example:\n  hostel completions bash > ~/.local/share/bash-completion/completions/hostel"
    )]
    Completions {
        /// The shell to complete in
        shell: Shell,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "One word after `--` is shell text; several are an argument list, and each reaches the program as it is.\n\n\
    Examples:\n  hostel exec -- 'cd src && ls | wc -l'\n  hostel exec -- printf '%s\\n' 'a b' '$HOME'\n  \
    hostel exec --task build --timeout 600 -- make\n  \
    hostel exec --env RUST_LOG=debug --env HOME --cwd /srv -- ./run\n  \
    git diff | hostel exec --stdin --json -- 'patch -p1'\n  hostel exec --pty -- python3\n\n\
    Exit codes: the command's own; 124 timed out, 125 Hostel failed, 126 no such directory, 128+N killed by signal N,\n\
    130 interrupted, 2 wrong usage"
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(super) struct Exec {
    /// Use this backend instead of `terminal.backend`
    #[arg(long, value_name = "NAME")]
    pub(super) backend: Option<String>,
    /// Name the session whose directory and variables are kept
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(super) task: String,
    /// Kill the command after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) timeout: Option<Duration>,
    /// Run this command in this directory
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<String>,
    /// Set a variable for this command; `--env K` takes its value from Hostel's environment
    #[arg(long, value_name = "K=V", action = ArgAction::Append)]
    pub(super) env: Vec<String>,
    /// Forward standard input (otherwise the command reads nothing)
    #[arg(long)]
    pub(super) stdin: bool,
    /// Run it on a terminal of its own, to which what is typed here goes
    #[arg(long)]
    pub(super) pty: bool,
    /// Do not escape control characters on a terminal
    #[arg(long, conflicts_with = "json")]
    pub(super) raw: bool,
    /// Remove colours and other control sequences from the output
    #[arg(long)]
    pub(super) strip_ansi: bool,
    /// Show of a line that is written over only its last state
    #[arg(long)]
    pub(super) collapse_progress: bool,
    /// Print one JSON object when the command has ended
    #[arg(long)]
    pub(super) json: bool,
    /// Maximum bytes of output in the JSON object
    #[arg(long, value_name = "BYTES", default_value_t = 1024 * 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_output: u32,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Plugins {
    /// List every folder below `plugins/`, good and bad
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show all that is known of a plugin, without running any of it
    Show {
        /// The plugin
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make the crate of a new plugin, which builds and passes `plugins check` as it is
    #[command(after_help = "Examples:\n  hostel plugins new mybox\n  \
                            hostel plugins new mybox --path ~/src/mybox --api-path ~/src/hostel/plugin-api")]
    New {
        /// The plugin's name, which is also its crate's and its backend's
        name: String,
        /// Make it in this folder (default: NAME, here)
        #[arg(long, value_name = "DIR")]
        path: Option<PathBuf>,
        /// Depend on the `hostel-plugin-api` in this folder of a checkout, and not on a copy of the one that Hostel carries
        #[arg(long, value_name = "DIR")]
        api_path: Option<PathBuf>,
    },
    /// Hold a plugin to every rule of the interface, in a throw-away home
    #[command(
        after_help = "PATH is a plugin's folder, or its crate, which is built first. Exit code 1 if a rule is broken.\n\n\
                            Examples:\n  hostel plugins check .\n  hostel plugins check ~/.hostel/plugins/acmebox --json\n  \
                            hostel plugins check . --only exec."
    )]
    Check {
        /// The folder
        path: PathBuf,
        /// Build the crate as it is shipped
        #[arg(long)]
        release: bool,
        /// Try only the rules whose id begins with this
        #[arg(long, value_name = "PREFIX")]
        only: Option<String>,
        /// The backend's settings, as JSON
        #[arg(long, value_name = "JSON", value_parser = json)]
        settings: Option<serde_json::Value>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a plugin, pin its library, and let it be used
    #[command(
        after_help = "The library is pinned by its SHA-256: once it changes, it must be enabled again."
    )]
    Enable {
        /// The plugin
        name: String,
        /// Ask nothing, and grant whatever is new
        #[arg(long)]
        yes: bool,
    },
    /// Install a plugin from a folder, an archive, an address or a git repository
    #[command(
        after_help = "SOURCE is a folder, a `.tar.gz` or `.zip` by path or `https://` address, or a git repository\n\
                            (`https://HOST/REPO.git`, `git@HOST:REPO`, `git+https://…`, with `#BRANCH-TAG-OR-COMMIT` behind it).\n\
                            Nothing of it runs before it is enabled.\n\n\
                            Examples:\n  hostel plugins install ./acmebox\n  \
                            hostel plugins install https://example.com/acmebox-1.2.tar.gz --sha256 SUM --enable\n  \
                            hostel plugins install https://example.com/acmebox.git#v1.2"
    )]
    Install {
        /// Where it is
        source: String,
        /// The SHA-256 that the archive must have
        #[arg(long, value_name = "HEX")]
        sha256: Option<String>,
        /// Take this branch, tag or commit of a git repository
        #[arg(long = "ref", value_name = "REF")]
        reference: Option<String>,
        /// Replace a plugin of the same name
        #[arg(long)]
        force: bool,
        /// Enable it as well; it is not installed if that fails
        #[arg(long)]
        enable: bool,
        /// Ask nothing, and grant whatever is new
        #[arg(long)]
        yes: bool,
    },
    /// Fetch a plugin again from where it was installed from
    #[command(
        after_help = "A plugin that has changed must be enabled again, which `--enable` does. If it asks for more than before, a person\n\
                            on a terminal is asked; elsewhere nothing is changed unless `--yes` is given."
    )]
    Update {
        /// The plugin
        name: String,
        /// Enable the new one as well; the old one stays if that fails
        #[arg(long)]
        enable: bool,
        /// Ask nothing, and grant whatever is new
        #[arg(long)]
        yes: bool,
    },
    /// Remove a plugin's folder, and all that is known of it
    Remove {
        /// The plugin
        name: String,
        /// Remove the plugin's own data and what its backends keep for tasks as well
        #[arg(long)]
        purge: bool,
    },
    /// Stop a plugin from being used
    Disable {
        /// The plugin
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum Config {
    /// Show every value in force
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print one value; exit code 1 if it is not set
    Get {
        /// The key, such as `terminal.backend`
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a value in the file, and leave the rest of it as it is
    #[command(
        after_help = "Examples:\n  hostel config set terminal.backend acmebox\n  hostel config set terminal.timeout 90\n  \
                            hostel config set approvals.allow '[cargo test, make]'"
    )]
    Set {
        /// The key
        key: String,
        /// The value; lists are written `[a, b]` or `a,b`
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Accept a key that nobody declares, as text, and a backend that cannot be used yet
        #[arg(long)]
        force: bool,
    },
    /// Take a key out of the file
    Unset {
        /// The key
        key: String,
    },
    /// Open the file in `$VISUAL` or `$EDITOR`, and check it afterwards
    Edit,
    /// Print the file's path
    Path,
    /// Report unknown keys and wrong values; exit code 1 on a wrong value
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Reads a JSON object.
fn json(text: &str) -> Result<serde_json::Value, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if value.is_object() {
        Ok(value)
    } else {
        Err("an object is expected, such as `{\"region\": \"eu\"}`".to_owned())
    }
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds is expected".to_owned())?;
    if !(0.001..=1e9).contains(&seconds) {
        return Err("it must be from 0.001 to 1000000000".to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_timeout_is_a_positive_number() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for bad in ["0", "-1", "nan", "inf", "x", "1e300", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
