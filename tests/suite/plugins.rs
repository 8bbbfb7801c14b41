//! Libraries that cannot be plugins, or are not the ones that were enabled: each step of loading says what to do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use hostel_tests::{Home, compile_c, in_both_isolations, library, manifest, put};

/// Puts a library in a fresh plugin's folder by `make`, and requires that it cannot be enabled, for this reason.
#[track_caller]
fn refused(name: &str, reason: &str, make: impl FnOnce(&Path)) {
    let home = Home::new();
    home.add_plugin("acmebox", "acmebox");
    let folder = home.add_manifest(name, manifest(name));
    make(&folder.join(format!("lib{name}.so")));
    let ran = home.hostel(&["plugins", "enable", name]);
    assert!(ran.stderr.contains("\nhint: "), "{ran:?}");
    ran.fails(1, reason);
    assert_eq!(home.config(), "", "nothing was changed");
    assert_eq!(home.exec("echo hi").expect(0).text(), "hi\n");
    let _ = home.hostel(&["plugins", "list"]).expect(0);
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
}

#[test]
fn files_that_are_no_library() {
    refused("text", "(file check): the library is not an ELF file", |path| {
        fs::write(path, "not a library\n").unwrap();
    });
    refused("empty", "(file check): the library is an empty file", |path| fs::write(path, "").unwrap());
    refused("missing", "(file check): there is no `libmissing.so` in", |_| {});
    refused("folder", "(file check): ", |path| fs::create_dir(path).unwrap());
    for percent in [10, 26, 60, 80, 99] {
        refused("cut", "(file check): the library is cut short", |path| {
            let bytes = fs::read(library("acmebox")).unwrap();
            fs::write(path, &bytes[..bytes.len() * percent / 100]).unwrap();
        });
    }
    refused("cpu", "(file check): the library is for another processor", |path| {
        let mut bytes = fs::read(library("acmebox")).unwrap();
        bytes[18] = 0xf3;
        fs::write(path, bytes).unwrap();
    });
    refused("program", "(file check): ", |path| {
        fs::copy("/bin/true", path).unwrap();
        let mut bytes = fs::read(path).unwrap();
        bytes[16] = 2;
        fs::write(path, bytes).unwrap();
    });
    refused("dangling", "(file check): failed to follow", |path| symlink("nowhere.so", path).unwrap());
    refused("away", "(file check): ", |path| symlink(library("acmebox"), path).unwrap());
}

