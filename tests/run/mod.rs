//! Tests of the real binary with the fake agent.

mod acp;
mod agents_test;
mod complete;
mod debug_log;
mod demo;
mod endings;
mod errors;
mod floods;
mod history;
mod listings;
mod prices;
mod readers;
mod replays;
mod supervision;
mod traces;
mod transcripts;
mod unknown_output;
