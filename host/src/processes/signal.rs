//! Signals as people and programs write them.

use crate::signals::signal_name;

/// The largest number that has a name.
const LARGEST: i32 = 31;

/// Reads a signal: a name with or without `SIG`, in any case, or a number. None for anything else.
#[must_use]
pub fn parse_signal(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return (1..=LARGEST).contains(&number).then_some(number);
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    (1..=LARGEST).find(|number| signal_name(*number).strip_prefix("SIG") == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read() {
        for (text, number) in [("TERM", 15), ("SIGTERM", 15), ("sigint", 2), ("9", 9), ("Usr1", 10)] {
            assert_eq!(parse_signal(text), Some(number), "{text}");
        }
        for bad in ["", "SIG", "0", "-9", "32", "NOPE", "signal 40"] {
            assert_eq!(parse_signal(bad), None, "{bad}");
        }
    }
}
