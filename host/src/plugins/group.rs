//! Whether a group is one user's alone.
//!
//! Where each user has a group with the user's own number, many make their files with a umask of 002, so that the group may write
//! to them. That lets nobody else in, as long as nobody else is in the group: which `/etc/group` and `/etc/passwd` say.

use std::cell::OnceCell;
use std::fs;

/// The group of this process's user, looked up once and only if somebody asks: one folder may hold many files of it.
#[derive(Debug, Default)]
pub(super) struct OwnGroup(OnceCell<bool>);

impl OwnGroup {
    /// Returns whether the group `number` is that of this process's user, and has no other member.
    pub(super) fn is_private(&self, number: u32) -> bool {
        let (user, own) = (rustix::process::geteuid(), rustix::process::getegid());
        let is_own = !user.is_root() && number == own.as_raw() && user.as_raw() == number;
        is_own && *self.0.get_or_init(|| look_up(number))
    }
}

fn look_up(number: u32) -> bool {
    let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = |path| read(path).unwrap_or_default();
    has_no_other(number, &text("/etc/passwd"), &text("/etc/group"), &text("/etc/nsswitch.conf"))
}

/// Sources of groups that know none of other machines; see `man 5 nsswitch.conf`.
const LOCAL: [&str; 6] = ["files", "compat", "systemd", "altfiles", "extrausers", "db"];

/// Returns whether nobody but the user `number` is in the group of that number, by the contents of three files.
fn has_no_other(number: u32, users: &str, groups: &str, switch: &str) -> bool {
    let is_number = |field: &str| field.parse() == Ok(number);
    let mut names = Vec::new();
    for line in users.lines() {
        let mut fields = line.split(':');
        let (Some(name), Some(user), Some(group)) = (fields.next(), fields.nth(1), fields.next()) else {
            continue;
        };
        if is_number(user) {
            names.push(name);
        } else if is_number(group) {
            return false;
        }
    }
    let mut is_listed = false;
    for line in groups.lines() {
        let mut fields = line.split(':').skip(2);
        if !fields.next().is_some_and(is_number) {
            continue;
        }
        is_listed = true;
        let mut members = fields.next().unwrap_or_default().split(',').map(str::trim);
        if members.any(|member| !member.is_empty() && !names.contains(&member)) {
            return false;
        }
    }
    // A directory of the network's may add members that stand in no file, or have the whole group.
    let line = switch.lines().find_map(|line| line.trim_start().strip_prefix("group:")).unwrap_or("files");
    let line = line.split('#').next().unwrap_or_default().to_ascii_lowercase();
    let is_source = |word: &&str| !word.contains(['[', ']', '=']);
    let only_local = line.split_whitespace().filter(is_source).all(|word| LOCAL.contains(&word));
    only_local || (is_listed && !line.contains("merge"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str =
        "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nben:x:1001:1001::/:/bin/sh\n";

    #[test]
    fn a_group_with_another_member_is_not_private() {
        for (groups, private) in [
            ("ann:x:1000:\n", true),
            ("ann:x:1000:ann\n", true),
            ("ann:x:1000:ann,ben\n", false),
            ("ann:x:1000:ben\n", false),
            ("ben:x:1001:ann,ben\nann:x:1000\n", true),
            ("ann:x:1000:\nalias:x:1000:ben\n", false),
            // In a container the number may have no name.
            ("", true),
            ("nonsense", true),
        ] {
            assert_eq!(has_no_other(1000, USERS, groups, ""), private, "{groups}");
        }
        assert!(has_no_other(4711, USERS, "ann:x:1000:ben\n", ""));
        // Whoever has it as the first group stands in no list.
        let users = format!("{USERS}eve:x:1002:1000::/:/bin/sh\n");
        assert!(!has_no_other(1000, &users, "ann:x:1000:\n", ""));
        // Two names of one user are one user.
        let users = format!("{USERS}anna:x:1000:1000::/:/bin/sh\n");
        assert!(has_no_other(1000, &users, "ann:x:1000:anna\n", ""));
    }

    #[test]
    fn a_group_that_only_the_network_knows_is_not_private() {
        for (switch, listed, unlisted) in [
            ("passwd: sss\ngroup: files systemd # sss\n", true, true),
            ("group: files [SUCCESS=merge] systemd\n", true, true),
            ("group: files sss\n", true, false),
            ("group: files [SUCCESS=merge] sss\n", false, false),
            ("group: ldap\n", true, false),
        ] {
            assert_eq!(has_no_other(1000, USERS, "ann:x:1000:\n", switch), listed, "{switch}");
            assert_eq!(has_no_other(1000, USERS, "", switch), unlisted, "{switch}");
        }
    }
}
