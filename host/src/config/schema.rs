//! Which keys there are, and what each of them holds.
//!
//! A key's declared type decides how a value from the command line is read, never the look of the value. Keys below a
//! plugin's own section are typed by what the plugin declared when it was enabled. A key that nobody has declared holds
//! text, exactly as typed.

use super::key::Key;

/// What a key holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Any text.
    Text,
    /// A backend's name.
    Backend,
    /// One of these words.
    Choice(Vec<String>),
    /// True or false.
    Boolean,
    /// A number not below the bound.
    Number {
        /// The least that is allowed.
        min: f64,
        /// Whether it must be whole.
        whole: bool,
    },
    /// A list of texts.
    List,
    /// A list of these words.
    Words(Vec<String>),
    /// Further keys.
    Section,
}

/// One declared key.
pub struct Declared {
    /// The key, with `*` for any one part.
    pub key: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// The value where none is set, as YAML; empty for none.
    pub default: &'static str,
    /// What it is for.
    pub about: &'static str,
}

/// [`Type`] in a form that a table can be made of.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "as the variants of `Type`")]
pub enum Holds {
    Text,
    Backend,
    Choice(&'static [&'static str]),
    Boolean,
    Seconds,
    SecondsOrNone,
    Whole(u32),
    List,
    Words(&'static [&'static str]),
    Section,
}

