//! The prompt: where the next command will run, and whether the last one has failed.
//!
//! A colour alone would say nothing to many, and nothing at all in a file: so the exit code of a command that failed is written
//! out. Everything in a prompt comes from elsewhere (a directory can have any name), and nothing in it may drive the terminal.

use super::print::visible;

/// What the prompt shows.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) backend: String,
    pub(super) task: String,
    /// Where the session stands, as far as it is known.
    pub(super) cwd: Option<String>,
    /// The home directory there, as far as it is known.
    pub(super) home: Option<String>,
}

/// A prompt, plain and in colours.
pub(super) type Prompt = (String, String);

/// Asks for the rest of a command.
pub(super) const MORE: (&str, &str) = ("> ", "> ");

impl Place {
    /// Returns the prompt after a command that ended with `code`.
    pub(super) fn prompt(&self, code: u8) -> Prompt {
        let mut words = vec![format!("{}:{}", self.backend, self.task)];
        words.extend(self.directory());
        if code != 0 {
            words.push(format!("[{code}]"));
        }
        let words = visible(&words.join(" "));
        let sign = if code == 0 { "$" } else { "\x1b[31m$\x1b[0m" };
        (format!("{words} $ "), format!("{words} {sign} "))
    }

    fn directory(&self) -> Option<String> {
        let cwd = self.cwd.as_deref()?;
        let home = self.home.as_deref().filter(|home| *home != "/");
        let below = home.and_then(|home| cwd.strip_prefix(home));
        Some(match below {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
            _ => cwd.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(cwd: Option<&str>, home: Option<&str>, code: u8) -> String {
        let (cwd, home) = (cwd.map(str::to_owned), home.map(str::to_owned));
        Place { backend: "local".into(), task: "default".into(), cwd, home }.prompt(code).0
    }

    #[test]
    fn it_says_where_and_whether_something_failed() {
        assert_eq!(plain(None, None, 0), "local:default $ ");
        assert_eq!(plain(Some("/h/u/src"), Some("/h/u"), 0), "local:default ~/src $ ");
        assert_eq!(plain(Some("/h/u"), Some("/h/u"), 1), "local:default ~ [1] $ ");
        assert_eq!(plain(Some("/h/user"), Some("/h/u"), 0), "local:default /h/user $ ");
        assert_eq!(plain(Some("/tmp"), Some("/"), 0), "local:default /tmp $ ");
    }

    #[test]
    fn a_directory_does_not_drive_the_terminal() {
        let (cwd, home) = (Some("/\x1b[2J\nx".into()), None);
        let (plain, coloured) = Place { cwd, home, ..Place::default() }.prompt(3);
        assert_eq!(plain, ": /\u{fffd}[2J x [3] $ ");
        assert_eq!(coloured, ": /\u{fffd}[2J x [3] \x1b[31m$\x1b[0m ");
    }
}
