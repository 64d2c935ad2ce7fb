//! Tests of the examples: runs the command of each README with the real binary and checks the result.

mod copy;
mod notify;
mod runs;
