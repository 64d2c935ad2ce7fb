//! Highlights source code line by line: keywords, strings, numbers and comments of common languages.
//!
//! It has no grammars, so that it costs nothing to load. A string or comment that spans lines is colored only in its first
//! line.

use ratatui::style::Style;

use crate::ui::tui::theme::Theme;

/// The syntax of a language, as far as the highlighter needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ui::tui) struct Language {
    comment: &'static str,
    keywords: &'static [&'static str],
}

const RUST: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "false", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self",
    "Self", "static", "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while",
];
const C_LIKE: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "bool",
    "boolean",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "defer",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "export",
    "extends",
    "false",
    "final",
    "finally",
    "float",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "int",
    "interface",
    "let",
    "long",
    "map",
    "new",
    "nil",
    "null",
    "of",
    "package",
    "private",
    "protected",
    "public",
    "range",
    "return",
    "short",
    "static",
    "string",
    "struct",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "unsigned",
    "using",
    "var",
    "void",
    "while",
    "yield",
];
const SCRIPT: &[&str] = &[
    "and", "as", "assert", "async", "await", "begin", "break", "case", "class", "continue", "def", "del",
    "do", "done", "elif", "else", "elsif", "end", "ensure", "esac", "except", "exit", "export", "False",
    "false", "fi", "finally", "for", "from", "function", "global", "if", "import", "in", "is", "lambda",
    "local", "module", "nil", "None", "not", "null", "or", "pass", "raise", "require", "rescue", "return",
    "self", "set", "then", "True", "true", "try", "unless", "until", "when", "while", "with", "yield",
];
const SQL: &[&str] = &[
    "ALTER", "AND", "AS", "BY", "CREATE", "DELETE", "DROP", "FROM", "GROUP", "INDEX", "INSERT", "INTO",
    "JOIN", "LEFT", "LIMIT", "NOT", "NULL", "ON", "OR", "ORDER", "SELECT", "SET", "TABLE", "UPDATE",
    "VALUES", "WHERE",
];

impl Language {
    /// The language with this name or file extension.
    pub(in crate::ui::tui) fn named(name: &str) -> Option<Self> {
        let name = name.split([' ', ',', '{']).next().unwrap_or_default();
        let (comment, keywords) = match name.to_ascii_lowercase().as_str() {
            "rust" | "rs" => ("//", RUST),
            "c" | "h" | "cpp" | "cc" | "hpp" | "c++" | "csharp" | "cs" | "go" | "java" | "javascript"
            | "js" | "jsx" | "mjs" | "kotlin" | "kt" | "php" | "scala" | "swift" | "ts" | "tsx"
            | "typescript" | "zig" | "json" | "jsonc" => ("//", C_LIKE),
            "bash" | "console" | "dockerfile" | "elixir" | "fish" | "make" | "makefile" | "perl" | "py"
            | "python" | "rb" | "ruby" | "sh" | "shell" | "toml" | "yaml" | "yml" | "zsh" => ("#", SCRIPT),
            "sql" => ("--", SQL),
            _ => return None,
        };
        Some(Self { comment, keywords })
    }

    /// The language of a file.
    pub(in crate::ui::tui) fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        Self::named(name.rsplit('.').next().unwrap_or(name))
    }

    /// The parts of a line with their styles. Other text has the style `base`.
    pub(in crate::ui::tui) fn highlight(self, line: &str, base: Style, theme: Theme) -> Vec<(String, Style)> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let (length, style) = self.token(rest, first, theme);
            let (token, after) = rest.split_at(length);
            match style {
                None => plain.push_str(token),
                Some(style) => {
                    if !plain.is_empty() {
                        parts.push((std::mem::take(&mut plain), base));
                    }
                    parts.push((token.to_owned(), base.patch(style)));
                }
            }
            rest = after;
        }
        parts.push((plain, base));
        parts
    }

    /// The length of the first token, and its style if it is not plain text.
    fn token(self, text: &str, first: char, theme: Theme) -> (usize, Option<Style>) {
        if text.starts_with(self.comment) {
            return (text.len(), Some(theme.comment()));
        }
        if matches!(first, '"' | '\'' | '`') {
            // In Rust, most single quotes start a lifetime.
            let is_literal = |length: &usize| first != '\'' || self.keywords != RUST || *length <= 4;
            return match string_length(text, first).filter(is_literal) {
                Some(length) => (length, Some(theme.string())),
                None => (first.len_utf8(), None),
            };
        }
        if first.is_ascii_digit() {
            let length = word_length(text, |c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
            return (length, Some(theme.number()));
        }
        if first.is_alphabetic() || first == '_' {
            let length = word_length(text, |c| c.is_alphanumeric() || c == '_');
            let keyword = self.keywords.contains(&&text[..length]);
            return (length, keyword.then(|| theme.keyword()));
        }
        (first.len_utf8(), None)
    }
}

fn word_length(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// The length of a string literal; `None` if it does not end in this line.
fn string_length(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::theme::ColorMode;

    /// The line with its tokens in brackets: `[fn:k]`.
    fn shown(language: &str, line: &str) -> String {
        let theme = Theme::new(ColorMode::On);
        let language = Language::named(language).expect("a language");
        let names = [
            (theme.keyword(), 'k'),
            (theme.string(), 's'),
            (theme.number(), 'n'),
            (theme.comment(), 'c'),
        ];
        let parts = language.highlight(line, Style::new(), theme);
        let text =
            parts.into_iter().map(
                |(text, style)| match names.iter().find(|(named, _)| *named == style) {
                    Some((_, name)) => format!("[{text}:{name}]"),
                    None => text,
                },
            );
        text.collect()
    }

    #[test]
    fn common_languages_are_highlighted() {
        assert_eq!(
            shown("rust", "pub fn f<'a>(x: u8) -> &'a str { \"a\\\"b\" } // 1"),
            "[pub:k] [fn:k] f<'a>(x: u8) -> &'a str { [\"a\\\"b\":s] } [// 1:c]"
        );
        assert_eq!(
            shown("py", "if x == 12.5:  # see"),
            "[if:k] x == [12.5:n]:  [# see:c]"
        );
        assert_eq!(
            shown("sh", "echo \"$1\" | grep 'é'"),
            "echo [\"$1\":s] | grep ['é':s]"
        );
        assert_eq!(shown("ts", "const größe = `x`"), "[const:k] größe = [`x`:s]");
        assert_eq!(Language::named("klingon"), None);
        assert_eq!(Language::of_path("src/a.rs"), Language::named("rust"));
    }
}
