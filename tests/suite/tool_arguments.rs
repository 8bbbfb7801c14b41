//! The arguments of tools, as agents write them: what is understood, and that whatever is not is said at once, by the name of the argument.

use hostel_tests::tidy::TidyHome;
use hostel_tests::tools::Road;
use hostel_tests::{by_both_roads, finish};
use serde_json::{Value, json};

by_both_roads! {
    what_is_meant_is_understood what_cannot_be_meant_is_said_by_its_name paths_begin_where_the_session_stands
    arguments_may_be_large
}

/// Makes a home whose session stands in a folder `t` with a file `f` in it.
fn in_folder(road: Road) -> TidyHome {
    let home = TidyHome::new().by(road);
    let _ = home.exec("mkdir t && cd t && printf 'a\\nb\\n' > f").expect(0);
    home
}

#[track_caller]
fn fine(home: &TidyHome, tool: &str, arguments: &Value) -> Value {
    let value = home.tool(tool, arguments);
    assert!(value["error"].is_null(), "{tool} {arguments}: {value}");
    value
}

fn what_is_meant_is_understood(road: Road) {
    let home = in_folder(road);
    let value = fine(
        &home,
        "terminal",
        &json!({ "command": "echo hi", "timeout": " 5 ", "workdir": null, "background": "False", "pty": null, "stdin": null,
            "notify": null, "notify_on_complete": null, "watch_patterns": null, "check_interval": null }),
    );
    assert_eq!(value["output"], "hi\n");
    let value = fine(&home, "read_file", &json!({ "path": "f", "offset": "2", "limit": "1" }));
    assert_eq!(value["content"], "2|b");
    let value = fine(&home, "read_file", &json!({ "path": "f", "offset": null, "limit": 1.0 }));
    assert_eq!(value["content"], "1|a");
    let some = json!({ "mode": null, "path": "f", "old_string": "b", "new_string": "c", "replace_all": "true", "patch": null });
    assert_eq!(fine(&home, "patch", &some)["replacements"], 1);
    let value =
        fine(&home, "search_files", &json!({ "pattern": "c", "limit": "5", "offset": "0", "context": null }));
    assert_eq!(value["total_count"], 1);
    let value = fine(&home, "process", &json!({ "action": "list", "session_id": null, "timeout": null }));
    assert_eq!(value["processes"], json!([]));
}

fn what_cannot_be_meant_is_said_by_its_name(road: Road) {
    let home = in_folder(road);
    for (tool, arguments, named) in [
        ("terminal", json!({}), "missing field `command`"),
        ("terminal", json!({ "command": "" }), "`command` is empty"),
        ("terminal", json!({ "command": null }), "`command`: invalid type: null, expected a string"),
        ("terminal", json!({ "command": ["touch", "x"] }), "`command`: invalid type: sequence"),
        ("terminal", json!({ "command": "touch x\0" }), "NUL"),
        ("terminal", json!({ "command": "touch x", "nonsense": 1 }), "unknown field `nonsense`"),
        ("terminal", json!({ "command": "touch x", "timeout": "1e999" }), "`timeout`: a number is expected"),
        ("terminal", json!({ "command": "touch x", "timeout": 1e308 }), "`timeout` is 1e308 seconds"),
        ("terminal", json!({ "command": "touch x", "timeout": true }), "`timeout`: a number"),
        ("terminal", json!({ "command": "touch x", "background": "yes" }), "`background`: `true` or `false`"),
        ("terminal", json!({ "command": "touch x", "workdir": "a\0b" }), "`workdir`"),
        ("terminal", json!({ "command": "touch x", "workdir": 5 }), "`workdir`: invalid type"),
        ("process", json!({ "action": "LIST" }), "`action`: unknown variant `LIST`, expected one of `list`"),
        ("process", json!({ "action": null }), "`action`"),
        ("process", json!({ "action": "poll", "session_id": 5 }), "`session_id`: invalid type"),
        ("read_file", json!({ "path": "" }), "`` is not the path of a file"),
        ("read_file", json!({ "path": null }), "`path`: invalid type: null"),
        ("read_file", json!({ "path": "a\0b" }), "is not the path of a file"),
        ("read_file", json!({ "path": "f", "offset": -3 }), "`offset`: a whole number"),
        ("read_file", json!({ "path": "f", "limit": "many" }), "`limit`: a whole number"),
        ("write_file", json!({ "path": "x", "content": null }), "`content`: invalid type: null"),
        ("write_file", json!({ "path": "x.json", "content": { "a": 1 } }), "`content`: invalid type: map"),
        ("write_file", json!({ "path": "x" }), "missing field `content`"),
        ("write_file", json!({ "path": "x\0", "content": "" }), "is not the path of a file"),
        ("patch", json!({ "mode": "x" }), "`mode`: unknown variant `x`"),
        ("patch", json!({ "path": "f", "old_string": "a", "new_string": null }), "`new_string` is missing"),
        ("patch", json!({ "path": "f\0", "old_string": "a", "new_string": "b" }), "`f"),
        ("search_files", json!({ "pattern": 5 }), "`pattern`: invalid type: integer `5`"),
        ("search_files", json!({ "pattern": "a", "path": "a\0b" }), "`path` holds a NUL"),
        ("search_files", json!({ "pattern": "a".repeat(100_000) }), "`pattern` is longer"),
    ] {
        let value = home.tool(tool, &arguments);
        assert!(
            value["error"].as_str().is_some_and(|error| error.contains(named)),
            "{tool} {named}: {value}"
        );
    }
    assert_eq!(home.exec("ls -A; cat f").expect(0).text(), "f\na\nb\n");
}

