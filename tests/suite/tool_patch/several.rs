//! Patches of several files of which one part cannot be done: nothing of them is left.
//!
//! What can be known is found before anything is written. What cannot be known is made to fail here by programs of the session's that
//! stand before those of the sandbox, and what was written is then taken back.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use hostel_tests::tools::Road;
use hostel_tests::{Home, built, by_both_roads, finish, is_root};
use serde_json::json;

use super::{apply, assert_holds, error, get, in_folder, patch, put};

by_both_roads! {
    what_is_known_to_fail_is_found_before_anything_is_written all_that_was_made_goes_when_a_step_fails
    a_link_is_not_what_it_leads_to what_others_have_written_meanwhile_is_left_alone what_reads_back_otherwise_is_no_success
}

/// A change that would be made first.
const FIRST: &str = "*** Update File: a.txt\n@@\n-one\n+two\n";

/// All files with what tells whether they were touched.
const STATE: &str =
    "find . -path ./bin -prune -o -printf '%p %y %i %m %T@ %l\\n' | sort; cat a.txt b.txt c.txt";

/// Puts a program in front of one that the scripts of ours call: `$last` is its last argument, `$real` does what is meant.
fn instead(home: &Home, name: &str, text: &str) {
    let _ = home
        .exec("mkdir -p bin; case $PATH in $PWD/bin:*) ;; *) export PATH=\"$PWD/bin:$PATH\" ;; esac")
        .expect(0);
    let real = home.exec(&format!("PATH=${{PATH#*:}} command -v {name}")).text();
    let begin = format!("#!/bin/sh\nreal={}\nfor last; do :; done\n", real.trim());
    put(home, &format!("bin/{name}"), begin + text);
    let _ = home.exec(&format!("chmod 755 bin/{name}")).expect(0);
}

fn start(road: Road) -> Home {
    let home = in_folder(road);
    put(&home, "a.txt", "one\n");
    put(&home, "b.txt", "b\n");
    put(&home, "c.txt", "c\n");
    let _ = home
        .exec("chmod 640 c.txt; mkdir folder; ln -s folder link; ln -s nowhere dangling; mkfifo pipe")
        .expect(0);
    home
}

fn what_is_known_to_fail_is_found_before_anything_is_written(road: Road) {
    let home = start(road);
    let _ = home.exec("truncate -s 9000000 large").expect(0);
    let before = home.exec(STATE).expect(0).text();
    for (bad, reason) in [
        ("*** Add File: /etc/hostel-test\n+x\n", "`/etc/hostel-test` is protected"),
        ("*** Add File: ~/.bashrc\n+x\n", "is protected"),
        ("*** Delete File: /etc/passwd\n", "`/etc/passwd` is protected"),
        ("*** Update File: b.txt\n*** Move to: /etc/hostel-test\n", "`/etc/hostel-test` is protected"),
        ("*** Add File: b.txt/below\n+x\n", "b.txt` is not a folder"),
        ("*** Update File: b.txt\n*** Move to: c.txt/below\n", "is not a folder"),
        ("*** Update File: b.txt\n*** Move to: c.txt\n", "there is a file already"),
        ("*** Update File: b.txt\n*** Move to: folder\n", "`folder` is a folder"),
        ("*** Update File: b.txt\n*** Move to: dangling\n", "`dangling` exists already"),
        ("*** Delete File: pipe\n", "`pipe` is a named pipe"),
        ("*** Add File: pipe\n+x\n", "`pipe` is a named pipe"),
        ("*** Delete File: folder\n", "`folder` is a folder"),
        ("*** Delete File: large\n", "is too large"),
        ("*** Add File: folder/n\n+x\n*** Add File: link/n\n+y\n", "are the same place"),
        ("*** Add File: n\n+x\n*** Add File: n/below\n+y\n", "cannot both be made"),
    ] {
        let object = patch(&home, &json!({ "mode": "patch", "patch": format!("{FIRST}{bad}") }));
        assert!(error(&object).contains(reason), "{bad} {object}");
        // Not even written and put back.
        assert!(!error(&object).contains("put back"), "{object}");
        assert_eq!(home.exec(STATE).expect(0).text(), before, "{bad}");
    }
    // What becomes free is no obstacle.
    apply(
        &home,
        "*** Update File: b.txt\n*** Move to: d.txt\n*** Add File: b.txt\n+new\n*** Delete File: c.txt\n",
    );
    assert_eq!(home.exec("cat b.txt d.txt; ls c.txt 2>&1 | grep -c such").text(), "new\nb\n1\n");
}

