//! The shapes of Claude's stream, flat and borrowed. Whatever may be missing, is optional.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::InputTokens;
use crate::event::{Tag, Usage};
use crate::transcript::common::{Content, Field, JsonScan, Quoted, Scanned, list, object, scan_raw, string};

/// What most lines have: they are read in one pass, so this is kept small. A tagged enum would have to buffer each line.
#[derive(Debug, Default)]
pub(in crate::transcript) struct Line<'a> {
    pub(super) kind: Field<'a>,
    pub(super) subtype: Field<'a>,
    pub(super) session_id: Field<'a>,
    pub(super) parent_tool_use_id: Field<'a>,
    pub(super) message: Message<'a>,
    /// What `stream_event` wraps: most lines of a session are one of these.
    pub(super) event: Streamed<'a>,
    pub(super) is_replay: Field<'a>,
    pub(super) is_synthetic: Field<'a>,
    pub(super) is_error: Field<'a>,
}

impl<'a> Scanned<'a> for Line<'a> {
    fn take(&mut self, name: &str, value: &mut JsonScan<'a>) -> Option<()> {
        match name {
            "type" => self.kind = value.field()?,
            "subtype" => self.subtype = value.field()?,
            "session_id" => self.session_id = value.field()?,
            "parent_tool_use_id" => self.parent_tool_use_id = value.field()?,
            "message" => value.nested(&mut self.message)?,
            "event" => value.nested(&mut self.event)?,
            "isReplay" => self.is_replay = value.field()?,
            "isSynthetic" => self.is_synthetic = value.field()?,
            "is_error" => self.is_error = value.field()?,
            _ => drop(value.pass()?),
        }
        Some(())
    }
}

/// What a line of the rarer kinds has: the fields of all of them in one struct.
#[derive(Debug, Default)]
pub(super) struct Event<'a> {
    pub(super) kind: Field<'a>,
    pub(super) subtype: Field<'a>,
    pub(super) message: Option<&'a RawValue>,
    pub(super) event: Option<&'a RawValue>,
    pub(super) usage: Tokens<'a>,
    /// A word where an assistant's message is an API error, an object in an `error` event.
    pub(super) error: Option<&'a RawValue>,
    pub(super) result: Printed<'a>,
    pub(super) errors: Option<&'a RawValue>,
    pub(super) permission_denials: Option<&'a RawValue>,
    pub(super) rate_limit_info: Option<&'a RawValue>,
    pub(super) model: Field<'a>,
    pub(super) claude_code_version: Field<'a>,
    pub(super) is_error: Field<'a>,
    pub(super) api_error_status: Field<'a>,
    pub(super) terminal_reason: Field<'a>,
    pub(super) num_turns: Field<'a>,
    pub(super) duration_ms: Field<'a>,
    pub(super) total_cost_usd: Field<'a>,
    pub(super) attempt: Field<'a>,
    pub(super) max_retries: Field<'a>,
    pub(super) retry_delay_ms: Field<'a>,
    pub(super) error_status: Field<'a>,
    pub(super) status: Field<'a>,
    pub(super) text: Field<'a>,
    pub(super) content: Field<'a>,
    pub(super) summary: Field<'a>,
}

impl<'a> Scanned<'a> for Event<'a> {
    fn take(&mut self, name: &str, value: &mut JsonScan<'a>) -> Option<()> {
        match name {
            "type" => self.kind = value.field()?,
            "subtype" => self.subtype = value.field()?,
            "message" => self.message = value.raw()?,
            "event" => self.event = value.raw()?,
            "usage" => value.nested(&mut self.usage)?,
            "error" => self.error = value.raw()?,
            "result" => self.result = Printed::scan(value)?,
            "errors" => self.errors = value.raw()?,
            "permission_denials" => self.permission_denials = value.raw()?,
            "rate_limit_info" => self.rate_limit_info = value.raw()?,
            "model" => self.model = value.field()?,
            "claude_code_version" => self.claude_code_version = value.field()?,
            "is_error" => self.is_error = value.field()?,
            "api_error_status" => self.api_error_status = value.field()?,
            "terminal_reason" => self.terminal_reason = value.field()?,
            "num_turns" => self.num_turns = value.field()?,
            "duration_ms" => self.duration_ms = value.field()?,
            "total_cost_usd" => self.total_cost_usd = value.field()?,
            "attempt" => self.attempt = value.field()?,
            "max_retries" => self.max_retries = value.field()?,
            "retry_delay_ms" => self.retry_delay_ms = value.field()?,
            "error_status" => self.error_status = value.field()?,
            "status" => self.status = value.field()?,
            "text" => self.text = value.field()?,
            "content" => self.content = value.field()?,
            "summary" => self.summary = value.field()?,
            _ => drop(value.pass()?),
        }
        Some(())
    }
}

