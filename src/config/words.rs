//! A command line as one text, cut into words as a shell would cut it. Nothing is expanded or executed.

use thiserror::Error;

/// A text that is not a whole command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SplitError {
    #[error("has a {0} quote that is never closed")]
    OpenQuote(&'static str),
    #[error("ends with a backslash that escapes nothing")]
    OpenEscape,
}

/// Cuts at blanks; single quotes, double quotes and backslashes keep a word together as they do in `sh`. `$`, `*`,
/// `~` and `#` mean themselves.
pub fn split_words(text: &str) -> Result<Vec<String>, SplitError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => single_quoted(&mut rest, word.get_or_insert_default())?,
            '"' => double_quoted(&mut rest, word.get_or_insert_default())?,
            '\\' => match rest.next().ok_or(SplitError::OpenEscape)? {
                // A line continued on the next one.
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
    Err(SplitError::OpenQuote("single"))
}

fn double_quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), SplitError> {
    while let Some(character) = rest.next() {
        match character {
            '"' => return Ok(()),
            '\\' => match rest.next() {
                Some('\n') => {}
                Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                // Before anything else a backslash in double quotes is just a backslash.
                Some(other) => word.extend(['\\', other]),
                None => break,
            },
            other => word.push(other),
        }
    }
    Err(SplitError::OpenQuote("double"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        split_words(text).unwrap_or_else(|error| vec![format!("error: {error}")])
    }

    #[test]
    fn words_end_at_blanks() {
        assert_eq!(
            split("  ollama\trun  codellama\n"),
            ["ollama", "run", "codellama"]
        );
        assert!(split(" \n").is_empty());
    }

    #[test]
    fn quotes_keep_a_word_together_and_can_be_glued() {
        assert_eq!(split(r#"a 'b c' "d e" f' 'g"#), ["a", "b c", "d e", "f g"]);
        assert_eq!(split(r#"'' "" x"#), ["", "", "x"]);
        assert_eq!(split(r#"--x='a"b' "it's""#), ["--x=a\"b", "it's"]);
    }

    #[test]
    fn backslashes_follow_the_shell() {
        assert_eq!(split(r"a\ b \'c"), ["a b", "'c"]);
        assert_eq!(split(r#""a\"b" "\$x" "\n" '\n'"#), ["a\"b", "$x", r"\n", r"\n"]);
        assert_eq!(split("a \\\n b"), ["a", "b"]);
    }

    #[test]
    fn nothing_is_expanded() {
        assert_eq!(split("~/x $HOME *.rs # y"), ["~/x", "$HOME", "*.rs", "#", "y"]);
    }

    #[test]
    fn an_open_end_is_an_error() {
        assert_eq!(split_words("a 'b"), Err(SplitError::OpenQuote("single")));
        assert_eq!(split_words("a \"b"), Err(SplitError::OpenQuote("double")));
        assert_eq!(split_words("a \"b\\"), Err(SplitError::OpenQuote("double")));
        assert_eq!(split_words("a \\"), Err(SplitError::OpenEscape));
    }

    proptest::proptest! {
        #[test]
        fn single_quoting_any_word_gives_it_back(word in "[^']*") {
            proptest::prop_assert_eq!(split_words(&format!("x '{word}'")), Ok(vec!["x".to_owned(), word]));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = split_words(&text);
        }
    }
}
