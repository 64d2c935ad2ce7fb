//! A loop that outlives what happens to it: resumption, steering, standstill, bounds, hooks, and the user's git.

mod bounds;
mod hooks;
mod killed;
mod steering;
