//! Follows the grammar of a shell text.
//!
//! Reserved words are reserved only where a command may begin, a `)` may end a pattern as well as a subshell, and where a
//! command reads from may be said behind it (`done <f`, `&`). So each level of compound commands has a state of its own.

use super::commands::{Commands, SimpleCommand};
use super::token::{Kind, Substitution, Token, Word};

/// How deep compound commands may stand in one another.
const DEEPEST: usize = 200;

/// Follows the grammar, token by token.
pub(super) struct Parser<'a> {
    source: &'a str,
    /// What stands around the present level, outermost first.
    levels: Vec<Level>,
    level: Level,
    found: Commands,
}

/// The commands between the words or operators that enclose them.
struct Level {
    body: Body,
    state: State,
    /// The command that is being read.
    command: Option<usize>,
    /// The first command of the present pipeline's part, and of the present list.
    part: usize,
    list: usize,
    /// The present part of the pipeline reads elsewhere, and everything at this level does.
    is_fed: bool,
    all_fed: bool,
    /// A redirection's word is still to come.
    expects_target: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Text,
    Substitution,
    Subshell,
    Braces,
    If,
    Loop,
    Case,
}

/// What the next word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A command's name, or a reserved word.
    Start,
    /// The same, after `time`.
    Time,
    /// An argument.
    Words,
    /// Nothing: a compound command has ended.
    Ended,
    /// The name of a loop's variable, `in` or `do`, one of the loop's values.
    LoopName,
    LoopIn,
    LoopValues,
    /// The word that `case` looks at, `in`, a pattern or `esac`, the rest of a pattern.
    CaseWord,
    CaseIn,
    CaseFirst,
    CasePattern,
    /// A function's name, its body or `(`, nothing but the `)` after that.
    Function,
    FunctionBody,
    FunctionEnd,
    /// Part of a `[[ … ]]`.
    Test,
}

type Taken = Result<(), &'static str>;

const MISPLACED: &str = "a word or operator in the wrong place";

impl Level {
    fn new(body: Body, first: usize, all_fed: bool) -> Self {
        Self {
            body,
            state: State::Start,
            command: None,
            part: first,
            list: first,
            is_fed: false,
            all_fed,
            expects_target: false,
        }
    }

