//! Whatever is typed wrongly, the answer says what to do.

use super::{commands, words};
use crate::sandbox::{Sandbox, Told, claude};

/// A line for each.
const WRONG: &str = "
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
    export
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

/// A line after the first that is more than the picture of a mistake.
fn has_remedy(told: &Told) -> bool {
    let mut lines = told.stderr.lines().skip(1).map(str::trim_start);
    lines.any(|line| {
        let picture = line.is_empty() || line.starts_with(['|', '-']) || line.contains(" | ");
        !picture || line.starts_with("= help:")
    })
}

#[test]
fn an_unknown_option_is_refused_with_a_way_to_help() {
    let sandbox = Sandbox::new();
    for (path, _) in commands() {
        let told = sandbox.ralph(&words(&path, &["--no-such-option"])).exits_with(2);
        let says = if path == ["as-claude"] {
            "usage: ralph as-claude"
        } else {
            "try '--help'"
        };
        assert!(told.stderr.contains(says), "{path:?}: {}", told.stderr);
    }
}

#[test]
fn every_wrong_name_or_value_is_answered_with_a_remedy() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .playing("default", &claude::session("LOOP_COMPLETE"))
        .with_file("hats.yml", "hats:\n  builder:\n    triggers: [task.start]\n")
        .with_file("gates.yml", "gates:\n  - {name: t, run: 'true'}\n")
        .with_file("mistake.yml", "event_loop:\n  max_iterations: 0\n")
        .with_file("broken.yml", "event_loop: [\n")
        .with_file("twice.yml", "session: fresh\nsession: fresh\n");
    sandbox
        .ralph(&["run", "-q", "--no-tui", "-p", "do it"])
        .exits_with(0);
    let mut silent = String::new();
    for line in WRONG.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let told = sandbox.ralph(&words);
        let error = told.stderr.starts_with("error: ") || told.stderr.contains("Usage: ");
        // A table of findings has its remedies in it.
        let finding = told.stdout.contains("✗") && told.stdout.contains("→");
        if told.exit() == 0 || !(finding || error && has_remedy(&told)) {
            silent.push_str(&format!(
                "{line}: exit {}\n{}{}",
                told.exit(),
                told.stdout,
                told.stderr
            ));
        }
    }
    assert_eq!(silent, "", "answered without a remedy");
}

#[test]
fn a_wrong_variable_is_answered_with_a_remedy() {
    let sandbox = Sandbox::new().with_agent("claude");
    for (name, value) in [
        ("RALPH_MAX_ITERATIONS", "many"),
        ("RALPH_TRANSCRIPT", "cluade"),
        ("RALPH_AGENT", "cluade"),
        ("RALPH_AGENT_CMD", "'a"),
        ("RALPH_PROMPT_FILE", "nope.md"),
    ] {
        let mut command = sandbox.command(&["run"]);
        let output = command.env(name, value).output().expect("ralph");
        let told = Told {
            stdout: String::new(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status,
        };
        assert!(has_remedy(&told), "{name}={value}: {}", told.stderr);
    }
}