/// As root everything may be written.
fn a_link_is_not_what_it_leads_to(road: Road) {
    let home = start(road);
    let folder = home.path().join("w");
    put(&home, "one", "one\n");
    put(&home, "hard", "h\n");
    std::os::unix::fs::symlink("one", folder.join("alias")).unwrap();
    fs::hard_link(folder.join("hard"), folder.join("hard2")).unwrap();
    let change = "@@\n-one\n+two\n";
    for patch in [
        format!("*** Update File: one\n{change}*** Delete File: alias\n"),
        format!("*** Update File: one\n{change}*** Update File: alias\n*** Move to: other\n"),
        format!("*** Delete File: alias\n*** Update File: one\n{change}"),
        "*** Delete File: alias\n*** Add File: alias\n+new\n".to_owned(),
        "*** Update File: hard\n@@\n-h\n+H\n*** Delete File: hard2\n".to_owned(),
    ] {
        let object = super::patch(&home, &json!({ "mode": "patch", "patch": patch }));
        assert!(object["success"] == false && error(&object).contains("name"), "{patch}: {object}");
        assert_eq!((get(&home, "one"), get(&home, "hard")), (b"one\n".to_vec(), b"h\n".to_vec()));
    }
    // Two names of one file are changed as one.
    let both = "*** Update File: hard\n@@\n-h\n+1\n*** Update File: hard2\n@@\n-1\n+2\n";
    let object = apply(&home, both);
    assert_eq!((&object["success"], get(&home, "hard")), (&true.into(), b"2\n".to_vec()), "{object}");
    let object = apply(&home, "*** Delete File: alias\n");
    assert!(object["success"] == true && folder.join("alias").symlink_metadata().is_err(), "{object}");
    let again = format!("*** Delete File: one\n*** Add File: {}/one\n+anew\n", folder.display());
    let object = apply(&home, &again);
    assert_eq!((&object["success"], get(&home, "one")), (&true.into(), b"anew\n".to_vec()), "{object}");
}

#[test]
fn rights_are_looked_at_before_anything_is_written() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let program = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(program.path(), 0o755);
    set(home.path(), 0o755);
    fs::copy(built().join("hostel"), program.path().join("hostel")).unwrap();
    let at = |name: &str| home.path().join("w").join(name);
    fs::create_dir_all(at("ro")).unwrap();
    for name in ["ro/k", "read_only", "a.txt"] {
        fs::write(at(name), "one\n").unwrap();
    }
    let chowned = Command::new("chown").args(["-R", "64323:64323"]).arg(home.path()).status();
    assert!(chowned.unwrap().success());
    set(&at("ro"), 0o555);
    set(&at("read_only"), 0o444);
    let inode = || Command::new("stat").args(["-c", "%i %y"]).arg(at("a.txt")).output().unwrap().stdout;
    let before = inode();
    for bad in [
        "*** Add File: ro/n\n+x\n",
        "*** Delete File: ro/k\n",
        "*** Update File: ro/k\n*** Move to: k\n",
        "*** Update File: read_only\n@@\n-one\n+two\n",
        "*** Update File: a.txt\n*** Move to: ro/a.txt\n",
    ] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=64323", "--regid=64323", "--clear-groups"]).arg(program.path().join("hostel"));
        let arguments = json!({ "patch": format!("*** Add File: n.txt\n+n\n{FIRST}{bad}") });
        command.args(["tool", "patch", "--json", &arguments.to_string()]);
        command.env("HOSTEL_HOME", home.path()).env("HOME", home.path()).current_dir(at(""));
        let object = finish(command, b"").json();
        assert!(error(&object).contains("cannot be written to"), "{bad} {object}");
        assert!(
            inode() == before && !at("n.txt").exists() && !error(&object).contains("put back"),
            "{object}"
        );
    }
}

/// Fails at its last step: `c.txt` cannot be removed.
fn failing() -> String {
    format!(
        "{FIRST}*** Update File: b.txt\n*** Move to: moved/b.txt\n*** Add File: new/deep/d.txt\n+d\n*** Delete File: gone.txt\n\
         *** Delete File: c.txt\n"
    )
}

