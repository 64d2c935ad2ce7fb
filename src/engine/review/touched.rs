//! The lines that changed between two snapshots, as far as a patch tells.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The changed parts of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TouchedLines {
    files: BTreeMap<String, TouchedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TouchedFile {
    /// The hunks are unknown, for example those of a binary or a removed file.
    Whole,
    /// The hunks, each with three lines around it.
    Lines(Vec<RangeInclusive<u64>>),
}

impl TouchedLines {
    /// `files` are all changed files, `patch` a unified diff with three lines of context. A file whose hunks are not found
    /// counts as changed in every line.
    pub fn new(files: &[String], patch: &str) -> Self {
        let whole = files.iter().map(|file| (file.clone(), TouchedFile::Whole));
        let mut touched = Self {
            files: whole.collect(),
        };
        let mut file = None;
        // The lines of the current hunk that are still to come, so that no content is taken for a header.
        let (mut old, mut new) = (0_u64, 0_u64);
        for line in patch.lines() {
            if old > 0 || new > 0 {
                match line.as_bytes().first() {
                    Some(b'-') => old = old.saturating_sub(1),
                    Some(b'+') => new = new.saturating_sub(1),
                    Some(b'\\') => {}
                    Some(_) | None => {
                        old = old.saturating_sub(1);
                        new = new.saturating_sub(1);
                    }
                }
            } else if line.starts_with("diff --git ") {
                file = None;
            } else if let Some(name) = line.strip_prefix("+++ b/") {
                file = Some(name.trim_end_matches('\t').to_owned());
            } else if let (Some(hunk), Some(file)) = (line.strip_prefix("@@ -"), &file)
                && let Some(((_, old_lines), (start, new_lines))) = parse_hunk(hunk)
            {
                (old, new) = (old_lines, new_lines);
                touched.add(file, start..=start + new_lines);
            }
        }
        touched
    }

    fn add(&mut self, file: &str, lines: RangeInclusive<u64>) {
        let Some(known) = self.files.get_mut(file) else {
            return;
        };
        match known {
            TouchedFile::Whole => *known = TouchedFile::Lines(vec![lines]),
            TouchedFile::Lines(ranges) => ranges.push(lines),
        }
    }

    /// Whether a place changed. Without a file, whether anything did.
    pub(super) fn contains(&self, file: Option<&str>, line: Option<u64>) -> bool {
        let Some(file) = file else {
            return !self.files.is_empty();
        };
        match (self.files.get(file), line) {
            (None, _) => false,
            (Some(TouchedFile::Whole), _) | (Some(TouchedFile::Lines(_)), None) => true,
            (Some(TouchedFile::Lines(ranges)), Some(line)) => {
                ranges.iter().any(|range| range.contains(&line))
            }
        }
    }
}

/// `12,3 +15,4 @@ …`: start and number of the old and of the new lines.
fn parse_hunk(hunk: &str) -> Option<((u64, u64), (u64, u64))> {
    let (old, rest) = hunk.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some((range(old)?, range(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_near_a_hunk_are_touched_and_others_are_not() {
        let patch = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -8,7 +8,7 @@ fn x\n a\n b\n c\n-old\n+++ b/b.rs\n d\n e\n f\n\
                     diff --git a/gone b/gone\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        let files = ["a.rs", "b.rs", "gone"].map(str::to_owned);
        let touched = TouchedLines::new(&files, patch);
        for (file, line, expected) in [
            (Some("a.rs"), Some(8), true),
            (Some("a.rs"), Some(15), true),
            (Some("a.rs"), Some(7), false),
            (Some("a.rs"), Some(40), false),
            (Some("a.rs"), None, true),
            (Some("b.rs"), Some(1), true),
            (Some("gone"), Some(1), true),
            (Some("other"), None, false),
            (None, None, true),
        ] {
            assert_eq!(touched.contains(file, line), expected, "{file:?}:{line:?}");
        }
        assert!(!TouchedLines::default().contains(None, None));
    }
}
