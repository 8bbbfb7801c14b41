//! Whether a text is what its name says: JSON, YAML or TOML that can be read.
//!
//! A configuration that cannot be read is worth less than the one that it replaces, and a model that is told so at once
//! writes a better one. But there are dialects: JSON with comments, templates that only become YAML. What is known or seems
//! to be one is not judged.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Files in JSON with comments whose names do not say so.
const WITH_COMMENTS: [&str; 15] = [
    "tsconfig",
    "jsconfig",
    "tslint",
    "typedoc",
    "api-extractor",
    "devcontainer",
    ".devcontainer",
    ".eslintrc",
    ".jshintrc",
    ".jscsrc",
    ".babelrc",
    ".swcrc",
    "language-configuration",
    "nx",
    "turbo",
];

/// How templates mark what is filled in.
const TEMPLATE: [&str; 3] = ["{{", "{%", "<%"];

/// What is thought of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Syntax {
    /// It can be read.
    Good,
    /// It cannot, and why.
    Broken(String),
    /// It is not judged, and why.
    Unknown(&'static str),
}

impl Syntax {
    /// Judges the text of a file by the file's name.
    pub(super) fn of(path: &str, text: &str) -> Self {
        let path = path.to_lowercase();
        let name = path.rsplit('/').next().unwrap_or(&path);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let read = match name.rsplit_once('.') {
            Some((stem, "json")) => {
                let known = stem
                    .split_once('.')
                    .filter(|(first, _)| !first.is_empty())
                    .map_or(stem, |(first, _)| first);
                if WITH_COMMENTS.contains(&known) || path.contains("/.vscode/") {
                    return Self::Unknown("it may hold comments");
                }
                json(text)
            }
            Some((_, "yaml" | "yml")) => yaml(text),
            Some((_, "toml")) => toml(text),
            _ => return Self::Unknown("there is no check for such files"),
        };
        match read {
            Ok(()) => Self::Good,
            Err(_) if TEMPLATE.iter().any(|mark| text.contains(mark)) => {
                Self::Unknown("it seems to be a template")
            }
            Err(error) => Self::Broken(error),
        }
    }
}

fn json(text: &str) -> Result<(), String> {
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| format!("no valid JSON: {error}"))
}

fn toml(text: &str) -> Result<(), String> {
    toml::from_str::<IgnoredAny>(text).map(drop).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let place = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1));
        format!("no valid TOML: {}{}", place.unwrap_or_default(), error.message())
    })
}

/// Reads all documents of a stream.
fn yaml(text: &str) -> Result<(), String> {
    for document in serde_yaml::Deserializer::from_str(text) {
        IgnoredAny::deserialize(document).map_err(|error| format!("no valid YAML: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_is_good() {
        for (path, text) in [
            ("a.json", "{\"a\": [1, 1e999, \"\\ud800\", null]}\n"),
            ("/w/A.JSON", "\u{feff}3"),
            ("a.yaml", "a: 1\n---\nb: [2, {c: !custom x}]\n...\n"),
            ("a.yml", ""),
            ("a.yml", "a: &x {b: 1}\nc: *x\na: again\n"),
            ("ci.yml", "run: echo ${{ github.sha }}\n"),
            ("Cargo.toml", "# x\n[a.b]\nc = { d = 1979-05-27, e = [1.5, 'x'] }\n[[f]]\n"),
            ("a.toml", ""),
        ] {
            assert_eq!(Syntax::of(path, text), Syntax::Good, "{path}");
        }
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert_eq!(Syntax::of("deep.json", &deep), Syntax::Good);
    }

    #[test]
    fn what_cannot_says_where() {
        for (path, text, place) in [
            ("a.json", "{\"a\": 1,}\n", "line 1 column 9"),
            ("a.json", "", "line 1 column 0"),
            ("package.json", "{}\n{}", "line 2"),
            ("a.json", "{\"a\": NaN}", "line 1"),
            ("a.yaml", "a: [1\nb: 2\n", "line "),
            ("a.yaml", "a: 1\n---\n\tb: 2\n", "line 3"),
            ("a.yaml", "a: *nothing\n", "line 1"),
            ("a.toml", "b = 1\na = = 1\n", "line 2"),
            ("a.toml", "a = 1\na = 2\n", "line 2"),
        ] {
            let syntax = Syntax::of(path, text);
            assert!(
                matches!(&syntax, Syntax::Broken(error) if error.contains(place)),
                "{path} {text:?} {syntax:?}"
            );
        }
    }

    #[test]
    fn dialects_and_other_files_are_not_judged() {
        for (path, text) in [
            ("tsconfig.json", "// x\n{}"),
            ("/w/tsconfig.build.json", "// x\n{}"),
            ("/w/.vscode/settings.json", "{,}"),
            (".eslintrc.json", "// x\n{}"),
            ("a.jsonc", "// x\n{}"),
            ("a.json5", "{a: 1}"),
            ("a.toml", "a = {{ cookiecutter.name }}"),
            ("a.py", "def"),
            ("Makefile", "x"),
            ("templates/a.yaml", "{{- if .Values.x }}\na: {{ .y }}\n{{- end }}\n"),
            ("a.json", "{% if x %}{}{% endif %}"),
        ] {
            assert!(matches!(Syntax::of(path, text), Syntax::Unknown(_)), "{path}");
        }
    }
}
