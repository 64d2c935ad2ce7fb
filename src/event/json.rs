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

/// Where the first byte is that cannot stand in a string as it is: a quote, a backslash, or a control character. Sixteen bytes
/// are looked at together, without a branch among them, so that the compiler takes them in one go.
pub(crate) fn next_to_escape(bytes: &[u8]) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<16>();
    for (index, block) in blocks.iter().enumerate() {
        if block
            .iter()
            .fold(false, |found, byte| found | needs_escape(*byte))
        {
            return Some(index * 16 + first_to_escape(block));
        }
    }
    let at = rest.iter().position(|byte| needs_escape(*byte))?;
    Some(blocks.len() * 16 + at)
}

fn needs_escape(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

/// In a block that has one.
fn first_to_escape(block: &[u8; 16]) -> usize {
    const ONES: u128 = u128::from_ne_bytes([0x01; 16]);
    let word = u128::from_le_bytes(*block);
    // Each byte on its own: the high bit of one in which something was borrowed. Right up to the first one, which is all that counts.
    let below = |limit: u8, word: u128| word.wrapping_sub(ONES * u128::from(limit)) & !word;
    let is = |byte: u8| below(1, word ^ (ONES * u128::from(byte)));
    let found = (below(b' ', word) | is(b'"') | is(b'\\')) & (ONES << 7);
    found.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::next_to_escape;

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
        }
    }
}
