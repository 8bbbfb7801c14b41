//! Changes of files that others change at the same moment.
//!
//! Between reading a file and writing it somebody else may have written it, which the writing finds. Then the change is worked out again, of
//! what the file holds by then.

/// How often a change is begun. Each time somebody else's has been made, so that is many.
const ROUNDS: usize = 32;

/// Makes a change, anew whenever it fails with an error that `is_raced`.
///
/// # Errors
///
/// As the change itself.
pub(in crate::tools) fn anew<T, E>(
    is_raced: impl Fn(&E) -> bool,
    change: impl Fn() -> Result<T, E>,
) -> Result<T, E> {
    for _ in 1..ROUNDS {
        match change() {
            Err(error) if is_raced(&error) => {}
            done => return done,
        }
    }
    change()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn only_a_race_is_run_again_and_not_for_ever() {
        let begun = Cell::new(0);
        let ends = |at: usize, error: &'static str| {
            begun.set(0);
            let change = || {
                begun.set(begun.get() + 1);
                if begun.get() == at { Ok(()) } else { Err(error) }
            };
            (anew(|error| *error == "raced", change), begun.get())
        };
        assert_eq!(ends(3, "raced"), (Ok(()), 3));
        assert_eq!(ends(3, "full"), (Err("full"), 1));
        assert_eq!(ends(0, "raced"), (Err("raced"), ROUNDS));
    }
}
