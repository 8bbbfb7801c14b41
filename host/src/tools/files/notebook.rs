//! A notebook as text: its cells, one below the other.
//!
//! As a file it is JSON in which each line of code is a quoted string, and outputs hold pictures in base64. What a reader
//! wants is what the cells say.

use serde_json::Value;

/// The most characters of one output.
const MOST_OF_OUTPUT: usize = 2000;

/// Returns the text of a notebook. None if it is none.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let notebook: Value = serde_json::from_slice(bytes).ok()?;
    let cells = notebook.get("cells")?.as_array()?;
    let mut text = String::new();
    for (number, cell) in (1..).zip(cells) {
        let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("unknown");
        if number > 1 {
            text.push('\n');
        }
        push(&mut text, &format!("# %% cell {number} [{kind}]"));
        push(&mut text, &joined(cell.get("source")));
        for output in cell.get("outputs").and_then(Value::as_array).into_iter().flatten() {
            push(&mut text, &format!("# %% output of cell {number}"));
            push(&mut text, &shown(output));
        }
    }
    Some(text)
}

fn push(text: &mut String, part: &str) {
    let part = part.trim_end_matches('\n');
    if !part.is_empty() {
        text.push_str(part);
        text.push('\n');
    }
}

/// Returns a text that may be written as a list of lines.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// Returns what an output says: what was printed, the text of a result, or an error.
fn shown(output: &Value) -> String {
    let printed = output.get("text").or_else(|| output.get("data")?.get("text/plain"));
    let text = match (printed, output.get("traceback")) {
        (Some(_), _) => joined(printed),
        (None, Some(_)) => {
            let part = |name: &str| output.get(name).and_then(Value::as_str).unwrap_or_default();
            format!("{}: {}", part("ename"), part("evalue"))
        }
        (None, None) => {
            let kinds = output.get("data").and_then(Value::as_object);
            let kinds: Vec<&str> =
                kinds.into_iter().flat_map(|data| data.keys().map(String::as_str)).collect();
            format!("[{}]", if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") })
        }
    };
    if text.chars().count() <= MOST_OF_OUTPUT {
        return text;
    }
    text.chars().take(MOST_OF_OUTPUT).chain("… [cut]".chars()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_and_what_they_printed_stand_below_each_other() {
        let notebook = json!({ "nbformat": 4, "cells": [
            { "cell_type": "markdown", "source": ["# Title\n", "words"] },
            { "cell_type": "code", "source": "print(1)\n", "outputs": [
                { "output_type": "stream", "text": ["1\n"] },
                { "output_type": "display_data", "data": { "image/png": "iVBOR" } },
                { "output_type": "execute_result", "data": { "text/html": "<b>", "text/plain": ["2"] } },
                { "output_type": "error", "ename": "E", "evalue": "no", "traceback": ["x"] },
            ] },
            { "cell_type": "code", "source": [] },
        ] });
        let expected = "# %% cell 1 [markdown]\n# Title\nwords\n\n# %% cell 2 [code]\nprint(1)\n# %% output of cell 2\n1\n\
                        # %% output of cell 2\n[image/png]\n# %% output of cell 2\n2\n# %% output of cell 2\nE: no\n\n\
                        # %% cell 3 [code]\n";
        assert_eq!(text(notebook.to_string().as_bytes()).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_no_notebook_is_not_taken_for_one() {
        for bytes in [&b"not json"[..], b"[]", b"{}", b"{\"cells\": 1}"] {
            assert_eq!(text(bytes), None);
        }
    }
}
