//! The JSON types of Claude's stream. They are flat and borrowed, and all fields are optional.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::InputTokens;
use crate::event::{Tag, Usage};
use crate::transcript::common::{
    Content, Field, FromScan, JsonScanner, Quoted, list, object, scan_raw, string,
};

/// The fields of most lines. The struct is small because every line is scanned into it; a tagged enum would buffer each
/// line.
#[derive(Debug, Default)]
pub(in crate::transcript) struct ClaudeLine<'a> {
    pub(super) kind: Field<'a>,
    pub(super) subtype: Field<'a>,
    pub(super) session_id: Field<'a>,
    pub(super) parent_tool_use_id: Field<'a>,
    pub(super) message: ClaudeMessage<'a>,
    /// The content of a `stream_event`, the most frequent type.
    pub(super) event: ClaudeStreamEvent<'a>,
    pub(super) is_replay: Field<'a>,
    pub(super) is_synthetic: Field<'a>,
    pub(super) is_error: Field<'a>,
}

impl<'a> FromScan<'a> for ClaudeLine<'a> {
    fn read_field(&mut self, name: &str, value: &mut JsonScanner<'a>) -> Option<()> {
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
            _ => drop(value.skip_value()?),
        }
        Some(())
    }
}

/// All fields of the rare line types in one struct.
#[derive(Debug, Default)]
pub(super) struct FullClaudeLine<'a> {
    pub(super) kind: Field<'a>,
    pub(super) subtype: Field<'a>,
    pub(super) message: Option<&'a RawValue>,
    pub(super) event: Option<&'a RawValue>,
    pub(super) usage: ClaudeTokens<'a>,
    /// An error code in an assistant message, an object in an `error` event.
    pub(super) error: Option<&'a RawValue>,
    pub(super) result: LazyContent<'a>,
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
    /// Tokens and costs of all models and subagents since the previous result.
    pub(super) model_usage_since_last_result: Option<ModelUsages>,
    pub(super) stop_reason: Field<'a>,
    /// The running background tasks.
    pub(super) tasks: Option<&'a RawValue>,
    pub(super) summary_is_report: Field<'a>,
    pub(super) attempt: Field<'a>,
    pub(super) max_retries: Field<'a>,
    pub(super) retry_delay_ms: Field<'a>,
    pub(super) error_status: Field<'a>,
    pub(super) status: Field<'a>,
    pub(super) text: Field<'a>,
    pub(super) content: Field<'a>,
    pub(super) summary: Field<'a>,
}

impl<'a> FromScan<'a> for FullClaudeLine<'a> {
    fn read_field(&mut self, name: &str, value: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "type" => self.kind = value.field()?,
            "subtype" => self.subtype = value.field()?,
            "message" => self.message = value.raw()?,
            "event" => self.event = value.raw()?,
            "usage" => value.nested(&mut self.usage)?,
            "error" => self.error = value.raw()?,
            "result" => self.result = LazyContent::scan(value)?,
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
            "model_usage_since_last_result" => {
                value.nested(self.model_usage_since_last_result.get_or_insert_default())?;
            }
            "stop_reason" => self.stop_reason = value.field()?,
            "tasks" => self.tasks = value.raw()?,
            "summary_is_report" => self.summary_is_report = value.field()?,
            "attempt" => self.attempt = value.field()?,
            "max_retries" => self.max_retries = value.field()?,
            "retry_delay_ms" => self.retry_delay_ms = value.field()?,
            "error_status" => self.error_status = value.field()?,
            "status" => self.status = value.field()?,
            "text" => self.text = value.field()?,
            "content" => self.content = value.field()?,
            "summary" => self.summary = value.field()?,
            _ => drop(value.skip_value()?),
        }
        Some(())
    }
}

/// An event of the model's stream.
#[derive(Debug, Default)]
pub(super) struct ClaudeStreamEvent<'a> {
    pub(super) kind: Field<'a>,
    pub(super) delta: ClaudeDelta<'a>,
    pub(super) message: Option<&'a RawValue>,
    pub(super) usage: ClaudeTokens<'a>,
}

impl ClaudeStreamEvent<'_> {
    /// The delta of an answer or of reasoning. Other deltas are ignored, because the whole block follows.
    pub(super) fn text_delta(&self) -> Option<(Tag, &str)> {
        let (tag, text) = match (self.kind.text()?, self.delta.kind.text()?) {
            ("content_block_delta", "text_delta") => (Tag::Ai, &self.delta.text),
            ("content_block_delta", "thinking_delta") => (Tag::Think, &self.delta.thinking),
            _ => return None,
        };
        text.text().map(|text| (tag, text))
    }
}

