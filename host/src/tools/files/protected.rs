//! Whether a file is one of those that the file tools leave alone.
//!
//! What a path means is known where the file is, so it is judged there, by the script that then acts (`resolve.sh`); this hands it
//! the rules. `search_files` learns of files by their names, and judges those here.

use super::rules::{SECRET, SETTLED};
use crate::tools::session::Session;

/// What is to be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Doing {
    /// It is read.
    Reading,
    /// It is made, changed, removed or renamed.
    Writing,
}

impl Doing {
    /// Returns the rules as the scripts read them.
    pub(super) fn rules(self) -> String {
        self.lists().iter().map(|list| list.join("\n")).collect::<Vec<_>>().join("\n=\n")
    }

    fn lists(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Reading => &[SECRET],
            Self::Writing => &[SECRET, SETTLED],
        }
    }
}

/// Returns Hostel's home as it is called and without links. A sandbox may share it, and where it does not, nothing is there.
pub(in crate::tools) fn own_home(session: &Session) -> [String; 2] {
    let named = session.world().home.path();
    let real = std::fs::canonicalize(named);
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    [text(named), real.map_or_else(|_| text(named), |real| text(&real))]
}

/// Returns whether nothing is told of the file `path` of a sandbox in which the home is `home`. Both are absolute.
#[must_use]
pub(in crate::tools) fn hidden(path: &str, home: &str) -> bool {
    let home = home.trim_end_matches('/');
    is_refused(Doing::Reading, path, home, &format!("{home}/.hostel"))
}

/// As [`hidden`], where `own` is a home of Hostel's too.
#[must_use]
pub(in crate::tools) fn hidden_beside(path: &str, home: &str, own: &str) -> bool {
    hidden(path, home) || is_refused(Doing::Reading, path, home.trim_end_matches('/'), own)
}

fn is_refused(doing: Doing, path: &str, home: &str, own: &str) -> bool {
    let below = |place: &str, sign: &str| {
        let rest = path.strip_prefix(place).filter(|rest| rest.starts_with('/'))?;
        Some(format!("{sign}{rest}"))
    };
    let forms = [Some(path.to_owned()), below(home, "~"), below(own, "@")];
    let refuses = |list: &&[&str], form: &str| {
        let rule = list.iter().find(|rule| matches(&rule.as_bytes()[1..], form.as_bytes()));
        rule.is_some_and(|rule| rule.starts_with('-'))
    };
    forms.iter().flatten().any(|form| doing.lists().iter().any(|list| refuses(list, form)))
}

