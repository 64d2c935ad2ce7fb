//! Results, API errors, retries and rate limits of a Claude session.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{self, FullClaudeLine, LazyContent};
use super::{Claude, ResultText, ResultUsage};
use crate::event::{CostSource, ErrorClass, Meta, RateLimitStatus, Tag, TranscriptEvent, Usage, UsageScope};
use crate::transcript::common::{Field, classify_error, find_status, list, object, string};

/// State that the `result` event needs.
#[derive(Debug, Default)]
pub(super) struct ResultState {
    /// The sum of the usage of all messages.
    pub(super) steps: Usage,
    /// The sum of the usage of all results. A session may have several results, each with the usage of one turn.
    results: Usage,
    /// The API error that Claude Code reported in a generated message.
    error: Option<ApiError>,
    /// The model refused the request.
    refused: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct ApiError {
    class: ErrorClass,
    message: String,
    status: Option<u16>,
    /// Claude Code's error code.
    code: String,
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

impl ResultState {
    /// Notes that the model refused the request, before the error that follows.
    pub(super) fn note_refusal(&mut self) {
        self.refused = true;
    }

    fn class(&self, code: &str, status: Option<u16>, message: &str) -> ErrorClass {
        if self.refused {
            return ErrorClass::Refused;
        }
        classify(code, status, message)
    }

    /// Reads a message that Claude Code generated: an API error or the reply to a slash command.
    pub(super) fn read_synthetic(&mut self, event: &FullClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = wire::message_text(event.message);
        if let Some(code) = string(event.error) {
            let status = find_status(&text, &["API Error: ", "rejected ("]);
            let error = ApiError {
                class: self.class(&code, status, &text),
                message: text.clone().into_owned(),
                status,
                code: code.into_owned(),
            };
            out.push(error.event());
            out.extend(reset_from_message(&text));
            self.error = Some(error);
        }
        if !text.is_empty() {
            out.push(TranscriptEvent::message(Tag::Sys, text));
        }
    }
}

impl Claude {
    pub(super) fn read_result(&mut self, event: &FullClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
        let text = result_text(event);
        let verdict = self.evaluate_result(event, &text);
        // Emit an answer that only the result contains. The text of a failure is not an answer.
        let already_emitted = match self.dialect.result {
            ResultText::LastMessage => self.assembler.has_emitted(&text),
            ResultText::AllMessages => self.assembler.answered(),
        };
        let repeated = if verdict.success && !already_emitted {
            let _ = self.assembler.begin_unnamed_message(None);
            self.assembler.push_whole(None, Tag::Ai, text, out);
            None
        } else {
            Some(text).filter(|text| !text.is_empty())
        };
        self.push_total_usage(event, out);
        for raw in list(event.permission_denials) {
            let denial: PermissionDenial<'_> = object(Some(raw));
            let tool = denial.tool_name.text().unwrap_or("tool").to_owned();
            out.push(TranscriptEvent::meta(Meta::PermissionDenied { tool }));
        }
        if let Some(error) = verdict.error {
            let reported = self.result_state.error.as_ref();
            if reported
                .is_none_or(|reported| (reported.class, &reported.message) != (error.class, &error.message))
            {
                out.push(error.event());
                out.extend(reset_from_message(&error.message));
            }
        }
        out.push(TranscriptEvent::meta(Meta::Finished {
            success: verdict.success,
            reason: verdict.reason,
            text: match self.dialect.result {
                ResultText::LastMessage => repeated.map(Cow::into_owned),
                ResultText::AllMessages => None,
            },
            turns: event.num_turns.count(),
            duration_ms: event.duration_ms.count(),
        }));
        self.result_state.error = None;
        self.result_state.refused = false;
        self.assembler.end_unnamed_message(None);
    }

    /// Reports the usage of the iteration: the sum of all results, and the cost, which is already a running total.
    fn push_total_usage(&mut self, event: &FullClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
        if self.dialect.total == ResultUsage::OfSession {
            let total = Usage {
                scope: UsageScope::Session,
                ..wire::usage(&event.usage, self.dialect.input)
            };
            // An error at the start reports zero tokens.
            if total.tokens() > Some(0) {
                out.push(TranscriptEvent::usage(total));
            }
            return;
        }
        let result_state = &mut self.result_state;
        // `usage` excludes subagents, and `total_cost_usd` includes earlier processes of a resumed session.
        let since_last_result = event.model_usage_since_last_result.as_ref();
        match since_last_result {
            Some(models) => result_state.results.add(&models.sum),
            None => result_state
                .results
                .add(&wire::usage(&event.usage, self.dialect.input)),
        }
        // The result after an API error reports zero tokens, regardless of previous messages.
        let mut total = match result_state.results.tokens() {
            Some(0) | None => result_state.steps.clone(),
            Some(_) => result_state.results.clone(),
        };
        total.total_tokens = None;
        total.cost_usd = match since_last_result {
            Some(_) => result_state.results.cost_usd,
            None => event.total_cost_usd.money(),
        };
        total.cost_source = total.cost_usd.map(|_| CostSource::Reported);
        total.model.clone_from(&result_state.steps.model);
        total.scope = UsageScope::Iteration;
        if !total.is_empty() {
            out.push(TranscriptEvent::usage(total));
        }
    }

    fn evaluate_result(&self, event: &FullClaudeLine<'_>, text: &str) -> ResultVerdict {
        let subtype = event.subtype.text().unwrap_or("success");
        let reason = event.terminal_reason.non_empty().or(event.subtype.non_empty());
        if event.is_error.flag() == Some(true) || subtype != "success" {
            let error = self.result_state.failure(event, subtype, text);
            // Claude Code also reports `completed` for a turn that ended with an API error.
            let reason = match reason.filter(|reason| !["completed", "success"].contains(reason)) {
                Some(reason) => reason.to_owned(),
                None if error.code.is_empty() => "error".to_owned(),
                None => error.code.clone(),
            };
            return ResultVerdict {
                success: false,
                reason: Some(reason),
                error: Some(error),
            };
        }
        let silent = !self.assembler.answered() && !self.tools.used();
        let reason = match event.num_turns.count() {
            Some(0) if silent => Some("no model turn was made"),
            _ if silent && text.trim().is_empty() => Some("no answer"),
            _ => {
                return ResultVerdict {
                    success: true,
                    reason: reason.map(str::to_owned),
                    error: None,
                };
            }
        };
        ResultVerdict {
            success: false,
            reason: reason.map(str::to_owned),
            error: None,
        }
    }
}

struct ResultVerdict {
    success: bool,
    reason: Option<String>,
    error: Option<ApiError>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PermissionDenial<'a> {
    #[serde(borrow)]
    tool_name: Field<'a>,
}

impl ResultState {
    fn failure(&self, event: &FullClaudeLine<'_>, subtype: &str, text: &str) -> ApiError {
        let status = event
            .api_error_status
            .count()
            .and_then(|status| u16::try_from(status).ok());
        let listed: Vec<_> = list(event.errors)
            .into_iter()
            .filter_map(|raw| string(Some(raw)))
            .collect();
        let message = match (text.is_empty(), listed.is_empty(), error_text(event.error)) {
            (false, ..) => text.to_owned(),
            (true, false, _) => listed.join("\n"),
            (true, true, Some(error)) => error,
            (true, true, None) => subtype.to_owned(),
        };
        let status = status.or_else(|| find_status(&message, &["[API Error: "]));
        let reported = self.error.as_ref().filter(|error| error.message == message);
        let code = reported.map_or("", |error| error.code.as_str());
        let class = match (event.terminal_reason.text(), subtype, status) {
            _ if event.stop_reason.is("refusal") => ErrorClass::Refused,
            (Some("prompt_too_long"), ..) => ErrorClass::TooLong,
            (_, "error_max_turns", _) => ErrorClass::MaxTurns,
            (_, "error_max_budget_usd", _) => ErrorClass::Budget,
            (_, _, status) => self.class(code, status, &message),
        };
        ApiError {
            class,
            message,
            status: status.or(reported.and_then(|error| error.status)),
            code: code.to_owned(),
        }
    }
}

/// The text of a result: a string, or `{"output": …}` from ralphex's wrappers.
fn result_text<'a>(event: &FullClaudeLine<'a>) -> Cow<'a, str> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct WrappedOutput<'a> {
        #[serde(borrow)]
        output: Option<&'a RawValue>,
    }
    let text = match event.result {
        LazyContent::Text(_) => event.result.as_text(),
        LazyContent::Other(raw) => string(object::<WrappedOutput<'a>>(raw).output),
    };
    text.unwrap_or_default()
}

/// The text of an error: a string, or the `message` of an object.
fn error_text(error: Option<&RawValue>) -> Option<String> {
    match string(error) {
        Some(text) => Some(text.into_owned()),
        None => object::<ApiErrorObject<'_>>(error).message.to_text(),
    }
}

/// Classifies an API error by Claude Code's error code, the HTTP status and the message.
fn classify(code: &str, status: Option<u16>, message: &str) -> ErrorClass {
    if message.starts_with("Prompt is too long") {
        return ErrorClass::TooLong;
    }
    if let Some(status) = status {
        return classify_error(Some(status), message);
    }
    match code {
        "authentication_failed" | "billing_error" | "oauth_org_not_allowed" => ErrorClass::Auth,
        "rate_limit" => ErrorClass::RateLimit,
        "overloaded" | "overloaded_error" | "api_error" => ErrorClass::Overload,
        // Without a status there was no response: the connection broke or timed out.
        "server_error" | "timeout" => ErrorClass::Network,
        "invalid_request" | "invalid_request_error" | "model_not_found" => ErrorClass::BadRequest,
        "authentication_error" | "permission_error" => ErrorClass::Auth,
        "rate_limit_error" => ErrorClass::RateLimit,
        _ => classify_error(None, message),
    }
}

/// The reset time in a message of earlier versions: `… usage limit reached|1751300000`.
fn reset_from_message(message: &str) -> Option<TranscriptEvent> {
    let (_, seconds) = message.split_once("usage limit reached|")?;
    let resets_at = Timestamp::from_second(seconds.trim().parse().ok()?).ok()?;
    Some(TranscriptEvent::meta(Meta::RateLimit {
        status: RateLimitStatus::Rejected,
        resets_at: Some(resets_at),
        limit: None,
        utilization: None,
    }))
}

pub(super) fn read_retry(event: &FullClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
    let code = string(event.error).unwrap_or_default();
    let status = event
        .error_status
        .count()
        .and_then(|status| u16::try_from(status).ok());
    out.push(TranscriptEvent::meta(Meta::Retry {
        attempt: event.attempt.count().unwrap_or(1),
        max_attempts: event.max_retries.count(),
        delay_ms: event.retry_delay_ms.count(),
        class: match (&*code, status) {
            // Timeouts have neither a code nor a status.
            ("unknown", None) => ErrorClass::Network,
            (code, status) => classify(code, status, ""),
        },
        message: match status {
            Some(status) => format!("{code} ({status})"),
            None => code.into_owned(),
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
    #[serde(borrow)]
    utilization: Field<'a>,
    #[serde(borrow, rename = "isUsingOverage")]
    uses_overage: Field<'a>,
}

/// Reads a rate limit event. Every subscription session has one; only `rejected` means that the limit was reached.
pub(super) fn read_rate_limit(event: &FullClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
    let info: RateLimitInfo<'_> = object(event.rate_limit_info);
    let status = match info.status.text() {
        // Requests beyond the limit are paid for instead of refused.
        Some("rejected") if info.uses_overage.flag() == Some(true) => RateLimitStatus::Warning,
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
        utilization: info.utilization.real().and_then(share),
    }));
}

/// A share from 0 to 1, also if it is reported as a percentage.
fn share(used: f64) -> Option<f64> {
    let share = if used > 2.0 { used / 100.0 } else { used };
    (share.is_finite() && share >= 0.0).then_some(share)
}

/// Reads an API error event.
pub(super) fn read_error(event: &FullClaudeLine<'_>, out: &mut Vec<TranscriptEvent>) {
    let error: ApiErrorObject<'_> = object(event.error);
    let code = error.kind.text().unwrap_or_default();
    let message = error
        .message
        .to_text()
        .or_else(|| event.display_text())
        .unwrap_or_else(|| code.to_owned());
    out.push(TranscriptEvent::meta(Meta::Error {
        class: classify(code, None, &message),
        status: None,
        message: message.clone(),
    }));
    out.push(TranscriptEvent::message(Tag::Sys, message));
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ApiErrorObject<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    message: Field<'a>,
}