impl<'a> FromScan<'a> for ClaudeStreamEvent<'a> {
    fn read_field(&mut self, name: &str, value: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "type" => self.kind = value.field()?,
            "delta" => value.nested(&mut self.delta)?,
            "message" => self.message = value.raw()?,
            "usage" => value.nested(&mut self.usage)?,
            _ => drop(value.skip_value()?),
        }
        Some(())
    }
}

/// A delta of a block.
#[derive(Debug, Default)]
pub(super) struct ClaudeDelta<'a> {
    pub(super) kind: Field<'a>,
    pub(super) text: Field<'a>,
    pub(super) thinking: Field<'a>,
}

impl<'a> FromScan<'a> for ClaudeDelta<'a> {
    fn read_field(&mut self, name: &str, value: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "type" => self.kind = value.field()?,
            "text" => self.text = value.field()?,
            "thinking" => self.thinking = value.field()?,
            _ => drop(value.skip_value()?),
        }
        Some(())
    }
}

impl FullClaudeLine<'_> {
    /// The text of an event of an unknown type.
    pub(super) fn display_text(&self) -> Option<String> {
        [&self.text, &self.content, &self.summary]
            .iter()
            .find_map(|field| field.non_empty().map(str::to_owned))
            .or_else(|| {
                [self.message, self.error]
                    .into_iter()
                    .find_map(string)
                    .or_else(|| self.result.as_text())
                    .map(Cow::into_owned)
                    .filter(|text| !text.is_empty())
            })
    }
}

#[derive(Debug, Default)]
pub(in crate::transcript) struct ClaudeMessage<'a> {
    pub(super) id: Field<'a>,
    pub(super) model: Field<'a>,
    pub(in crate::transcript) content: Content<'a, ClaudeBlock<'a>>,
    pub(super) usage: ClaudeTokens<'a>,
    /// Absent while the message is not complete.
    pub(super) stop_reason: Field<'a>,
}

impl<'a> FromScan<'a> for ClaudeMessage<'a> {
    fn read_field(&mut self, name: &str, value: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "id" => self.id = value.field()?,
            "model" => self.model = value.field()?,
            "content" => self.content = value.content()?,
            "usage" => value.nested(&mut self.usage)?,
            "stop_reason" => self.stop_reason = value.field()?,
            _ => drop(value.skip_value()?),
        }
        Some(())
    }

    /// ralphex's wrappers send the text in place of the message object.
    fn from_text(text: Cow<'a, str>) -> Self {
        Self {
            content: Content::Text(text),
            ..Self::default()
        }
    }
}

#[derive(Debug, Default)]
pub(in crate::transcript) struct ClaudeBlock<'a> {
    pub(in crate::transcript) kind: Field<'a>,
    pub(in crate::transcript) text: Field<'a>,
    pub(super) thinking: Field<'a>,
    pub(super) id: Field<'a>,
    pub(super) name: Field<'a>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) tool_use_id: Field<'a>,
    pub(super) content: LazyContent<'a>,
    pub(super) is_error: Field<'a>,
}

impl<'a> FromScan<'a> for ClaudeBlock<'a> {
    fn read_field(&mut self, name: &str, value: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "type" => self.kind = value.field()?,
            "text" => self.text = value.field()?,
            "thinking" => self.thinking = value.field()?,
            "id" => self.id = value.field()?,
            "name" => self.name = value.field()?,
            "input" => self.input = value.raw()?,
            "tool_use_id" => self.tool_use_id = value.field()?,
            "content" => self.content = LazyContent::scan(value)?,
            "is_error" => self.is_error = value.field()?,
            _ => drop(value.skip_value()?),
        }
        Some(())
    }
}

/// Usually a text. It may be long, so it is unescaped only on demand.
#[derive(Debug, Clone, Copy)]
pub(super) enum LazyContent<'a> {
    Text(Quoted<'a>),
    Other(Option<&'a RawValue>),
}

impl Default for LazyContent<'_> {
    fn default() -> Self {
        Self::Other(None)
    }
}

impl<'a> LazyContent<'a> {
    fn scan(value: &mut JsonScanner<'a>) -> Option<Self> {
        Some(if value.is_string() {
            Self::Text(value.string()?)
        } else {
            Self::Other(value.raw()?)
        })
    }

