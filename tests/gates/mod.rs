//! Gates that resist cheating: `protect` and `in: clean` against agents that change tests, scripts, tools and configuration
//! instead of the code, and against the agents that fix the code.

mod cheats;
mod honest;
mod projects;
mod receipt;
