//! How a Claude session ends, and what goes wrong on the way: results, API errors, retries, limits.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{self, Event, Printed};
use super::{Claude, ResultText};
use crate::event::{CostSource, ErrorClass, Meta, RateLimitStatus, Tag, TranscriptEvent, Usage, UsageScope};
use crate::transcript::common::{
    Field, class_of_error, class_of_status, list, object, status_named_in, string,
};

/// What is remembered for the end.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// The sum of the messages' own figures.
    pub(super) steps: Usage,
    /// The sum over the results so far: a session may give several, each with the figures of its own turn.
    results: Usage,
    /// The API error that Claude Code reported in a message of its own.
    error: Option<ApiError>,
}

#[derive(Debug, Clone, PartialEq)]
struct ApiError {
    class: ErrorClass,
    message: String,
    status: Option<u16>,
    /// Claude Code's own word for it.
    word: String,
}

impl ApiError {
    fn event(&self) -> TranscriptEvent {
        TranscriptEvent::meta(Meta::Error {
            class: self.class,
            message: self.message.clone(),
            status: self.status,
        })
    }
}

impl Ending {
    /// A message that no model wrote: an API error, or the answer to a slash command. Never the assistant's.
    pub(super) fn read_synthetic(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = wire::words_of(event.message);
        if let Some(word) = string(event.error) {
            let status = status_named_in(&text, &["API Error: ", "rejected ("]);
            let error = ApiError {
                class: class_of(&word, status, &text),
                message: text.clone().into_owned(),
                status,
                word: word.into_owned(),
            };
            out.push(error.event());
            out.extend(stated_reset(&text));
            self.error = Some(error);
        }
        if !text.is_empty() {
            out.push(TranscriptEvent::message(Tag::Sys, text));
        }
    }
}

impl Claude {
    pub(super) fn read_result(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = result_text(event);
        let verdict = self.judge(event, &text);
        // An answer that came by no other way is shown now; the words of a failure are no answer.
        let told = match self.dialect.result {
            ResultText::LastMessage => self.speech.has_said(&text),
            ResultText::EveryMessage => self.speech.answered(),
        };
        let repeated = if verdict.success && !told {
            let _ = self.speech.begin_unnamed(None);
            self.speech.whole(None, Tag::Ai, text, out);
            None
        } else {
            Some(text).filter(|text| !text.is_empty())
        };
        self.add_up(event, out);
        for raw in list(event.permission_denials) {
            let denial: Denial<'_> = object(Some(raw));
            let tool = denial.tool_name.text().unwrap_or("tool").to_owned();
            out.push(TranscriptEvent::meta(Meta::PermissionDenied { tool }));
        }
        if let Some(error) = verdict.error {
            let told = self.ending.error.as_ref();
            if told.is_none_or(|told| (told.class, &told.message) != (error.class, &error.message)) {
                out.push(error.event());
                out.extend(stated_reset(&error.message));
            }
        }
        out.push(TranscriptEvent::meta(Meta::Finished {
            success: verdict.success,
            reason: verdict.reason,
            text: match self.dialect.result {
                ResultText::LastMessage => repeated.map(Cow::into_owned),
                ResultText::EveryMessage => None,
            },
            turns: event.num_turns.count(),
            duration_ms: event.duration_ms.count(),
        }));
        self.ending.error = None;
        self.speech.interrupt(None);
    }

    /// The iteration's figures: the sum over the results, and the session's cost, which is a running total.
    fn add_up(&mut self, event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
        let figures = wire::usage(&event.usage, self.dialect.input);
        let ending = &mut self.ending;
        ending.results.add(&figures);
        // A result after an API error says zero, whatever the messages before it used.
        let mut total = match ending.results.tokens() {
            Some(0) | None => ending.steps.clone(),
            Some(_) => ending.results.clone(),
        };
        total.total_tokens = None;
        total.cost_usd = event.total_cost_usd.real();
        total.cost_source = total.cost_usd.map(|_| CostSource::Reported);
        total.model.clone_from(&ending.steps.model);
        total.scope = UsageScope::Iteration;
        if !total.is_empty() {
            out.push(TranscriptEvent::usage(total));
        }
    }

    fn judge(&self, event: &Event<'_>, text: &str) -> Verdict {
        let subtype = event.subtype.text().unwrap_or("success");
        let reason = event.terminal_reason.words().or(event.subtype.words());
        if event.is_error.flag() == Some(true) || subtype != "success" {
            let error = self.ending.failure(event, subtype, text);
            // `completed` is what Claude Code says of a turn that an API error completed.
            let reason = match reason.filter(|reason| !["completed", "success"].contains(reason)) {
                Some(reason) => reason.to_owned(),
                None if error.word.is_empty() => "error".to_owned(),
                None => error.word.clone(),
            };
            return Verdict {
                success: false,
                reason: Some(reason),
                error: Some(error),
            };
        }
        let silent = !self.speech.answered() && !self.tools.used();
        let reason = match event.num_turns.count() {
            Some(0) if silent => Some("no model turn was made"),
            _ if silent && text.trim().is_empty() => Some("no answer"),
            _ => {
                return Verdict {
                    success: true,
                    reason: reason.map(str::to_owned),
                    error: None,
                };
            }
        };
        Verdict {
            success: false,
            reason: reason.map(str::to_owned),
            error: None,
        }
    }
}

struct Verdict {
    success: bool,
    reason: Option<String>,
    error: Option<ApiError>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Denial<'a> {
    #[serde(borrow)]
    tool_name: Field<'a>,
}

