//! What goes in and what comes out, on pipes and on a PTY.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use ralph::event::{ProcessEnd, StreamName};
use ralph::process::{Child, ChildEvent, STDOUT_CHUNKS, Stdin, Transport};

use super::stage::{DEADLINE, PTY, Stage, supervisors};

const BOTH: [Transport; 2] = [Transport::Pipe, PTY];

#[test]
fn exit_codes_and_signals_are_reported() {
    for (script, end) in [
        ("", ProcessEnd::Exited { code: 0 }),
        ("exit 7", ProcessEnd::Exited { code: 7 }),
        ("die TERM", ProcessEnd::Signaled { signal: 15 }),
        ("die KILL", ProcessEnd::Signaled { signal: 9 }),
    ] {
        for transport in BOTH {
            let finished = Stage::playing(script).on(transport).spawn().finish();
            assert_eq!(finished.ended.end, end, "{script}");
            assert_eq!(
                (finished.ended.swept, finished.ended.stdout_complete),
                (0, true),
                "{script}"
            );
        }
    }
}

#[test]
fn stdout_and_stderr_stay_apart() {
    for transport in BOTH {
        let finished = Stage::playing("say out\nerr err\nprint more")
            .on(transport)
            .spawn()
            .finish();
        assert_eq!(finished.stdout, b"out\nmore");
        assert_eq!(finished.stderr, b"err\n");
    }
}

#[test]
fn a_pty_gives_the_bytes_of_a_pipe() {
    let long = "x".repeat(70_000);
    let script = format!(
        "say plain\nprint tab\\tbell\\x07esc\\x1b[1m nul\\x00 eof\\x04 intr\\x03 xoff\\x13 del\\x7f ff\\xff\\n\n\
         print carriage\\x0d\\nreturn\\n\nsay {long}\nrepeat 5000 line after line\nsay \u{2028}\nprint no newline"
    );
    let piped = Stage::playing(&script).spawn().finish().stdout;
    assert!(piped.len() > 145_000);
    for columns in [20, 500] {
        let stage = Stage::playing(&script).on(Transport::Pty { rows: 10, columns });
        assert!(
            stage.spawn().finish().stdout == piped,
            "differs at {columns} columns"
        );
    }
}

#[test]
fn only_stdout_is_a_terminal_and_it_is_the_controlling_one() {
    let on_pipe = Stage::playing("tty-report").spawn().finish().stdout;
    let expected = r#"{"stdin":false,"stdout":false,"stderr":false,"controlling":false,"session_leader":true,"rows":0,"columns":0}"#;
    assert_eq!(String::from_utf8_lossy(&on_pipe).trim(), expected);

    let on_pty = Stage::playing("tty-report").on(PTY).spawn().finish().stdout;
    let expected = r#"{"stdin":false,"stdout":true,"stderr":false,"controlling":true,"session_leader":true,"rows":40,"columns":120}"#;
    assert_eq!(String::from_utf8_lossy(&on_pty).trim(), expected);
}

#[test]
fn stdin_is_nothing_a_file_or_what_is_fed() {
    for transport in BOTH {
        let stage = Stage::playing("read-stdin").on(transport);
        stage.spawn().finish();
        assert_eq!(stage.read("1.stdin"), b"");

        let mut stage = Stage::playing("read-stdin").on(transport);
        stage.spec.stdin = Stdin::File(stage.path("default.script"));
        stage.spawn().finish();
        assert_eq!(stage.read("1.stdin"), b"read-stdin");

        let stage = Stage::playing("read-stdin")
            .on(transport)
            .reading(Stdin::StdinWriter(b"a\0b\n".to_vec()));
        stage.spawn().finish();
        assert_eq!(stage.read("1.stdin"), b"a\0b\n");
    }
}

#[test]
fn a_long_prompt_is_fed_to_a_child_that_talks_before_it_listens() {
    let prompt: Vec<u8> = (0..2_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let stage = Stage::playing("repeat 100000 this line makes ten megabytes of output, one hundred bytes at a time, so that no pipe of ours holds it\nread-stdin")
        .reading(Stdin::StdinWriter(prompt.clone()));
    let finished = stage.spawn().finish();
    assert!(finished.stdout.len() > 10_000_000);
    assert!(stage.read("1.stdin") == prompt);
}

#[test]
fn a_child_that_never_reads_its_stdin_ends_as_usual() {
    let stage = Stage::playing("say done").reading(Stdin::StdinWriter(vec![b'x'; 1_000_000]));
    assert_eq!(stage.spawn().finish().ended.end, ProcessEnd::Exited { code: 0 });
}

#[test]
fn arguments_environment_and_directory_arrive() {
    let mut stage = Stage::playing("").with_args(&["-p", "two words", "", "ünïcode\n"]);
    stage
        .spec
        .environment
        .set
        .push(("RALPH_TEST_SET".into(), "value".into()));
    stage.spec.environment.remove.push("PATH".into());
    stage.spawn().finish();
    assert_eq!(stage.read("1.argv"), "-p\0two words\0\0ünïcode\n\0".as_bytes());
    assert_eq!(
        stage.read("1.cwd"),
        stage
            .spec
            .cwd
            .canonicalize()
            .unwrap()
            .as_os_str()
            .as_encoded_bytes()
    );
    let environment = stage.read("1.env");
    let has = |prefix: &str| {
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry.starts_with(prefix.as_bytes()))
    };
    assert!(has("RALPH_TEST_SET=value"));
    assert!(!has("PATH="));
    assert!(has("HOME=") || std::env::var_os("HOME").is_none());
}

#[test]
fn a_child_that_closes_its_stdout_has_not_ended() {
    let stage = Stage::playing("say before\nclose-stdout\nwait-for go\nexit 3");
    let running = stage.spawn();
    running.wait_for("before");
    std::fs::write(stage.path("go"), "").unwrap();
    assert_eq!(running.finish().ended.end, ProcessEnd::Exited { code: 3 });
}

#[test]
fn a_slow_consumer_loses_nothing_and_memory_is_bounded() {
    let text = "y".repeat(999);
    let stage = Stage::playing(&format!("repeat 200000 {text}"));
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&alive);
    let (sender, reports) = mpsc::channel();
    let most = Arc::new(AtomicUsize::new(0));
    let peak = Arc::clone(&most);
    let _child = Child::spawn(&supervisors(), &stage.spec, move |report| {
        let now = counted.fetch_add(1, Ordering::SeqCst) + 1;
        peak.fetch_max(now, Ordering::SeqCst);
        sender.send(report).unwrap();
    })
    .unwrap();
    // The consumer stalls until every buffer is waiting for it, then goes on.
    super::stage::wait_until("a dry pool", DEADLINE, || {
        alive.load(Ordering::SeqCst) == STDOUT_CHUNKS
    });
    let mut total = 0_u64;
    loop {
        match reports.recv_timeout(DEADLINE).unwrap() {
            ChildEvent::Output { stream, chunk } => {
                assert_eq!(stream, StreamName::Stdout);
                assert!(chunk.iter().all(|byte| matches!(byte, b'y' | b'\n')));
                total += chunk.len() as u64;
                // Counted down first: the buffer may be filled again before the next instruction.
                alive.fetch_sub(1, Ordering::SeqCst);
            }
            ChildEvent::Ended(ended) => {
                assert!(ended.stdout_complete);
                break;
            }
        }
    }
    assert_eq!(total, 200_000_000);
    assert!(
        most.load(Ordering::SeqCst) <= STDOUT_CHUNKS + 1,
        "{most:?} chunks at a time"
    );
}
