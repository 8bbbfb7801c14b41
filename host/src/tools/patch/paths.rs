//! When two paths in one patch mean the same file, as far as the paths themselves say.

/// Returns a path without what makes no difference: `.`, repeated and last slashes.
pub(super) fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_difference_goes() {
        assert_eq!(plain("./a//b/./c/"), "a/b/c");
        assert_eq!((plain("/a"), plain("a"), plain("~/a")), ("/a".into(), "a".into(), "~/a".into()));
    }
}
