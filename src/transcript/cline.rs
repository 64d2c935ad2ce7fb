//! `cline`: the JSON events of `cline --json`. Texts are streamed and repeated at their end; `run_result` is the terminal event.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::common::{
    Assembler, EventStream, Field, Tools, classify_error, list, object, parse, push_unknown, push_unreadable,
    string,
};
use super::{Capabilities, Format};
use crate::event::{
    CostSource, ErrorClass, Json, Meta, Tag, ToolEnd, ToolStart, ToolStatus, TranscriptEvent, Usage,
    UsageScope, Usd,
};

pub(super) const FORMAT: Format = Format {
    name: "cline",
    capabilities: Capabilities {
        roles: true,
        messages: true,
        tools: true,
        usage: true,
        costs: true,
        sessions: true,
        prompt_hiding: true,
        terminal_event: true,
    },
    open: |_| Box::<Cline>::default(),
};

#[derive(Default)]
struct Cline {
    session: Option<String>,
    assembler: Assembler,
    tools: Tools,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClineLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow, rename = "taskId")]
    task_id: Field<'a>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow, rename = "finishReason")]
    finish_reason: Field<'a>,
    #[serde(borrow)]
    iterations: Field<'a>,
    #[serde(borrow, rename = "aggregateUsage")]
    aggregate_usage: Option<&'a RawValue>,
    #[serde(borrow, rename = "durationMs")]
    duration_ms: Field<'a>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClineEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow, rename = "contentType")]
    content_type: Field<'a>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    reasoning: Field<'a>,
    #[serde(borrow, rename = "toolName")]
    tool_name: Field<'a>,
    #[serde(borrow, rename = "toolCallId")]
    tool_call_id: Field<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    /// An object in an `error` event, a text at the end of a tool.
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, rename = "errorClass")]
    error_class: Field<'a>,
    #[serde(borrow, rename = "durationMs")]
    duration_ms: Field<'a>,
    #[serde(borrow, rename = "inputTokens")]
    input_tokens: Field<'a>,
    #[serde(borrow, rename = "outputTokens")]
    output_tokens: Field<'a>,
    #[serde(borrow, rename = "cacheReadTokens")]
    cache_read_tokens: Field<'a>,
    #[serde(borrow, rename = "cacheWriteTokens")]
    cache_write_tokens: Field<'a>,
    #[serde(borrow, rename = "totalCost")]
    total_cost: Field<'a>,
}

/// An output of a tool, or an error object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ClineOutput<'a> {
    #[serde(borrow)]
    result: Field<'a>,
    #[serde(borrow)]
    error: Field<'a>,
    #[serde(borrow)]
    success: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}

impl EventStream for Cline {
    type Event<'a> = ClineLine<'a>;

