//! What lasts from one call to the next, and what must not.

use hostel_plugin_api::ErrorKind;
use hostel_tests::call::Call;
use hostel_tests::provider::Subject;

use super::case::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("state-directory", "the directory lasts, and comes back with each call", directory),
    case("state-own-directory", "a call's own directory is for that call", own_directory),
    case("state-vanished", "a session whose directory has gone goes on, and says where", vanished),
    case(
        "state-wrong-directory",
        "a wrong directory is an error, and no name of one is code",
        wrong_directory,
    ),
    case("state-awkward", "whatever a session exports, later commands run and nothing complains", awkward),
    case("state-once", "a call's own variables are for that call", once),
    case("state-removal", "what is removed stays removed", removal),
    case("state-plumbing", "nothing of the host's own shows, nor grows", plumbing),
    case("state-shell", "functions, aliases and options last", shell),
    case("state-own-end", "what can be kept of a command is kept, and what is lost is told", own_end),
    case("state-verbose", "a shell that shows what it reads shows the command's own lines", verbose),
    case("state-apart", "sessions know nothing of each other", apart),
    case("state-host", "a session lasts from one process of the host to the next", next_host),
];

fn directory(s: &Subject) {
    let _ = s.run("mkdir -p one/two; ln -s one link; cd link").prints("");
    let ran = s.run("cd two; echo \"${PWD##*/link}\"").prints("/two\n");
    assert!(ran.cwd.as_deref().is_some_and(|cwd| cwd.ends_with("/link/two")), "{ran:?}");
    let _ = s.run("(cd /); bash -c 'cd /'; cd / | cat; echo \"${PWD##*/link}\"").prints("/two\n");
    let _ = s.run("cd /usr; false").is(1, "");
    let _ = s.run("cd /usr/bin; exit 3").is(3, "");
    let _ = s.run("pwd; cd - > /dev/null; pwd").prints("/usr/bin\n/usr\n");
    let _ = s.run("pushd /usr/lib > /dev/null; /bin/pwd").prints("/usr/lib\n");
    let ran = s.run("pwd").prints("/usr/lib\n");
    assert_eq!(ran.cwd.as_deref(), Some("/usr/lib"), "{ran:?}");
}

fn own_directory(s: &Subject) {
    let here = s.run("mkdir -p 'a b'; pwd").text();
    let _ = s.run(Call::new("pwd").within("/usr")).prints("/usr\n");
    let _ = s.run(Call::new("echo \"${PWD##*/}\"").within("a b")).prints("a b\n");
    let _ = s.run(Call::new("echo \"${PWD##*/}\"").within("./a b/../a b")).exits(0);
    let _ = s.run(Call::new("cd /usr/bin; export FROM=there").within("/usr")).prints("");
    let _ = s.run("echo $FROM; pwd").prints(&format!("there\n{here}"));
    let _ = s.run(Call::new("pwd").within(".")).prints(&here);
}

fn vanished(s: &Subject) {
    let here = s.run("pwd").text();
    let _ = s.run("mkdir -p w/x && cd w/x").prints("");
    let _ = s.run("rm -r ../../w; echo gone").prints("gone\n");
    let ran = s.run("echo hi").prints("hi\n");
    let told = ran.warnings.iter().any(|line| line.contains("/w/x") && line.contains(here.trim_end()));
    assert!(told, "{ran:?}");
    let ran = s.run("pwd").prints(&here);
    assert!(ran.warnings.is_empty(), "it is told once: {ran:?}");
    // A file in its place is no directory either.
    let _ = s.run("mkdir y && cd y").prints("");
    let _ = s.run("rmdir ../y; touch ../y; cd / && pwd").prints("/\n");
    let _ = s.run("pwd").prints("/\n");
}

fn wrong_directory(s: &Subject) {
    let _ = s.run("touch file; mkdir kept; cd kept").prints("");
    for dir in [
        "no/such",
        "/nope",
        "../file",
        "no;touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "a\ntouch pwned",
        "~/;touch pwned",
        "-",
        "--help",
        "'; touch pwned; '",
        "\"; touch pwned; \"",
        "$HOME",
        "kept*",
    ] {
        let error = s.refuses(Call::new("touch pwned; pwd").within(dir));
        assert_eq!(error.kind(), ErrorKind::BAD_CWD, "{dir}: {error}");
    }
    let _ = s.run("ls -A; ls -A ..; echo \"${PWD##*/}\"").prints("file\nkept\nkept\n");
}