#[test]
fn libraries_that_are_no_plugin_do_not_run() {
    let flag = tempfile::tempdir().unwrap();
    let flag = flag.path().join("ctor.flag");
    let constructor = format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fclose(fopen(\"{}\", \"w\")); }}\n",
        flag.display()
    );
    refused("nosymbol", "(entry symbol): the library has no entry symbol", |path| {
        compile_c(&constructor, path, &[]);
    });
    let version = |version: &str| {
        format!("{constructor}const char hostel_plugin_api_version[48] = \"hostel-plugin-api {version}\";\n")
    };
    refused("newer", "(version): the library was built for plugin API 999.0.0", |path| {
        compile_c(&(version("999.0.0") + ROOT), path, &[]);
    });
    refused("older", "(version): the library was built for plugin API 0.9.0", |path| {
        compile_c(&(version("0.9.0") + ROOT), path, &[]);
    });
    refused("silent", "(version): the library does not say for which plugin API", |path| {
        compile_c(&format!("{constructor}{ROOT}"), path, &[]);
    });
    refused("entryless", "(entry symbol): the library has no entry symbol", |path| {
        compile_c(&version("1.0.0"), path, &[]);
    });
    assert!(!flag.exists(), "a constructor has run");
}

#[test]
fn the_entry_is_taken_from_that_file_and_no_other() {
    refused("liba", "(entry symbol): ", |path| {
        let other = path.with_file_name("libother.so");
        put(&library("acmebox"), &other);
        let dir = format!("-L{}", path.parent().unwrap().display());
        compile_c("int own = 1;\n", path, &[&dir, "-Wl,--no-as-needed", "-lother", "-Wl,-rpath,$ORIGIN"]);
    });
}

const ROOT: &str = "const char hostel_plugin_root[256] = \"x\";\n";
const GOOD_VERSION: &str = "const char hostel_plugin_api_version[48] = \"hostel-plugin-api 1.0.0\";\n";

#[test]
fn what_the_loader_refuses_names_what_is_missing() {
    let missing = format!(
        "{GOOD_VERSION}int nowhere_to_be_found(void);\nint hostel_plugin_root(void) {{ return nowhere_to_be_found(); }}\n"
    );
    refused("libm", "(opening): ", |path| compile_c(&missing, path, &["-Wl,-z,lazy"]));
    let home = Home::new();
    let folder = home.add_manifest("libm", manifest("libm"));
    compile_c(&missing, &folder.join("liblibm.so"), &["-Wl,-z,lazy"]);
    home.hostel(&["plugins", "enable", "libm"]).fails(1, "nowhere_to_be_found");
    refused("needs", "(opening): libgone.so", |path| {
        let gone = path.with_file_name("libgone.so");
        compile_c("int gone = 1;\n", &gone, &[]);
        let dir = format!("-L{}", path.parent().unwrap().display());
        let source = format!("{GOOD_VERSION}extern int gone;\nint *hostel_plugin_root = &gone;\n");
        compile_c(&source, path, &[&dir, "-lgone"]);
        fs::remove_file(gone).unwrap();
    });
}

#[test]
fn a_library_that_lies_or_crashes_takes_nobody_along() {
    let lies = format!("{GOOD_VERSION}const char hostel_plugin_root[256] = \"not a header\";\n");
    refused("lies", "(interface check): its ABI header", |path| compile_c(&lies, path, &[]));
    let crash = |body: &str| {
        format!(
            "{GOOD_VERSION}#include <stdlib.h>\nconst char hostel_plugin_root[256] = \"x\";\n__attribute__((constructor)) static void run(void) {{ {body} }}\n"
        )
    };
    refused("segv", "its worker crashed (SIGSEGV)", |path| {
        compile_c(&crash("*(volatile int *)8 = 1;"), path, &[]);
    });
    refused("exits", "its worker ended its process (exit code 3)", |path| {
        compile_c(&crash("_exit(3);").replace("stdlib", "unistd"), path, &[]);
    });
}

#[test]
fn a_symbol_of_the_hosts_is_not_replaced() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    home.add_plugin("acmebox", "acmebox");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let folder = home.add_manifest("libg", manifest("libg"));
    let source = format!(
        "{GOOD_VERSION}#include <stdlib.h>\nsize_t malloc_usable_size(void *p) {{ (void)p; abort(); }}\nchar *strdup(const char *s) {{ (void)s; abort(); }}\nconst char hostel_plugin_root[256] = \"x\";\n"
    );
    compile_c(&source, &folder.join("liblibg.so"), &[]);
    home.hostel(&["plugins", "enable", "libg"]).fails(1, "(interface check)");
    assert_eq!(home.hostel(&["exec", "--backend", "acmebox", "--", "echo hi"]).expect(0).text(), "hi\n");
}

#[test]
fn the_library_that_was_enabled_is_the_one_that_runs() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    let folder = home.add_plugin("acmebox", "acmebox");
    let library = folder.join("libacmebox.so");
    let exec = || home.hostel(&["exec", "--backend", "acmebox", "--", "echo hi"]);
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let _ = exec().expect(0);
    let mut bytes = fs::read(&library).unwrap();
    bytes.push(0);
    fs::write(&library, &bytes).unwrap();
    exec().fails(125, "plugin `acmebox` cannot be loaded (checksum): ");
    let shown = home.hostel(&["plugins", "show", "acmebox"]).expect(0).text();
    assert!(shown.contains("problem:") && shown.contains("not the file that was enabled"), "{shown}");
    assert_eq!(home.exec("echo hi").expect(0).text(), "hi\n");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let _ = exec().expect(0);
    fs::remove_file(&library).unwrap();
    exec().fails(125, "(file check): there is no `libacmebox.so`");
}

#[test]
fn what_others_may_write_to_is_refused() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    let folder = home.add_plugin("acmebox", "acmebox");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let exec = || home.hostel(&["exec", "--backend", "acmebox", "--", "true"]);
    for path in [folder.join("libacmebox.so"), folder.join("plugin.yaml"), folder.clone()] {
        let before = fs::metadata(&path).unwrap().permissions();
        for mode in [0o777, 0o775] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            exec().fails(125, "(permissions): others may write to");
        }
        fs::set_permissions(&path, before).unwrap();
    }
    let _ = exec().expect(0);
}

#[test]
fn a_plugin_that_was_enabled_by_hand_must_be_enabled_properly() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    home.add_plugin("acmebox", "acmebox");
    let _ = home.hostel(&["config", "set", "plugins.enabled", "acmebox"]).expect(0);
    home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).fails(125, "was never pinned");
}

