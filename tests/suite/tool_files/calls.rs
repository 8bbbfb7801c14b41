//! Calls of the tools, and what is asked of their results.

use hostel_tests::tools::Road;
use hostel_tests::{Home, finish};
use serde_json::{Value, json};

/// Calls `read_file`.
#[track_caller]
pub(super) fn read(home: &Home, arguments: &Value) -> Value {
    home.tool("read_file", arguments)
}

/// Writes a file, which must go well.
#[track_caller]
pub(super) fn write(home: &Home, path: &str, content: &str) -> Value {
    let object = home.tool("write_file", &json!({ "path": path, "content": content }));
    assert!(object["error"].is_null(), "{object}");
    assert_eq!(object["files_modified"], json!([object["resolved_path"]]), "{object}");
    object
}

/// Requires that a call was refused for a reason that holds `words`, and nothing was done.
#[track_caller]
pub(super) fn refused(object: &Value, words: &str) {
    let error = object["error"].as_str().unwrap_or_default();
    assert!(error.contains(words), "wanted {words:?} in {object}");
    assert!(object.get("bytes_written").is_none() && object["content"].as_str().is_none_or(str::is_empty));
}

/// Requires that `write_file` refuses a file for a reason that holds `words`.
#[track_caller]
pub(super) fn not_written(home: &Home, path: &str, words: &str) {
    refused(&home.tool("write_file", &json!({ "path": path, "content": "x\n" })), words);
}

/// Requires that `read_file` does.
#[track_caller]
pub(super) fn not_read(home: &Home, path: &str, words: &str) {
    refused(&read(home, &json!({ "path": path })), words);
}

/// Puts a file where the session stands.
pub(super) fn put(home: &Home, name: &str, bytes: impl AsRef<[u8]>) {
    let command = home.command("hostel", &["exec", "--stdin", "--", &format!("cat > '{name}'")]);
    let _ = finish(command, bytes.as_ref()).expect(0);
}

/// Requires that a file holds exactly this.
#[track_caller]
pub(super) fn assert_holds(home: &Home, name: &str, bytes: impl AsRef<[u8]>) {
    let (found, wanted) = (home.exec(&format!("cat '{name}'")).expect(0).stdout, bytes.as_ref());
    assert_eq!(found, wanted, "{:?}", String::from_utf8_lossy(&found));
}

/// Requires that a command prints this.
#[track_caller]
pub(super) fn says(home: &Home, command: &str, text: &str) {
    assert_eq!(home.exec(command).expect(0).text(), text, "{command}");
}

/// Makes a home whose session stands in an empty folder.
pub(super) fn in_folder(road: Road) -> Home {
    let home = Home::new().by(road);
    let _ = home.exec("mkdir w && cd w").expect(0);
    home
}
