//! What `docs/mcp.md` tells people to give their clients, started as it says.
//!
//! Needs no client and no network, as the same check with the official SDK does.

use std::fs;
use std::path::Path;

use hostel_tests::mcp_stdio::McpStdio;
use hostel_tests::{Home, built};
use serde_json::{Value, json};

/// Returns the blocks of `language` on the page.
fn blocks<'page>(page: &'page str, language: &str) -> Vec<&'page str> {
    let begin = format!("```{language}\n");
    page.split(begin.as_str()).skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

/// Reads the little TOML that stands there: one table, whose values JSON writes the same way.
fn toml(text: &str) -> Value {
    let mut table = json!({});
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(" = ") {
            table[name] = serde_json::from_str(value).unwrap();
        } else {
            assert_eq!(line, "[mcp_servers.hostel]");
        }
    }
    table
}

/// Finds the commands in a configuration.
fn commands(value: &Value, found: &mut Vec<Vec<String>>) {
    let texts = |value: &Value| match value {
        Value::String(word) => vec![word.clone()],
        Value::Array(words) => words.iter().map(|word| word.as_str().unwrap().to_owned()).collect(),
        _ => Vec::new(),
    };
    match value {
        Value::Object(members) => match members.get("command").or_else(|| members.get("cmd")) {
            Some(command) => found.push([texts(command), texts(&value["args"])].concat()),
            None => members.values().for_each(|value| commands(value, found)),
        },
        Value::Array(items) => items.iter().for_each(|item| commands(item, found)),
        _ => {}
    }
}

#[test]
fn each_configuration_starts_a_server_with_all_tools() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/mcp.md");
    let page = fs::read_to_string(page).unwrap();
    let mut configurations: Vec<Value> = Vec::new();
    configurations.extend(blocks(&page, "json").into_iter().map(|text| serde_json::from_str(text).unwrap()));
    configurations.extend(blocks(&page, "yaml").into_iter().map(|text| serde_yaml::from_str(text).unwrap()));
    configurations.extend(blocks(&page, "toml").into_iter().map(toml));
    // What names an address starts nothing.
    configurations.retain(|value| value["mcpServers"]["hostel"]["url"].is_null());
    let mut found = Vec::new();
    for value in &configurations {
        commands(value, &mut found);
    }
    assert_eq!(found.len(), configurations.len(), "{found:?}");
    assert_eq!(found.len(), 7, "{found:?}");
    // The command of `claude mcp add` stands behind its dashes.
    let (_, line) = page.split_once("`claude mcp add hostel -- ").unwrap();
    found.push(line.split_once('`').unwrap().0.split(' ').map(str::to_owned).collect());
    for words in found {
        assert_eq!(words[..2], ["hostel", "mcp"], "{words:?}");
        let home = Home::new();
        let rest: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let mut command = home.command("hostel", &rest);
        command.env("PATH", format!("{}:/usr/bin:/bin", built().display()));
        let mut server = McpStdio::begin(command);
        let tools = server.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().len();
        assert_eq!(tools, hostel::tools::all().len(), "{words:?}");
        let ran = server.call("terminal", &json!({ "command": "echo from a client" }));
        assert_eq!(ran["output"], "from a client\n", "{words:?}");
        drop(server);
        let _ = home.hostel(&["env", "cleanup", "--all", "--force"]);
    }
}
