//! `amp`: the `--stream-json` format of Amp, which is Claude's format with a different count of input tokens.

use super::claude::{self, Claude, Dialect, InputTokens, OutputTokens, ResultText, ResultUsage};
use super::{Adapter, AdapterContext, Capabilities, Format};

pub(super) const FORMAT: Format = Format {
    name: "amp",
    capabilities: Capabilities {
        costs: false,
        ..claude::CAPABILITIES
    },
    open,
};

fn open(context: &AdapterContext<'_>) -> Box<dyn Adapter> {
    let dialect = Dialect {
        input: InputTokens::All,
        output: OutputTokens::OfAllMessages,
        result: ResultText::LastMessage,
        total: ResultUsage::OfTurn,
    };
    Box::new(Claude::new(context, dialect))
}
