//! The user's configuration directory.

use std::path::PathBuf;

/// `$XDG_CONFIG_HOME/ralph`, or else `~/.config/ralph`.
pub fn user_directory() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    base.or_else(|| set("HOME").map(|home| home.join(".config")))
        .map(|base| base.join("ralph"))
}