impl Holds {
    fn to_type(self) -> Type {
        match self {
            Self::Text => Type::Text,
            Self::Backend => Type::Backend,
            Self::Choice(words) => Type::Choice(owned(words)),
            Self::Boolean => Type::Boolean,
            Self::Seconds => Type::Number { min: 0.001, whole: false },
            Self::SecondsOrNone => Type::Number { min: 0.0, whole: false },
            Self::Whole(min) => Type::Number { min: min.into(), whole: true },
            Self::List => Type::List,
            Self::Words(words) => Type::Words(owned(words)),
            Self::Section => Type::Section,
        }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const fn key(key: &'static str, holds: Holds, default: &'static str, about: &'static str) -> Declared {
    Declared { key, holds, default, about }
}

/// Where a plugin can run.
const ISOLATIONS: &[&str] = &["process", "in_process"];

/// The names of the tools. They are declared on a floor above, where a test holds the two lists together.
pub const TOOLS: &[&str] =
    &["terminal", "process", "read_file", "write_file", "patch", "search_files", "execute_code"];

/// Every declared key, by name.
pub const KEYS: &[Declared] = &[
    key("approvals.allow", Holds::List, "", "commands that run without asking"),
    key("approvals.deny", Holds::List, "", "commands that never run"),
    key(
        "approvals.mode",
        Holds::Choice(&["ask", "off", "deny"]),
        "ask",
        "whether a person is asked, what would be asked is refused, or nothing is asked",
    ),
    key("approvals.timeout_s", Holds::Seconds, "60", "seconds that a person is waited for"),
    key("approvals.tools", Holds::Words(TOOLS), "", "tools each call of which needs a person's yes"),
    key("outputs.keep_s", Holds::Seconds, "604800", "seconds that a whole output is kept for"),
    key("outputs.max_bytes", Holds::Whole(1), "1073741824", "bytes that are kept of one whole output"),
    key(
        "outputs.max_total_bytes",
        Holds::Whole(1),
        "4294967296",
        "bytes that older whole outputs may take up; the oldest go first",
    ),
    key("plugins.disabled", Holds::List, "", "plugins that are never loaded; wins over `enabled`"),
    key("plugins.enabled", Holds::List, "", "plugins that may be loaded"),
    key(
        "plugins.isolation",
        Holds::Choice(ISOLATIONS),
        "process",
        "whether each plugin runs in a process of its own",
    ),
    key("plugins.limits.memory", Holds::Whole(16), "2048", "memory of a plugin's process, MiB"),
    key("plugins.limits.open_files", Holds::Whole(32), "1024", "open files of a plugin's process"),
    key(
        "plugins.require_signature",
        Holds::Boolean,
        "false",
        "whether plugins must be signed by a trusted key",
    ),
    key("plugins.settings.*", Holds::Section, "", "settings of one plugin"),
    key(
        "plugins.settings.*.isolation",
        Holds::Choice(ISOLATIONS),
        "",
        "as `plugins.isolation`, for one plugin",
    ),
    key("plugins.trusted_keys", Holds::List, "", "minisign public keys of authors of plugins"),
    key(
        "processes.keep_finished_s",
        Holds::Seconds,
        "1800",
        "seconds that an ended background process is remembered",
    ),
    key(
        "processes.log_max_bytes",
        Holds::Whole(4096),
        "10485760",
        "bytes that are kept of a background process's output",
    ),
    key("processes.max_running", Holds::Whole(1), "64", "background processes that may run at once"),
    key("sandbox", Holds::Section, "", "managed sandboxes"),
    key("server.listen", Holds::Text, "127.0.0.1:7676", "address of the server"),
    key("server.url", Holds::Text, "", "where the command line finds the server"),
    key(
        "terminal.auto_source_bashrc",
        Holds::Boolean,
        "true",
        "whether a session reads the login files before its first command",
    ),
    key("terminal.backend", Holds::Backend, "local", "where commands run"),
    key("terminal.backends.*", Holds::Section, "", "settings of one backend"),
    key("terminal.container_cpu", Holds::Whole(1), "1", "processors of a container"),
    key("terminal.container_disk", Holds::Whole(1), "51200", "disk of a container, MiB"),
    key("terminal.container_memory", Holds::Whole(1), "5120", "memory of a container, MiB"),
    key(
        "terminal.container_persistent",
        Holds::Boolean,
        "true",
        "whether a task's environment outlives the host",
    ),
    key("terminal.cwd", Holds::Text, "", "directory in which sessions start"),
    key(
        "terminal.daemon_term_grace_seconds",
        Holds::SecondsOrNone,
        "2",
        "seconds between asking a background process to end and killing it; 0: never killed",
    ),
    key("terminal.docker.env", Holds::Section, "", "variables of a container"),
    key("terminal.docker.extra_args", Holds::List, "", "more arguments for `docker run`"),
    key("terminal.docker.forward_env", Holds::List, "", "host variables that a container gets"),
    key("terminal.docker.image", Holds::Text, "", "image of a container"),
    key(
        "terminal.docker.mount_cwd_to_workspace",
        Holds::Boolean,
        "false",
        "whether the host's directory is mounted",
    ),
    key("terminal.docker.network", Holds::Boolean, "true", "whether a container has a network"),
    key(
        "terminal.docker.run_as_host_user",
        Holds::Boolean,
        "false",
        "whether a container runs as the host's user",
    ),
    key("terminal.docker.volumes", Holds::List, "", "volumes of a container"),
    key(
        "terminal.lifetime_seconds",
        Holds::Seconds,
        "300",
        "seconds of idleness before an environment is closed",
    ),
    key(
        "terminal.shell_init_files",
        Holds::List,
        "",
        "files that a session reads instead of the login files",
    ),
    key("terminal.ssh.host", Holds::Text, "", "host to connect to"),
    key("terminal.ssh.key", Holds::Text, "", "file of the private key"),
    key("terminal.ssh.port", Holds::Whole(1), "22", "port to connect to"),
    key("terminal.ssh.user", Holds::Text, "", "user to connect as"),
    key("terminal.timeout", Holds::Seconds, "180", "seconds that a command may take"),
    key("tool_output.max_bytes", Holds::Whole(1), "50000", "bytes of output that a tool shows"),
];

/// Older, flat names of keys, and what they are called here.
const ALIASES: &[(&str, &str)] = &[
    ("terminal.docker_env", "terminal.docker.env"),
    ("terminal.docker_extra_args", "terminal.docker.extra_args"),
    ("terminal.docker_forward_env", "terminal.docker.forward_env"),
    ("terminal.docker_image", "terminal.docker.image"),
    ("terminal.docker_mount_cwd_to_workspace", "terminal.docker.mount_cwd_to_workspace"),
    ("terminal.docker_network", "terminal.docker.network"),
    ("terminal.docker_run_as_host_user", "terminal.docker.run_as_host_user"),
    ("terminal.docker_volumes", "terminal.docker.volumes"),
    ("terminal.ssh_host", "terminal.ssh.host"),
    ("terminal.ssh_key", "terminal.ssh.key"),
    ("terminal.ssh_port", "terminal.ssh.port"),
    ("terminal.ssh_user", "terminal.ssh.user"),
];

/// The kinds of keys that a lookup can meet.
#[derive(Debug, PartialEq)]
pub enum Found {
    /// A declared key.
    Declared(Type),
    /// Below a section whose keys are not declared here.
    Open,
    /// Nobody knows it. The nearest declared key, if one is near.
    Unknown(Option<String>),
}

/// Returns the present name of `key`, if it is an older one.
#[must_use]
pub fn alias(key: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(old, _)| *old == key).map(|(_, new)| *new)
}

/// Returns the older names of `key`.
pub fn aliases_of(key: &str) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter(move |(_, new)| *new == key).map(|(old, _)| *old)
}

