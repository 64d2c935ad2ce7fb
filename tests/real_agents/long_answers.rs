//! A long answer comes whole, however busy the machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use ralph::event::{Flow, Meta, Tag, TranscriptEvent};

use crate::fixture::{Ended, Fixture};
use crate::model::{Block, Model, say, think};
use crate::programs::Program;
use crate::proven_with;

proven_with!(two_megabytes_are_whole_under_load, a_slow_answer_is_waited_for);
proven_with!(thinking_and_parallel_tools_are_seen);

const SIZE: usize = 2 << 20;

/// Lines of which no two are equal: programs that look for loops find none.
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

/// What the agent said, put together again.
fn spoken(ended: &Ended) -> String {
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

/// Keeps every core busy until it is dropped. One at a time: busy is meant, not starved.
struct Load(
    std::sync::Arc<AtomicBool>,
    #[expect(dead_code, reason = "held")] MutexGuard<'static, ()>,
);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Load {
    fn new() -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
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
        Self(stop, turn)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How often; `RALPH_REPEAT` says otherwise.
fn repetitions() -> usize {
    let told = std::env::var("RALPH_REPEAT").ok();
    told.and_then(|times| times.parse().ok()).unwrap_or(3)
}

fn two_megabytes_are_whole_under_load(cli: Program) {
    let _load = Load::new();
    let answer = long_text();
    for time in 1..=repetitions() {
        let model = Model::playing(vec![vec![vec![say(format!("{answer}\nLOOP_COMPLETE"))]]]);
        let fixture = Fixture::new(cli, &model.url()).with_arguments(&["-q"]);
        let ended = fixture.run("Say much.\n");
        ended.assert_code(0);
        let spoken = spoken(&ended);
        assert!(
            spoken.contains(answer.trim_end()),
            "time {time}: {} of {} bytes\n{}",
            spoken.len(),
            answer.len(),
            ended.story()
        );
    }
}

fn a_slow_answer_is_waited_for(cli: Program) {
    let nap = || Block::Pause(std::time::Duration::from_secs(2));
    let model = Model::playing(vec![vec![vec![
        nap(),
        say("Slowly, "),
        nap(),
        say("in pieces.\nLOOP_COMPLETE"),
    ]]]);
    Fixture::new(cli, &model.url())
        .run("Take your time.\n")
        .assert_code(0);
}

fn thinking_and_parallel_tools_are_seen(cli: Program) {
    use crate::model::{call_shell, call_write};
    let model = Model::new(move |asked| {
        crate::model::Reply::Blocks(match asked.turn {
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
        ended.story()
    );
    assert_eq!(
        count(|event| matches!(event, TranscriptEvent::ToolStart { .. })),
        count(|event| matches!(event, TranscriptEvent::ToolEnd { .. })),
        "{}",
        ended.story()
    );
    // One of them does not tell what its model thinks.
    if cli != Program::Gemini {
        let thought = ended
            .transcript()
            .any(|event| matches!(event, TranscriptEvent::Text { tag: Tag::Think, text, .. } if text.contains("at once")));
        assert!(thought, "{}", ended.story());
    }
    assert!(
        ended.transcript().any(|event| matches!(
            event,
            TranscriptEvent::Meta {
                meta: Meta::Session { .. }
            }
        )),
        "no session id\n{}",
        ended.story()
    );
}
