//! Tests of `ralph run` with the real agent programs against a model server on loopback.
//! `just real-agents` installs the programs and runs these tests without any other network.

mod fixture;
#[path = "../model/mod.rs"]
mod model;
mod programs;
#[path = "../sandbox/signals.rs"]
mod signals;

mod acp;
mod agents_test;
mod as_claude;
mod claude_turns;
mod completion;
mod fallback;
mod long_answers;
mod model_errors;
mod prompts;
mod root;
mod sessions;
mod stopping;

/// Defines one test per program for each function: a module per function, a test per program.
macro_rules! tests_for_programs {
    ($($function:ident: $($name:ident => $cli:ident),+;)+) => { $(
        mod $function {
            use crate::programs::Program;
            $(
                #[test]
                #[ignore = "needs the real programs: just real-agents"]
                fn $name() {
                    super::$function(Program::$cli);
                }
            )+
        }
    )+ };
    (all: $($function:ident),+) => {
        crate::tests_for_programs! { $(
            $function: claude => Claude, codex => Codex, gemini => Gemini, opencode => Opencode, copilot => Copilot,
                qwen => Qwen, pi => Pi, kimi => Kimi;
        )+ }
    };
    ($($function:ident),+) => {
        crate::tests_for_programs! { $(
            $function: claude => Claude, codex => Codex, gemini => Gemini, opencode => Opencode, copilot => Copilot;
        )+ }
    };
}
pub(crate) use tests_for_programs;

/// The installed versions are those against which the table of agents was checked.
#[test]
fn the_pinned_versions_match_the_agent_table() {
    use ralph::agent::{AGENTS, Evidence};
    let pinned: Vec<(&str, &str)> = include_str!("versions")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("node "))
        .map(|line| {
            let mut columns = line.split(' ');
            (columns.next().unwrap(), columns.next_back().unwrap())
        })
        .collect();
    let mut rows: Vec<(&str, &str)> = AGENTS
        .iter()
        .filter_map(|agent| match agent.tested_with {
            Evidence::Version(version) => Some((agent.name, version)),
            Evidence::Captured(_) | Evidence::Documentation => None,
        })
        .collect();
    let mut pinned = pinned;
    pinned.sort_unstable();
    rows.sort_unstable();
    assert_eq!(pinned, rows);
}
