//! Keys that a provider declares for its own section, `terminal.backends.NAME`.

use serde_json::Value;

use super::schema::Type;

/// Returns what the key `name` holds by a provider's `config_schema`, if the provider declares it.
#[must_use]
pub fn type_of(schema: &Value, name: &str) -> Option<Type> {
    let declared = schema.get(name)?;
    Some(match declared.get("type").and_then(Value::as_str) {
        Some("boolean") => Type::Boolean,
        Some("number") => Type::Number { min: f64::MIN, whole: false },
        Some("list") => Type::List,
        Some("select") => {
            let options = declared.get("options").and_then(Value::as_array).into_iter().flatten();
            Type::Choice(options.filter_map(|option| option.as_str().map(str::to_owned)).collect())
        }
        _ => Type::Text,
    })
}

/// Checks the values of a section against a provider's `config_schema`.
///
/// # Errors
///
/// Fails with the first declared key whose value is of another type, and what was expected.
pub fn check(schema: &Value, section: &Value) -> Result<(), String> {
    for name in schema.as_object().into_iter().flat_map(|schema| schema.keys()) {
        let value = name.split('.').try_fold(section, |at, part| at.get(part));
        let Some(value) = value.filter(|value| !value.is_null()) else { continue };
        let Some(holds) = type_of(schema, name) else { continue };
        let yaml = serde_yaml::to_value(value).unwrap_or_default();
        if !super::value::fits(&yaml, &holds) {
            let reason = super::check::expected(&yaml, &holds);
            return Err(format!("`{name}` is `{}`: {reason}", super::value::shown(&yaml)));
        }
    }
    Ok(())
}

/// Returns the declared key that is nearest to `name`, if a provider declares any and not this one.
#[must_use]
pub fn nearest<'a>(schema: &'a Value, name: &str) -> Option<&'a str> {
    let names = schema.as_object()?.keys();
    names.map(String::as_str).min_by_key(|declared| strsim::damerau_levenshtein(declared, name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_held_to_what_was_declared() {
        let schema =
            json!({"a.b": {"type": "number"}, "size": {"type": "select", "options": ["s", "l"]}, "text": {}});
        assert_eq!(
            check(&schema, &json!({"a": {"b": -1.5}, "size": "l", "text": "x", "other": [1]})),
            Ok(())
        );
        assert_eq!(check(&schema, &json!({})), Ok(()));
        for wrong in [json!({"a": {"b": "x"}}), json!({"size": "m"}), json!({"text": 12})] {
            assert!(check(&schema, &wrong).is_err(), "{wrong}");
        }
        assert_eq!(nearest(&schema, "sise"), Some("size"));
    }
}
