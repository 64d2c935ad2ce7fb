//! Splits a command line into words like a shell, without expansion or execution.

use thiserror::Error;

/// An incomplete command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SplitError {
    #[error("unclosed {0} quote")]
    UnclosedQuote(&'static str),
    #[error("trailing backslash")]
    TrailingBackslash,
}

/// Splits at whitespace. Single quotes, double quotes and backslashes work as in `sh`; `$`, `*`, `~` and `#` have no
/// special meaning.
pub fn split_words(text: &str) -> Result<Vec<String>, SplitError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => single_quoted(&mut rest, word.get_or_insert_default())?,
            '"' => double_quoted(&mut rest, word.get_or_insert_default())?,
            '\\' => match rest.next().ok_or(SplitError::TrailingBackslash)? {
                // Line continuation.
                '\n' => {}
                escaped => word.get_or_insert_default().push(escaped),
            },
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn single_quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), SplitError> {
    for character in rest.by_ref() {
        if character == '\'' {
            return Ok(());
        }
        word.push(character);
    }
    Err(SplitError::UnclosedQuote("single"))
}

fn double_quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), SplitError> {
    while let Some(character) = rest.next() {
        match character {
            '"' => return Ok(()),
            '\\' => match rest.next() {
                Some('\n') => {}
                Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                // In double quotes, a backslash before any other character is literal.
                Some(other) => word.extend(['\\', other]),
                None => break,
            },
            other => word.push(other),
        }
    }
    Err(SplitError::UnclosedQuote("double"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        split_words(text).unwrap_or_else(|error| vec![format!("error: {error}")])
    }

    #[test]
    fn words_are_separated_by_whitespace() {
        assert_eq!(
            split("  ollama\trun  codellama\n"),
            ["ollama", "run", "codellama"]
        );
        assert!(split(" \n").is_empty());
    }

    #[test]
    fn quoted_and_unquoted_parts_form_one_word() {
        assert_eq!(split(r#"a 'b c' "d e" f' 'g"#), ["a", "b c", "d e", "f g"]);
        assert_eq!(split(r#"'' "" x"#), ["", "", "x"]);
        assert_eq!(split(r#"--x='a"b' "it's""#), ["--x=a\"b", "it's"]);
    }

    #[test]
    fn backslashes_work_as_in_the_shell() {
        assert_eq!(split(r"a\ b \'c"), ["a b", "'c"]);
        assert_eq!(split(r#""a\"b" "\$x" "\n" '\n'"#), ["a\"b", "$x", r"\n", r"\n"]);
        assert_eq!(split("a \\\n b"), ["a", "b"]);
    }

    #[test]
    fn nothing_is_expanded() {
        assert_eq!(split("~/x $HOME *.rs # y"), ["~/x", "$HOME", "*.rs", "#", "y"]);
    }

    #[test]
    fn unclosed_quote_and_trailing_backslash_are_errors() {
        assert_eq!(split_words("a 'b"), Err(SplitError::UnclosedQuote("single")));
        assert_eq!(split_words("a \"b"), Err(SplitError::UnclosedQuote("double")));
        assert_eq!(split_words("a \"b\\"), Err(SplitError::UnclosedQuote("double")));
        assert_eq!(split_words("a \\"), Err(SplitError::TrailingBackslash));
    }

    proptest::proptest! {
        #[test]
        fn single_quoted_word_is_unchanged(word in "[^']*") {
            proptest::prop_assert_eq!(split_words(&format!("x '{word}'")), Ok(vec!["x".to_owned(), word]));
        }

        #[test]
        fn splitting_never_panics(text in ".*") {
            let _ = split_words(&text);
        }
    }
}
