//! Reading a line of JSON for a few of its fields, once and without stopping: most of what a chatty agent costs is paid here,
//! and serde takes twice as long. It takes what serde takes, and nothing else; whoever wants to know what is wrong with a text
//! asks serde.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::fields::unescaped;
use super::lines::{has_whole_characters, with_whole_characters};
use super::{Content, Field, parse};
use crate::event::{next_to_escape, next_to_escape_nearby};

/// Nobody nests deeper who means well.
const DEEPEST: usize = 100;

/// An object of which some fields matter. Any of them may be missing, and have any type.
pub(in crate::transcript) trait Scanned<'a>: Default {
    /// Takes the value that stands under this name, or passes over it.
    fn take(&mut self, name: &str, value: &mut JsonScan<'a>) -> Option<()>;

    /// What it means if a text stands in its place.
    fn of_words(_: Cow<'a, str>) -> Self {
        Self::default()
    }
}

/// A place in a text of JSON. `None` says that this is none.
pub(in crate::transcript) struct JsonScan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonScan<'a> {
    /// Reads a text that is one object, and nothing else.
    pub(in crate::transcript) fn object<T: Scanned<'a>>(text: &'a str) -> Option<T> {
        let mut skim = Self { text, at: 0 };
        let mut object = T::default();
        skim.fields(&mut object)?;
        skim.is_at_the_end().then_some(object)
    }

    /// The place behind `beginning`, if the text begins like that.
    pub(in crate::transcript) fn after(beginning: &str, text: &'a str) -> Option<Self> {
        let at = beginning.len();
        text.starts_with(beginning).then_some(Self { text, at })
    }

    /// Goes past something that is known to the byte.
    pub(in crate::transcript) fn goes_on(&mut self, expected: &str) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += expected.len();
        rest.starts_with(expected.as_bytes()).then_some(())
    }

    pub(in crate::transcript) fn is_at_the_end(&mut self) -> bool {
        self.next().is_none()
    }

    /// A string, if there is one.
    pub(in crate::transcript) fn quoted(&mut self) -> Option<Quoted<'a>> {
        match self.next()? {
            b'"' => self.string(),
            _ => None,
        }
    }

    /// An object in an object; all of its fields are absent when it is none.
    pub(in crate::transcript) fn nested<T: Scanned<'a>>(&mut self, object: &mut T) -> Option<()> {
        match self.next()? {
            b'{' => self.fields(object)?,
            b'"' => *object = T::of_words(self.words()?),
            _ => drop(self.pass()?),
        }
        Some(())
    }

    /// Words, or a list of objects.
    pub(in crate::transcript) fn content<T: Scanned<'a>>(&mut self) -> Option<Content<'a, T>> {
        match self.next()? {
            b'"' => self.words().map(Content::Words),
            b'[' => self.list().map(Content::Blocks),
            _ => self.pass().map(|_| Content::Absent),
        }
    }

    pub(in crate::transcript) fn is_words(&mut self) -> bool {
        self.next() == Some(b'"')
    }

    /// One scalar, whatever its type.
    #[inline]
    pub(in crate::transcript) fn field(&mut self) -> Option<Field<'a>> {
        match self.next()? {
            b'"' => self.words().map(Field::Text),
            b'{' | b'[' => self.pass().map(|_| Field::Absent),
            _ => match self.scalar()? {
                "null" => Some(Field::Absent),
                "true" => Some(Field::Flag(true)),
                "false" => Some(Field::Flag(false)),
                number => match number.parse() {
                    Ok(count) if is_count(number) => Some(Field::Count(count)),
                    _ => serde_json::from_str(number).ok(),
                },
            },
        }
    }

    /// The value as it is written.
    pub(in crate::transcript) fn raw(&mut self) -> Option<Option<&'a RawValue>> {
        let text = self.pass()?;
        // Whatever stands in the journal must be JSON to the last byte, and text to the last letter.
        has_whole_characters(text)
            .then(|| serde_json::from_str(text).ok())
            .flatten()
    }

    /// Goes past a value; tells how it is written.
    pub(in crate::transcript) fn pass(&mut self) -> Option<&'a str> {
        self.next()?;
        let from = self.at;
        self.pass_within(DEEPEST)?;
        self.text.get(from..self.at)
    }

    fn pass_within(&mut self, depth: usize) -> Option<()> {
        let (open, close) = match self.next()? {
            b'"' => return self.string().map(drop),
            b'{' => (b'{', b'}'),
            b'[' => (b'[', b']'),
            _ => return self.scalar().map(drop),
        };
        self.expect(open)?;
        if self.accept(close) {
            return Some(());
        }
        loop {
            if open == b'{' {
                self.name()?;
                self.expect(b':')?;
            }
            self.pass_within(depth.checked_sub(1)?)?;
            if !self.accept(b',') {
                return self.expect(close);
            }
        }
    }

    fn fields<T: Scanned<'a>>(&mut self, object: &mut T) -> Option<()> {
        self.expect(b'{')?;
        if self.accept(b'}') {
            return Some(());
        }
        loop {
            let name = self.name()?;
            self.expect(b':')?;
            object.take(name, self)?;
            if !self.accept(b',') {
                return self.expect(b'}');
            }
        }
    }

    fn list<T: Scanned<'a>>(&mut self) -> Option<Vec<T>> {
        self.expect(b'[')?;
        if self.accept(b']') {
            return Some(Vec::new());
        }
        // Nearly always one.
        let mut items: Vec<T> = Vec::with_capacity(1);
        loop {
            items.push(T::default());
            self.nested(items.last_mut()?)?;
            if !self.accept(b',') {
                self.expect(b']')?;
                return Some(items);
            }
        }
    }

    /// The name of a field. One with an escape in it is no name that anybody asks for.
    #[inline]
    fn name(&mut self) -> Option<&'a str> {
        if self.next()? != b'"' {
            return None;
        }
        match self.string()? {
            Quoted {
                inside,
                written: Written::AsItIs,
            } => Some(inside),
            Quoted { .. } => Some(""),
        }
    }

    #[inline]
    fn words(&mut self) -> Option<Cow<'a, str>> {
        self.string().map(Quoted::text)
    }

    /// A string, which is known to begin here.
    #[inline(always)]
    pub(in crate::transcript) fn string(&mut self) -> Option<Quoted<'a>> {
        let from = self.at + 1;
        let bytes = self.text.as_bytes().get(from..)?;
        match next_to_escape_nearby(bytes) {
            Some(length) if bytes[length] == b'"' => {
                self.at = from + length + 1;
                let inside = self.text.get(from..from + length)?;
                let written = Written::AsItIs;
                Some(Quoted { inside, written })
            }
            Some(_) | None => self.long_string(),
        }
    }

    /// The same, where the end is not near.
    #[inline(never)]
    fn long_string(&mut self) -> Option<Quoted<'a>> {
        let bytes = self.text.as_bytes();
        let from = self.at + 1;
        let mut written = Written::AsItIs;
        let mut at = from;
        loop {
            at += next_to_escape(bytes.get(at..)?)?;
            match bytes[at] {
                b'"' => {
                    self.at = at + 1;
                    let inside = self.text.get(from..at)?;
                    return Some(Quoted { inside, written });
                }
                b'\\' => {
                    written = Written::Escaped;
                    at += length_of_escape(&bytes[at..])?;
                }
                // A control character, such as those of a terminal's sequences.
                _ => return None,
            }
        }
    }

    /// What is neither a string, nor a list, nor an object.
    fn scalar(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at..)?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let text = &rest[..rest.bytes().take_while(|byte| is_part(*byte)).count()];
        self.at += text.len();
        let is_word = matches!(text, "null" | "true" | "false");
        let is_scalar = is_word || is_count(text) || serde_json::from_str::<IgnoredAny>(text).is_ok();
        is_scalar.then_some(text)
    }

    #[inline]
    fn accept(&mut self, expected: u8) -> bool {
        let there = self.next() == Some(expected);
        self.at += usize::from(there);
        there
    }

    #[inline]
    fn expect(&mut self, expected: u8) -> Option<()> {
        self.accept(expected).then_some(())
    }

    /// What comes after white space, of which there is hardly ever any.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                other => return Some(other),
            }
        }
    }
}