/// One event of the model's own stream.
#[derive(Debug, Default)]
pub(super) struct Streamed<'a> {
    pub(super) kind: Field<'a>,
    pub(super) delta: Delta<'a>,
    pub(super) message: Option<&'a RawValue>,
    pub(super) usage: Tokens<'a>,
}

impl Streamed<'_> {
    /// A piece of what the model says or thinks. Of a tool's input, of signatures and citations the whole block follows.
    pub(super) fn piece(&self) -> Option<(Tag, &str)> {
        let (tag, text) = match (self.kind.text()?, self.delta.kind.text()?) {
            ("content_block_delta", "text_delta") => (Tag::Ai, &self.delta.text),
            ("content_block_delta", "thinking_delta") => (Tag::Think, &self.delta.thinking),
            _ => return None,
        };
        text.text().map(|text| (tag, text))
    }
}

impl<'a> Scanned<'a> for Streamed<'a> {
    fn take(&mut self, name: &str, value: &mut JsonScan<'a>) -> Option<()> {
        match name {
            "type" => self.kind = value.field()?,
            "delta" => value.nested(&mut self.delta)?,
            "message" => self.message = value.raw()?,
            "usage" => value.nested(&mut self.usage)?,
            _ => drop(value.pass()?),
        }
        Some(())
    }
}

/// A piece of a block.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) kind: Field<'a>,
    pub(super) text: Field<'a>,
    pub(super) thinking: Field<'a>,
}

impl<'a> Scanned<'a> for Delta<'a> {
    fn take(&mut self, name: &str, value: &mut JsonScan<'a>) -> Option<()> {
        match name {
            "type" => self.kind = value.field()?,
            "text" => self.text = value.field()?,
            "thinking" => self.thinking = value.field()?,
            _ => drop(value.pass()?),
        }
        Some(())
    }
}

impl Event<'_> {
    /// Words for the user in an event of an unknown kind.
    pub(super) fn words(&self) -> Option<String> {
        [&self.text, &self.content, &self.summary]
            .iter()
            .find_map(|field| field.words().map(str::to_owned))
            .or_else(|| {
                [self.message, self.error]
                    .into_iter()
                    .find_map(string)
                    .or_else(|| self.result.words())
                    .map(Cow::into_owned)
                    .filter(|words| !words.is_empty())
            })
    }
}

#[derive(Debug, Default)]
pub(in crate::transcript) struct Message<'a> {
    pub(super) id: Field<'a>,
    pub(super) model: Field<'a>,
    pub(in crate::transcript) content: Content<'a, Block<'a>>,
    pub(super) usage: Tokens<'a>,
}

impl<'a> Scanned<'a> for Message<'a> {
    fn take(&mut self, name: &str, value: &mut JsonScan<'a>) -> Option<()> {
        match name {
            "id" => self.id = value.field()?,
            "model" => self.model = value.field()?,
            "content" => self.content = value.content()?,
            "usage" => value.nested(&mut self.usage)?,
            _ => drop(value.pass()?),
        }
        Some(())
    }

    /// ralphex's wrappers give a message as what it says.
    fn of_words(words: Cow<'a, str>) -> Self {
        Self {
            content: Content::Words(words),
            ..Self::default()
        }
    }
}

#[derive(Debug, Default)]
pub(in crate::transcript) struct Block<'a> {
    pub(in crate::transcript) kind: Field<'a>,
    pub(in crate::transcript) text: Field<'a>,
    pub(super) thinking: Field<'a>,
    pub(super) id: Field<'a>,
    pub(super) name: Field<'a>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) tool_use_id: Field<'a>,
    pub(super) content: Printed<'a>,
    pub(super) is_error: Field<'a>,
}

