//! Finds topic events, `<event topic="…">payload</event>`, in the assistant's text.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::event::TopicEvent;

use super::marker::{CodeFence, UnclosedFence};

const OPEN: &str = "<event";
const CLOSE: &str = "</event>";
/// Built once, because every message is searched.
static OPEN_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(OPEN));
/// A tag has two short attributes. The bound keeps a long text full of unclosed tags from taking quadratic time.
const MAX_TAG_BYTES: usize = 4096;

/// The example shown in prompts. Its topic is ignored, so an agent that echoes its prompt publishes nothing.
pub(crate) const EXAMPLE: &str = "<event topic=\"TOPIC\">PAYLOAD</event>";
const EXAMPLE_TOPIC: &str = "TOPIC";

/// The events in a text, in order. Unclosed tags, and tags in a code fence, are ignored.
pub(crate) fn events_in(text: &str, unclosed: UnclosedFence) -> Vec<TopicEvent> {
    let mut events = Vec::new();
    let mut fences = FenceScanner::default();
    let mut end = 0;
    for tag in (EventTags { text, position: 0 }) {
        fences.scan(&text[end..tag.start]);
        end = tag.end;
        if tag.event.topic != EXAMPLE_TOPIC {
            fences.add(tag.event, &mut events);
        }
    }
    if end > 0 {
        fences.scan(&text[end..]);
        events.extend(fences.at_end(unclosed));
    }
    events
}

/// Follows the code fences of a text. Payloads are no part of the text.
#[derive(Default)]
struct FenceScanner {
    open: Option<CodeFence>,
    /// Events since the open fence began.
    fenced: Vec<TopicEvent>,
}

impl FenceScanner {
    fn scan(&mut self, text: &str) {
        for line in text.lines() {
            match &self.open {
                None => self.open = CodeFence::opening(line),
                Some(fence) if fence.is_closed_by(line) => {
                    self.open = None;
                    self.fenced.clear();
                }
                Some(_) => {}
            }
        }
    }

    fn add(&mut self, event: TopicEvent, events: &mut Vec<TopicEvent>) {
        match self.open {
            None => events.push(event),
            Some(_) => self.fenced.push(event),
        }
    }

    fn at_end(self, unclosed: UnclosedFence) -> Vec<TopicEvent> {
        match unclosed {
            UnclosedFence::Ignored => self.fenced,
            UnclosedFence::ExtendsToEnd => Vec::new(),
        }
    }
}

/// The text without its events.
pub(crate) fn without_events(text: &str) -> Cow<'_, str> {
    let mut rest = String::new();
    let mut end = 0;
    for tag in (EventTags { text, position: 0 }) {
        rest.push_str(&text[end..tag.start]);
        end = tag.end;
    }
    if end == 0 {
        return Cow::Borrowed(text);
    }
    rest.push_str(&text[end..]);
    Cow::Owned(rest)
}

struct EventTag {
    start: usize,
    end: usize,
    event: TopicEvent,
}

struct EventTags<'a> {
    text: &'a str,
    position: usize,
}

impl Iterator for EventTags<'_> {
    type Item = EventTag;

    fn next(&mut self) -> Option<EventTag> {
        loop {
            let start = self.position + OPEN_FINDER.find(&self.text.as_bytes()[self.position..])?;
            self.position = start + OPEN.len();
            let rest = &self.text[self.position..];
            let inside = &rest[..rest.floor_char_boundary(MAX_TAG_BYTES)];
            let Some((attributes, _)) = inside.split_once('>') else {
                continue;
            };
            let Some(topic) = attribute(attributes, "topic") else {
                continue;
            };
            let body = &rest[attributes.len() + 1..];
            // Without a closing tag here, no later event is closed either.
            let payload = &body[..body.find(CLOSE)?];
            let end = self.position + attributes.len() + 1 + payload.len() + CLOSE.len();
            self.position = end;
            let event = TopicEvent {
                topic: topic.to_owned(),
                target: attribute(attributes, "target").map(str::to_owned),
                payload: payload.trim().to_owned(),
            };
            return Some(EventTag { start, end, event });
        }
    }
}

/// The value of `name="value"` or `name='value'` in a tag; `None` if it is empty.
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

    fn events(text: &str) -> Vec<TopicEvent> {
        events_in(text, UnclosedFence::ExtendsToEnd)
    }

    #[test]
    fn events_in_code_fences_are_ignored() {
        let shown = "Emit it so:\n```xml\n<event topic=\"a\">1</event>\n```\n<event topic=\"b\">```\n2</event>\n\
                     <event topic=\"c\">3</event>";
        assert_eq!(events(shown), [event("b", None, "```\n2"), event("c", None, "3")]);
        let unclosed = "```\n<event topic=\"a\">1</event>";
        assert_eq!(events(unclosed), []);
        assert_eq!(
            events_in(unclosed, UnclosedFence::Ignored),
            [event("a", None, "1")]
        );
    }

    fn event(topic: &str, target: Option<&str>, payload: &str) -> TopicEvent {
        TopicEvent {
            topic: topic.into(),
            target: target.map(Into::into),
            payload: payload.into(),
        }
    }

    #[test]
    fn attributes_may_appear_in_any_order() {
        let text = "a <event topic=\"plan.ready\">do it</event> b\n<event target='qa' topic='x'>\n two\nlines </event>";
        let expected = [
            event("plan.ready", None, "do it"),
            event("x", Some("qa"), "two\nlines"),
        ];
        assert_eq!(events(text), expected);
        assert_eq!(without_events(text), "a  b\n");
    }

    #[test]
    fn malformed_events_are_ignored() {
        for text in [
            "<event>x</event>",
            "<event topic=\"\">x</event>",
            "<event topic=\"a\">open",
            "<eventtopic=\"a\"",
            "<event",
        ] {
            assert_eq!(events(text), [], "{text}");
            assert_eq!(without_events(text), text);
        }
    }

    #[test]
    fn many_unclosed_tags_take_linear_time() {
        // With quadratic time this would take minutes.
        for beginning in ["<event topic=\"a\">", "<event topic=\"a\" "] {
            let text = beginning.repeat((4 << 20) / beginning.len());
            assert_eq!(events(&text), []);
        }
    }

    #[test]
    fn broken_tag_does_not_hide_the_next_one() {
        assert_eq!(
            events("<event oops>\n<event topic=\"a\">b</event>"),
            [event("a", None, "b")]
        );
    }
}
