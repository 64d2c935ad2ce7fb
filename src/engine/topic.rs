//! Topics: `<event topic="…">payload</event>` in what the assistant said. Finds them; routes nothing.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::event::TopicEvent;

const OPEN: &str = "<event";
const CLOSE: &str = "</event>";
/// Every message is looked through: made once.
static OPENINGS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(OPEN));
/// The inside of a tag is two short attributes. Looking further for its end would take, in a long text full of
/// beginnings, longer than the agent took to write it.
const LONGEST_TAG: usize = 4096;

/// How prompts show what an event looks like. An agent that echoes its prompt publishes nothing by it.
pub(crate) const EXAMPLE: &str = "<event topic=\"TOPIC\">PAYLOAD</event>";
const EXAMPLE_TOPIC: &str = "TOPIC";

/// The events in a text, in order. A tag without its end is no event.
pub(crate) fn events_in(text: &str) -> Vec<TopicEvent> {
    Tags { text, from: 0 }
        .map(|tag| tag.event)
        .filter(|event| event.topic != EXAMPLE_TOPIC)
        .collect()
}

/// The text with its events cut out.
pub(crate) fn without_events(text: &str) -> Cow<'_, str> {
    let mut rest = String::new();
    let mut end = 0;
    for tag in (Tags { text, from: 0 }) {
        rest.push_str(&text[end..tag.start]);
        end = tag.end;
    }
    if end == 0 {
        return Cow::Borrowed(text);
    }
    rest.push_str(&text[end..]);
    Cow::Owned(rest)
}

struct Tag {
    start: usize,
    end: usize,
    event: TopicEvent,
}

struct Tags<'a> {
    text: &'a str,
    from: usize,
}

impl Iterator for Tags<'_> {
    type Item = Tag;

    fn next(&mut self) -> Option<Tag> {
        loop {
            let start = self.from + OPENINGS.find(&self.text.as_bytes()[self.from..])?;
            self.from = start + OPEN.len();
            let rest = &self.text[self.from..];
            let inside = &rest[..rest.floor_char_boundary(LONGEST_TAG)];
            let Some((attributes, _)) = inside.split_once('>') else {
                continue;
            };
            let Some(topic) = attribute(attributes, "topic") else {
                continue;
            };
            let body = &rest[attributes.len() + 1..];
            // Where this one has no end, no later one has.
            let payload = &body[..body.find(CLOSE)?];
            let end = self.from + attributes.len() + 1 + payload.len() + CLOSE.len();
            self.from = end;
            let event = TopicEvent {
                topic: topic.to_owned(),
                target: attribute(attributes, "target").map(str::to_owned),
                payload: payload.trim().to_owned(),
            };
            return Some(Tag { start, end, event });
        }
    }
}

/// The value of `name="value"` (or in single quotes) in the inside of a tag; empty values are none.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes;
    while let Some(at) = rest.find(name) {
        let starts_a_word = rest[..at].ends_with(char::is_whitespace);
        rest = &rest[at + name.len()..];
        let Some(value) = rest.trim_start().strip_prefix('=').map(str::trim_start) else {
            continue;
        };
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        if let (true, Some(quote)) = (starts_a_word, quote) {
            return value[1..].split(quote).next().filter(|value| !value.is_empty());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(topic: &str, target: Option<&str>, payload: &str) -> TopicEvent {
        TopicEvent {
            topic: topic.into(),
            target: target.map(Into::into),
            payload: payload.into(),
        }
    }

    #[test]
    fn events_are_found_with_their_attributes_in_any_order() {
        let text = "a <event topic=\"plan.ready\">do it</event> b\n<event target='qa' topic='x'>\n two\nlines </event>";
        let expected = [
            event("plan.ready", None, "do it"),
            event("x", Some("qa"), "two\nlines"),
        ];
        assert_eq!(events_in(text), expected);
        assert_eq!(without_events(text), "a  b\n");
    }

    #[test]
    fn what_is_no_event_is_left_alone() {
        for text in [
            "<event>x</event>",
            "<event topic=\"\">x</event>",
            "<event topic=\"a\">open",
            "<eventtopic=\"a\"",
            "<event",
        ] {
            assert_eq!(events_in(text), [], "{text}");
            assert_eq!(without_events(text), text);
        }
    }

    #[test]
    fn a_long_text_full_of_beginnings_is_read_in_one_go() {
        // Were each beginning searched to the end of the text, this would take minutes.
        for beginning in ["<event topic=\"a\">", "<event topic=\"a\" "] {
            let text = beginning.repeat((4 << 20) / beginning.len());
            assert_eq!(events_in(&text), []);
        }
    }

    #[test]
    fn a_broken_tag_does_not_hide_the_next_one() {
        assert_eq!(
            events_in("<event oops>\n<event topic=\"a\">b</event>"),
            [event("a", None, "b")]
        );
    }
}
