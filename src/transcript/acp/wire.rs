//! The JSON types of the Agent Client Protocol, as far as the transcript needs them.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::transcript::common::{Field, list, object};

/// A message of the agent, or one that ralph sent, which is in `sent`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AcpMessage<'a> {
    #[serde(borrow)]
    pub(super) method: Field<'a>,
    #[serde(borrow)]
    pub(super) id: Field<'a>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) sent: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AcpParams<'a> {
    #[serde(borrow)]
    pub(super) session_id: Field<'a>,
    #[serde(borrow)]
    pub(super) update: Option<&'a RawValue>,
    /// The call for which permission is requested.
    #[serde(borrow)]
    pub(super) tool_call: Option<&'a RawValue>,
}

/// A session update, or the tool call of a permission request.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AcpUpdate<'a> {
    #[serde(borrow, rename = "sessionUpdate")]
    pub(super) name: Field<'a>,
    /// One block, or the blocks of a tool call.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message_id: Field<'a>,
    #[serde(borrow)]
    pub(super) tool_call_id: Field<'a>,
    #[serde(borrow)]
    pub(super) title: Field<'a>,
    #[serde(borrow)]
    pub(super) kind: Field<'a>,
    #[serde(borrow)]
    pub(super) status: Field<'a>,
    #[serde(borrow)]
    pub(super) raw_input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) raw_output: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) entries: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) cost: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    pub(super) meta: Option<&'a RawValue>,
}

/// A block of content, the block inside it, or an entry of a plan.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AcpBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Field<'a>,
    #[serde(borrow)]
    pub(super) text: Field<'a>,
    #[serde(borrow)]
    pub(super) uri: Field<'a>,
    /// The block inside a block of a tool call, or the text of a plan entry.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) path: Field<'a>,
    #[serde(borrow)]
    pub(super) old_text: Field<'a>,
    #[serde(borrow)]
    pub(super) status: Field<'a>,
}

/// The results of `initialize`, `session/new` and `session/prompt`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AcpResult<'a> {
    #[serde(borrow)]
    pub(super) protocol_version: Field<'a>,
    #[serde(borrow)]
    pub(super) agent_info: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) session_id: Field<'a>,
    #[serde(borrow)]
    pub(super) models: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) config_options: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Field<'a>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    pub(super) meta: Option<&'a RawValue>,
}

/// The fields of several small objects.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AcpDetail<'a> {
    #[serde(borrow)]
    pub(super) id: Field<'a>,
    #[serde(borrow)]
    pub(super) version: Field<'a>,
    #[serde(borrow)]
    pub(super) current_model_id: Field<'a>,
    #[serde(borrow)]
    pub(super) current_value: Field<'a>,
    #[serde(borrow)]
    pub(super) amount: Field<'a>,
    #[serde(borrow)]
    pub(super) currency: Field<'a>,
    #[serde(borrow)]
    pub(super) code: Field<'a>,
    #[serde(borrow)]
    pub(super) message: Field<'a>,
    #[serde(borrow)]
    pub(super) details: Field<'a>,
    #[serde(borrow)]
    pub(super) error: Field<'a>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
    /// Extensions with usage.
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) quota: Option<&'a RawValue>,
    #[serde(borrow, rename = "token_count")]
    pub(super) token_count: Option<&'a RawValue>,
    /// The output and exit code of a command, in several forms.
    #[serde(borrow)]
    pub(super) output: Field<'a>,
    #[serde(borrow)]
    pub(super) exit_code: Field<'a>,
    #[serde(borrow)]
    pub(super) exit: Field<'a>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) contents: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AcpTokens<'a> {
    #[serde(borrow, alias = "input_tokens")]
    pub(super) input_tokens: Field<'a>,
    #[serde(borrow, alias = "output_tokens")]
    pub(super) output_tokens: Field<'a>,
    #[serde(borrow)]
    pub(super) total_tokens: Field<'a>,
    #[serde(borrow)]
    pub(super) thought_tokens: Field<'a>,
    #[serde(borrow)]
    pub(super) cached_read_tokens: Field<'a>,
    #[serde(borrow)]
    pub(super) cached_write_tokens: Field<'a>,
}

impl AcpBlock<'_> {
    /// The text of a block, or a placeholder for other content.
    pub(super) fn display_text(&self) -> Option<String> {
        match self.kind.text() {
            Some("text") => self.text.to_text(),
            Some("content") => object::<AcpBlock<'_>>(self.content).display_text(),
            Some("resource_link") => self.uri.to_text(),
            Some(kind @ ("image" | "audio" | "resource")) => Some(format!("[{kind}]")),
            Some(_) | None => None,
        }
    }
}

/// The texts of the blocks of a tool call, one per line.
pub(super) fn blocks_text(content: Option<&RawValue>) -> String {
    let blocks = list(content)
        .into_iter()
        .map(|raw| object::<AcpBlock<'_>>(Some(raw)));
    let texts: Vec<String> = blocks.filter_map(|block| block.display_text()).collect();
    texts.join("\n")
}

/// The exit code of a command in the raw output of a call.
pub(super) fn exit_code(raw_output: Option<&RawValue>) -> Option<f64> {
    let output: AcpDetail<'_> = object(raw_output);
    let in_contents = || {
        let mut contents = list(output.contents).into_iter();
        contents.find_map(|raw| object::<AcpDetail<'_>>(Some(raw)).exit_code.real())
    };
    output
        .exit_code
        .real()
        .or_else(|| object::<AcpDetail<'_>>(output.metadata).exit.real())
        .or_else(in_contents)
}
