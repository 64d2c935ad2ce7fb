//! Pieces of a text come by the thousand, in lines that differ in nothing but the piece and an id at their end. Such a line is
//! held against one that was read before, instead of being read.

use std::borrow::Cow;

use crate::event::Tag;
use crate::transcript::common::JsonScan;

/// What stands before the id, which comes last.
const BEFORE_ID: &str = ",\"uuid\":";

/// All of a line but the piece and the id. Empty until there was such a line.
#[derive(Debug, Default)]
pub(super) struct LineTemplate {
    /// Up to the piece's first quote.
    before: String,
    /// From its last quote on.
    after: String,
    parent: Option<String>,
    tag: Option<Tag>,
}

/// A piece, and whose it is.
#[derive(Debug, PartialEq)]
pub(super) struct Piece<'a> {
    pub(super) parent: Option<&'a str>,
    pub(super) tag: Tag,
    pub(super) text: Cow<'a, str>,
}

impl LineTemplate {
    /// Remembers a line that was read, in which `text` is the piece. One that had to be mended, or has an escape in the piece,
    /// is no good for it; neither is one without an id at its end.
    pub(super) fn cast(&mut self, line: &str, parent: Option<&str>, tag: Tag, text: &str) {
        self.forget();
        let Some((before, after)) = around(line, text) else {
            return;
        };
        self.before.push_str(before);
        self.after.push_str(after);
        self.parent = parent.map(str::to_owned);
        self.tag = Some(tag);
    }

    pub(super) fn forget(&mut self) {
        self.tag = None;
        self.before.clear();
        self.after.clear();
    }

    /// The piece in a line of this mould; none if the line is another.
    pub(super) fn piece<'a>(&'a self, line: &'a str) -> Option<Piece<'a>> {
        let tag = self.tag?;
        let mut skim = JsonScan::after(&self.before, line)?;
        let text = skim.quoted()?.text();
        skim.goes_on(&self.after)?;
        ends_with_a_value(skim)?;
        let parent = self.parent.as_deref();
        Some(Piece { parent, tag, text })
    }
}

/// What stands before and after a text in the line that it was read from, up to the id. Since the line is one object, and
/// nothing follows the id's value but the end of an object, the id is the line's own.
fn around<'a>(line: &'a str, text: &str) -> Option<(&'a str, &'a str)> {
    let from = (text.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let before = line.get(..from)?.strip_suffix('"')?;
    let rest = line.get(from..)?.strip_prefix(text)?.strip_prefix('"')?;
    let after = &rest[..rest.rfind(BEFORE_ID)? + BEFORE_ID.len()];
    ends_with_a_value(JsonScan::after(after, rest)?)?;
    Some((before, after))
}

/// There is one more value, and the end of the object.
fn ends_with_a_value(mut skim: JsonScan<'_>) -> Option<()> {
    skim.pass()?;
    skim.goes_on("}")?;
    skim.is_at_the_end().then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Claude, DIALECT};
    use super::*;
    use crate::event::TranscriptEvent;
    use crate::transcript::{Adapter, Opening};

    const LINE: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"one"}},"parent_tool_use_id":"t","uuid":"a"}"#;

    fn cast() -> LineTemplate {
        let mut mould = LineTemplate::default();
        let from = LINE.find("one").unwrap();
        mould.cast(LINE, Some("t"), Tag::Ai, &LINE[from..from + 3]);
        mould
    }

    #[test]
    fn a_line_that_differs_in_the_piece_and_the_id_is_of_the_mould() {
        let (mould, line) = (cast(), LINE.replace("one", "two\\n").replace("\"a\"", "7"));
        let expected = Piece {
            parent: Some("t"),
            tag: Tag::Ai,
            text: "two\n".into(),
        };
        assert_eq!(mould.piece(&line), Some(expected));
    }

    #[test]
    fn any_other_line_is_not() {
        let mould = cast();
        for (from, to) in [
            ("text_delta", "more_delta"),
            ("\"one\"", "null"),
            ("\"one\"", "\"one"),
            ("\"t\"", "null"),
            ("\"a\"}", "\"a\",\"is_error\":true}"),
            ("\"a\"}", "\"a\"}}"),
            ("\"a\"}", "\"a\""),
            ("\"a\"}", "}"),
        ] {
            let line = LINE.replacen(from, to, 1);
            assert_ne!(line, LINE);
            assert_eq!(mould.piece(&line), None, "{line}");
        }
        assert_eq!(LineTemplate::default().piece(LINE), None);
    }

    #[test]
    fn a_text_from_elsewhere_makes_none() {
        let mut mould = cast();
        mould.cast(LINE, None, Tag::Ai, "one");
        assert_eq!(mould.piece(LINE), None);
    }

    #[test]
    fn a_session_that_begins_in_such_a_line_begins_each_time() {
        let line = LINE.replacen('{', r#"{"subtype":"init","session_id":"s","#, 1);
        let mut claude = Claude::new(&Opening { prompt: "" }, DIALECT);
        let mut told = Vec::new();
        claude.feed(&line, &mut told);
        claude.feed(&line, &mut told);
        let begun = |event: &&TranscriptEvent| matches!(event, TranscriptEvent::Meta { .. });
        assert_eq!(told.iter().filter(begun).count(), 2);
    }

    fn lines() -> impl Strategy<Value = String> {
        let texts = prop_oneof![Just("x".to_owned()), "[a\\n\"\\\\é🦀]{0,4}"];
        let ends = prop::sample::select(vec![
            r#","uuid":"7"}"#,
            r#","uuid":{"uuid":8}}"#,
            r#","uuid":"9","is_error":true}"#,
            "}",
            "",
        ]);
        let kinds = prop::sample::select(vec!["text", "thinking", "signature"]);
        let whose = prop::sample::select(vec![
            ("s", "null"),
            ("s", "\"t\""),
            ("r", "null"),
            ("s", "null,\"subtype\":\"init\""),
        ]);
        (texts, kinds, whose, ends, any::<bool>()).prop_map(|(text, kind, (session, parent), end, piece_last)| {
            let text = serde_json::to_string(&text).unwrap();
            let event = format!(
                r#""event":{{"type":"content_block_delta","delta":{{"type":"{kind}_delta","{kind}":{text}}}}}"#
            );
            let rest = format!(r#""type":"stream_event","session_id":"{session}","parent_tool_use_id":{parent}"#);
            let (first, second) = if piece_last { (rest, event) } else { (event, rest) };
            format!("{{{first},{second}{end}")
        })
    }

    proptest! {
        #[test]
        fn what_is_held_against_a_mould_says_what_it_says_when_it_is_read(lines in prop::collection::vec(lines(), 0..12)) {
            let opening = Opening { prompt: "" };
            let [mut with, mut without] = [(); 2].map(|()| Claude::new(&opening, DIALECT));
            let [mut told, mut read] = [(); 2].map(|()| Vec::<TranscriptEvent>::new());
            for line in &lines {
                with.feed(line, &mut told);
                without.mould.forget();
                without.feed(line, &mut read);
            }
            prop_assert_eq!(told, read);
        }
    }
}
