//! The link of a record in the hash chain of its journal.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The first 8 bytes of the SHA-256 of everything in the journal before the link. Written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ChainLink([u8; Self::LENGTH]);

impl ChainLink {
    /// The number of its digits. 64 bits identify a damaged record; the head of the chain has all 256.
    pub const LENGTH: usize = 16;

    pub fn of_digest(digest: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [b'0'; Self::LENGTH];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(digest) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(digits)
    }

    pub fn digits(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ChainLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for ChainLink {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for ChainLink {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match <[u8; Self::LENGTH]>::try_from(text.as_bytes()) {
            Ok(digits) if text.bytes().all(is_digit) => Ok(Self(digits)),
            _ => Err(serde::de::Error::custom("expected 16 hexadecimal digits")),
        }
    }
}
