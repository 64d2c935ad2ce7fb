//! `amp`: Amp's `--stream-json`, which is Claude's stream with another way of counting cached tokens.

use super::claude::{self, Claude, Dialect, InputTokens, ResultText};
use super::{Adapter, Capabilities, Format, Opening};

pub(super) const FORMAT: Format = Format {
    name: "amp",
    capabilities: Capabilities {
        costs: false,
        ..claude::CAPABILITIES
    },
    open,
};

fn open(opening: &Opening<'_>) -> Box<dyn Adapter> {
    let dialect = Dialect {
        input: InputTokens::All,
        result: ResultText::LastMessage,
    };
    Box::new(Claude::new(opening, dialect))
}