    fn may_end(&self) -> bool {
        matches!(self.state, State::Start | State::Words | State::Ended)
    }
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let level = Level::new(Body::Text, 0, false);
        Self { source, levels: Vec::new(), level, found: Commands::default() }
    }

    /// Takes the next token. The error says what is wrong with it.
    pub(super) fn take(&mut self, token: Token) -> Taken {
        if self.level.expects_target && !matches!(token.kind, Kind::Word(_) | Kind::Open(_)) {
            return Err("a redirection to nothing");
        }
        let text = self.source.get(token.span.clone()).unwrap_or_default();
        match token.kind {
            Kind::Comment | Kind::HereDocument => Ok(()),
            Kind::Open(substitution) => {
                let is_fed = substitution == Substitution::Input || self.reads_elsewhere();
                self.enter(Body::Substitution, State::Start, is_fed)
            }
            Kind::Close => self.leave(Body::Substitution),
            Kind::Arithmetic => {
                self.level.state = match self.level.state {
                    State::Start | State::Time => State::Ended,
                    State::LoopName => State::LoopIn,
                    State::Test => State::Test,
                    _ => return Err(MISPLACED),
                };
                Ok(())
            }
            Kind::Redirection => self.redirection(text),
            Kind::Newline => self.newline(),
            Kind::Operator => self.operator(text),
            Kind::Word(_) if std::mem::take(&mut self.level.expects_target) => Ok(()),
            Kind::Word(form) => {
                let is_plain = !form.quoted && !form.expanded;
                self.word(Word { span: token.span, form }, if is_plain { text } else { "" })
            }
        }
    }

    /// Takes the end of the text.
    pub(super) fn finish(self) -> Result<Commands, &'static str> {
        if !self.levels.is_empty() || self.level.expects_target || !self.level.may_end() {
            return Err("a command that does not end");
        }
        Ok(self.found)
    }

    /// `text` is empty if the word cannot be a reserved one.
    fn word(&mut self, word: Word, text: &str) -> Taken {
        self.level.state = match (self.level.state, text) {
            (State::Words, _) => return self.argument(word),
            (State::Time, "-p" | "--") => State::Time,
            (State::Start | State::Time | State::Ended | State::FunctionBody, _) => {
                return self.start(word, text);
            }
            (State::LoopName, _) => State::LoopIn,
            (State::LoopIn, "in") | (State::LoopValues, _) => State::LoopValues,
            (State::LoopIn, "do") => State::Start,
            (State::CaseWord, _) => State::CaseIn,
            (State::CaseIn, "in") => State::CaseFirst,
            (State::CaseFirst, "esac") => return self.leave_compound(Body::Case),
            (State::CaseFirst | State::CasePattern, _) => State::CasePattern,
            (State::Function, _) => {
                self.found.functions.push(word.span);
                State::FunctionBody
            }
            (State::Test, "]]") => State::Ended,
            (State::Test, _) => State::Test,
            (State::LoopIn | State::CaseIn | State::FunctionEnd, _) => return Err(MISPLACED),
        };
        Ok(())
    }

    /// Takes a word that begins a command, or ends one.
    fn start(&mut self, word: Word, text: &str) -> Taken {
        let has_ended = self.level.state == State::Ended;
        match text {
            "then" | "do" | "else" | "elif" => self.next_list(),
            "}" => self.leave_compound(Body::Braces)?,
            "fi" => self.leave_compound(Body::If)?,
            "done" => self.leave_compound(Body::Loop)?,
            "esac" => self.leave_compound(Body::Case)?,
            _ if has_ended => return Err(MISPLACED),
            "!" => self.level.state = State::Start,
            "time" => self.level.state = State::Time,
            "{" => self.enter_compound(Body::Braces, State::Start)?,
            "if" => self.enter_compound(Body::If, State::Start)?,
            "while" | "until" => self.enter_compound(Body::Loop, State::Start)?,
            "for" | "select" => self.enter_compound(Body::Loop, State::LoopName)?,
            "case" => self.enter_compound(Body::Case, State::CaseWord)?,
            "function" => self.level.state = State::Function,
            "[[" => self.level.state = State::Test,
            "coproc" => return Err("`coproc`"),
            _ => {
                let reads_elsewhere = self.reads_elsewhere();
                self.level.command = Some(self.found.simple.len());
                self.found.simple.push(SimpleCommand { words: vec![word], reads_elsewhere });
                self.level.state = State::Words;
            }
        }
        Ok(())
    }

    fn argument(&mut self, word: Word) -> Taken {
        let command =
            self.level.command.and_then(|command| self.found.simple.get_mut(command)).ok_or(MISPLACED)?;
        command.words.push(word);
        Ok(())
    }

    fn operator(&mut self, text: &str) -> Taken {
        match (self.level.state, text) {
            (State::Test, ";" | "&") => return Err(MISPLACED),
            (State::Test, _) | (State::CaseFirst, "(") | (State::CasePattern, "|") => {}
            (State::Start | State::Time, "(") => self.enter_compound(Body::Subshell, State::Start)?,
            (State::FunctionBody, "(") => self.level.state = State::FunctionEnd,
            (State::FunctionEnd, ")") => self.level.state = State::Start,
            (State::Words, "(") => self.function()?,
            (State::Start | State::Words | State::Ended, ";;" | ";&" | ";;&")
                if self.level.body == Body::Case =>
            {
                self.next_list();
                self.level.state = State::CaseFirst;
            }
            (State::Start | State::Words | State::Ended, ")") => self.leave_compound(Body::Subshell)?,
            (State::CasePattern, ")")
            | (State::Words | State::Ended | State::Time | State::LoopIn | State::LoopValues, ";") => {
                self.next_list();
            }
            (State::Words | State::Ended, "&") => {
                self.feed(self.level.list);
                self.next_list();
            }
            (State::Words | State::Ended, "&&" | "||") => self.next_part(false),
            (State::Words | State::Ended, "|" | "|&") => self.next_part(true),
            _ => return Err(MISPLACED),
        }
        Ok(())
    }

    fn newline(&mut self) -> Taken {
        match self.level.state {
            State::Words | State::Ended | State::Time | State::LoopIn | State::LoopValues => self.next_list(),
            // A pipeline and a list go on after a line that ends in an operator.
            State::Start | State::CaseIn | State::CaseFirst | State::Test | State::FunctionBody => {}
            _ => return Err(MISPLACED),
        }
        Ok(())
    }

    fn redirection(&mut self, text: &str) -> Taken {
        match self.level.state {
            State::Test => return Ok(()),
            State::Start | State::Words | State::Ended | State::Time => {}
            _ => return Err(MISPLACED),
        }
        self.level.expects_target = true;
        let is_input = text.trim_start_matches('0').starts_with('<');
        if is_input && !std::mem::replace(&mut self.level.is_fed, true) {
            self.feed(self.level.part);
        }
        Ok(())
    }

    /// Takes the `(` after what looked like a command and is a function's name.
    fn function(&mut self) -> Taken {
        let is_last = self.level.command.is_some_and(|command| command + 1 == self.found.simple.len());
        match self.found.simple.pop().map(|command| command.words) {
            Some(words) if is_last && words.len() == 1 => {
                self.found.functions.extend(words.into_iter().map(|word| word.span));
                self.level.state = State::FunctionEnd;
                Ok(())
            }
            _ => Err(MISPLACED),
        }
    }

    fn reads_elsewhere(&self) -> bool {
        self.level.is_fed || self.level.all_fed
    }

    /// Says of the commands from this one on that they read elsewhere.
    fn feed(&mut self, first: usize) {
        for command in self.found.simple.iter_mut().skip(first) {
            command.reads_elsewhere = true;
        }
    }

    fn next_list(&mut self) {
        self.next_part(false);
        self.level.list = self.level.part;
    }

    fn next_part(&mut self, is_fed: bool) {
        self.level.state = State::Start;
        self.level.part = self.found.simple.len();
        self.level.is_fed = is_fed;
    }

    fn enter_compound(&mut self, body: Body, state: State) -> Taken {
        self.enter(body, state, self.reads_elsewhere())
    }

    fn enter(&mut self, body: Body, state: State, all_fed: bool) -> Taken {
        if self.levels.len() == DEEPEST {
            return Err("too much nesting");
        }
        let level = Level { state, ..Level::new(body, self.found.simple.len(), all_fed) };
        self.levels.push(std::mem::replace(&mut self.level, level));
        Ok(())
    }

    fn leave_compound(&mut self, body: Body) -> Taken {
        self.leave(body)?;
        self.level.state = State::Ended;
        Ok(())
    }

    fn leave(&mut self, body: Body) -> Taken {
        let may_end = self.level.may_end() || (body == Body::Case && self.level.state == State::CaseFirst);
        match self.levels.pop() {
            Some(level) if self.level.body == body && may_end && !self.level.expects_target => {
                self.level = level;
                Ok(())
            }
            _ => Err(MISPLACED),
        }
    }
}
