//! Tests of stdin, stdout and stderr of children on pipes and on a PTY.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use ralph::event::{ProcessEnd, StreamName};
use ralph::process::{Child, ChildEvent, STDOUT_CHUNKS, Stdin, Transport};

use super::helpers::{ChildFixture, DEADLINE, PTY, supervisors};

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
            let finished = ChildFixture::with_script(script)
                .with_transport(transport)
                .spawn()
                .finish();
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
        let finished = ChildFixture::with_script("say out\nerr err\nprint more")
            .with_transport(transport)
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
    let piped = ChildFixture::with_script(&script).spawn().finish().stdout;
    assert!(piped.len() > 145_000);
    for columns in [20, 500] {
        let fixture = ChildFixture::with_script(&script).with_transport(Transport::Pty { rows: 10, columns });
        assert!(
            fixture.spawn().finish().stdout == piped,
            "differs at {columns} columns"
        );
    }
}

#[test]
fn only_stdout_is_a_terminal_and_it_is_the_controlling_one() {
    let on_pipe = ChildFixture::with_script("tty-report").spawn().finish().stdout;
    let expected = r#"{"stdin":false,"stdout":false,"stderr":false,"controlling":false,"session_leader":true,"rows":0,"columns":0}"#;
    assert_eq!(String::from_utf8_lossy(&on_pipe).trim(), expected);

    let on_pty = ChildFixture::with_script("tty-report")
        .with_transport(PTY)
        .spawn()
        .finish()
        .stdout;
    let expected = r#"{"stdin":false,"stdout":true,"stderr":false,"controlling":true,"session_leader":true,"rows":40,"columns":120}"#;
    assert_eq!(String::from_utf8_lossy(&on_pty).trim(), expected);
}

#[test]
fn stdin_is_empty_a_file_or_given_bytes() {
    for transport in BOTH {
        let fixture = ChildFixture::with_script("read-stdin").with_transport(transport);
        fixture.spawn().finish();
        assert_eq!(fixture.read("1.stdin"), b"");

        let mut fixture = ChildFixture::with_script("read-stdin").with_transport(transport);
        fixture.spec.stdin = Stdin::File(fixture.path("default.script"));
        fixture.spawn().finish();
        assert_eq!(fixture.read("1.stdin"), b"read-stdin");

        let fixture = ChildFixture::with_script("read-stdin")
            .with_transport(transport)
            .with_stdin(Stdin::Bytes(b"a\0b\n".to_vec()));
        fixture.spawn().finish();
        assert_eq!(fixture.read("1.stdin"), b"a\0b\n");
    }
}

#[test]
fn a_long_prompt_reaches_a_child_that_prints_before_it_reads() {
    let prompt: Vec<u8> = (0..2_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let fixture = ChildFixture::with_script("repeat 100000 this line makes ten megabytes of output, one hundred bytes at a time, so that no pipe of ours holds it\nread-stdin")
        .with_stdin(Stdin::Bytes(prompt.clone()));
    let finished = fixture.spawn().finish();
    assert!(finished.stdout.len() > 10_000_000);
    assert!(fixture.read("1.stdin") == prompt);
}

#[test]
fn a_child_that_never_reads_its_stdin_exits_as_usual() {
    let fixture = ChildFixture::with_script("say done").with_stdin(Stdin::Bytes(vec![b'x'; 1_000_000]));
    assert_eq!(fixture.spawn().finish().ended.end, ProcessEnd::Exited { code: 0 });
}

#[test]
fn arguments_environment_and_directory_arrive() {
    let mut fixture = ChildFixture::with_script("").with_args(&["-p", "two words", "", "ünïcode\n"]);
    fixture
        .spec
        .environment
        .set
        .push(("RALPH_TEST_SET".into(), "value".into()));
    fixture.spec.environment.remove.push("PATH".into());
    fixture.spawn().finish();
    assert_eq!(fixture.read("1.argv"), "-p\0two words\0\0ünïcode\n\0".as_bytes());
    assert_eq!(
        fixture.read("1.cwd"),
        fixture
            .spec
            .cwd
            .canonicalize()
            .unwrap()
            .as_os_str()
            .as_encoded_bytes()
    );
    let environment = fixture.read("1.env");
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
fn a_child_that_closes_its_stdout_keeps_running() {
    let fixture = ChildFixture::with_script("say before\nclose-stdout\nwait-for go\nexit 3");
    let running = fixture.spawn();
    running.wait_for("before");
    std::fs::write(fixture.path("go"), "").unwrap();
    assert_eq!(running.finish().ended.end, ProcessEnd::Exited { code: 3 });
}

#[test]
fn a_slow_consumer_loses_nothing_and_memory_is_bounded() {
    let text = "y".repeat(999);
    let fixture = ChildFixture::with_script(&format!("repeat 200000 {text}"));
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&alive);
    let (sender, reports) = mpsc::channel();
    let most = Arc::new(AtomicUsize::new(0));
    let peak = Arc::clone(&most);
    let _child = Child::spawn(&supervisors(), &fixture.spec, move |report| {
        let now = counted.fetch_add(1, Ordering::SeqCst) + 1;
        peak.fetch_max(now, Ordering::SeqCst);
        sender.send(report).unwrap();
    })
    .unwrap();
    // The consumer does not read until every buffer is in use.
    super::helpers::wait_until("an exhausted buffer pool", DEADLINE, || {
        alive.load(Ordering::SeqCst) == STDOUT_CHUNKS
    });
    let mut total = 0_u64;
    loop {
        match reports.recv_timeout(DEADLINE).unwrap() {
            ChildEvent::Output { stream, chunk } => {
                assert_eq!(stream, StreamName::Stdout);
                assert!(chunk.iter().all(|byte| matches!(byte, b'y' | b'\n')));
                total += chunk.len() as u64;
                // Decremented before the chunk is dropped, because the buffer may be reused at once.
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
