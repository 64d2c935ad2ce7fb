//! Long and slow answers arrive completely, even on a busy machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use ralph::event::{Flow, Meta, Tag, TranscriptEvent};

use crate::fixture::{Ended, Fixture};
use crate::model::{Block, Model, say, think};
use crate::programs::Program;
use crate::tests_for_programs;

tests_for_programs!(
    two_megabytes_arrive_completely_under_load,
    a_slow_answer_is_waited_for
);
tests_for_programs!(thinking_and_parallel_tools_are_recorded);

const SIZE: usize = 2 << 20;

/// Returns lines that all differ, because some programs stop at repeated output.
fn long_text() -> String {
    let mut text = String::with_capacity(SIZE + 100);
    let mut line: u64 = 0;
    while text.len() < SIZE {
        let noise = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        text.push_str(&format!(
            "Line {line}: café {noise:x} \"{:x}\"\n",
            noise.rotate_left(17)
        ));
        line += 1;
    }
    text
}

/// Returns the text of the agent.
fn agent_text(ended: &Ended) -> String {
    let mut text = String::new();
    for event in ended.transcript() {
        match event {
            TranscriptEvent::Text {
                tag: Tag::Ai,
                text: piece,
                flow,
                ..
            } => {
                if *flow == Flow::Line && !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(piece);
            }
            _ => continue,
        }
    }
    text
}

/// Keeps every core busy until it is dropped. Only one exists at a time, so that the machine is busy and not starved.
struct Load(
    std::sync::Arc<AtomicBool>,
    #[expect(dead_code, reason = "held")] MutexGuard<'static, ()>,
);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Load {
    fn new() -> Self {
        let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(2, std::num::NonZero::get);
        for _ in 0..cores {
            let stop = std::sync::Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(stop, guard)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Number of repetitions; `RALPH_REPEAT` overrides it.
fn repetitions() -> usize {
    let value = std::env::var("RALPH_REPEAT").ok();
    value.and_then(|times| times.parse().ok()).unwrap_or(1)
}

fn two_megabytes_arrive_completely_under_load(cli: Program) {
    let _load = Load::new();
    let answer = long_text();
    for time in 1..=repetitions() {
        let model = Model::with_conversations(vec![vec![vec![say(format!("{answer}\nLOOP_COMPLETE"))]]]);
        let fixture = Fixture::new(cli, &model.url()).with_arguments(&["-q"]);
        let ended = fixture.run("Say much.\n");
        ended.assert_code(0);
        let text = agent_text(&ended);
        assert!(
            text.contains(answer.trim_end()),
            "time {time}: {} of {} bytes\n{}",
            text.len(),
            answer.len(),
            ended.describe()
        );
    }
}

fn a_slow_answer_is_waited_for(cli: Program) {
    let pause = || Block::Pause(std::time::Duration::from_secs(2));
    let model = Model::with_conversations(vec![vec![vec![
        pause(),
        say("Slowly, "),
        pause(),
        say("in pieces.\nLOOP_COMPLETE"),
    ]]]);
    Fixture::new(cli, &model.url())
        .run("Take your time.\n")
        .assert_code(0);
}

fn thinking_and_parallel_tools_are_recorded(cli: Program) {
    use crate::model::{call_shell, call_write};
    let model = Model::new(move |request| {
        crate::model::Reply::Blocks(match request.turn {
            0 => vec![
                think("Two things at once."),
                call_shell("echo one"),
                call_shell("echo two; exit 3"),
            ],
            1 => vec![call_write(std::path::Path::new("written.txt"), "a line\n")],
            _ => vec![say("Both done.\nLOOP_COMPLETE")],
        })
    });
    let fixture = Fixture::new(cli, &model.url());
    let ended = fixture.run("Do two things.\n");
    ended.assert_code(0);
    let count = |is: fn(&TranscriptEvent) -> bool| ended.transcript().filter(|event| is(event)).count();
    assert!(
        count(|event| matches!(event, TranscriptEvent::ToolStart { .. })) >= 3,
        "{}",
        ended.describe()
    );
    assert_eq!(
        count(|event| matches!(event, TranscriptEvent::ToolStart { .. })),
        count(|event| matches!(event, TranscriptEvent::ToolEnd { .. })),
        "{}",
        ended.describe()
    );
    // Gemini CLI does not print the thinking of its model.
    if cli != Program::Gemini {
        let thought = ended
            .transcript()
            .any(|event| matches!(event, TranscriptEvent::Text { tag: Tag::Think, text, .. } if text.contains("at once")));
        assert!(thought, "{}", ended.describe());
    }
    assert!(
        ended.transcript().any(|event| matches!(
            event,
            TranscriptEvent::Meta {
                meta: Meta::Session { .. }
            }
        )),
        "no session id\n{}",
        ended.describe()
    );
}