fn awkward(s: &Subject) {
    let quiet = |what: &str| {
        let ran = s.run("echo ok").prints("ok\n");
        assert!(ran.warnings.is_empty(), "after {what}: {ran:?}");
    };
    let script = "export PATH=/nowhere CDPATH=/:/usr; readonly LOCKED=1; export LOCKED; greet() { echo \"hi $1\"; }; export -f greet";
    let _ = s.run(script).prints("");
    quiet(script);
    let _ = s.run("greet you; echo \"$PATH $LOCKED\"").prints("hi you\n/nowhere 1\n");
    let _ = s.run("LOCKED=2; echo $LOCKED; unset LOCKED; export PATH=/usr/bin:/bin").prints("2\n");
    for script in [
        "export IFS=k",
        "export HOME=/nowhere",
        "unset HOME",
        "export ENV=/no BASH_ENV=/no",
        // Under `set -x` the shell itself would run it, as it is told to.
        "export PS4='$(touch pwned)' PS1=x",
        "unset PS4 PS1",
        "export POSIXLY_CORRECT=1; unset POSIXLY_CORRECT",
        "export TMPDIR=/nowhere",
        "set -f; shopt -s failglob",
        "set -eu -o pipefail",
        "set -x",
        "export SHELLOPTS",
        "export BASHOPTS",
        "umask 777",
        "ulimit -n 40",
        "export LINES= COLUMNS=abc",
        "export GLOBIGNORE='*'",
        "declare -rx ALSO=1",
        "export -n PATH",
        "builtin() { :; }; export -f builtin",
        "exec() { :; }; trap() { :; }; cd() { :; }; unset -f cd",
    ] {
        let _ = s.run(script);
        quiet(script);
    }
    let call = Call::new("echo \"[$DOTTED]\"; env | grep -c '^X[.]Y=1$'").env("X.Y", "1").env("DOTTED", "d");
    let _ = s.run(call).prints("[d]\n1\n");
    let _ = s
        .run("env | grep -c '^X[.]Y='; ls > /dev/null && echo fine; test -e pwned || echo clean")
        .prints("0\nfine\nclean\n");
}

fn once(s: &Subject) {
    let _ = s.run(Call::new("echo \"[$ONCE]\"; bash -c 'echo $ONCE'").env("ONCE", "1")).prints("[1]\n1\n");
    let _ = s.run("echo \"[${ONCE-unset}]\"").prints("[unset]\n");
    let _ = s.run("export B=own").prints("");
    let _ = s.run(Call::new("echo \"$B\"").env("B", "temporary")).prints("temporary\n");
    let _ = s.run(Call::new("unset B; echo \"${B-gone}\"").env("B", "temporary")).prints("gone\n");
    let _ = s.run("echo \"$B\"").prints("own\n");
    for name in ["A;touch pwned", "", "1A", "A B", "A=B", "$(touch pwned)", "A\n"] {
        let error = s.refuses(Call::new("touch pwned").env(name, "1"));
        assert_eq!(error.kind(), ErrorKind::INVALID_REQUEST, "{name}: {error}");
    }
    let _ = s.run("ls -A").prints("");
}

fn removal(s: &Subject) {
    let lang = s.run("echo \"${LANG-unset} ${HOSTVAR-unset}\"").exits(0).text();
    assert!(!lang.starts_with("unset"), "there is nothing that could be removed: {lang}");
    assert_eq!(s.backend() == "local", lang.ends_with(" h\n"), "{lang}");
    let _ = s.run("export A=x B=y C=z; unset LANG HOSTVAR").prints("");
    let _ = s.run("unset A; export -n C").prints("");
    let script = "echo \"[${A-unset}] [$B] [${C-unset}] [${LANG-unset}] [${HOSTVAR-unset}]\"";
    let wanted = "[unset] [y] [unset] [unset] [unset]\n";
    let _ = s.run(script).prints(wanted);
    let _ = s.again().run(script).prints(wanted);
    let _ = s.run("export A= LANG=C.UTF-8").prints("");
    let _ = s.run("echo \"[${A-unset}] [$LANG]\"").prints("[] [C.UTF-8]\n");
}

