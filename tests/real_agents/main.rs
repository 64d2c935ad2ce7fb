//! The truth: the real agents' programs, run by the real `ralph run`, against a model on loopback.
//! `just real-agents` installs the programs and runs this where there is no other network.

mod fixture;
#[path = "../model/mod.rs"]
mod model;
mod programs;

mod agents_test;
mod as_claude;
mod completion;
mod long_answers;
mod model_errors;
mod prompts;
mod root;
mod sessions;
mod stopping;

/// One fact, proven for several programs: a module per fact, a test per program.
macro_rules! proven_with {
    ($($fact:ident: $($name:ident => $cli:ident),+;)+) => { $(
        mod $fact {
            use crate::programs::Program;
            $(
                #[test]
                #[ignore = "needs the real programs: just real-agents"]
                fn $name() {
                    super::$fact(Program::$cli);
                }
            )+
        }
    )+ };
    ($($fact:ident),+) => {
        crate::proven_with! { $(
            $fact: claude => Claude, codex => Codex, gemini => Gemini, opencode => Opencode, copilot => Copilot;
        )+ }
    };
}
pub(crate) use proven_with;

/// What is installed is what the table of agents was checked against.
#[test]
fn the_pinned_versions_are_those_of_the_table() {
    use ralph::agent::{AGENTS, Evidence};
    let pinned: Vec<(&str, &str)> = include_str!("versions")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split(' ');
            (words.next().unwrap(), words.next_back().unwrap())
        })
        .collect();
    let mut rows: Vec<(&str, &str)> = AGENTS
        .iter()
        .filter_map(|agent| match agent.tested_with {
            Evidence::Version(version) => Some((agent.name, version)),
            Evidence::Documentation => None,
        })
        .collect();
    let mut pinned = pinned;
    pinned.sort_unstable();
    rows.sort_unstable();
    assert_eq!(pinned, rows);
}
