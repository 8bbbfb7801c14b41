//! The command line: parse, call, print. No rule lives here.

mod approvals;
mod args;
mod asking;
mod backends;
mod call;
mod check;
mod config;
mod consent;
mod doctor;
mod env;
mod exec;
mod failure;
mod install;
mod mcp;
mod plugins;
mod print;
mod process;
mod process_args;
mod process_log;
mod question;
mod shell;
mod shell_history;
mod shell_input;
mod shell_prompt;
mod shell_signals;
mod shell_unfinished;
mod sudo;
mod tidy;
mod tool;
mod tty;
mod typing;

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tracing_subscriber::filter::LevelFilter;

use crate::config::BACKEND_VARIABLE;
use crate::dotenv;
use crate::guard::{GUARD_COMMAND, Guard, guard_main, this_program_serves_guards};
use crate::home::Home;
use crate::plugins::worker::{WORKER_COMMAND, keeper_main, this_program_serves_workers};
use crate::processes::{PROCESS_KEEPER_COMMAND, process_keeper_main};
use crate::world::{Options, World};
use args::{Arguments, Command};
use failure::Failure;
use print::Out;

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    harden();
    if let Some(code) = hidden(std::env::args_os().skip(1).map_while(|word| word.into_string().ok())) {
        return code;
    }
    adopt_variables();
    this_program_serves_workers();
    this_program_serves_guards();
    let arguments = Arguments::parse();
    start_logging(arguments.verbose);
    let code = match run(arguments.command) {
        Ok(code) => code,
        Err(failure) => failure.print(),
    };
    Guard::shared().goodbye();
    ExitCode::from(code)
}

/// Runs the commands that are for Hostel itself: a plugin's worker, and the process that looks after it.
fn hidden(mut words: impl Iterator<Item = String>) -> Option<ExitCode> {
    let main = match words.next()?.as_str() {
        GUARD_COMMAND => guard_main,
        PROCESS_KEEPER_COMMAND => process_keeper_main,
        WORKER_COMMAND => keeper_main,
        _ => return None,
    };
    Some(main(&words.collect::<Vec<_>>()))
}

fn run(command: Command) -> Result<u8, Failure> {
    let mut out = Out::stdout();
    match command {
        Command::Exec(arguments) => return Ok(exec::run(arguments)),
        Command::Shell(arguments) => return Ok(shell::run(arguments)),
        Command::Plugins { action } => return plugins::run(action, &mut out),
        Command::Backends { json } => backends::list(&World::open(Options::default())?, json, &mut out)?,
        Command::Env { action } => return env::run(action, &mut out),
        Command::Approvals { action } => return approvals::run(action, &mut out),
        Command::Status { json } => {
            let mut world = World::open(Options::default())?;
            world.catalog.look_at_libraries();
            backends::status(&world, json, &mut out)?;
        }
        Command::Doctor { json } => return doctor::run(json, &mut out),
        Command::Tool(arguments) => return tool::run(&arguments, &mut out),
        Command::Mcp(arguments) => return mcp::run(arguments, &mut out),
        Command::Process { action } => return process::run(action, &mut out),
        Command::Config { action } => return config::run(action, &mut out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            let mut command = Arguments::command();
            clap_complete::generate(shell, &mut command, "hostel", &mut script);
            out.bytes(&script)?;
        }
    }
    Ok(0)
}

/// Takes over what stands in the home's `.env` and is not set: this program is started once more with it, since plugins read
/// their variables from their process.
fn adopt_variables() {
    let Ok(home) = Home::find() else { return };
    let variables = match dotenv::load(&home) {
        Ok(variables) => variables,
        Err(error) => {
            print::say("warning", &format!("{error}; nothing of the file is used"));
            if let Some(hint) = error.hint() {
                print::say("hint", &hint);
            }
            return;
        }
    };
    let is_missing = |name: &str| name != BACKEND_VARIABLE && std::env::var_os(name).is_none();
    let missing: Vec<_> = variables.pairs().filter(|(name, _)| is_missing(name)).collect();
    if missing.is_empty() {
        if variables.get(BACKEND_VARIABLE).is_some() && std::env::var_os(BACKEND_VARIABLE).is_none() {
            // A file of secrets that somebody once wrote must not outdo what the configuration says.
            let why = format!("`{BACKEND_VARIABLE}` in `.env` is not used: set `terminal.backend`");
            print::say("warning", &why);
        }
        return;
    }
    let mut words = std::env::args_os();
    let mut again = std::process::Command::new("/proc/self/exe");
    again.arg0(words.next().unwrap_or_else(|| "hostel".into())).args(words).envs(missing);
    let error = again.exec();
    print::say("warning", &format!("the variables of `.env` could not be taken over: {error}"));
}

/// Undoes what our starter may have set up and no program of ours can live with, and keeps the secrets in our own environment
/// from being read by the commands that we run: without this, any process of the same user can look into
/// `/proc/PID/environ`.
fn harden() {
    // With `SIGCHLD` ignored, which is inherited, the kernel throws exit codes away; any handler ends that.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGCHLD, std::sync::Arc::default());
    // A limit on the size of files is an error of a write, and no reason to die and leave a command alone.
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
    // Where it fails, the kernel has no such flag, and nothing is lost that was there.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Not among the signals that `signal_hook` names; the same on all Linux machines that we build for.
const SIGXFSZ: i32 = 25;

fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let colour =
        std::env::var_os("NO_COLOR").is_none() && std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(colour).init();
}
