//! What a call of `terminal` leaves for the next.

/// What is remembered.
#[derive(Debug, Default)]
pub(in crate::tools) struct Remembered {
    /// Where the session stood when an agent was last told.
    cwd: Option<String>,
    /// The environment was lost, and nobody was told yet of the new one.
    lost: bool,
}

impl Remembered {
    /// Takes where the session stands, and returns it if it is news: it has moved, or was never told.
    pub(super) fn moved(&mut self, cwd: Option<String>) -> Option<String> {
        if cwd.is_none() || self.cwd == cwd {
            return None;
        }
        self.cwd.clone_from(&cwd);
        cwd
    }

    /// Takes that the environment is gone.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.cwd = None;
    }

    /// Returns, once, whether the environment is another than before.
    pub(super) fn recreated(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_not_told_again() {
        let mut remembered = Remembered::default();
        let at = |dir: &str| Some(dir.to_owned());
        assert_eq!(remembered.moved(at("/a")), at("/a"));
        assert_eq!(remembered.moved(at("/a")), None);
        assert_eq!(remembered.moved(None), None);
        assert_eq!(remembered.moved(at("/b")), at("/b"));
        assert!(!remembered.recreated());
        remembered.lose();
        assert!(remembered.recreated() && !remembered.recreated());
        assert_eq!(remembered.moved(at("/b")), at("/b"));
    }
}
