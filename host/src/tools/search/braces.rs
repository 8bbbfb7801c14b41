//! Lists in patterns for names: `a,b` is two patterns, and so is `*.{ts,tsx}`.

/// The most patterns that one may stand for.
const MOST: usize = 100;

/// Returns the patterns that stand between commas outside of brackets.
pub(super) fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let mut depth = 0_usize;
    walk(text, |at, character| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        true
    });
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Returns the patterns without lists that a pattern stands for.
///
/// # Errors
///
/// Fails if a list is not closed, or there are too many.
pub(super) fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut made = vec![String::new()];
    let mut rest = text;
    loop {
        let (before, list, after) = first_list(rest)?;
        let Some(list) = list else {
            return Ok(made.into_iter().map(|made| made + before).collect());
        };
        let mut alternatives = Vec::new();
        for alternative in list {
            alternatives.extend(expand(alternative)?);
        }
        if made.len() * alternatives.len() > MOST {
            return Err(format!("it stands for more than {MOST} patterns"));
        }
        let with = |made: &String| {
            let made = format!("{made}{before}");
            alternatives.iter().map(move |alternative| format!("{made}{alternative}")).collect::<Vec<_>>()
        };
        made = made.iter().flat_map(with).collect();
        rest = after;
    }
}

/// What stands before the first list, its members, and what stands behind it.
type Parted<'a> = (&'a str, Option<Vec<&'a str>>, &'a str);

/// Returns the first list, if there is one, and what stands around it.
fn first_list(text: &str) -> Result<Parted<'_>, String> {
    let (mut open, mut close, mut depth) = (None, None, 0_usize);
    let mut commas = Vec::new();
    walk(text, |at, character| {
        match character {
            '{' => {
                depth += 1;
                open.get_or_insert(at);
            }
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 1 => commas.push(at),
            _ => {}
        }
        if open.is_some() && depth == 0 {
            close = Some(at);
        }
        close.is_none()
    });
    let Some(open) = open else { return Ok((text, None, "")) };
    let close = close.ok_or("`{` is not closed")?;
    let mut members = Vec::new();
    let mut start = open + 1;
    for comma in commas.into_iter().chain(std::iter::once(close)) {
        members.push(&text[start..comma]);
        start = comma + 1;
    }
    Ok((&text[..open], Some(members), &text[close + 1..]))
}

/// Visits the characters that are neither escaped nor in square brackets, until `visit` says no.
fn walk(text: &str, mut visit: impl FnMut(usize, char) -> bool) {
    let mut rest = text.char_indices().peekable();
    let mut class = false;
    while let Some((at, character)) = rest.next() {
        match character {
            '\\' => drop(rest.next()),
            ']' => class = false,
            _ if class => {}
            '[' => {
                class = true;
                // A bracket that stands first is a member.
                rest.next_if(|(_, next)| matches!(next, '!' | '^'));
                rest.next_if(|(_, next)| *next == ']');
            }
            _ if !visit(at, character) => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_part_patterns_outside_of_braces() {
        assert_eq!(split("*.ts, *.{js,jsx},,a\\,b"), ["*.ts", "*.{js,jsx}", r"a\,b"]);
        assert!(split("").is_empty());
    }

    #[test]
    fn lists_are_expanded() {
        for (given, made) in [
            ("*.rs", vec!["*.rs"]),
            ("*.{ts,tsx}", vec!["*.ts", "*.tsx"]),
            ("{a,b}/{c,d}", vec!["a/c", "a/d", "b/c", "b/d"]),
            ("x{a{1,2},b}y", vec!["xa1y", "xa2y", "xby"]),
            ("{a}", vec!["a"]),
            ("{,a}b", vec!["b", "ab"]),
            (r"\{a,b}", vec![r"\{a,b}"]),
            ("[{]a", vec!["[{]a"]),
        ] {
            assert_eq!(expand(given).unwrap(), made, "{given}");
        }
        assert!(expand("{a").is_err());
        assert!(expand(&"{a,b}".repeat(10)).unwrap_err().contains("more than 100"));
    }
}