fn paths_begin_where_the_session_stands(road: Road) {
    let home = in_folder(road);
    let _ = home.exec("mkdir -p deep '~'; echo home > ~/g; cd deep").expect(0);
    for (path, content) in
        [("../f", "1|a\n2|b"), ("~/g", "1|home"), ("~//t/../g", ""), ("./../deep/.././f", "")]
    {
        let value = fine(&home, "read_file", &json!({ "path": path, "limit": 3 }));
        assert!(value["content"] == content || content.is_empty(), "{value}");
    }
    fine(&home, "write_file", &json!({ "path": "n", "content": "n\n" }));
    fine(&home, "write_file", &json!({ "path": "~/t/h", "content": "h\n" }));
    assert_eq!(home.exec("cat n ../h; ls ../'~'").expect(0).text(), "n\nh\n");
    for (dir, expected) in [("~", ""), ("~/t", "/t"), ("..", "/t"), ("../deep", "/t/deep")] {
        let value = fine(&home, "terminal", &json!({ "command": "pwd", "workdir": dir }));
        assert_eq!(value["output"], format!("{}{expected}\n", home.path().display()));
    }
    let value = fine(&home, "search_files", &json!({ "pattern": "home", "path": "~/g" }));
    assert_eq!(value["total_count"], 1, "{value}");
}

fn arguments_may_be_large(road: Road) {
    let home = in_folder(road);
    let command = format!("echo {} | wc -c", "a".repeat(3_000_000));
    assert_eq!(fine(&home, "terminal", &json!({ "command": command }))["output"], "3000001\n");
    let content = "é".repeat(2_000_000);
    let value = fine(&home, "write_file", &json!({ "path": "big", "content": content }));
    assert_eq!(value["bytes_written"], 4_000_000);
    assert_eq!(home.exec("wc -c < big").expect(0).text(), "4000000\n");
}

#[test]
fn half_a_character_is_refused_and_no_client_waits() {
    let home = in_folder(Road::Mcp);
    home.with_server("default", |server| {
        for (id, half) in [(101, r"\ud800x"), (102, r"\udc00"), (103, r"caf\udce9")] {
            let call = format!(r#"{{"name":"terminal","arguments":{{"command":"touch x {half}"}}}}"#);
            server.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{call}}}"#));
            let answer = server.answer(id);
            assert_eq!(answer["error"]["code"], -32700, "{answer}");
        }
        let call = r#"{"name":"terminal","arguments":{"command":"printf \ud83d\ude00"}}"#;
        server.say(&format!(r#"{{"jsonrpc":"2.0","id":104,"method":"tools/call","params":{call}}}"#));
        assert_eq!(server.answer(104)["result"]["structuredContent"]["output"], "\u{1f600}");
    });
    let command = home.command("hostel", &["tool", "terminal", "--json", "-"]);
    finish(command, br#"{"command": "touch x \ud800"}"#).fails(1, "are no JSON");
    assert_eq!(home.exec("ls -A").expect(0).text(), "f\n");
}
