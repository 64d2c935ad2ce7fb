//! `acp`: the messages of an agent that speaks the Agent Client Protocol, and those that ralph sent to it (`{"sent":…}`).
//! `calls` follows the tool calls, `usage` reads tokens and cost, `wire` defines the JSON types.

mod calls;
#[cfg(test)]
mod tests;
mod usage;
mod wire;

use super::common::{
    Assembler, EventStream, Tools, classify_error, find_status, list, object, parse, push_unknown,
    push_unreadable,
};
use super::{AdapterContext, Capabilities, Format};
use crate::event::{ErrorClass, Meta, PlanItem, PlanStatus, Tag, TranscriptEvent};
use calls::Calls;
use usage::UsageReader;
use wire::{AcpBlock, AcpDetail, AcpMessage, AcpParams, AcpResult, AcpUpdate};

pub(super) const FORMAT: Format = Format {
    name: "acp",
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
    open: |context| Box::new(Acp::new(context)),
};

/// The protocol's error code for a missing login.
const AUTH_REQUIRED: f64 = -32000.0;

struct Acp {
    assembler: Assembler,
    calls: Calls,
    usage: UsageReader,
    version: Option<String>,
    /// The session that ralph asked the agent to load or resume.
    requested_session: Option<String>,
    /// The last piece of the answer, if it has the form of an error.
    error: Option<String>,
    /// The agent sends the history of a loaded session, which is not output of this iteration.
    replaying: bool,
}

impl EventStream for Acp {
    type Event<'a> = AcpMessage<'a>;

    fn parse(text: &str) -> Result<AcpMessage<'_>, String> {
        parse(text)
    }

    fn read(&mut self, message: &AcpMessage<'_>, line: &str, out: &mut Vec<TranscriptEvent>) {
        let params: AcpParams<'_> = object(message.params);
        match message.method.text() {
            _ if message.sent.is_some() => self.read_sent(&object(message.sent)),
            Some("session/update") if self.replaying => {}
            Some("session/update") => self.read_update(&object(params.update), out),
            Some("session/request_permission") => {
                let call: AcpUpdate<'_> = object(params.tool_call);
                self.assembler.end_unnamed_message(None);
                self.calls.permission_requested(&call, out);
            }
            // Ralph answers other requests with an error; extensions begin with an underscore.
            Some(method)
                if message.id.text().is_some() || message.id.count().is_some() || method.starts_with('_') => {
            }
            Some(method) => push_unknown(method, None, out),
            None if message.error.is_some() => self.read_error(&object(message.error), out),
            None if message.result.is_some() => self.read_result(&object(message.result), out),
            None => push_unreadable(line, "not a message of the protocol".to_owned(), out),
        }
    }

    fn tools(&mut self) -> &mut Tools {
        self.calls.tools()
    }
}

impl Acp {
    fn new(context: &AdapterContext<'_>) -> Self {
        Self {
            assembler: Assembler::default(),
            calls: Calls::default(),
            usage: UsageReader::new(context.usage),
            version: None,
            requested_session: None,
            error: None,
            replaying: false,
        }
    }

    fn read_sent(&mut self, sent: &AcpMessage<'_>) {
        match sent.method.text() {
            Some(method @ ("session/load" | "session/resume")) => {
                self.requested_session = object::<AcpParams<'_>>(sent.params).session_id.to_text();
                self.replaying = method == "session/load";
            }
            Some("session/prompt") => self.replaying = false,
            Some(_) | None => {}
        }
    }

    fn read_update(&mut self, update: &AcpUpdate<'_>, out: &mut Vec<TranscriptEvent>) {
        match update.name.text().unwrap_or_default() {
            "agent_message_chunk" => {
                self.push_chunk(Tag::Ai, update, out);
                out.extend(self.usage.of_chunk(update.meta));
            }
            "agent_thought_chunk" => self.push_chunk(Tag::Think, update, out),
            "tool_call" | "tool_call_update" => {
                self.assembler.end_unnamed_message(None);
                self.calls.update(update, out);
            }
            "plan" => out.extend(plan(update)),
            "usage_update" => out.extend(UsageReader::of_cost(update.cost)),
            "user_message_chunk"
            | "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "session_info_update" => {}
            unknown => push_unknown(&format!("session/update/{unknown}"), None, out),
        }
    }

    fn push_chunk(&mut self, tag: Tag, update: &AcpUpdate<'_>, out: &mut Vec<TranscriptEvent>) {
        if let Some(id) = update.message_id.non_empty() {
            let _ = self.assembler.begin_message(None, id);
        }
        let block: AcpBlock<'_> = object(update.content);
        let text = block.display_text().unwrap_or_default();
        if tag == Tag::Ai && !text.is_empty() {
            self.error = Some(&text).filter(|text| text.starts_with("Error: ")).cloned();
        }
        self.assembler.push_delta(None, tag, &text, out);
    }