    fn parse(text: &str) -> Result<ClineLine<'_>, String> {
        parse(text)
    }

    fn read(&mut self, line: &ClineLine<'_>, source: &str, out: &mut Vec<TranscriptEvent>) {
        self.report_session(line, out);
        match line.kind.text() {
            Some("agent_event") => self.read_event(&object(line.event), out),
            Some("run_result") => self.read_result(line, out),
            Some("hook_event") => {}
            Some(unknown) => {
                let text = line.message.non_empty().or(line.text.non_empty());
                push_unknown(unknown, text, out);
            }
            None => push_unreadable(source, "`type` is missing".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }
}

impl Cline {
    fn report_session(&mut self, line: &ClineLine<'_>, out: &mut Vec<TranscriptEvent>) {
        let current = self.session.as_deref();
        if let Some(id) = line.task_id.non_empty().filter(|id| current != Some(id)) {
            self.session = Some(id.to_owned());
            out.push(TranscriptEvent::meta(Meta::Session {
                session_id: id.to_owned(),
                model: None,
                version: None,
            }));
        }
    }

    fn read_event(&mut self, event: &ClineEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = event.text.text().unwrap_or_default();
        let reasoning = event.reasoning.text().unwrap_or_default();
        match (event.kind.text(), event.content_type.text()) {
            (Some("content_start"), Some("text")) => self.assembler.push_delta(None, Tag::Ai, text, out),
            (Some("content_start"), Some("reasoning")) => {
                self.assembler.push_delta(None, Tag::Think, reasoning, out);
            }
            (Some("content_end"), Some("text")) => self.assembler.push_whole(None, Tag::Ai, text, out),
            (Some("content_end"), Some("reasoning")) => {
                self.assembler.push_whole(None, Tag::Think, reasoning, out);
            }
            (Some("content_start"), Some("tool")) => self.start_tool(event, out),
            (Some("content_end"), Some("tool")) => self.end_tool(event, out),
            (Some("iteration_start"), _) => self.assembler.end_unnamed_message(None),
            (Some("usage"), _) => push_usage(event, UsageScope::Step, out),
            (Some("error"), _) => read_error(event, out),
            (Some("content_update" | "iteration_end" | "done"), _) => {}
            (kind, _) => push_unknown(
                &format!("agent_event/{}", kind.unwrap_or_default()),
                event.text.non_empty(),
                out,
            ),
        }
    }

    fn start_tool(&mut self, event: &ClineEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let name = event.tool_name.text().unwrap_or("tool");
        self.assembler.end_unnamed_message(None);
        let tool = ToolStart {
            id: event.tool_call_id.text().unwrap_or(name).to_owned(),
            name: name.to_owned(),
            input: event.input.map(Json::from),
            parent: None,
        };
        self.tools.start(tool, out);
    }

    fn end_tool(&mut self, event: &ClineEvent<'_>, out: &mut Vec<TranscriptEvent>) {
        let name = event.tool_name.text().unwrap_or("tool");
        let id = event.tool_call_id.text().unwrap_or(name);
        let outputs: Vec<ClineOutput<'_>> = match list(event.output) {
            outputs if outputs.is_empty() => vec![object(event.output)],
            outputs => outputs.into_iter().map(|raw| object(Some(raw))).collect(),
        };
        let text = |output: &ClineOutput<'_>| {
            let text = output.result.non_empty().or(output.error.non_empty());
            text.map(str::to_owned)
        };
        let texts: Vec<String> = outputs.iter().filter_map(text).collect();
        self.tools.output(id, texts.join("\n"), out);
        let failed = event.error.is_some()
            || outputs
                .iter()
                .any(|output| output.success.flag() == Some(false) || output.error.non_empty().is_some());
        let end = ToolEnd {
            id: id.to_owned(),
            status: if failed { ToolStatus::Fail } else { ToolStatus::Ok },
            duration_ms: event.duration_ms.count(),
        };
        self.tools.end(end, out);
    }

    fn read_result(&mut self, line: &ClineLine<'_>, out: &mut Vec<TranscriptEvent>) {
        let reason = line.finish_reason.text().unwrap_or("unknown");
        let text = line.text.text().unwrap_or_default();
        let completed = reason == "completed";
        if completed && !text.is_empty() && !self.assembler.has_emitted(text) {
            let _ = self.assembler.begin_unnamed_message(None);
            self.assembler.push_whole(None, Tag::Ai, text, out);
        }
        push_usage(&object(line.aggregate_usage), UsageScope::Iteration, out);
        let silent = !self.assembler.answered() && !self.tools.used();
        out.push(TranscriptEvent::meta(Meta::Finished {
            success: completed && !silent,
            reason: Some(if completed && silent { "no answer" } else { reason }.to_owned()),
            text: None,
            turns: line.iterations.count(),
            duration_ms: line.duration_ms.count(),
        }));
    }
}

fn push_usage(event: &ClineEvent<'_>, scope: UsageScope, out: &mut Vec<TranscriptEvent>) {
    // A model without a price has a cost of zero.
    let cost_usd = event.total_cost.money().filter(|cost| *cost > Usd::ZERO);
    // The cost of a step is the total so far.
    let cost_usd = cost_usd.filter(|_| scope == UsageScope::Iteration);
    let usage = Usage {
        prompt_tokens: event.input_tokens.count(),
        completion_tokens: event.output_tokens.count(),
        cached_tokens: event.cache_read_tokens.count(),
        cache_write_tokens: event.cache_write_tokens.count(),
        cost_usd,
        cost_source: cost_usd.map(|_| CostSource::Reported),
        scope,
        ..Usage::default()
    };
    if usage.tokens() > Some(0) {
        out.push(TranscriptEvent::usage(usage));
    }
}

fn read_error(event: &ClineEvent<'_>, out: &mut Vec<TranscriptEvent>) {
    let error: ClineOutput<'_> = object(event.error);
    let message: Cow<'_, str> = match error.message.to_text() {
        Some(message) => message.into(),
        None => string(event.error).unwrap_or_default(),
    };
    let class = match event.error_class.text() {
        Some("auth") => ErrorClass::Auth,
        Some("rate_limit") => ErrorClass::RateLimit,
        _ => classify_error(None, &message),
    };
    out.push(TranscriptEvent::meta(Meta::Error {
        class,
        message: message.into_owned(),
        status: None,
    }));
}
