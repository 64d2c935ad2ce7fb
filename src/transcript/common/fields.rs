//! Fields of JSON that agents print. A field of an unexpected type reads as absent, so that the rest of the line stays
//! readable.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::event::Usd;

/// A scalar of any type; objects and arrays read as `Absent`.
#[derive(Debug, Default, Clone, PartialEq)]
pub(in crate::transcript) enum Field<'a> {
    #[default]
    Absent,
    Flag(bool),
    Count(u64),
    Real(f64),
    Text(Cow<'a, str>),
}

impl Field<'_> {
    pub(in crate::transcript) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Flag(_) | Self::Count(_) | Self::Real(_) => None,
        }
    }

    /// The text, unless it is empty.
    pub(in crate::transcript) fn non_empty(&self) -> Option<&str> {
        self.text().filter(|text| !text.is_empty())
    }

    pub(in crate::transcript) fn is(&self, expected: &str) -> bool {
        self.text() == Some(expected)
    }

    /// A count. Fractions are truncated: some agents report milliseconds as fractions.
    pub(in crate::transcript) fn count(&self) -> Option<u64> {
        match self {
            Self::Count(count) => Some(*count),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and `as` saturates"
            )]
            Self::Real(real) if *real >= 0.0 => Some(*real as u64),
            Self::Absent | Self::Flag(_) | Self::Real(_) | Self::Text(_) => None,
        }
    }

    pub(in crate::transcript) fn real(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "amounts of money, not identifiers")]
            Self::Count(count) => Some(*count as f64),
            Self::Real(real) => Some(*real),
            Self::Absent | Self::Flag(_) | Self::Text(_) => None,
        }
    }

    /// A valid amount of money.
    pub(in crate::transcript) fn money(&self) -> Option<Usd> {
        self.real().and_then(Usd::new)
    }

    pub(in crate::transcript) fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            Self::Absent | Self::Count(_) | Self::Real(_) | Self::Text(_) => None,
        }
    }

    pub(in crate::transcript) fn to_text(&self) -> Option<String> {
        self.text().map(str::to_owned)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyType)
    }
}

struct AnyType;

impl<'de> Visitor<'de> for AnyType {
    type Value = Field<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Field::Flag(flag))
    }

    fn visit_u64<E>(self, count: u64) -> Result<Self::Value, E> {
        Ok(Field::Count(count))
    }

    #[expect(clippy::cast_precision_loss, reason = "negative numbers are always rejected")]
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Field::Real(number as f64))
    }

    fn visit_f64<E>(self, real: f64) -> Result<Self::Value, E> {
        Ok(Field::Real(real))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Field::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Absent)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Absent)
    }
}

/// Parses an object; all fields are absent if the value is not an object.
pub(in crate::transcript) fn object<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.map(RawValue::get)
        // serde would also accept an array and fill the fields in order.
        .filter(|text| text.starts_with('{'))
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The items of an array; empty if the value is not an array.
pub(in crate::transcript) fn list(raw: Option<&RawValue>) -> Vec<&RawValue> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

/// The value if it is a string.
pub(in crate::transcript) fn string(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let text = raw.map(RawValue::get).filter(|text| text.starts_with('"'))?;
    if memchr::memchr(b'\\', text.as_bytes()).is_none() {
        // A string without escapes is borrowed.
        return Some(Cow::Borrowed(&text[1..text.len() - 1]));
    }
    unescape(&text[1..text.len() - 1]).map(Cow::Owned)
}

/// Unescapes the inside of a JSON string in one pass: tool output may be long and contain many escaped newlines.
pub(super) fn unescape(mut rest: &str) -> Option<String> {
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        let escape = rest[at + 1..].chars().next()?;
        rest = &rest[at + 1 + escape.len_utf8()..];
        text.push(match escape {
            '"' | '\\' | '/' => escape,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (character, after) = decode_unicode_escape(rest)?;
                rest = after;
                character
            }
            _ => return None,
        });
    }
    text.push_str(rest);
    Some(text)
}

/// Decodes the digits after `\u`, including a second surrogate, and returns the rest of the text.
fn decode_unicode_escape(rest: &str) -> Option<(char, &str)> {
    let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
    let first = unit(rest)?;
    let after = &rest[4..];
    let second = after.strip_prefix("\\u").and_then(unit);
    let mut units = char::decode_utf16([first].into_iter().chain(second));
    let character = units.next()?.ok()?;
    let is_pair = character.len_utf16() == 2;
    Some((character, if is_pair { &after[6..] } else { after }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct FieldSample<'a> {
        #[serde(borrow)]
        name: Field<'a>,
        #[serde(borrow)]
        age: Field<'a>,
        #[serde(borrow)]
        rest: Option<&'a RawValue>,
    }

    fn sample(text: &str) -> FieldSample<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn field_of_unexpected_type_is_absent_and_others_are_read() {
        let read = sample(r#"{"name":{"first":"A"},"age":[1,[2]],"rest":"r"}"#);
        assert_eq!((read.name, read.age), (Field::Absent, Field::Absent));
        assert_eq!(string(read.rest).as_deref(), Some("r"));
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        assert!(matches!(
            sample(r#"{"name":"plain"}"#).name,
            Field::Text(Cow::Borrowed(_))
        ));
        assert!(matches!(
            sample(r#"{"name":"a\nb"}"#).name,
            Field::Text(Cow::Owned(_))
        ));
    }

    #[test]
    fn fractions_are_truncated_and_negative_counts_rejected() {
        assert_eq!(sample(r#"{"age":511.9}"#).age.count(), Some(511));
        assert_eq!(sample(r#"{"age":-3}"#).age.count(), None);
        assert_eq!(sample(r#"{"age":3}"#).age.real(), Some(3.0));
    }

    proptest! {
        #[test]
        fn string_equals_serde_result(text in any::<String>(), as_unicode_escapes in any::<bool>()) {
            let written = if as_unicode_escapes {
                let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
                format!("\"{}\"", units.collect::<String>())
            } else {
                serde_json::to_string(&text).unwrap()
            };
            let raw: &RawValue = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(string(Some(raw)), Some(Cow::from(text)));
        }
    }

    #[test]
    fn lone_surrogate_is_rejected() {
        for text in [r#""\ud83d""#, r#""\ud83dx""#, r#""\ude00\ud83d""#] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(string(Some(raw)), None, "{text}");
        }
    }

    #[test]
    fn array_is_not_an_object() {
        let raw: &RawValue = serde_json::from_str(r#"["name",7]"#).unwrap();
        assert_eq!(object::<FieldSample<'_>>(Some(raw)).name, Field::Absent);
    }
}
