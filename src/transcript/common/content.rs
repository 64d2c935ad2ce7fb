//! What a message holds: words, or a list of blocks.

use std::borrow::Cow;

#[derive(Debug, Default)]
pub(in crate::transcript) enum Content<'a, B> {
    /// Nothing, or nothing that a message can hold.
    #[default]
    Absent,
    Words(Cow<'a, str>),
    /// What is no object has no field.
    Blocks(Vec<B>),
}

impl<B> Content<'_, B> {
    pub(in crate::transcript) fn words(&self) -> Option<&str> {
        match self {
            Self::Words(words) => Some(words),
            Self::Absent | Self::Blocks(_) => None,
        }
    }

    pub(in crate::transcript) fn blocks(&self) -> &[B] {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Absent | Self::Words(_) => &[],
        }
    }
}
