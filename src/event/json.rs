//! JSON as text: a value kept as it came, and what a string cannot hold as it is.

use schemars::JsonSchema;
use serde::ser::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value as text: cheap to carry from an agent's line to the journal, parsed only by who looks inside.
#[derive(Debug, Clone, JsonSchema)]
#[serde(transparent)]
pub struct Json(#[schemars(with = "serde_json::Value")] String);

impl Json {
    /// A value as it came, in room that there is for it.
    pub fn written_into(mut room: String, raw: &RawValue) -> Self {
        room.clear();
        room.push_str(raw.get());
        Self(room)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The room that it took.
    pub fn into_room(self) -> String {
        self.0
    }

    /// The parsed value, for those who look inside.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.get().to_owned())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self(value.to_string())
    }
}

/// As it stands.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || self.value() == other.value()
    }
}

/// By way of a value: a `RawValue` cannot be read inside a tagged enum, where serde buffers what it has seen.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(Self::from)
    }
}

/// Where the first byte is that cannot stand in a string as it is: a quote, a backslash, or a control character. Blocks are
/// looked at as a whole, without a branch among their bytes, so that the compiler takes many of them in one go.
pub(crate) fn next_to_escape(bytes: &[u8]) -> Option<usize> {
    let mut from = clean_blocks::<64>(bytes);
    from += clean_blocks::<16>(&bytes[from..]);
    let (words, rest) = bytes[from..].as_chunks::<8>();
    for word in words {
        if let Some(at) = first_of_word(*word) {
            return Some(from + at);
        }
        from += word.len();
    }
    let at = rest.iter().position(|byte| needs_escape(*byte))?;
    Some(from + at)
}

/// The same within the first sixteen bytes, for strings that are short, as most are: two words are looked at together, and
/// nothing has to be guessed but whether they are enough.
#[inline]
pub(crate) fn next_to_escape_nearby(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.first_chunk::<16>()?.as_chunks::<8>();
    let [first, second] = [to_escape(*words.first()?), to_escape(*words.get(1)?)];
    let at = match first {
        0 => 8 + second.trailing_zeros() / 8,
        _ => first.trailing_zeros() / 8,
    };
    (first | second != 0).then_some(at as usize)
}

/// How many bytes there are before the first block with one that needs an escape, or the last that is no whole block.
fn clean_blocks<const SIZE: usize>(bytes: &[u8]) -> usize {
    let is_clean = |block: &&[u8; SIZE]| {
        let found = block
            .iter()
            .fold(0, |found, byte| found | u8::from(needs_escape(*byte)));
        found == 0
    };
    bytes.as_chunks().0.iter().take_while(is_clean).count() * SIZE
}

fn needs_escape(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

fn first_of_word(word: [u8; 8]) -> Option<usize> {
    let found = to_escape(word);
    (found != 0).then_some(found.trailing_zeros() as usize / 8)
}

/// Each byte on its own: the high bit of one in which something was borrowed. That is right up to the first one.
#[inline]
fn to_escape(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    let word = u64::from_le_bytes(word);
    let below = |limit: u8, word: u64| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let is = |byte: u8| below(1, word ^ (ONES * u64::from(byte)));
    (below(b' ', word) | is(b'"') | is(b'\\')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{next_to_escape, next_to_escape_nearby};

    proptest! {
        #[test]
        fn the_first_byte_to_escape_is_found(bytes in prop::collection::vec(prop_oneof![
            30 => b' '..=255,
            1 => any::<u8>(),
            1 => Just(b'"'),
            1 => Just(b'\\'),
        ], 0..200)) {
            let first = bytes.iter().position(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(next_to_escape(&bytes), first);
            let nearby = first.filter(|first| *first < 16 && bytes.len() >= 16);
            prop_assert_eq!(next_to_escape_nearby(&bytes), nearby);
        }
    }
}
