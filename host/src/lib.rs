//! Hostel: a terminal in any sandbox, for agents and people.
//!
//! The modules stand on floors, and each uses only what stands below it:
//!
//! | floor | modules |
//! | --- | --- |
//! | faces | [`cli`], [`mcp`], [`Host`] for programs |
//! | for agents | [`tools`] |
//! | background | [`processes`] |
//! | running | [`exec`], [`environments`], [`world`] |
//! | rules | [`policy`] |
//! | filling | [`backends`], [`plugins`] |
//! | ground | [`registry`], [`config`], [`home`], [`digest`], [`guard`], [`signals`] |
//!
//! A command comes in at a face, which opens the [`world::World`]; the registry names the backend; [`environments`] makes
//! or finds the task's environment; and the environment runs the command.

pub mod backends;
pub mod cli;
pub mod config;
pub mod digest;
pub mod dotenv;
mod embedded;
pub mod environments;
pub mod exec;
pub mod guard;
pub mod home;
pub mod mcp;
pub mod plugins;
pub mod policy;
pub mod processes;
pub mod random;
pub mod registry;
pub mod short_id;
pub mod signals;
pub mod tools;
pub mod world;

pub use embedded::Host;
pub use world::Options;
