//! Tests of snapshots: what they contain, how they compare, and how they are written to a directory.

mod fork;
mod helpers;
mod restore;
mod store;
mod vandal;
