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
//! | `{{workspace}}` | `exclude = …` | what the crate's own workspace has to say of the API |
//! | `{{about_api}}` | a paragraph | what the folder with the API is |
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

/// The folder is a crate, but not one that is worked on here: checks, lints and formatting are for the plugin only.
const WORKSPACE: &str = "\nexclude = [\"hostel-plugin-api\"]";

const ABOUT_API: &str = "\n\n`hostel-plugin-api/` is the plugin API, as carried by the Hostel that made this crate, under its own licence; \
    leave it as it is.\nTo take the published one, remove the folder, write `hostel-plugin-api = \"1\"` into `Cargo.toml`, \
    and take out `exclude` there.";

/// What stands for each placeholder.
pub(super) struct Values([(&'static str, String); 9]);

impl Values {
    /// Returns the values for the plugin `name`, which has been checked. `api` is the dependency, as TOML; `is_carried` says whether
    /// that is in a folder of the crate's own.
    pub(super) fn new(name: &str, api: String, is_carried: bool) -> Self {
        let only_then = |text: &str| if is_carried { text.to_owned() } else { String::new() };
        let krate = name.replace('-', "_");
        Self([
            ("name", name.to_owned()),
            ("title", title(name)),
            ("token", format!("{}_TOKEN", krate.to_ascii_uppercase())),
            ("crate", krate),
            ("api", api),
            ("workspace", only_then(WORKSPACE)),
            ("about_api", only_then(ABOUT_API)),
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
        let values = Values::new("demo-box2_x", "\"{{name}}\"".into(), false);
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
        let values = Values::new("demo", "\"1\"".into(), true);
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
