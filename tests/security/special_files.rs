//! FIFOs, devices and links in place of the files that ralph reads: each is refused by name; none blocks or fills memory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crate::sandbox::{CommandOutput, Sandbox};

const LIMIT: Duration = Duration::from_secs(20);

fn make_fifo(path: &Path) {
    let _ = fs::remove_file(path);
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("a FIFO");
}

fn link_to_zero(path: &Path) {
    let _ = fs::remove_file(path);
    symlink("/dev/zero", path).expect("a link");
}

/// Runs ralph with each kind of special file at `name`.
fn with_special_files(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> Vec<CommandOutput> {
    let path = sandbox.work().join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    ["a FIFO", "a device"]
        .into_iter()
        .map(|kind| {
            match kind {
                "a FIFO" => make_fifo(&path),
                _ => link_to_zero(&path),
            }
            let mut run = sandbox.start(arguments);
            assert!(
                run.has_ended_within(LIMIT),
                "{name} as {kind}: ralph {arguments:?} hangs"
            );
            let output = run.finish();
            assert!(output.stderr.contains(kind), "{name}: {output:?}");
            assert!(output.stderr.contains(name), "{name}: {output:?}");
            output
        })
        .collect()
}

#[test]
fn configuration_files_and_prompts_that_are_not_regular_are_refused() {
    for (name, arguments) in [
        ("PROMPT.md", &["run", "-q"][..]),
        ("other.md", &["run", "-q", "-P", "other.md"]),
        ("prices.yml", &["run", "-q", "-p", "x"]),
    ] {
        let config = if name == "prices.yml" {
            "pricing: prices.yml\n"
        } else {
            ""
        };
        let sandbox = Sandbox::scripted("say LOOP_COMPLETE", config);
        with_special_files(&sandbox, name, arguments);
        assert!(!sandbox.was_called(1), "{name}: no agent starts");
    }
    let sandbox = Sandbox::new();
    with_special_files(&sandbox, "ralph.yml", &["run", "-q", "-p", "x"]);
}

#[test]
fn special_files_in_place_of_drivers_and_foreign_configuration_do_not_block() {
    for name in [
        ".ralph/drivers/evil.sh",
        ".ralph/.ralphrc",
        ".ralphrc",
        ".ralphex/config",
    ] {
        let sandbox = Sandbox::new();
        let path = sandbox.work().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        if name.ends_with(".sh") {
            let config = "cli: {backend: 'driver:evil'}\n";
            fs::write(sandbox.work().join("ralph.yml"), config).expect("a configuration");
        }
        for place in [make_fifo as fn(&Path), link_to_zero] {
            place(&path);
            let mut run = sandbox.start(&["run", "-q", "-p", "x"]);
            assert!(run.has_ended_within(LIMIT), "{name}: ralph hangs");
            assert_ne!(run.finish().exit(), 0, "{name}: there is no agent");
        }
    }
}

#[test]
fn a_prompt_that_becomes_a_fifo_ends_the_run_with_an_error() {
    let sandbox = Sandbox::scripted(
        "say hm\nwait-for go\n",
        "event_loop: {max_no_progress: 0, max_iterations: 5}\n",
    );
    fs::write(sandbox.work().join("PROMPT.md"), "task").expect("a prompt");
    let mut run = sandbox.start(&["run", "-q"]);
    sandbox.wait_for_processes(1);
    make_fifo(&sandbox.work().join("PROMPT.md"));
    fs::write(sandbox.path("agent").join("go"), "").expect("a file");
    assert!(run.has_ended_within(LIMIT), "ralph hangs");
    assert_eq!(run.finish().exit(), 1);
    assert!(
        sandbox.failure_reason().contains("a FIFO"),
        "{}",
        sandbox.failure_reason()
    );
}

#[test]
fn the_prompt_has_a_size_limit() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", "");
    let file = fs::File::create(sandbox.work().join("PROMPT.md")).expect("a file");
    file.set_len(1 << 40).expect("a sparse file");
    let output = sandbox.ralph(&["run", "-q"]).exits_with(2);
    assert!(output.stderr.contains("larger than 16777216 bytes"), "{output:?}");
}
