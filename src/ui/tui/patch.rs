//! A patch between two snapshots, split into files. Pure.

use std::sync::Arc;

/// Larger patches are cut.
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Patch {
    /// The newer snapshot.
    to: Arc<str>,
    files: Vec<FilePatch>,
    pub(super) cut: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FilePatch {
    pub(super) path: String,
    /// The hunks without the header of the file.
    pub(super) lines: Vec<String>,
}

impl Patch {
    pub(super) fn parse(to: &Arc<str>, text: &str) -> Self {
        let cut = text.len() > MAX_BYTES;
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        let mut files: Vec<FilePatch> = Vec::new();
        let mut in_header = true;
        for line in text.lines() {
            if let Some(names) = line.strip_prefix("diff --git ") {
                in_header = true;
                // `a/NAME b/NAME`
                let path = names.get(names.len().div_ceil(2) + 2..).unwrap_or_default();
                files.push(FilePatch {
                    path: path.to_owned(),
                    lines: Vec::new(),
                });
                continue;
            }
            let Some(file) = files.last_mut() else { continue };
            in_header &= !line.starts_with("@@");
            if !in_header || line.starts_with("Binary files") || line.contains("mode ") {
                file.lines.push(line.to_owned());
            }
        }
        let to = Arc::clone(to);
        Self { to, files, cut }
    }

    pub(super) fn is_of(&self, to: &str) -> bool {
        *self.to == *to
    }

    pub(super) fn file(&self, path: &str) -> Option<&FilePatch> {
        self.files.iter().find(|file| file.path == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_is_split_into_files() {
        let text = "diff --git a/src/a b.rs b/src/a b.rs\nindex 1..2 100644\n--- a/src/a b.rs\n+++ b/src/a b.rs\n@@ -1 +1 @@\n--- old\n+new\n\
                    diff --git a/x b/x\nnew file mode 100755\nBinary files /dev/null and b/x differ\n";
        let patch = Patch::parse(&"2".into(), text);
        let first = patch.file("src/a b.rs").expect("the first file");
        assert_eq!(first.lines, ["@@ -1 +1 @@", "--- old", "+new"]);
        let second = patch.file("x").expect("the second file");
        assert_eq!(second.lines.len(), 2, "{second:?}");
        assert!(patch.is_of("2") && !patch.is_of("3") && !patch.cut);
        assert!(Patch::parse(&"3".into(), &"+é\n".repeat(1 << 20)).cut);
    }
}
