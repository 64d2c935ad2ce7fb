//! What a message holds: words, or a list of blocks.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Nested, Worded};

#[derive(Debug, Default)]
pub(in crate::transcript) enum Content<'a, B> {
    /// Nothing, or nothing that a message can hold.
    #[default]
    Absent,
    Words(Cow<'a, str>),
    /// What is no object has no field.
    Blocks(Vec<Nested<B>>),
}

impl<B> Content<'_, B> {
    pub(in crate::transcript) fn words(&self) -> Option<&str> {
        match self {
            Self::Words(words) => Some(words),
            Self::Absent | Self::Blocks(_) => None,
        }
    }

    pub(in crate::transcript) fn blocks(&self) -> impl Iterator<Item = &B> {
        let blocks = match self {
            Self::Blocks(blocks) => &blocks[..],
            Self::Absent | Self::Words(_) => &[],
        };
        blocks.iter().map(|block| &block.0)
    }
}

impl<'de: 'a, 'a, B: Worded<'de>> Deserialize<'de> for Content<'a, B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsOrBlocks(PhantomData))
    }
}

struct WordsOrBlocks<B>(PhantomData<B>);

impl<'de, B: Worded<'de>> Visitor<'de> for WordsOrBlocks<B> {
    type Value = Content<'de, B>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("words or blocks")
    }

    fn visit_borrowed_str<E>(self, words: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Words(Cow::Borrowed(words)))
    }

    fn visit_str<E>(self, words: &str) -> Result<Self::Value, E> {
        Ok(Content::Words(Cow::Owned(words.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        // Nearly always one.
        let mut blocks = Vec::with_capacity(1);
        while let Some(block) = items.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::Absent)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Content::Absent)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Content::Absent)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Content::Absent)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Content::Absent)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Content::Absent)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{Content, Worded};

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Block {
        size: u64,
    }

    impl Worded<'_> for Block {}

    #[test]
    fn words_and_blocks_are_told_apart_and_anything_else_is_absent() {
        let read = |text: &'static str| serde_json::from_str::<Content<'_, Block>>(text).unwrap();
        assert_eq!(read(r#""a\nb""#).words(), Some("a\nb"));
        let blocks = read(r#"[{"size":3},"bare",[1],{"size":5,"more":[{}]}]"#);
        let sizes: Vec<u64> = blocks.blocks().map(|block| block.size).collect();
        assert_eq!(sizes, [3, 0, 0, 5]);
        for other in ["null", "true", "1", "-1", "1.5", r#"{"a":[{}]}"#] {
            assert!(matches!(read(other), Content::Absent), "{other}");
        }
    }
}
