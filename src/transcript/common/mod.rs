//! What several formats share: reading a line and its fields, texts that come in pieces and then whole, tool
//! calls that must end, and names for failures. Nothing here knows a product.

mod assembler;
mod content;
mod events;
mod failure;
mod fields;
mod json_scan;
mod lines;
mod plan;
mod prompt;
mod string_pool;
mod tail;
mod tools;

pub(in crate::transcript) use assembler::{Assembler, Begun};
pub(in crate::transcript) use content::Content;
pub(in crate::transcript) use events::{Alike, EventStream};
pub(in crate::transcript) use failure::{class_of_error, class_of_status, status_named_in};
pub(in crate::transcript) use fields::{Field, list, object, string};
pub(in crate::transcript) use json_scan::{JsonScan, Quoted, Scanned, scan, scan_raw};
pub(in crate::transcript) use lines::{json_text, mark_unknown, parse, say_unreadable};
pub(in crate::transcript) use plan::read_plan;
pub(in crate::transcript) use prompt::hidden_prompt;
use string_pool::StringPool;
use tail::Tail;
pub(in crate::transcript) use tools::Tools;
