//! The crate that `hostel plugins new` makes, as it lies in the program.
//!
//! Its files are templates, below `host/templates/plugin`. A placeholder is a word of lower-case letters and `_` in double
//! braces, such as `{{name}}`, without blanks: so `${{ github.ref }}` in a workflow stands for itself. One that nothing
//! fills is an error, and what is put in is not searched again.
//!
//! | placeholder | for `demo-box` | stands for |
//! | --- | --- | --- |
//! | `{{name}}` | `demo-box` | the plugin, its package and its backend |
//! | `{{crate}}` | `demo_box` | the crate in Rust, and the library's name |
//! | `{{title}}` | `Demo Box` | the name for people |
//! | `{{token}}` | `DEMO_BOX_TOKEN` | the variable that holds its secret |
//! | `{{api}}` | `"1"` | the dependency on `hostel-plugin-api`, as TOML |
//! | `{{api_version}}` | `1` | the major version of the plugin API |
//! | `{{rust}}` | `1.88` | the oldest Rust that builds it |

use hostel_plugin_api::abi::root::API_VERSION;

/// The files: the path in the crate, and the template.
pub(super) const FILES: [(&str, &str); 9] = [
    ("Cargo.toml", include_str!("../../templates/plugin/Cargo.toml.in")),
    ("plugin.yaml", include_str!("../../templates/plugin/plugin.yaml.in")),
    ("README.md", include_str!("../../templates/plugin/README.md.in")),
    ("src/lib.rs", include_str!("../../templates/plugin/src/lib.rs.in")),
    ("src/provider.rs", include_str!("../../templates/plugin/src/provider.rs.in")),
    ("src/environment.rs", include_str!("../../templates/plugin/src/environment.rs.in")),
    ("tests/conformance.rs", include_str!("../../templates/plugin/tests/conformance.rs.in")),
    (".gitignore", include_str!("../../templates/plugin/gitignore.in")),
    (".github/workflows/ci.yml", include_str!("../../templates/plugin/.github/workflows/ci.yml.in")),
];

/// What stands for each placeholder.
pub(super) struct Values([(&'static str, String); 7]);

impl Values {
    /// Returns the values for the plugin `name`, which has been checked. `api` is the dependency, as TOML.
    pub(super) fn new(name: &str, api: String) -> Self {
        let krate = name.replace('-', "_");
        Self([
            ("name", name.to_owned()),
            ("title", title(name)),
            ("token", format!("{}_TOKEN", krate.to_ascii_uppercase())),
            ("crate", krate),
            ("api", api),
            ("api_version", API_VERSION.split('.').next().unwrap_or(API_VERSION).to_owned()),
            ("rust", env!("CARGO_PKG_RUST_VERSION").to_owned()),
        ])
    }

    /// Fills a template.
    ///
    /// # Errors
    ///
    /// Fails with the first placeholder that nothing fills.
    pub(super) fn fill(&self, template: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(template.len());
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("{{") {
            filled.push_str(before);
            if let Some((word, behind)) = after.split_once("}}").filter(|(word, _)| is_word(word)) {
                let value = self.0.iter().find(|(known, _)| *known == word);
                let (_, value) = value.ok_or_else(|| word.to_owned())?;
                filled.push_str(value);
                rest = behind;
            } else {
                filled.push_str("{{");
                rest = after;
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Writes `demo-box` as `Demo Box`.
fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split(['-', '_']).map(capital).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_nothing_else_is_touched() {
        let values = Values::new("demo-box2_x", "\"{{name}}\"".into());
        let fill = |template: &str| values.fill(template);
        assert_eq!(fill("{{name}} {{crate}}"), Ok("demo-box2_x demo_box2_x".into()));
        assert_eq!(fill("{{title}}, {{token}}"), Ok("Demo Box2 X, DEMO_BOX2_X_TOKEN".into()));
        // What is put in is not a template.
        assert_eq!(fill("a = {{api}}"), Ok("a = \"{{name}}\"".into()));
        for text in
            ["", "{{", "}}", "{{}}", "{{ name }}", "${{ github.ref }}", "{{{name}}}", "{ {name} }", "{{A}}"]
        {
            assert_eq!(fill(text), Ok(text.into()));
        }
        assert_eq!(fill("{{ {{name}} }}"), Ok("{{ demo-box2_x }}".into()));
        assert_eq!(fill("{{name}} {{nme}}"), Err("nme".into()));
    }

    #[test]
    fn every_placeholder_of_every_file_is_known_and_every_known_one_is_used() {
        let values = Values::new("demo", "\"1\"".into());
        for (path, template) in FILES {
            let filled = values.fill(template).unwrap();
            assert!(!filled.contains("{{") && filled.ends_with('\n'), "{path}");
        }
        for (word, _) in &values.0 {
            let placeholder = format!("{{{{{word}}}}}");
            assert!(FILES.iter().any(|(_, template)| template.contains(&placeholder)), "{word}");
        }
    }
}