    /// The text, if the value is a string.
    pub(super) fn as_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text.text()),
            Self::Other(_) => None,
        }
    }

    /// The output of a tool as text.
    pub(super) fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(_) => self.as_text().unwrap_or_default(),
            Self::Other(raw) => result_text(raw),
        }
    }
}

/// A message with unparsed blocks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawMessage<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// The JSON text of one block of a message.
pub(in crate::transcript) fn raw_block(message: Option<&RawValue>, index: usize) -> String {
    let message: RawMessage<'_> = object(message);
    let block = list(message.content).get(index).map(|raw| raw.get());
    block.unwrap_or_default().to_owned()
}

/// The text of a message that Claude Code generated.
pub(super) fn message_text(message: Option<&RawValue>) -> Cow<'_, str> {
    result_text(object::<RawMessage<'_>>(message).content)
}

/// Token counts.
#[derive(Debug, Default)]
pub(super) struct ClaudeTokens<'a> {
    input: Field<'a>,
    cache_write: Field<'a>,
    cache_read: Field<'a>,
    output: Field<'a>,
}

impl<'a> FromScan<'a> for ClaudeTokens<'a> {
    fn read_field(&mut self, name: &str, value: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "input_tokens" | "inputTokens" => self.input = value.field()?,
            "cache_creation_input_tokens" | "cacheWriteTokens" | "cacheCreationInputTokens" => {
                self.cache_write = value.field()?;
            }
            "cache_read_input_tokens" | "cacheReadTokens" | "cacheReadInputTokens" => {
                self.cache_read = value.field()?;
            }
            "output_tokens" | "outputTokens" => self.output = value.field()?,
            _ => drop(value.skip_value()?),
        }
        Some(())
    }
}

/// The sum of an object that has tokens and costs by model.
#[derive(Debug, Default)]
pub(super) struct ModelUsages {
    pub(super) sum: Usage,
}

impl<'a> FromScan<'a> for ModelUsages {
    fn read_field(&mut self, _model: &str, value: &mut JsonScanner<'a>) -> Option<()> {
        let mut model = ModelUsage::default();
        value.nested(&mut model)?;
        self.sum.add(&Usage {
            cost_usd: model.cost.money(),
            ..usage(&model.tokens, InputTokens::ExcludingCache)
        });
        Some(())
    }
}

/// Tokens and cost of one model.
#[derive(Debug, Default)]
struct ModelUsage<'a> {
    tokens: ClaudeTokens<'a>,
    cost: Field<'a>,
}

impl<'a> FromScan<'a> for ModelUsage<'a> {
    fn read_field(&mut self, name: &str, value: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "costUSD" => self.cost = value.field()?,
            name => self.tokens.read_field(name, value)?,
        }
        Some(())
    }
}

/// A background task.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BackgroundTask<'a> {
    #[serde(borrow)]
    description: Field<'a>,
    #[serde(borrow)]
    task_type: Field<'a>,
}

/// The descriptions of background tasks.
pub(super) fn task_descriptions(tasks: Option<&RawValue>) -> Vec<String> {
    list(tasks)
        .into_iter()
        .map(|raw| {
            let task: BackgroundTask<'_> = object(Some(raw));
            let text = task.description.non_empty().or(task.task_type.non_empty());
            text.unwrap_or("a task").to_owned()
        })
        .collect()
}

/// Converts token counts. `prompt_tokens` always includes cached tokens.
pub(super) fn usage(tokens: &ClaudeTokens<'_>, counted: InputTokens) -> Usage {
    let cached = tokens.cache_read.count();
    let written = tokens.cache_write.count();
    let input = match counted {
        InputTokens::ExcludingCache => [tokens.input.count(), cached, written],
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

/// The text of a tool result: a string, or a list in which other items than text are replaced by their type.
fn result_text(raw: Option<&RawValue>) -> Cow<'_, str> {
    if let Some(text) = string(raw) {
        return text;
    }
    let parts: Vec<String> = list(raw)
        .into_iter()
        .map(|item| {
            let block: ClaudeBlock<'_> = scan_raw(Some(item));
            match (block.kind.text(), block.text.text()) {
                (_, Some(text)) => text.to_owned(),
                (Some(kind), None) => format!("[{kind}]"),
                (None, None) => string(Some(item)).map_or_else(|| item.get().to_owned(), Into::into),
            }
        })
        .collect();
    if parts.is_empty() {
        // Neither a string nor a list: keep the JSON text.
        return raw
            .map(RawValue::get)
            .filter(|text| *text != "[]")
            .unwrap_or_default()
            .into();
    }
    parts.join("\n").into()
}
