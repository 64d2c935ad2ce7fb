//! Parses the subset of Markdown that the documentation uses: headings, fences, links, inline code.

use std::path::{Path, PathBuf};

pub(super) struct Page {
    pub(super) path: PathBuf,
    pub(super) blocks: Vec<Block>,
    /// Line and target of each link.
    pub(super) links: Vec<(usize, String)>,
    /// Line and text of each piece of inline code.
    pub(super) quoted: Vec<(usize, String)>,
    /// Anchors of the headings, as GitHub generates them.
    pub(super) anchors: Vec<String>,
}

/// A fenced code block.
pub(super) struct Block {
    path: PathBuf,
    line: usize,
    /// The text after the opening fence.
    pub(super) info: String,
    pub(super) text: String,
}

impl Block {
    pub(super) fn language(&self) -> &str {
        self.info.split_whitespace().next().unwrap_or_default()
    }

    pub(super) fn location(&self) -> String {
        format!("{}:{}", self.path.display(), self.line)
    }
}

impl Page {
    pub(super) fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut page = Self {
            path: path.to_owned(),
            blocks: Vec::new(),
            links: Vec::new(),
            quoted: Vec::new(),
            anchors: Vec::new(),
        };
        let mut open: Option<(usize, Block)> = None;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let indent = line.len() - line.trim_start().len();
            match (open.take(), line.trim_start().strip_prefix("```")) {
                (Some((_, block)), Some(_)) => page.blocks.push(block),
                (Some((indent, mut block)), None) => {
                    let cut = line.len().min(indent);
                    block.text.push_str(line.get(cut..).unwrap_or_default());
                    block.text.push('\n');
                    open = Some((indent, block));
                }
                (None, Some(info)) => {
                    let block = Block {
                        path: path.to_owned(),
                        line: number,
                        info: info.trim().to_owned(),
                        text: String::new(),
                    };
                    open = Some((indent, block));
                }
                (None, None) => page.read_line(number, line),
            }
        }
        assert!(open.is_none(), "{}: an unclosed fence", path.display());
        page
    }

    fn read_line(&mut self, number: usize, line: &str) {
        if let Some(title) = line.strip_prefix('#') {
            let slug = slug(title.trim_start_matches('#').trim());
            let same = self
                .anchors
                .iter()
                .filter(|known| *known == &slug || is_repeated(known, &slug));
            self.anchors.push(match same.count() {
                0 => slug,
                count => format!("{slug}-{count}"),
            });
        }
        // Every second piece is inline code.
        for (index, piece) in line.split('`').enumerate() {
            if index % 2 == 1 {
                self.quoted.push((number, piece.to_owned()));
            }
        }
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for (opening, closing) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
            for rest in plain.split(opening).skip(1) {
                let target = rest.split(closing).next().unwrap_or_default();
                let target = target.split_whitespace().next().unwrap_or_default();
                self.links.push((number, target.to_owned()));
            }
        }
        if let Some((name, target)) = plain.split_once("]: ")
            && name.starts_with('[')
        {
            self.links.push((number, target.trim().to_owned()));
        }
    }
}

fn is_repeated(known: &str, slug: &str) -> bool {
    let rest = known.strip_prefix(slug).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|character| character.is_ascii_digit()))
}

fn slug(title: &str) -> String {
    let title = title.to_lowercase();
    let kept = title.chars().filter_map(|character| match character {
        ' ' => Some('-'),
        character if character.is_alphanumeric() || "-_".contains(character) => Some(character),
        _ => None,
    });
    kept.collect()
}
