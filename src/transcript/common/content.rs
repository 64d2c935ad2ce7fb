//! The content of a message: a text or a list of blocks.

use std::borrow::Cow;

#[derive(Debug, Default)]
pub(in crate::transcript) enum Content<'a, B> {
    /// Missing, or of an unexpected type.
    #[default]
    Absent,
    Text(Cow<'a, str>),
    /// An item that is not an object has no fields.
    Blocks(Vec<B>),
}

impl<B> Content<'_, B> {
    pub(in crate::transcript) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Blocks(_) => None,
        }
    }

    pub(in crate::transcript) fn blocks(&self) -> &[B] {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Absent | Self::Text(_) => &[],
        }
    }
}
