//! The search that is made over and over.
//!
//! A model that has lost its way asks the same thing again and gets the same answer. The third time it is told, the fourth is
//! refused, until it searches for something else or does something else.

use super::query::Query;
use crate::tools::tool::Failure;

/// How often one search may be made in a row.
const MOST: u32 = 3;

/// The searches of one session, as far as they matter to the next.
#[derive(Debug, Default)]
pub(in crate::tools) struct Searches {
    last: Option<Query>,
    times: u32,
}

impl Searches {
    /// Takes note of a search that is to be made. Returns what to tell with its result.
    ///
    /// # Errors
    ///
    /// Fails if it was made too often already.
    pub(super) fn begin(&mut self, query: &Query) -> Result<Option<String>, Failure> {
        if self.last.as_ref() != Some(query) {
            *self = Self { last: Some(query.clone()), times: 0 };
        }
        if self.times == MOST {
            return Err(Failure::new(format!("this very search was made {MOST} times already"))
                .with_hint("use what it has found, go on with `next_offset`, or search for something else"));
        }
        self.times += 1;
        let last = self.times == MOST;
        Ok(last.then(|| format!("this very search was made {MOST} times; once more will be refused")))
    }

    /// Forgets them: something else was done, which may have changed what there is to find.
    pub(in crate::tools) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::Input;
    use super::*;

    fn query(pattern: &str, offset: u64) -> Query {
        let input = Input { pattern: pattern.to_owned(), offset: Some(offset), ..Input::default() };
        Query::new(input).unwrap()
    }

    #[test]
    fn the_fourth_in_a_row_is_refused() {
        let mut searches = Searches::default();
        assert_eq!(searches.begin(&query("a", 0)), Ok(None));
        assert_eq!(searches.begin(&query("a", 0)), Ok(None));
        assert!(searches.begin(&query("a", 0)).unwrap().is_some());
        assert!(searches.begin(&query("a", 0)).is_err());
        assert!(searches.begin(&query("a", 0)).is_err());
        // Another page is another search, and so is the first one after it.
        assert_eq!(searches.begin(&query("a", 50)), Ok(None));
        assert_eq!(searches.begin(&query("a", 0)), Ok(None));
    }

    #[test]
    fn whatever_else_is_done_begins_anew() {
        let mut searches = Searches::default();
        for _ in 0..3 {
            searches.begin(&query("a", 0)).unwrap();
        }
        searches.forget();
        assert_eq!(searches.begin(&query("a", 0)), Ok(None));
    }
}
