//! What has gone wrong in other systems that run commands for agents, as calls on a provider.
//!
//! Each case is one of public bug reports, made anew; its number is that of the casebook. The inputs are those of the case, but for the seconds that
//! a command sleeps, by which its processes are told from those of other tests, and for how often something is done. Those of the same numbers in
//! `tool_casebook/` are the same as calls of tools.

pub(super) mod at_once;
pub(super) mod background;
pub(super) mod ends;
pub(super) mod state;
pub(super) mod streams;
pub(super) mod text;
