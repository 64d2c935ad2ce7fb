//! What several formats share: reading a line and its fields, texts that come in pieces and then whole, tool
//! calls that must end, and names for failures. Nothing here knows a product.

mod content;
mod events;
mod failure;
mod fields;
mod lines;
mod plan;
mod prompt;
mod room;
mod said;
mod skim;
mod speech;
mod tools;

pub(in crate::transcript) use content::Content;
pub(in crate::transcript) use events::{Alike, EventStream};
pub(in crate::transcript) use failure::{class_of_error, class_of_status, status_named_in};
pub(in crate::transcript) use fields::{Field, list, object, string};
pub(in crate::transcript) use lines::{json_text, mark_unknown, parse, say_unreadable};
pub(in crate::transcript) use plan::read_plan;
pub(in crate::transcript) use prompt::hidden_prompt;
use room::Room;
use said::Said;
pub(in crate::transcript) use skim::{Quoted, Skim, Skimmed, skim, skimmed};
pub(in crate::transcript) use speech::{Begun, Speech};
pub(in crate::transcript) use tools::Tools;