fn all_that_was_made_goes_when_a_step_fails(road: Road) {
    let home = start(road);
    put(&home, "gone.txt", "g\n");
    let _ = home.exec("chmod 604 gone.txt").expect(0);
    instead(&home, "rm", "case $last in */c.txt) echo 'rm: no' >&2; exit 1 ;; esac\nexec $real \"$@\"\n");
    // A file that was written over and put back is another one.
    let state = "find . -path ./bin -prune -o ! -name a.txt -printf '%p %y %i %m %l\\n' | sort; cat a.txt b.txt c.txt gone.txt";
    let before = home.exec(state).expect(0).text();
    let object = patch(&home, &json!({ "mode": "patch", "patch": failing() }));
    assert!(error(&object).ends_with("; what was changed before it was put back"), "{object}");
    assert_eq!(home.exec(state).expect(0).text(), before);
    let _ = home.exec("rm bin/rm; hash -r").expect(0);
    apply(&home, &failing());
    assert_eq!(
        home.exec("find . -path ./bin -prune -o -type f -print | sort; cat a.txt").expect(0).text(),
        "./a.txt\n./moved/b.txt\n./new/deep/d.txt\ntwo\n"
    );
}

fn what_others_have_written_meanwhile_is_left_alone(road: Road) {
    let home = start(road);
    put(&home, "gone.txt", "g\n");
    let meddling = "case $last in */c.txt) echo theirs >> ./a.txt; echo theirs > new/deep/theirs; exit 1 ;; esac\nexec $real \"$@\"\n";
    instead(&home, "rm", meddling);
    let object = patch(&home, &json!({ "mode": "patch", "patch": failing() }));
    let said = error(&object);
    assert!(said.contains("except: ") && said.contains("`a.txt` was changed by something else"), "{object}");
    assert!(said.contains("/new/deep` was made and is still there"), "{object}");
    assert_holds(&home, "a.txt", "two\ntheirs\n");
    assert_eq!(home.exec("cat b.txt gone.txt new/deep/theirs; ls new/deep").text(), "b\ng\ntheirs\ntheirs\n");
}

fn what_reads_back_otherwise_is_no_success(road: Road) {
    let home = start(road);
    instead(&home, "mv", "$real \"$@\" && echo more >> \"$last\"\n");
    let object = patch(&home, &json!({ "path": "a.txt", "old_string": "one", "new_string": "two" }));
    assert!(error(&object).contains("`a.txt` was written, but does not hold what was written"), "{object}");
    let object = home.tool("write_file", &json!({ "path": "b.txt", "content": "x\n" }));
    assert!(error(&object).contains("does not hold what was written"), "{object}");
}

/// A patch that is being written is written whole, even if its caller gives up meanwhile.
#[test]
fn a_patch_that_is_being_written_is_not_cut_short() {
    let home = start(Road::Mcp);
    let _ = home.exec("mkfifo begun go").expect(0);
    let waiting = "case $last in */two.txt) echo > begun; read -r _ < go ;; esac\nexec $real \"$@\"\n";
    instead(&home, "ln", waiting);
    let folder = home.exec("pwd").expect(0).text();
    let folder = Path::new(folder.trim());
    let text = format!(
        "{FIRST}*** Add File: one.txt\n+1\n*** Add File: two.txt\n+2\n*** Add File: three.txt\n+3\n*** Delete File: c.txt\n"
    );
    let params = json!({ "name": "patch", "arguments": { "patch": text } });
    home.with_server("default", |server| {
        server.say(
            &json!({ "jsonrpc": "2.0", "id": 770, "method": "tools/call", "params": params }).to_string(),
        );
        let mut begun = String::new();
        fs::File::open(folder.join("begun")).unwrap().read_to_string(&mut begun).unwrap();
        let params = json!({ "requestId": 770, "reason": "enough" });
        server.say(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string(),
        );
        // Once this is answered, that was heard.
        assert!(server.ask("ping", &json!({}))["result"].is_object());
        fs::File::options().write(true).open(folder.join("go")).unwrap().write_all(b"\n").unwrap();
        // An edit waits for the one before it.
        let next = server.call("write_file", &json!({ "path": "next.txt", "content": "n" }));
        assert!(next["error"].is_null(), "{next}");
    });
    assert_eq!(
        home.exec("cat a.txt one.txt two.txt three.txt; ls c.txt 2>/dev/null").text(),
        "two\n1\n2\n3\n"
    );
}
