//! Unparsed JSON values, and the search for bytes that must be escaped in a JSON string.

use schemars::JsonSchema;
use serde::ser::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value, stored as its unparsed text.
#[derive(Debug, Clone, JsonSchema)]
#[serde(transparent)]
pub struct Json(#[schemars(with = "serde_json::Value")] String);

impl Json {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parsed value; `Null` if the text is not valid JSON.
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

/// Writes the text unchanged.
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

/// Goes through `Value`: serde buffers the fields of a tagged enum, and a `RawValue` cannot be read from that buffer.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(Self::from)
    }
}

/// The position of the first byte that must be escaped in a JSON string: a quote, a backslash or a control character.
/// The loop over a block has no branches, so that the compiler vectorizes it.
pub(crate) fn find_escapable(bytes: &[u8]) -> Option<usize> {
    let mut from = clean_blocks::<64>(bytes);
    from += clean_blocks::<16>(&bytes[from..]);
    let (words, rest) = bytes[from..].as_chunks::<8>();
    for word in words {
        if let Some(at) = first_in_word(*word) {
            return Some(from + at);
        }
        from += word.len();
    }
    let at = rest.iter().position(|byte| needs_escape(*byte))?;
    Some(from + at)
}

/// Like `find_escapable`, but only within the first 16 bytes. Most strings are shorter than that, and testing two machine
/// words needs a single branch.
#[inline]
pub(crate) fn find_escapable_in_prefix(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.first_chunk::<16>()?.as_chunks::<8>();
    let [first, second] = [escapable_bits(*words.first()?), escapable_bits(*words.get(1)?)];
    let at = match first {
        0 => 8 + second.trailing_zeros() / 8,
        _ => first.trailing_zeros() / 8,
    };
    (first | second != 0).then_some(at as usize)
}

/// The length of the leading whole blocks in which no byte needs an escape.
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

fn first_in_word(word: [u8; 8]) -> Option<usize> {
    let found = escapable_bits(word);
    (found != 0).then_some(found.trailing_zeros() as usize / 8)
}

/// Sets the high bit of each byte that needs an escape. Borrows may set wrong bits, but only above the lowest set bit.
#[inline]
fn escapable_bits(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    let word = u64::from_le_bytes(word);
    let below = |limit: u8, word: u64| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let is = |byte: u8| below(1, word ^ (ONES * u64::from(byte)));
    (below(b' ', word) | is(b'"') | is(b'\\')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{find_escapable, find_escapable_in_prefix};

    proptest! {
        #[test]
        fn first_escapable_byte_is_found(bytes in prop::collection::vec(prop_oneof![
            30 => b' '..=255,
            1 => any::<u8>(),
            1 => Just(b'"'),
            1 => Just(b'\\'),
        ], 0..200)) {
            let first = bytes.iter().position(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(find_escapable(&bytes), first);
            let in_prefix = first.filter(|first| *first < 16 && bytes.len() >= 16);
            prop_assert_eq!(find_escapable_in_prefix(&bytes), in_prefix);
        }
    }
}
