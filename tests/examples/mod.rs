//! The examples that users copy: each is run by the very command that its README names, with the real binary, and shows
//! what it says that it shows.

mod copied;
mod notify;
mod runs;
