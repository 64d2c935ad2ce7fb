//! The real binary with the fake agent: what a user gets.

mod agents_test;
mod complete;
mod demo;
mod endings;
mod errors;
mod floods;
mod history;
mod listings;
mod prices;
mod readers;
mod replays;
mod transcripts;
