//! Which characters a directory may have that an agent names.
//!
//! The directory is never read as shell text here, so none of them could do harm. But a `workdir` with a `;` or a `$(` in it is
//! no directory: it is an attempt, or a mix-up of arguments, and the agent is told so before anything is looked for.

use crate::tools::tool::Failure;

/// Characters besides letters and digits of any script.
const ALLOWED: &str = "/\\:_-.~ +@=,";

/// Returns why `dir` is refused, if it is.
pub(super) fn refusal(dir: &str) -> Option<Failure> {
    let wrong = dir.chars().find(|one| !one.is_alphanumeric() && !ALLOWED.contains(*one))?;
    let failure = Failure::new(format!(
        "`workdir` has the character `{}`, which no directory may have here",
        wrong.escape_debug()
    ));
    Some(failure.with_hint(
        "letters, digits, spaces and `/\\:_-.~+@=,` may be used; go anywhere else by `cd` in the command",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_pass_and_shell_text_does_not() {
        for dir in ["/srv/a b", "~/x", "C:\\Users\\me", "a+b@c=d,e_f-g.h", "grün/日本", "--help", "-"] {
            assert!(refusal(dir).is_none(), "{dir}");
        }
        for (dir, named) in [
            ("nodir; touch x", "`;`"),
            ("$(touch x)", "`$`"),
            ("`touch x`", "```"),
            ("a\nb", "`\\n`"),
            ("a\0b", "`\\0`"),
            ("a'b", "`\\'`"),
            ("a*", "`*`"),
        ] {
            let failure = refusal(dir).unwrap();
            assert!(failure.message.contains(named), "{}", failure.message);
        }
    }
}
