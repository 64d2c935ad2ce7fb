//! Names of attributes, and their values, as OTLP/JSON writes them. They follow the semantic conventions for generative AI in the version
//! of `SCHEMA`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::event::Usage;

pub(super) const SCHEMA: &str = "https://opentelemetry.io/schemas/1.37.0";
pub(super) const SPAN_KIND_INTERNAL: u8 = 1;
pub(super) const STATUS_OK: u8 = 1;
pub(super) const STATUS_ERROR: u8 = 2;

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const INVOKE_WORKFLOW: &str = "invoke_workflow";
pub(super) const INVOKE_AGENT: &str = "invoke_agent";
pub(super) const EXECUTE_TOOL: &str = "execute_tool";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(super) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
const RESPONSE_MODEL: &str = "gen_ai.response.model";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";

/// The spans as one request or file.
pub(super) fn document(spans: &[Value]) -> Value {
    let resource = [
        text("service.name", "ralph"),
        text("service.version", env!("CARGO_PKG_VERSION")),
    ];
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "ralph"}, "schemaUrl": SCHEMA, "spans": spans}],
        "schemaUrl": SCHEMA,
    }]})
}

pub(super) fn usage_attributes(usage: &Usage) -> Vec<Value> {
    let tokens = [
        (INPUT_TOKENS, usage.prompt_tokens),
        (OUTPUT_TOKENS, usage.completion_tokens),
    ];
    let mut attributes: Vec<Value> = tokens
        .into_iter()
        .filter_map(|(name, count)| Some(number(name, count?)))
        .collect();
    attributes.extend(usage.model.as_ref().map(|model| text(RESPONSE_MODEL, model)));
    attributes.extend(
        usage
            .cost_usd
            .map(|cost| json!({"key": "ralph.cost_usd", "value": {"doubleValue": f64::from(cost)}})),
    );
    attributes
}

pub(super) fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// OTLP/JSON writes 64-bit integers as strings.
pub(super) fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

pub(super) fn nanoseconds(at: Timestamp) -> String {
    at.as_nanosecond().max(0).to_string()
}
