//! JSON as text: a value kept as it came, and what a string cannot hold as it is.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A JSON value as text: cheap to carry from an agent's line to the journal, parsed only by who looks inside.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Json(#[schemars(with = "serde_json::Value")] Box<RawValue>);

impl Json {
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The parsed value, for those who look inside.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(self.0.get()).unwrap_or(serde_json::Value::Null)
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        let null = || RawValue::NULL.to_owned();
        Self(serde_json::value::to_raw_value(&value).unwrap_or_else(|_| null()))
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

/// Inside a string of JSON: where its end is, or the next escape. None if there is neither, or something before it that cannot
/// stand in a string. Most strings are short, and for them this is quicker than anything that needs a run-up.
#[inline]
pub(crate) fn next_in_string(bytes: &[u8]) -> Option<usize> {
    const SHORT: usize = 24;
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().take(SHORT / 8).enumerate() {
        if let Some(at) = first_to_escape(*word) {
            return Some(index * 8 + at);
        }
    }
    let from = SHORT.min(words.len() * 8);
    let rest = &bytes[from..];
    let at = memchr::memchr2(b'"', b'\\', rest)?;
    let lowest = rest[..at].iter().fold(u8::MAX, |lowest, byte| lowest.min(*byte));
    (lowest >= b' ').then_some(from + at)
}

/// Where the first byte is that cannot stand in a string as it is: a quote, a backslash, or a control character. Sixteen bytes
/// are looked at together, without a branch among them, so that the compiler takes them in one go.
pub(super) fn next_to_escape(bytes: &[u8]) -> Option<usize> {
    let (blocks, _) = bytes.as_chunks::<16>();
    let is_clean = |block: &&[u8; 16]| {
        !block
            .iter()
            .fold(false, |found, byte| found | needs_escape(*byte))
    };
    let from = blocks.iter().take_while(is_clean).count() * 16;
    let (words, _) = bytes[from..].as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(at) = first_to_escape(*word) {
            return Some(from + index * 8 + at);
        }
    }
    let from = from + words.len() * 8;
    let at = bytes[from..].iter().position(|byte| needs_escape(*byte))?;
    Some(from + at)
}

fn needs_escape(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

/// Each byte on its own: the high bit of one in which something was borrowed. That is right up to the first one.
#[inline]
fn first_to_escape(word: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    let word = u64::from_le_bytes(word);
    let below = |limit: u8, word: u64| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let is = |byte: u8| below(1, word ^ (ONES * u64::from(byte)));
    let found = (below(b' ', word) | is(b'"') | is(b'\\')) & (ONES << 7);
    (found != 0).then_some(found.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{next_in_string, next_to_escape};

    proptest! {
        #[test]
        fn the_first_byte_to_escape_is_found(bytes in prop::collection::vec(prop_oneof![
            30 => b' '..=255,
            1 => any::<u8>(),
            1 => Just(b'"'),
            1 => Just(b'\\'),
        ], 0..80)) {
            let first = bytes.iter().position(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'));
            prop_assert_eq!(next_to_escape(&bytes), first);
            let ends = first.filter(|first| bytes[*first] >= b' ');
            let found = next_in_string(&bytes).filter(|found| bytes[*found] >= b' ');
            prop_assert_eq!(found, ends);
        }
    }
}