/// Returns the default of a declared key, as YAML.
#[must_use]
pub fn default_of(key: &str) -> Option<&'static str> {
    KEYS.iter()
        .find(|declared| declared.key == key)
        .map(|declared| declared.default)
        .filter(|text| !text.is_empty())
}

/// Finds what `key` holds.
#[must_use]
pub fn find(key: &Key) -> Found {
    let parts = key.parts();
    // A key may be declared below a section whose other keys are not.
    let mut open = false;
    for declared in KEYS {
        let pattern: Vec<&str> = declared.key.split('.').collect();
        let common = pattern.len().min(parts.len());
        if !(0..common).all(|index| pattern[index] == "*" || pattern[index] == parts[index]) {
            continue;
        }
        if parts.len() == pattern.len() {
            return Found::Declared(declared.holds.to_type());
        }
        if parts.len() < pattern.len() {
            return Found::Declared(Type::Section);
        }
        match declared.holds {
            Holds::Section => open = true,
            // `plugins.enabled.0`: an item of a list.
            Holds::List if parts.len() == pattern.len() + 1 && is_index(&parts[common]) => {
                return Found::Declared(Type::Text);
            }
            Holds::Words(words) if parts.len() == pattern.len() + 1 && is_index(&parts[common]) => {
                return Found::Declared(Type::Choice(owned(words)));
            }
            _ => {}
        }
    }
    if open { Found::Open } else { Found::Unknown(nearest(&key.to_string())) }
}

/// Returns whether `part` numbers an item of a list.
#[must_use]
pub fn is_index(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
}

/// Returns the declared key that `text` was probably meant to be.
fn nearest(text: &str) -> Option<String> {
    let names = KEYS.iter().map(|declared| declared.key).filter(|key| !key.contains('*'));
    let scored = names.map(|name| (strsim::damerau_levenshtein(text, name), name));
    let (distance, name) = scored.min()?;
    (distance <= 3.max(name.len() / 4)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str) -> Found {
        find(&Key::parse(key).unwrap())
    }

    #[test]
    fn keys_are_found_with_their_types() {
        assert_eq!(of("terminal.backend"), Found::Declared(Type::Backend));
        assert_eq!(of("terminal"), Found::Declared(Type::Section));
        assert_eq!(of("plugins.enabled.3"), Found::Declared(Type::Text));
        assert_eq!(of("terminal.backends.acmebox.region"), Found::Open);
        assert_eq!(of("terminal.backends.acmebox"), Found::Declared(Type::Section));
        assert_eq!(of("sandbox.provider"), Found::Open);
        assert_eq!(of("terminal.docker.env.A"), Found::Open);
    }

    #[test]
    fn an_unknown_key_is_told_its_nearest_neighbour() {
        assert_eq!(of("terminall.backend"), Found::Unknown(Some("terminal.backend".into())));
        assert_eq!(of("terminal.timout"), Found::Unknown(Some("terminal.timeout".into())));
        assert_eq!(of("zzz"), Found::Unknown(None));
        assert_eq!(of("terminal.timeout.x"), Found::Unknown(Some("terminal.timeout".into())));
    }

    #[test]
    fn the_table_is_sorted_and_its_defaults_fit_their_types() {
        assert!(KEYS.is_sorted_by_key(|declared| declared.key));
        for declared in KEYS.iter().filter(|declared| !declared.default.is_empty()) {
            let read = crate::config::value::read(declared.default, &declared.holds.to_type());
            assert!(read.is_ok(), "{}", declared.key);
        }
        for (old, new) in ALIASES {
            assert!(default_of(new).is_some() || KEYS.iter().any(|declared| declared.key == *new), "{old}");
        }
    }
}