/// Returns whether a text fits a pattern in which `*` is any text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where to go on if what stands behind the last `*` does not fit here.
    let mut retry = None;
    while from < text.len() {
        if pattern.get(at) == Some(&b'*') {
            retry = Some((at + 1, from));
            at += 1;
        } else if pattern.get(at) == Some(&text[from]) {
            at += 1;
            from += 1;
        } else if let Some((star, start)) = retry {
            retry = Some((star, start + 1));
            (at, from) = (star, start + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "/home/me";

    fn is_settled(path: &str) -> bool {
        is_refused(Doing::Writing, path, HOME, "/srv/own")
    }

    #[test]
    fn credentials_are_not_read() {
        for path in [
            "/home/me/.ssh/id_ed25519",
            "/root/.ssh/id_rsa",
            "/home/me/.ssh/deploy_key",
            "/home/me/.ssh/work",
            "/home/me/.ssh/keys/server.pem",
            "/home/me/.ssh/config.bak",
            "/home/me/.azure/accessTokens.json",
            "/home/me/.kube/config.old",
            "/run/user/1000/containers/auth.json",
            "/home/me/.m2/settings.xml",
            "/home/me/passwords.kdbx",
            "/etc/ssl/private/server.key",
            "/home/me/.aws/credentials",
            "/home/me/.netrc",
            "/home/me/.git-credentials",
            "/home/me/.config/gcloud/legacy/x.json",
            "/home/me/.kube/config",
            "/home/me/.docker/config.json",
            "/data/.env",
            "/.env",
            "/data/app/.env.production",
            "/home/me/.npmrc",
            "/home/me/.hostel/.env",
            "/home/me/.hostel/config.yaml",
            "/home/me/.hostel/state/mcp/token",
            "/home/me/.hostel/state/tasks/local/default/shell/session",
            "/proc/1/environ",
            "/proc/self/task/7/mem",
            "/proc/self/fd/3",
            "/dev/stdin",
            "/etc/shadow",
        ] {
            assert!(hidden(path, HOME) && hidden(path, "/home/me/"), "{path}");
            assert!(is_refused(Doing::Writing, path, HOME, "/home/me/.hostel"), "{path}");
        }
        for path in [
            "/home/me/.ssh/id_ed25519.pub",
            "/home/me/.ssh/known_hosts",
            "/home/me/.ssh/known_hosts.old",
            "/home/me/.ssh/config",
            "/home/me/.ssh/authorized_keys",
            "/data/.ssh",
            "/data/my.ssh/deploy_key",
            "/data/auth.json",
            "/data/.gradle/gradle.properties",
            "/data/.env.example",
            "/data/.env.sample",
            "/data/.env.template",
            "/data/.envrc",
            "/data/environ",
            "/data/.npmrc",
            "/data/config.yaml",
            "/home/me/config.yaml",
            "/home/mean/.hostel/config.yaml",
            "/home/me/.hostel/cache/outputs/x",
            "/proc/cpuinfo",
            "/proc/self/status",
            "/etc/passwd",
            "/home/me/.bashrc",
            "/data/state/x",
            "/home/me/.hostel/state/tasks/acmebox/default/box/a.txt",
        ] {
            assert!(!hidden(path, HOME), "{path}");
        }
        assert!(hidden_beside("/srv/own/config.yaml", HOME, "/srv/own"));
        assert!(!hidden_beside("/srv/own/w/config.yaml", HOME, "/srv/own"));
    }

    #[test]
    fn what_runs_by_itself_is_not_written() {
        for path in [
            "/etc/hosts",
            "/boot/grub.cfg",
            "/usr/bin/x",
            "/usr/lib/systemd/system/x.service",
            "/home/me/.config/systemd/user/x.service",
            "/home/me/.bashrc",
            "/home/me/.ssh/config",
            "/home/me/.ssh/id_ed25519.pub",
            "/home/you/.ssh/authorized_keys",
            "/srv/own/config.yaml",
            "/srv/own/.env",
            "/srv/own/plugins/x/plugin.yaml",
            "/usr/src/app/.env",
            "/etc/app/.env.example",
        ] {
            assert!(is_settled(path), "{path}");
        }
        for path in [
            "/data/etc/hosts",
            "/usr/src/app/main.py",
            "/dev/shm/x",
            "/home/me/dotfiles/.bashrc",
            "/home/me/.config/app.toml",
            "/srv/own/w/x",
            "/tmp/x",
        ] {
            assert!(!is_settled(path), "{path}");
        }
    }

    #[test]
    fn a_home_at_the_root_and_none_at_all() {
        assert!(hidden("/.hostel/.env", "/") && hidden("/.npmrc", "/"));
        assert!(!hidden("/data/.npmrc", "/"));
    }

    #[test]
    fn patterns_fit_whole_texts() {
        for (pattern, text, fits) in [
            ("*/.env", "/a/.env", true),
            ("*/.env", "/a/.env.x", false),
            ("*/.env", "a.env", false),
            ("/proc/*/fd/*", "/proc/1/fd/2", true),
            ("*a*b*", "xaxxbab", true),
            ("*a*b", "xaxxba", false),
            ("**", "", true),
            ("", "", true),
            ("a", "", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn rules_are_lines_that_the_scripts_can_read() {
        let rules = Doing::Writing.rules();
        assert_eq!(rules.lines().filter(|line| *line == "=").count(), 1);
        for rule in rules.lines().filter(|line| *line != "=") {
            let starts = ["-/", "-*", "-~/", "-@/", "+/", "+*", "+@/"];
            assert!(starts.iter().any(|start| rule.starts_with(start)), "{rule}");
            assert!(!rule.contains(['[', '?', '\\', ' ']), "{rule}");
        }
    }
}
