//! What has gone wrong in other systems that run commands for agents, as calls of tools.
//!
//! Each case is one of public bug reports, made anew; its number is that of the casebook. The inputs are those of the case, but for the seconds that
//! a command sleeps, by which its processes are told from those of other tests. Where a case puts a command in the background by `&`, the
//! text is a file that the command reads in, since `terminal` refuses to leave something behind.

mod at_once;
mod background;
mod case;
mod encoding;
mod ends;
mod files;
mod input;
mod output;
mod quoting;
mod safety;
mod secrets;
mod signals;
mod state;