#[test]
fn a_folder_may_be_a_link_and_a_manifest_may_disagree_with_its_library() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    let real = tempfile::tempdir().unwrap();
    fs::set_permissions(real.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(real.path().join("plugin.yaml"), manifest("acmebox")).unwrap();
    put(&library("acmebox"), &real.path().join("libacmebox.so"));
    fs::create_dir_all(home.path().join("plugins")).unwrap();
    symlink(real.path(), home.plugin("acmebox")).unwrap();
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let _ = home.hostel(&["exec", "--backend", "acmebox", "--", "true"]).expect(0);
    fs::write(real.path().join("plugin.yaml"), manifest("acmebox") + "api_version: 999\n").unwrap();
    home.hostel(&["exec", "--backend", "acmebox", "--", "true"])
        .fails(125, "(version): the manifest says `api_version: 999`");
}

#[test]
fn a_file_that_may_not_be_read_is_told_to_an_ordinary_user() {
    if !hostel_tests::is_root() {
        return;
    }
    let home = Home::new();
    let folder = home.add_plugin("acmebox", "acmebox");
    for path in [home.path(), &home.path().join("plugins"), &folder] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    fs::set_permissions(folder.join("libacmebox.so"), fs::Permissions::from_mode(0o600)).unwrap();
    // A copy where any user can reach it.
    let program = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    fs::copy(hostel_tests::built().join("hostel"), program.path().join("hostel")).unwrap();
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program.path().join("hostel"));
    command.args(["plugins", "enable", "acmebox"]).env("HOSTEL_HOME", home.path()).current_dir("/");
    hostel_tests::finish(command, b"").fails(1, "failed to read");
}