/// Whether these are the digits of a whole number, as JSON has them.
fn is_count(text: &str) -> bool {
    let digits = text.as_bytes();
    matches!(digits, [b'1'..=b'9', ..] | [b'0']) && digits.iter().all(u8::is_ascii_digit)
}

/// How long the escape is that begins here.
fn length_of_escape(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => bytes.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

/// Reads the text as one JSON object; the error is a sentence for the user.
pub(in crate::transcript) fn scan<'a, T: Scanned<'a>>(text: &'a str) -> Result<T, String> {
    JsonScan::object(text).ok_or_else(|| {
        let complaint = parse::<IgnoredAny>(text).err();
        complaint.unwrap_or_else(|| "not readable as JSON".to_owned())
    })
}

/// An object's fields; all of them absent when it is no object.
pub(in crate::transcript) fn scan_raw<'a, T: Scanned<'a>>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| JsonScan::object(raw.get()))
        .unwrap_or_default()
}

/// A string as it stands in its line.
#[derive(Debug, Clone, Copy)]
pub(in crate::transcript) struct Quoted<'a> {
    inside: &'a str,
    written: Written,
}

#[derive(Debug, Clone, Copy)]
enum Written {
    AsItIs,
    Escaped,
}

impl<'a> Quoted<'a> {
    /// What it says. Half a character is replaced.
    #[inline]
    pub(in crate::transcript) fn text(self) -> Cow<'a, str> {
        match self.written {
            Written::AsItIs => Cow::Borrowed(self.inside),
            Written::Escaped => unescaped(self.inside)
                .or_else(|| unescaped(&with_whole_characters(self.inside)))
                .map_or(Cow::Borrowed(self.inside), Cow::Owned),
        }
    }
}
