//! Data on standard output, and words to the user on standard error.

use std::io::{self, Write};

use serde::Serialize;

/// Standard output, or what stands for it.
pub(super) struct Out(Box<dyn Write>);

impl Out {
    pub(super) fn stdout() -> Self {
        Self(Box::new(io::stdout()))
    }

    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())?;
        self.0.write_all(b"\n")?;
        self.0.flush()
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    pub(super) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
        self.line(&text)
    }

    /// Prints rows in columns; the first row is the head.
    pub(super) fn table(&mut self, rows: &[Vec<String>]) -> io::Result<()> {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for row in rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| {
                format!("{}{}", visible(cell), " ".repeat(width - cell.chars().count()))
            });
            self.line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Says one line on stderr: `error`, `hint`, `warning` or `note`, and what. Where stderr is closed nobody can be told.
pub(super) fn say(word: &str, text: &str) {
    let _ = writeln!(io::stderr(), "{word}: {}", visible(text));
}

/// Makes control characters visible: names and descriptions come from other people's files.
pub(super) fn visible(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => ' ',
        // Those that turn the direction of the text hide what it says.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        character if character.is_control() => '\u{fffd}',
        character => character,
    };
    text.chars().map(shown).collect()
}