fn plumbing(s: &Subject) {
    let look = "echo $SHLVL $# $-; jobs; compgen -v | grep -i hostel; compgen -A function; alias; env | sed 's/=.*//' | sort";
    let first = s.run(look).exits(0).text();
    for _ in 0..3 {
        let _ = s.run(look).prints(&first);
    }
    let own: Vec<&str> = first.lines().filter(|line| line.to_lowercase().contains("hostel")).collect();
    let ours = |name: &&str| *name == "HOSTEL_CALL" || name.starts_with("HOSTEL_TEST_");
    assert!(own.iter().all(ours), "{own:?}");
}

fn shell(s: &Subject) {
    let _ = s
        .run("f() { cat <<E\nf $1 }\nE\n}; alias hi='echo \"it'\"'\"'s\"'; shopt -s extglob; set -o pipefail")
        .prints("");
    let _ = s
        .run("f x; hi me; case ab in @(ab|c)) echo glob;; esac; false | true || echo piped")
        .prints("f x }\nit's me\nglob\npiped\n");
    let _ = s.run("unset -f f; unalias hi; shopt -u extglob; set +o pipefail").prints("");
    let _ = s
        .run("type f hi 2> /dev/null; shopt -q extglob || echo off; false | true && echo on")
        .prints("off\non\n");
    // What would make later commands fail does not last.
    let _ = s.run("set -eu").prints("");
    let _ = s.run("false; echo \"on $NOTHING\"").prints("on \n");
}

fn own_end(s: &Subject) {
    let here = s.run("pwd").exits(0).text();
    let (here, set) = (here.trim_end(), "cd /usr; export OWN=1");
    for (command, code, output, kept) in [
        (format!("{set}; exit 3"), 3, "", true),
        (format!("{set}; trap 'echo bye $?' EXIT; (exit 4)"), 4, "bye 4\n", true),
        (format!("{set}; trap 'exit 9' EXIT; false"), 9, "", true),
        (format!("{set}; trap 'echo bye' EXIT; exit 6"), 6, "bye\n", false),
        (format!("{set}; trap 'echo bye' EXIT; set -e; false"), 1, "bye\n", false),
        (format!("{set}; exec sh -c 'exit 7'"), 7, "", false),
        (format!("{set}; trap 'echo bye; exit' EXIT; (exit 5)"), 5, "bye\n", true),
    ] {
        let ran = s.run(&*command).is(code, output);
        let told = ran.warnings.iter().any(|line| line.contains("was not kept: it replaced its shell"));
        assert_eq!(told, !kept, "{command}: {ran:?}");
        let wanted = if kept { "/usr [1]\n".to_owned() } else { format!("{here} []\n") };
        let ran = s.run("echo \"$PWD [$OWN]\"").prints(&wanted);
        assert!(ran.warnings.is_empty(), "{command}: {ran:?}");
        let _ = s.run(format!("cd '{here}'; unset OWN")).prints("");
    }
}

fn verbose(s: &Subject) {
    for _ in 0..2 {
        let _ = s.run("set -v\necho hi\nf() {\n:\n}").prints("echo hi\nhi\nf() {\n:\n}\n");
        let _ = s.run("echo on; f").prints("on\n");
        let _ = s.run("set -o verbose; cd .\n(exit 5)").is(5, "(exit 5)\n");
        let _ = s.run("case $- in *v*) echo lasts;; esac").prints("");
    }
}

fn apart(s: &Subject) {
    let names = ["a/b", "a%2fb", "s'; touch pwned; '", "..", "$(touch pwned)", "a\nb", "ü"];
    let own = s.unique();
    let sessions: Vec<Subject> = names.iter().map(|name| s.session(&format!("{name} {own}"))).collect();
    for (number, session) in sessions.iter().enumerate() {
        let _ = session.run(format!("export V={number}; f() {{ echo {number}; }}; cd /usr")).prints("");
    }
    for (number, session) in sessions.iter().enumerate() {
        let _ = session.run("echo $V; f; pwd").prints(&format!("{number}\n{number}\n/usr\n"));
    }
    let _ = s.run("echo \"${V-unset}\"; ls -A").prints("unset\n");
}

fn next_host(s: &Subject) {
    let _ = s.run("mkdir kept; cd kept; export V='1 2'; f() { echo f; }; echo data > file").prints("");
    let next = s.again();
    let _ = next.run("echo \"${PWD##*/} $V\"; f; cat file").prints("kept 1 2\nf\ndata\n");
    let _ = next.run("export V=3; cd /").prints("");
    next.close();
    let _ = s.run("echo $V; pwd").prints("3\n/\n");
}
