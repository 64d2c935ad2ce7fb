//! Where escape sequences begin and end in what a program sends to a terminal, byte by byte, however it is cut. What a
//! sequence means is not known here.

/// Longer than any sequence that matters.
const LONGEST: usize = 64;

/// What one byte brought to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// In the middle of a sequence.
    Nothing,
    /// A byte of text, or a control.
    Text(u8),
    /// A short sequence, by its last byte.
    Escape(u8),
    /// A control sequence, by its last byte; `parameters` has the rest.
    Sequence(u8),
}

#[derive(Debug, Default)]
pub struct Escapes {
    state: State,
    parameters: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    Sequence,
    /// A title, a colour, an answer: up to its terminator.
    Phrase,
    PhraseEscape,
}

impl Escapes {
    /// Between `ESC [` and the last byte.
    pub fn parameters(&self) -> &[u8] {
        &self.parameters
    }

    /// The next byte is text unless it is an escape.
    pub fn is_in_text(&self) -> bool {
        self.state == State::Text
    }

    pub fn step(&mut self, byte: u8) -> Seen {
        let (state, seen) = match (self.state, byte) {
            (State::Phrase, 0x07) | (State::PhraseEscape, b'\\') => (State::Text, Seen::Nothing),
            (State::Phrase, 0x1b) => (State::PhraseEscape, Seen::Nothing),
            (State::Phrase, _) => (State::Phrase, Seen::Nothing),
            (_, 0x1b) => (State::Escape, Seen::Nothing),
            (State::Text, _) => (State::Text, Seen::Text(byte)),
            (State::Escape | State::PhraseEscape, b'[') => {
                self.parameters.clear();
                (State::Sequence, Seen::Nothing)
            }
            (State::Escape | State::PhraseEscape, b']' | b'P' | b'X' | b'^' | b'_') => {
                (State::Phrase, Seen::Nothing)
            }
            (State::Escape | State::PhraseEscape, b' '..=b'/') => (State::Escape, Seen::Nothing),
            (State::Escape | State::PhraseEscape, _) => (State::Text, Seen::Escape(byte)),
            (State::Sequence, b'@'..=b'~') => (State::Text, Seen::Sequence(byte)),
            (State::Sequence, _) if self.parameters.len() < LONGEST => {
                self.parameters.push(byte);
                (State::Sequence, Seen::Nothing)
            }
            (State::Sequence, _) => (State::Text, Seen::Nothing),
        };
        self.state = state;
        seen
    }
}
