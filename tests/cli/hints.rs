//! Every invalid command line is answered with a hint.

use super::{commands, words};
use crate::sandbox::{CommandOutput, Sandbox, claude};

/// Invalid command lines, one per line.
const INVALID: &str = "
    nonsense
    run
    run -p x --agent cluade
    run -p x --agent gemini
    run -p x --agent custom
    run -p x --agent driver:nope
    run -p x --agent driver:../nope
    run -p x --agent-cmd no-such-program
    run -p x --agent-cmd 'a
    run -p x --transcript cluade
    run -p x --transcript jq
    run -p x --jq-filter .[
    run -p x --mode nope
    run -p x --max-iterations many
    run -p x --max-iterations 0
    run -p x --max-cost nan
    run -p x --config nope.yml
    run -p x --config mistake.yml
    run -p x --config broken.yml
    run -p x --config twice.yml
    run -p x --config .
    run -P nope.md
    run -P .
    run -p x --interactive
    run -p x --tui
    run --continue nope
    run --show-prompt
    run --yes
    understand many
    init --from-ralphrc
    init --from-ralphex nope
    tell
    tell nope hello
    runs --since soon
    runs --outcome nice
    show nope
    show /
    logs nope
    logs --iteration 99
    logs --tag nope
    clean --older-than soon
    clean --keep some
    clean --keep 0
    export nope
    export latest --format pdf
    export latest --force
    export latest -o mistake.yml
    export latest -o nope/x.md
    agents test cluade
    agents test gemini
    agents test --timeout 0
    drivers
    drivers check nope
    drivers new ../nope
    config
    config convert
    config convert --from nope
    config convert --from ralphrc
    config convert --from ralphrc nope
    config show --config nope.yml
    trust --json
    trust --show --revoke
    hats show nope
    hats show nope --config hats.yml
    gates run nope
    gates run nope --config gates.yml
    attach nope
    attach
    transcript
    transcript nope
    transcript mistake.yml --transcript cluade
    replay
    replay nope
    replay latest --speed 0
    replay latest --transcript claude
    replay mistake.yml --speed 2
    schema
    schema nope
    completions nope
    man nope
    man hats nope
    man --out mistake.yml
    as-claude -p x
    as-claude --agent cluade -p x
";

/// Returns whether stderr has a hint: a line after the first that is not part of a source excerpt.
fn has_hint(output: &CommandOutput) -> bool {
    let mut lines = output.stderr.lines().skip(1).map(str::trim_start);
    lines.any(|line| {
        let is_excerpt = line.is_empty() || line.starts_with(['|', '-']) || line.contains(" | ");
        !is_excerpt || line.starts_with("= help:")
    })
}

#[test]
fn an_unknown_option_is_answered_with_a_reference_to_help() {
    let sandbox = Sandbox::new();
    for (path, _) in commands() {
        let output = sandbox.ralph(&words(&path, &["--no-such-option"])).exits_with(2);
        let expected = match path.first().map(String::as_str) {
            Some("as-claude") => "usage: ralph as-claude",
            // Its options are those of ralph-fleet, which is not installed.
            Some("worker" | "fleet") => "docs/fleet.md",
            _ => "try '--help'",
        };
        assert!(output.stderr.contains(expected), "{path:?}: {}", output.stderr);
    }
}

#[test]
fn every_invalid_name_or_value_is_answered_with_a_hint() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
        .with_file("hats.yml", "hats:\n  builder:\n    triggers: [task.start]\n")
        .with_file("gates.yml", "gates:\n  - {name: t, run: 'true'}\n")
        .with_file("mistake.yml", "event_loop:\n  max_iterations: 0\n")
        .with_file("broken.yml", "event_loop: [\n")
        .with_file("twice.yml", "session: fresh\nsession: fresh\n");
    sandbox
        .ralph(&["run", "-q", "--no-tui", "-p", "do it"])
        .exits_with(0);
    let mut without_hint = String::new();
    for line in INVALID.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let output = sandbox.ralph(&words);
        let error = output.stderr.starts_with("error: ") || output.stderr.contains("Usage: ");
        // Findings have their remedies in the table.
        let finding = output.stdout.contains("✗") && output.stdout.contains("→");
        if output.exit() == 0 || !(finding || error && has_hint(&output)) {
            without_hint.push_str(&format!(
                "{line}: exit {}\n{}{}",
                output.exit(),
                output.stdout,
                output.stderr
            ));
        }
    }
    assert_eq!(without_hint, "", "answered without a hint");
}

#[test]
fn an_invalid_variable_is_answered_with_a_hint() {
    let sandbox = Sandbox::new().with_agent("claude");
    for (name, value) in [
        ("RALPH_MAX_ITERATIONS", "many"),
        ("RALPH_TRANSCRIPT", "cluade"),
        ("RALPH_AGENT", "cluade"),
        ("RALPH_AGENT_CMD", "'a"),
        ("RALPH_PROMPT_FILE", "nope.md"),
    ] {
        let mut command = sandbox.command(&["run"]);
        let raw = command.env(name, value).output().expect("ralph");
        let output = CommandOutput {
            stdout: String::new(),
            stderr: String::from_utf8_lossy(&raw.stderr).into_owned(),
            status: raw.status,
        };
        assert!(has_hint(&output), "{name}={value}: {}", output.stderr);
    }
}
