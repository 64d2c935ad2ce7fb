//! An incremental parser that finds escape sequences in terminal output, byte by byte. It does not interpret them.

/// The parser drops control sequences with more parameter bytes than this.
const MAX_PARAMETER_BYTES: usize = 64;

/// The result of parsing one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscapeToken {
    /// The byte is part of an unfinished or ignored sequence.
    Incomplete,
    /// A byte of text, or a control character.
    Text(u8),
    /// The final byte of a short escape sequence.
    Escape(u8),
    /// The final byte of a control sequence; `parameters` returns the bytes before it.
    Csi(u8),
}

#[derive(Debug, Default)]
pub struct EscapeParser {
    state: ParserState,
    parameters: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ParserState {
    #[default]
    Text,
    Escape,
    Csi,
    /// OSC, DCS, SOS, PM or APC, up to the terminator.
    String,
    StringEscape,
}

impl EscapeParser {
    /// The bytes between `ESC [` and the final byte.
    pub fn parameters(&self) -> &[u8] {
        &self.parameters
    }

    /// True between sequences: the next byte is text unless it is an escape.
    pub fn is_in_text(&self) -> bool {
        self.state == ParserState::Text
    }

    pub fn step(&mut self, byte: u8) -> EscapeToken {
        let (state, token) = match (self.state, byte) {
            (ParserState::String, 0x07) | (ParserState::StringEscape, b'\\') => {
                (ParserState::Text, EscapeToken::Incomplete)
            }
            (ParserState::String, 0x1b) => (ParserState::StringEscape, EscapeToken::Incomplete),
            (ParserState::String, _) => (ParserState::String, EscapeToken::Incomplete),
            (_, 0x1b) => (ParserState::Escape, EscapeToken::Incomplete),
            (ParserState::Text, _) => (ParserState::Text, EscapeToken::Text(byte)),
            (ParserState::Escape | ParserState::StringEscape, b'[') => {
                self.parameters.clear();
                (ParserState::Csi, EscapeToken::Incomplete)
            }
            (ParserState::Escape | ParserState::StringEscape, b']' | b'P' | b'X' | b'^' | b'_') => {
                (ParserState::String, EscapeToken::Incomplete)
            }
            (ParserState::Escape | ParserState::StringEscape, b' '..=b'/') => {
                (ParserState::Escape, EscapeToken::Incomplete)
            }
            (ParserState::Escape | ParserState::StringEscape, _) => {
                (ParserState::Text, EscapeToken::Escape(byte))
            }
            (ParserState::Csi, b'@'..=b'~') => (ParserState::Text, EscapeToken::Csi(byte)),
            (ParserState::Csi, _) if self.parameters.len() < MAX_PARAMETER_BYTES => {
                self.parameters.push(byte);
                (ParserState::Csi, EscapeToken::Incomplete)
            }
            (ParserState::Csi, _) => (ParserState::Text, EscapeToken::Incomplete),
        };
        self.state = state;
        token
    }
}
