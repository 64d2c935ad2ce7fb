//! `Task`: one entry of a plan, whatever source it comes from.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::CellLimits;

/// The priority of a task that sets none. 1 is first.
const DEFAULT_PRIORITY: i64 = 3;
/// Maximum length of the readable part of a derived id.
const MAX_SLUG: usize = 40;
/// Maximum length of an id.
const MAX_ID: usize = 80;

/// One task of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The ids of the tasks that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Shell commands that must succeed, in addition to the gates of the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Patterns of the files that the task changes. Tasks whose patterns overlap do not run at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
    #[serde(default)]
    pub limits: CellLimits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
}

impl Task {
    /// Tasks with a lower number are chosen first.
    pub fn priority(&self) -> i64 {
        self.priority.unwrap_or(DEFAULT_PRIORITY)
    }
}

/// A task and its place in the source.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SourceTask {
    pub(crate) task: Task,
    /// The line, starting at 1; in the output of a command, the number of the entry.
    pub(crate) line: usize,
    /// Whether the source marks the task as done.
    pub(crate) done: bool,
    /// Where the source marks it. Empty if the source is not a file.
    pub(crate) marks: Vec<Mark>,
    /// The preceding task, if the source implies an order.
    pub(crate) after: Option<usize>,
}

/// A place in a file that shows whether a task is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The byte between the brackets of a checkbox.
    Box { offset: usize, checked: bool },
    /// The value of a JSON member.
    Value { start: usize, end: usize, checked: bool },
    /// The member is missing; it would be inserted here.
    Missing { offset: usize },
}

impl Mark {
    pub(crate) fn is_checked(&self) -> bool {
        match self {
            Self::Box { checked, .. } | Self::Value { checked, .. } => *checked,
            Self::Missing { .. } => false,
        }
    }
}

/// Derives an id from a task's heading and title, so that it does not depend on its place in the file or on other tasks.
pub(crate) fn derived_id(heading: &str, title: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(heading);
    hash.update([0]);
    hash.update(title);
    let digest = hash.finalize();
    let slug = slug(title);
    let dash = if slug.is_empty() { "" } else { "-" };
    format!("{slug}{dash}{:02x}{:02x}", digest[0], digest[1])
}

/// Lowercase letters and digits of a text, with dashes between words.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        if word.is_empty() {
            continue;
        }
        let length = slug.len() + usize::from(!slug.is_empty()) + word.len();
        if length > MAX_SLUG {
            if slug.is_empty() {
                slug.push_str(&word[..MAX_SLUG]);
            }
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    slug.to_ascii_lowercase()
}

/// Whether an id can be used in branch names, directory names and on the command line.
pub(crate) fn is_valid_id(id: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let is_lock = id
        .rsplit_once('.')
        .is_some_and(|(_, end)| end.eq_ignore_ascii_case("lock"));
    !id.is_empty()
        && id.len() <= MAX_ID
        && id.chars().all(is_plain)
        && !id.starts_with(['.', '-'])
        && !id.ends_with('.')
        && !id.contains("..")
        && !is_lock
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_id_is_readable_and_depends_only_on_heading_and_title() {
        assert_eq!(
            derived_id("Backend", "Add the **login** page!"),
            "add-the-login-page-58c4"
        );
        assert_ne!(derived_id("Backend", "Test"), derived_id("Frontend", "Test"));
        assert_eq!(derived_id("", "日本語").len(), 4);
        let long = derived_id("", &"word ".repeat(40));
        assert!(is_valid_id(&long) && long.len() <= 45, "{long}");
        assert!(is_valid_id(&derived_id("", &"X".repeat(300))));
    }

    #[test]
    fn ids_that_git_or_a_shell_would_misread_are_invalid() {
        for id in ["", "-x", ".x", "a..b", "a/b", "a b", "x.lock", "x.", "ä", "a$b"] {
            assert!(!is_valid_id(id), "{id}");
        }
        assert!(is_valid_id("US-001") && is_valid_id("bd-a3f8.1"));
    }
}
