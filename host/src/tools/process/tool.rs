//! The tool itself.

use super::actions::{Asked, Trouble};
use super::input::{Action, Input};
use super::result::Reply;
use crate::tools::call::Call;
use crate::tools::session::Session;
use crate::tools::shown::Shown;
use crate::tools::told::news;
use crate::tools::tool::{Effects, Failure, Tool};

/// Looks after background processes.
pub(in crate::tools) struct Process;

impl Tool for Process {
    const NAME: &'static str = "process";
    const TITLE: &'static str = "Background processes";
    const DESCRIPTION: &'static str = "Looks after the background processes that `terminal` has started for this task with \
        `background: true`.\n\
        `list`: all of them. `poll`: how one is, with the end of its output. `log`: lines of its output, the last 200 by default. \
        `wait`: until it has ended, for at most as long as a command may take; wait again if it has not. `kill`: ends it and \
        everything that it has started. `write`, `submit` (with a line end), `close`: what it reads; it must have been started with \
        `stdin` or `pty`. `signal`, `resize`, `renew`: as they say. `notices`: what has happened since the last result.\n\
        Do not call `poll` in a loop: `wait`, or go on with something else and let `notify` tell you.";
    const EFFECTS: Effects =
        Effects { read_only: false, destructive: true, idempotent: false, open_world: false };
    type Input = Input;
    type Output = Reply;

    fn run(session: &Session, input: Input, call: &Call) -> Reply {
        let shown = Shown::new(session);
        let asked = Asked { session, input: &input, call, shown: &shown };
        let mut output = asked.answer().unwrap_or_else(|trouble| match trouble {
            Trouble::Wrong(failure) => Reply::failed(failure),
            Trouble::Process(error) => Reply::refused(input.session_id.as_deref(), &error, &shown),
        });
        // To look must change nothing, and whoever gives up hears no result.
        if !matches!(input.action, Action::List | Action::Poll) && !call.is_cancelled() && !call.is_scripts()
        {
            let news = news(session, &shown);
            let asked_for = input.action == Action::Notices;
            output.notices = (asked_for || !news.is_empty()).then_some(news);
        }
        output
    }

    fn failed(failure: Failure) -> Reply {
        Reply::failed(failure)
    }
}