    fn read_result(&mut self, result: &AcpResult<'_>, out: &mut Vec<TranscriptEvent>) {
        if let Some(version) = result.protocol_version.count() {
            self.version = object::<AcpDetail<'_>>(result.agent_info).version.to_text();
            if version != 1 {
                let message =
                    format!("the agent speaks version {version} of the protocol; ralph speaks version 1");
                fail(ErrorClass::Other, message, None, out);
            }
        } else if let Some(reason) = result.stop_reason.text() {
            out.extend(self.usage.of_result(result));
            self.finish(reason, out);
        } else if let Some(id) = result
            .session_id
            .to_text()
            .or_else(|| self.requested_session.take())
        {
            out.push(TranscriptEvent::meta(Meta::Session {
                session_id: id,
                model: model(result),
                version: self.version.clone(),
            }));
        }
    }

    fn finish(&mut self, stop_reason: &str, out: &mut Vec<TranscriptEvent>) {
        let class = match stop_reason {
            "refusal" => Some(ErrorClass::Refused),
            "max_turn_requests" => Some(ErrorClass::MaxTurns),
            _ => None,
        };
        if let Some(class) = class {
            return fail(class, stop_reason.to_owned(), None, out);
        }
        // Some agents report a failed request as their answer.
        if let Some(error) = self.error.take()
            && let Some(status) = find_status(&error, &["(HTTP "])
        {
            let class = classify_error(Some(status), &error);
            return fail(
                class,
                error.lines().next().unwrap_or_default().to_owned(),
                Some(status),
                out,
            );
        }
        let silent = !self.assembler.answered() && !self.calls.tools().used();
        let success = stop_reason == "end_turn" && !silent;
        let reason = if silent && stop_reason == "end_turn" {
            "no answer"
        } else {
            stop_reason
        };
        out.push(finished(success, reason));
    }

    /// Reads the error with which the agent answered a request.
    fn read_error(&mut self, error: &AcpDetail<'_>, out: &mut Vec<TranscriptEvent>) {
        let data: AcpDetail<'_> = object(error.data);
        let texts = [&error.message, &data.details, &data.message, &data.error];
        let mut message = String::new();
        for text in texts.into_iter().filter_map(|field| field.non_empty()) {
            if !message.contains(text) {
                message.push_str(if message.is_empty() { "" } else { ": " });
                message.push_str(text);
            }
        }
        let code = error.code.real();
        // Some agents use the status of the service as the code.
        let status = code
            .filter(|code| (400.0..600.0).contains(code))
            .map(|code| code as u16)
            .or_else(|| find_status(&message, &["status ", "API Error: ", "error ", "\"code\":", ": "]));
        let class = if code == Some(AUTH_REQUIRED) {
            ErrorClass::Auth
        } else {
            classify_error(status, &message)
        };
        fail(class, message, status, out);
    }
}

/// Reports an error that ends the conversation.
fn fail(class: ErrorClass, message: String, status: Option<u16>, out: &mut Vec<TranscriptEvent>) {
    let end = finished(false, &message);
    out.push(TranscriptEvent::meta(Meta::Error {
        class,
        message,
        status,
    }));
    out.push(end);
}

fn finished(success: bool, reason: &str) -> TranscriptEvent {
    TranscriptEvent::meta(Meta::Finished {
        success,
        reason: Some(reason.to_owned()),
        text: None,
        turns: None,
        duration_ms: None,
    })
}

/// The model that a new session uses.
fn model(result: &AcpResult<'_>) -> Option<String> {
    let named = object::<AcpDetail<'_>>(result.models).current_model_id.to_text();
    named.or_else(|| {
        let mut options = list(result.config_options).into_iter();
        options.find_map(|raw| {
            let option: AcpDetail<'_> = object(Some(raw));
            option
                .id
                .is("model")
                .then(|| option.current_value.to_text())
                .flatten()
        })
    })
}

fn plan(update: &AcpUpdate<'_>) -> Option<TranscriptEvent> {
    let entries = list(update.entries).into_iter();
    let items: Vec<PlanItem> = entries
        .filter_map(|raw| {
            let entry: AcpBlock<'_> = object(Some(raw));
            Some(PlanItem {
                text: super::common::string(entry.content)?.into_owned(),
                status: match entry.status.text() {
                    Some("completed") => PlanStatus::Done,
                    Some("in_progress") => PlanStatus::Active,
                    _ => PlanStatus::Pending,
                },
            })
        })
        .collect();
    (!items.is_empty()).then(|| TranscriptEvent::meta(Meta::Plan { items }))
}