impl Ending {
    fn failure(&self, event: &Event<'_>, subtype: &str, text: &str) -> ApiError {
        let status = event
            .api_error_status
            .count()
            .and_then(|status| u16::try_from(status).ok());
        let listed: Vec<_> = list(event.errors)
            .into_iter()
            .filter_map(|raw| string(Some(raw)))
            .collect();
        let message = match (text.is_empty(), listed.is_empty(), string(event.error)) {
            (false, ..) => text.to_owned(),
            (true, false, _) => listed.join("\n"),
            (true, true, Some(error)) => error.into_owned(),
            (true, true, None) => subtype.to_owned(),
        };
        let told = self.error.as_ref().filter(|told| told.message == message);
        let word = told.map_or("", |told| told.word.as_str());
        let class = match (event.terminal_reason.text(), subtype, status) {
            (Some("prompt_too_long"), ..) => ErrorClass::TooLong,
            (_, "error_max_turns", _) => ErrorClass::MaxTurns,
            (_, "error_max_budget_usd", _) => ErrorClass::Budget,
            (_, _, status) => class_of(word, status, &message),
        };
        ApiError {
            class,
            message,
            status: status.or(told.and_then(|told| told.status)),
            word: word.to_owned(),
        }
    }
}

/// A string, or ralphex's `{"output": …}`.
fn result_text<'a>(event: &Event<'a>) -> Cow<'a, str> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Output<'a> {
        #[serde(borrow)]
        output: Option<&'a RawValue>,
    }
    let words = match event.result {
        Printed::Words(_) => event.result.words(),
        Printed::Other(raw) => string(object::<Output<'a>>(raw).output),
    };
    words.unwrap_or_default()
}

/// The class of an API error from Claude Code's word for it, the HTTP status, and the words that have no other sign.
fn class_of(word: &str, status: Option<u16>, message: &str) -> ErrorClass {
    if message.starts_with("Prompt is too long") {
        return ErrorClass::TooLong;
    }
    if let Some(status) = status {
        return class_of_status(status);
    }
    match word {
        "authentication_failed" | "billing_error" | "oauth_org_not_allowed" => ErrorClass::Auth,
        "rate_limit" => ErrorClass::RateLimit,
        "overloaded" | "overloaded_error" | "api_error" => ErrorClass::Overload,
        // Without a status nothing was answered: the connection broke, or time ran out.
        "server_error" | "timeout" => ErrorClass::Network,
        "invalid_request" | "invalid_request_error" | "model_not_found" => ErrorClass::BadRequest,
        "authentication_error" | "permission_error" => ErrorClass::Auth,
        "rate_limit_error" => ErrorClass::RateLimit,
        _ => class_of_error(None, message),
    }
}

/// Earlier versions ended with `… usage limit reached|1751300000` and no other sign of when it is over.
fn stated_reset(message: &str) -> Option<TranscriptEvent> {
    let (_, seconds) = message.split_once("usage limit reached|")?;
    let resets_at = Timestamp::from_second(seconds.trim().parse().ok()?).ok()?;
    Some(TranscriptEvent::meta(Meta::RateLimit {
        status: RateLimitStatus::Rejected,
        resets_at: Some(resets_at),
        limit: None,
    }))
}

pub(super) fn read_retry(event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
    let word = string(event.error).unwrap_or_default();
    let status = event
        .error_status
        .count()
        .and_then(|status| u16::try_from(status).ok());
    out.push(TranscriptEvent::meta(Meta::Retry {
        attempt: event.attempt.count().unwrap_or(1),
        max_attempts: event.max_retries.count(),
        delay_ms: event.retry_delay_ms.count(),
        class: match (&*word, status) {
            // Timeouts have neither.
            ("unknown", None) => ErrorClass::Network,
            (word, status) => class_of(word, status, ""),
        },
        message: match status {
            Some(status) => format!("{word} ({status})"),
            None => word.into_owned(),
        },
    }));
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RateLimitInfo<'a> {
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow, rename = "resetsAt")]
    resets_at: Field<'a>,
    #[serde(borrow, rename = "rateLimitType")]
    limit: Field<'a>,
}

/// Comes with every session of a subscription; only `rejected` is a limit that was hit.
pub(super) fn read_rate_limit(event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
    let info: RateLimitInfo<'_> = object(event.rate_limit_info);
    let status = match info.status.text() {
        Some("rejected") => RateLimitStatus::Rejected,
        Some("allowed_warning") => RateLimitStatus::Warning,
        Some(_) => RateLimitStatus::Allowed,
        None => return,
    };
    let seconds = info
        .resets_at
        .count()
        .and_then(|seconds| i64::try_from(seconds).ok());
    out.push(TranscriptEvent::meta(Meta::RateLimit {
        status,
        resets_at: seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()),
        limit: info.limit.to_text(),
    }));
}

/// An error of the API itself, as its stream gives it.
pub(super) fn read_error(event: &Event<'_>, out: &mut Vec<TranscriptEvent>) {
    let error: ErrorObject<'_> = object(event.error);
    let word = error.kind.text().unwrap_or_default();
    let message = error
        .message
        .to_text()
        .or_else(|| event.words())
        .unwrap_or_else(|| word.to_owned());
    out.push(TranscriptEvent::meta(Meta::Error {
        class: class_of(word, None, &message),
        status: None,
        message: message.clone(),
    }));
    out.push(TranscriptEvent::message(Tag::Sys, message));
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorObject<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}
