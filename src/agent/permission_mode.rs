//! The permission mode of an agent's own TUI: the one that the user's settings name, or else the one in which it asks.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;

/// How a TUI selects its permission mode. Its built-in default may be to approve tools by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermissionMode {
    pub flag: &'static str,
    /// Flags of the user that replace this one.
    pub replaced_by: &'static [&'static str],
    /// The mode in which the agent asks.
    pub asking: &'static str,
    /// The variable that names the directory of the user's settings.
    pub directory_variable: &'static str,
    /// That directory, in the home directory, if the variable is not set.
    pub directory: &'static str,
    pub file: &'static str,
    /// The JSON pointer of the mode in that file.
    pub pointer: &'static str,
}

/// The value of an environment variable.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl PermissionMode {
    /// Whether the user's own arguments select a mode.
    pub(super) fn is_replaced(&self, user_args: &[String]) -> bool {
        let name = |argument: &String| argument.split('=').next().unwrap_or_default().to_owned();
        let mut names = user_args.iter().map(name);
        names.any(|name| name == self.flag || self.replaced_by.contains(&name.as_str()))
    }

    /// The mode that the user's settings name. Settings of the project are not read: they may have another author.
    pub(super) fn configured(&self, variables: Variables<'_>) -> Option<String> {
        let settings = std::fs::read_to_string(self.settings_file(variables)?).ok()?;
        let settings: Value = serde_json::from_str(&settings).ok()?;
        let mode = settings.pointer(self.pointer)?.as_str()?;
        let is_word = !mode.is_empty() && mode.chars().all(|c| c.is_ascii_alphanumeric());
        is_word.then(|| mode.to_owned())
    }

    fn settings_file(&self, variables: Variables<'_>) -> Option<PathBuf> {
        let set = |name: &str| {
            variables(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let directory =
            set(self.directory_variable).or_else(|| set("HOME").map(|home| home.join(self.directory)))?;
        Some(directory.join(self.file))
    }
}
