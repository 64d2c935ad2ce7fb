//! Finds the comments and string literals in Rust code.

/// Replaces everything except for comments and string literals by spaces; lines keep their numbers.
pub(super) fn comments_and_strings(code: &str) -> String {
    let mut prose = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let literal = prose_length(rest, prose.chars().next_back());
        if literal > 0 {
            prose.push_str(&rest[..literal]);
            rest = &rest[literal..];
            continue;
        }
        let skipped = character_length(rest).unwrap_or(first.len_utf8());
        // An identifier is kept as one letter, so that `r` and `b` in it are not taken for the prefix of a literal.
        let blank = if first.is_alphanumeric() || first == '_' {
            'x'
        } else {
            ' '
        };
        prose.push(if first == '\n' { '\n' } else { blank });
        rest = &rest[skipped..];
    }
    prose
}

/// Returns the length of the comment or string literal at the start of `rest`, or 0.
fn prose_length(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if rest.starts_with('"') {
        return string_length(rest);
    }
    // The prefix of a literal does not follow a letter.
    if before == Some('x') {
        return 0;
    }
    let raw = rest.strip_prefix('b').unwrap_or(rest);
    let Some(raw) = raw.strip_prefix('r') else {
        return 0;
    };
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    if !raw[hashes..].starts_with('"') {
        return 0;
    }
    let start = rest.len() - raw.len() + hashes + 1;
    let terminator = format!("\"{}", "#".repeat(hashes));
    rest[start..]
        .find(&terminator)
        .map_or(rest.len(), |end| start + end + terminator.len())
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (index, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a character literal at the start of `rest`. A lifetime is none.
fn character_length(rest: &str) -> Option<usize> {
    let content = rest.strip_prefix('\'')?;
    if content.starts_with('\\') {
        // The escaped character may itself be a quote.
        let end = content
            .char_indices()
            .skip(2)
            .find(|(_, character)| *character == '\'')?;
        return Some(end.0 + 2);
    }
    let first = content.chars().next()?;
    content[first.len_utf8()..]
        .starts_with('\'')
        .then_some(first.len_utf8() + 2)
}

#[test]
fn only_comments_and_strings_are_kept() {
    let code = concat!(
        "// one\n",
        "let two = \"three \\\" four\"; /* five */ let a: &'static str = br#\"six \" seven\"#;\n",
        "let letter = '\"'; let quote = '\\''; let barr = bar\"\"; // eight\n",
    );
    let prose = comments_and_strings(code);
    assert_eq!(prose.lines().count(), code.lines().count());
    for word in ["one", "three", "four", "five", "six", "seven", "eight"] {
        assert!(super::contains_phrase(&prose, word), "{word}: {prose}");
    }
    for word in ["two", "letter", "quote", "static"] {
        assert!(!super::contains_phrase(&prose, word), "{word}: {prose}");
    }
}