in_both_isolations! {
    fn several_plugins_at_once_are_each_themselves(isolation) {
        let home = Home::new().with("ACMEBOX_TOKEN", "t");
        for name in ["acmebox", "bubblewrap", "misfit"] {
            home.add_plugin(name, name);
            let _ = home.hostel(&["plugins", "enable", name]).expect(0);
        }
        let _ = home.hostel(&["config", "set", "plugins.isolation", isolation]).expect(0);
        for _ in 0..3 {
            let rows = home.hostel(&["backends", "--json"]).expect(0).json();
            let plugins: Vec<_> = rows
                .as_array()
                .unwrap()
                .iter()
                .filter(|row| row["origin"] != "builtin")
                .map(|row| &row["display_name"])
                .collect();
            assert_eq!(plugins, ["AcmeBox", "Bubblewrap", "Misfit"]);
            let rows = home.hostel(&["doctor", "--json"]).json();
            assert!(!rows.to_string().contains("registered"), "{rows}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_library_shows_in_lists() {
    let home = Home::new();
    let folder = home.add_plugin("acmebox", "acmebox");
    let library_path = folder.join("libacmebox.so");
    fs::write(&library_path, "not a library").unwrap();
    assert_eq!(home.hostel(&["plugins", "list", "--json"]).expect(0).json()[0]["status"], "not enabled");
    assert!(
        home.hostel(&["doctor"])
            .expect(0)
            .text()
            .contains("not enabled; plugin `acmebox` cannot be loaded (file check)")
    );
    put(&library("acmebox"), &library_path);
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    assert_eq!(home.hostel(&["plugins", "list", "--json"]).expect(0).json()[0]["status"], "enabled");
    fs::write(&library_path, "not a library").unwrap();
    let row = home.hostel(&["plugins", "list", "--json"]).expect(0).json()[0].clone();
    assert_eq!(row["status"], "error");
    assert!(row["error"].as_str().unwrap().contains("is not the file that was enabled"), "{row}");
    assert!(home.hostel(&["doctor"]).expect(1).text().contains("FAIL"));
}

#[test]
fn a_folder_that_takes_an_enabled_plugins_name_takes_nothing_else() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    home.add_plugin("acmebox", "acmebox");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    // First in order, and with a library that would do.
    let impostor = home.add_manifest("aaa", hostel_tests::manifest("acmebox"));
    hostel_tests::put(&hostel_tests::library("acmebox"), &impostor.join("libacmebox.so"));
    let exec = || home.hostel(&["exec", "--backend", "acmebox", "--", "echo $ACMEBOX_TOKEN${PWD##*/}"]);
    assert_eq!(exec().expect(0).text(), "box\n");
    let rows = home.hostel(&["plugins", "list", "--json"]).expect(0).json();
    let status = |folder: &str| {
        let rows = rows.as_array().unwrap();
        let row = rows.iter().find(|row| row["path"].as_str().unwrap().ends_with(folder)).unwrap();
        row["status"].as_str().unwrap().to_owned()
    };
    assert_eq!((status("/aaa"), status("/acmebox")), ("rejected".into(), "enabled".into()));
    // With the real one gone, the other is not it.
    fs::remove_dir_all(home.plugin("acmebox")).unwrap();
    let ran = exec().expect(125);
    assert!(ran.stderr.contains("hostel plugins enable acmebox"), "{ran:?}");
}

#[test]
fn a_name_in_a_manifest_that_nobody_registers_is_refused() {
    let home = Home::new();
    let folder = home.add_plugin("misfit", "misfit");
    let manifest = hostel_tests::manifest("misfit") + "provides: [misfit, more]\n";
    fs::write(folder.join("plugin.yaml"), manifest).unwrap();
    home.hostel(&["plugins", "enable", "misfit"]).fails(1, "`more`");
}

#[test]
fn enabling_and_disabling_leave_other_lines_of_the_file_alone() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    home.add_plugin("acmebox", "acmebox");
    home.add_plugin("misfit", "misfit");
    let text = "plugins:\n  enabled:\n    # mine\n    - acmebox   # the first\n  disabled: []\n";
    home.set_config(text);
    let _ = home.hostel(&["plugins", "enable", "misfit"]).expect(0);
    assert!(home.config().contains("    # mine\n    - acmebox   # the first\n"), "{}", home.config());
    let _ = home.hostel(&["plugins", "disable", "misfit"]).expect(0);
    assert_eq!(home.config(), text);
}

#[test]
fn what_is_wrong_with_a_selected_plugin_is_said_where_it_is_missed() {
    let home = Home::new().with("ACMEBOX_TOKEN", "t");
    let folder = home.add_plugin("acmebox", "acmebox");
    let _ = home.hostel(&["plugins", "enable", "acmebox"]).expect(0);
    let _ = home.hostel(&["config", "set", "terminal.backend", "acmebox"]).expect(0);
    let manifest = folder.join("plugin.yaml");
    let good = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{good}: [\n")).unwrap();
    home.exec("echo hi").fails(125, "is not valid YAML");
    fs::write(&manifest, format!("{good}provides: docker\n")).unwrap();
    home.exec("echo hi").fails(125, "`provides`: ");
}

#[test]
fn a_plugin_for_sandboxes_registers_no_terminal_environment() {
    let home = Home::new();
    let folder = home.add_plugin("misfit", "misfit");
    fs::write(
        folder.join("plugin.yaml"),
        hostel_tests::manifest("misfit").replace("kind: backend", "kind: sandbox"),
    )
    .unwrap();
    home.hostel(&["plugins", "enable", "misfit"]).fails(1, "its manifest's `kind` is `sandbox`");
}

#[test]
fn a_plugin_that_is_forbidden_takes_no_name() {
    let home = Home::new();
    let first = home.add_manifest("aaa", hostel_tests::manifest("aaa") + "provides: [misfit]\n");
    hostel_tests::put(&hostel_tests::library("misfit"), &first.join("libaaa.so"));
    home.add_plugin("misfit", "misfit");
    home.hostel(&["plugins", "enable", "misfit"]).fails(1, "plugins/aaa`, which comes first");
    let _ = home.hostel(&["config", "set", "plugins.disabled", "aaa"]).expect(0);
    let _ = home.hostel(&["plugins", "enable", "misfit"]).expect(0);
    assert_eq!(home.hostel(&["exec", "--backend", "misfit", "--", "echo hi"]).expect(0).text(), "hi\n");
}

#[test]
fn a_library_that_is_loaded_along_must_be_named() {
    let home = Home::new();
    let folder = home.add_manifest("along", manifest("along"));
    let part = folder.join("libpart.so");
    compile_c("int part = 1;\n", &part, &[]);
    let needs = |by: &[&str]| {
        let dir = format!("-L{}", folder.display());
        let source = format!("{GOOD_VERSION}extern int part;\nint *hostel_plugin_root = &part;\n");
        let options: Vec<&str> = [dir.as_str()].iter().chain(by).copied().collect();
        compile_c(&source, &folder.join("libalong.so"), &options);
    };
    needs(&["-lpart", "-Wl,-rpath,$ORIGIN"]);
    let enable = || home.hostel(&["plugins", "enable", "along"]);
    enable().fails(1, "libpart.so` as well, which its manifest does not name");
    fs::write(folder.join("plugin.yaml"), manifest("along") + "files: [libpart.so]\n").unwrap();
    // It comes as far as its entry, which is no plugin's.
    enable().fails(1, "(interface check): ");
    let away = tempfile::tempdir().unwrap();
    let outside = away.path().join("libpart.so");
    compile_c("int part = 1;\n", &outside, &[]);
    needs(&[outside.to_str().unwrap()]);
    enable().fails(1, &format!("it loads `{}` as well", outside.display()));
}
