//! Code shared by the formats: JSON lines and fields, text assembly, tool calls and error classification. Nothing here
//! is specific to one agent.

mod assembler;
mod content;
mod events;
mod failure;
mod fields;
mod json_scan;
mod known_fields;
mod lines;
mod open_calls;
mod plan;
mod prompt;
mod tail;
mod tools;

pub(in crate::transcript) use assembler::{Assembler, MessageStatus};
pub(in crate::transcript) use content::Content;
pub(in crate::transcript) use events::EventStream;
pub(in crate::transcript) use failure::{classify_error, find_status};
pub(in crate::transcript) use fields::{Field, list, object, string};
pub(in crate::transcript) use json_scan::{FromScan, JsonScanner, Quoted, scan, scan_raw};
pub(in crate::transcript) use known_fields::KnownFields;
pub(in crate::transcript) use lines::{json_text, parse, push_other, push_unknown, push_unreadable};
pub(in crate::transcript) use open_calls::{OpenCalls, unknown_end};
pub(in crate::transcript) use plan::read_plan;
pub(in crate::transcript) use prompt::hidden_prompt;
pub(in crate::transcript) use tail::Tail;
pub(in crate::transcript) use tools::Tools;