impl<'a> Scanned<'a> for Block<'a> {
    fn take(&mut self, name: &str, value: &mut JsonScan<'a>) -> Option<()> {
        match name {
            "type" => self.kind = value.field()?,
            "text" => self.text = value.field()?,
            "thinking" => self.thinking = value.field()?,
            "id" => self.id = value.field()?,
            "name" => self.name = value.field()?,
            "input" => self.input = value.raw()?,
            "tool_use_id" => self.tool_use_id = value.field()?,
            "content" => self.content = Printed::scan(value)?,
            "is_error" => self.is_error = value.field()?,
            _ => drop(value.pass()?),
        }
        Some(())
    }
}

/// Words, most often. They may be many, and are read only when somebody wants them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Printed<'a> {
    Words(Quoted<'a>),
    Other(Option<&'a RawValue>),
}

impl Default for Printed<'_> {
    fn default() -> Self {
        Self::Other(None)
    }
}

impl<'a> Printed<'a> {
    fn scan(value: &mut JsonScan<'a>) -> Option<Self> {
        Some(if value.is_words() {
            Self::Words(value.string()?)
        } else {
            Self::Other(value.raw()?)
        })
    }

    /// The words, unless it is something else.
    pub(super) fn words(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Words(words) => Some(words.text()),
            Self::Other(_) => None,
        }
    }

    /// The text that a tool printed.
    pub(super) fn text(self) -> Cow<'a, str> {
        match self {
            Self::Words(_) => self.words().unwrap_or_default(),
            Self::Other(raw) => result_text(raw),
        }
    }
}

/// A message whose blocks are left as they came: one that nobody knows is shown like that.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AsItCame<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// One of a message's blocks as it came.
pub(in crate::transcript) fn block_as_it_came(message: Option<&RawValue>, index: usize) -> String {
    let message: AsItCame<'_> = object(message);
    let block = list(message.content).get(index).map(|raw| raw.get());
    block.unwrap_or_default().to_owned()
}

/// The words of a message that are no model's.
pub(super) fn words_of(message: Option<&RawValue>) -> Cow<'_, str> {
    result_text(object::<AsItCame<'_>>(message).content)
}

/// What the model was given, and what it said.
#[derive(Debug, Default)]
pub(super) struct Tokens<'a> {
    input: Field<'a>,
    cache_write: Field<'a>,
    cache_read: Field<'a>,
    output: Field<'a>,
}

impl<'a> Scanned<'a> for Tokens<'a> {
    fn take(&mut self, name: &str, value: &mut JsonScan<'a>) -> Option<()> {
        match name {
            "input_tokens" | "inputTokens" => self.input = value.field()?,
            "cache_creation_input_tokens" | "cacheWriteTokens" => self.cache_write = value.field()?,
            "cache_read_input_tokens" | "cacheReadTokens" => self.cache_read = value.field()?,
            "output_tokens" | "outputTokens" => self.output = value.field()?,
            _ => drop(value.pass()?),
        }
        Some(())
    }
}

/// Whatever the program counts as input, `prompt_tokens` is all of it.
pub(super) fn usage(tokens: &Tokens<'_>, counted: InputTokens) -> Usage {
    let cached = tokens.cache_read.count();
    let written = tokens.cache_write.count();
    let input = match counted {
        InputTokens::BesideCache => [tokens.input.count(), cached, written],
        InputTokens::All => [tokens.input.count(), None, None],
    };
    Usage {
        prompt_tokens: input
            .iter()
            .any(Option::is_some)
            .then(|| input.into_iter().flatten().fold(0, u64::saturating_add)),
        completion_tokens: tokens.output.count(),
        cached_tokens: cached,
        cache_write_tokens: written,
        ..Usage::default()
    }
}

/// The text of a tool's result: a string, or a list in which other things than text are named.
fn result_text(raw: Option<&RawValue>) -> Cow<'_, str> {
    if let Some(text) = string(raw) {
        return text;
    }
    let parts: Vec<String> = list(raw)
        .into_iter()
        .map(|item| {
            let block: Block<'_> = scan_raw(Some(item));
            match (block.kind.text(), block.text.text()) {
                (_, Some(text)) => text.to_owned(),
                (Some(kind), None) => format!("[{kind}]"),
                (None, None) => string(Some(item)).map_or_else(|| item.get().to_owned(), Into::into),
            }
        })
        .collect();
    if parts.is_empty() {
        // Neither a string nor a list: shown as it stands rather than lost.
        return raw
            .map(RawValue::get)
            .filter(|text| *text != "[]")
            .unwrap_or_default()
            .into();
    }
    parts.join("\n").into()
}
