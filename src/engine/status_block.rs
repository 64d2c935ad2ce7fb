//! The status block that bmalph and ralph-claude-code ask agents for at the end of their answer.

/// The line that claims completion.
pub(super) const MARKER: &str = "EXIT_SIGNAL: true";
const BEGIN: &str = "---RALPH_STATUS---";
const END: &str = "---END_RALPH_STATUS---";

/// Whether the last complete block of a text contains the line that claims completion. Agents often put the block into a
/// code fence, as their prompt shows it.
pub(super) fn signals_exit(text: &str) -> bool {
    let Some(end) = text.rfind(END) else {
        return false;
    };
    let Some(begin) = text[..end].rfind(BEGIN) else {
        return false;
    };
    text[begin + BEGIN.len()..end].lines().any(|line| {
        let Some((name, value)) = line.split_once(':') else {
            return false;
        };
        name.trim() == "EXIT_SIGNAL" && value.trim().eq_ignore_ascii_case("true")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(signal: &str) -> String {
        format!("{BEGIN}\nSTATUS: COMPLETE\nEXIT_SIGNAL: {signal}\nRECOMMENDATION: none\n{END}\n")
    }

    #[test]
    fn last_complete_block_decides() {
        assert!(signals_exit(&block("true")));
        assert!(signals_exit(&format!("Done.\n```\n{}```", block("true"))));
        assert!(signals_exit(&(block("false") + &block("true"))));
        for text in [
            block("false"),
            // The prompt shows both words.
            block("false | true"),
            block("true") + &block("false"),
            format!("{BEGIN}\nEXIT_SIGNAL: true\n"),
            "EXIT_SIGNAL: true\n".to_owned(),
            format!("EXIT_SIGNAL: true\n{BEGIN}\n{END}"),
        ] {
            assert!(!signals_exit(&text), "{text}");
        }
    }
}
