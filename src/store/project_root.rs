//! Finds the project root: the directory that a project's lock, runs, allowed paths and progress refer to.

use std::fs;
use std::path::{Path, PathBuf};

/// The name of the configuration file that marks a project.
const CONFIG_FILE: &str = "ralph.yml";

/// Returns the project root of an invocation directory: the directory of the `ralph.yml` in it or above it, if that lies
/// inside the same git repository; else the top of the repository; outside of git the directory of the `ralph.yml`,
/// unless that is the home directory or `/`; else the invocation directory.
pub fn project_root(invocation: &Path, home: Option<&Path>) -> PathBuf {
    let invocation = fs::canonicalize(invocation).unwrap_or_else(|_| invocation.to_owned());
    let home = home.and_then(|home| fs::canonicalize(home).ok());
    let has = |directory: &&Path, name: &str| directory.join(name).symlink_metadata().is_ok();
    let config = invocation
        .ancestors()
        .find(|directory| directory.join(CONFIG_FILE).is_file());
    let top = invocation.ancestors().find(|directory| has(directory, ".git"));
    let root = match (config, top) {
        (Some(config), Some(top)) if config.starts_with(top) => config,
        (_, Some(top)) => top,
        (Some(config), None) if config.parent().is_some() && home.as_deref() != Some(config) => config,
        (_, None) => &invocation,
    };
    root.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_the_configured_directory_within_the_repository_or_its_top() {
        let base = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(base.path()).unwrap();
        let create = |name: &str| fs::create_dir_all(base.join(name)).unwrap();
        let root = |name: &str| {
            let root = project_root(&base.join(name), Some(&base.join("home")));
            root.strip_prefix(&base).unwrap().to_str().unwrap().to_owned()
        };
        create("plain/sub");
        assert_eq!(root("plain/sub"), "plain/sub");
        fs::write(base.join("plain/ralph.yml"), "").unwrap();
        assert_eq!(root("plain/sub"), "plain");
        create("home/repo/.git");
        create("home/repo/app/sub");
        create("home/notes");
        fs::write(base.join("home/ralph.yml"), "").unwrap();
        assert_eq!(
            root("home/notes"),
            "home/notes",
            "the home directory is no project"
        );
        assert_eq!(root("home"), "home", "unless ralph runs there");
        assert_eq!(root("home/repo/app/sub"), "home/repo");
        fs::write(base.join("home/repo/app/ralph.yml"), "").unwrap();
        assert_eq!(root("home/repo/app/sub"), "home/repo/app");
        assert_eq!(root("home/repo"), "home/repo");
    }
}
