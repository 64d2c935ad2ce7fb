//! Tests of hats, gates and prompts with the real program, the fake agent and the example of docs/hats.md.

use crate::sandbox::Sandbox;

const MANUAL: &str = include_str!("../../docs/hats.md");

/// Returns the first code block of this language in docs/hats.md.
fn block(kind: &str) -> &'static str {
    let (_, rest) = MANUAL.split_once(&format!("```{kind}\n")).expect("a block");
    rest.split_once("```").expect("the end of the block").0
}

/// Returns the rows of the documented run: hat, delivered topic, published topic.
fn documented_iterations() -> Vec<[&'static str; 3]> {
    let rows = MANUAL.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["", number, hat, delivered, published, ""] if number.parse::<u32>().is_ok() => {
                Some([hat, delivered, published])
            }
            _ => None,
        }
    });
    rows.collect()
}

/// Returns the script with which the fake agent publishes as documented.
fn script(published: &str) -> String {
    let step = match published.split_once(' ') {
        None => format!("say <event topic=\"{published}\">about {published}</event>"),
        Some((topic, target)) if target.starts_with("for ") => {
            let target = target.trim_start_matches("for ");
            format!("say <event topic=\"{topic}\" target=\"{target}\">about {topic}</event>")
        }
        Some(("nothing:", _)) => "say LOOP_COMPLETE".to_owned(),
        Some(_) => "say built it".to_owned(),
    };
    format!("read-stdin\nsay working\n{step}\n")
}

#[test]
fn the_documented_hats_are_activated_by_the_documented_topics() {
    let iterations = documented_iterations();
    assert_eq!(iterations.len(), 12);
    let sandbox = Sandbox::new();
    sandbox.configure(block("yaml"));
    for (index, [.., published]) in iterations.iter().enumerate() {
        sandbox.script(&(index + 1).to_string(), &script(published));
    }
    sandbox.init_git_repository();
    let before = sandbox.git_state();
    let output = sandbox
        .ralph(&["run", "-p", "Build a parser.", "--max-iterations", "100"])
        .exits_with(0);
    assert!(
        sandbox.git_state() == before,
        "the user's repository is unchanged"
    );
    for (index, [hat, delivered, _]) in iterations.iter().enumerate() {
        let number = index + 1;
        assert_eq!(
            sandbox.agent_variable(number, "RALPH_HAT").as_deref(),
            Some(*hat),
            "{number}"
        );
        let prompt = sandbox.prompt(number);
        assert!(prompt.starts_with("Build a parser.\n\n(From ralph: "), "{prompt}");
        assert!(
            prompt.contains(&format!("\n- {delivered}")),
            "{number}: {delivered} in {prompt}"
        );
    }
    assert!(!sandbox.was_called(13));
    assert!(
        output.stdout.contains("iteration 12/100 · reviewer"),
        "{output:?}"
    );
}

#[test]
fn the_documented_graph_is_printed_and_is_valid() {
    let sandbox = Sandbox::new();
    sandbox.configure(block("yaml"));
    assert_eq!(sandbox.ralph(&["hats", "graph"]).stdout, block("text"));
    let output = sandbox.ralph(&["hats", "validate"]);
    assert_eq!(
        (output.exit(), output.stdout.as_str()),
        (0, "✓ 3 hats, no problems\n")
    );
    assert!(
        sandbox
            .ralph(&["hats", "graph", "--mermaid"])
            .stdout
            .starts_with("flowchart TD\n")
    );
    let listed: serde_json::Value = sandbox.ralph(&["hats", "--json"]).json();
    assert_eq!(listed["builder"]["default_publishes"], "build.done");
    let shown = sandbox.ralph(&["hats", "show", "reviewer"]);
    assert!(
        shown.stdout.contains("checks every change.") && shown.stdout.contains("run the tests"),
        "{shown:?}"
    );
}

#[test]
fn two_hats_for_one_topic_are_refused_by_name() {
    let sandbox = Sandbox::new();
    sandbox.configure("hats:\n  ada: {triggers: [task.start, x]}\n  bob: {triggers: [x]}\n");
    sandbox.script("1", "say never");
    let output = sandbox.ralph(&["run", "-p", "task"]);
    assert_eq!(output.exit(), 2);
    assert_eq!(
        output.stderr,
        "error: two hats claim the topic `x`: `ada` and `bob`\nhint: keep it in either hats.ada.triggers or \
         hats.bob.triggers\nhint: to list all problems: ralph hats validate\n"
    );
    assert!(!sandbox.was_called(1));
    let output = sandbox.ralph(&["hats", "validate", "--json"]);
    assert_eq!(output.exit(), 2);
    assert_eq!(output.json()["findings"][0]["kind"], "claimed_twice");
}

#[test]
fn the_error_for_an_unknown_hat_or_gate_lists_the_known_ones() {
    let sandbox = Sandbox::new();
    sandbox.configure("hats:\n  ada: {triggers: [task.start]}\n");
    let output = sandbox.ralph(&["hats", "show", "eve"]);
    assert_eq!(
        (output.exit(), output.stderr.as_str()),
        (2, "error: no hat named `eve`\nhint: known hats: ada\n")
    );
    let output = sandbox.ralph(&["gates", "run", "eve"]);
    assert_eq!(
        (output.exit(), output.stderr.as_str()),
        (
            2,
            "error: no gate named `eve`\nhint: ralph.yml defines none; add them under `gates:`\n"
        )
    );
}

#[test]
fn show_prompt_prints_the_first_prompt_byte_for_byte() {
    let sandbox = Sandbox::new();
    sandbox.configure(block("yaml"));
    sandbox.script("1", "read-stdin\nsay LOOP_COMPLETE\n");
    let shown = sandbox.ralph(&["run", "-p", "Build a parser.", "--dry-run", "--show-prompt"]);
    assert_eq!(shown.exit(), 0, "{shown:?}");
    let call = sandbox
        .ralph(&["run", "-p", "Build a parser.", "--dry-run", "--json"])
        .json();
    let set = call["environment_set"].as_array().expect("a list");
    assert!(set.contains(&"RALPH_HAT=planner".into()), "{set:?}");
    assert!(!sandbox.was_called(1));
    assert_eq!(sandbox.ralph(&["run", "-p", "Build a parser."]).exit(), 0);
    assert_eq!(shown.stdout, sandbox.prompt(1));
}

#[test]
fn gates_run_works_as_in_the_loop() {
    let sandbox = Sandbox::new();
    sandbox.configure("gates:\n  - {name: good, run: 'echo fine; echo twice >&2'}\n  - {name: bad, run: 'cat; pwd; exit 3'}\n  \
         - {name: slow, run: 'sleep 1000', timeout: 1}\nevent_loop:\n  stop_grace_seconds: 0\n",
    );
    let listed = sandbox.ralph(&["gates", "list"]);
    assert!(listed.stdout.contains("good  echo fine"), "{listed:?}");

    let output = sandbox.ralph(&["gates", "run", "good"]);
    assert_eq!(output.exit(), 0, "{output:?}");
    assert!(output.stdout.contains("  fine\n  twice\n✓ good · "), "{output:?}");

    let output = sandbox.ralph(&["gates", "run", "--json"]);
    assert_eq!(output.exit(), 1, "{output:?}");
    let rows = output.json();
    assert_eq!(rows[0]["result"], "passed");
    assert_eq!(rows[1]["result"]["failed"]["end"]["exited"]["code"], 3);
    let workspace = sandbox.work().canonicalize().expect("the workspace");
    assert_eq!(rows[1]["output"], format!("{}\n", workspace.display()));
    assert_eq!(rows[2]["result"], "timed_out");
}

#[test]
fn a_usage_limit_reported_as_text_is_waited_for_and_not_counted() {
    let sandbox = Sandbox::new();
    sandbox.configure("");
    sandbox.script("1", "err Error: Usage limit reached, try again in 1s\nexit 1\n");
    sandbox.script("2", "say LOOP_COMPLETE\n");
    let output = sandbox.ralph(&["run", "-p", "task", "--max-iterations", "1", "--json"]);
    assert_eq!(output.exit(), 0, "{output:?}");
    assert!(
        output.stdout.contains(r#""outcome":"rate_limited","resets_at":"#),
        "{output:?}"
    );
    assert!(output.stdout.contains(r#""why":"rate_limit""#), "{output:?}");
    assert!(
        output.stdout.contains(r#""iteration":1,"attempt":2"#),
        "{output:?}"
    );
}

#[test]
fn a_token_budget_can_be_given_as_a_flag() {
    let sandbox = Sandbox::new();
    sandbox.configure("");
    let usage = r#"say @@RALPH@@ {"type":"usage","usage":{"total_tokens":600}}"#;
    sandbox.script("1", &format!("{usage}\nsay working\n"));
    sandbox.script("2", &format!("{usage}\nsay working\n"));
    let output = sandbox.ralph(&["run", "-p", "task", "--max-tokens", "1000", "--json"]);
    assert_eq!(output.exit(), 3, "{output:?}");
    assert!(output.stdout.contains(r#""limit":"tokens""#), "{output:?}");
    assert!(sandbox.was_called(2) && !sandbox.was_called(3));
}

/// An agent that is a shell script, and two hats.
fn sandbox_of_emitting_agent(script: &str) -> Sandbox {
    let sandbox = Sandbox::new().with_file("agent.sh", script);
    let path = sandbox.work().join("agent.sh");
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a script");
    sandbox.with_file(
        "ralph.yml",
        "cli: {backend: custom, command: ./agent.sh, prompt_mode: stdin}\n\
         event_loop: {prompt: x, max_iterations: 4, starting_event: begin, required_events: [built]}\n\
         hats:\n  builder: {triggers: [begin], publishes: [built], display_name: The builder}\n  \
         checker: {triggers: [built], publishes: [LOOP_COMPLETE]}\n",
    )
}

#[test]
fn agents_publish_events_from_their_tools() {
    let sandbox = sandbox_of_emitting_agent(
        "#!/bin/sh\ncat > $RALPH_HAT.prompt\ncase $RALPH_HAT in\n\
         builder) ralph emit built 'by a tool: $HOME' ;;\n\
         checker) ralph tools task ensure x > advice; ralph emit --json LOOP_COMPLETE '{\"ok\": true}' ;;\n\
         esac\necho worked\n",
    );
    let output = sandbox.ralph(&["run"]).exits_with(0);
    let prompt = std::fs::read_to_string(sandbox.work().join("builder.prompt")).expect("a prompt");
    assert!(prompt.contains("hat `The builder`"), "{prompt}");
    let prompt = std::fs::read_to_string(sandbox.work().join("checker.prompt")).expect("a prompt");
    assert_eq!(prompt.matches("- built: by a tool: $HOME").count(), 1, "{prompt}");
    let topics = sandbox.records("topic");
    assert_eq!(topics.len(), 2, "{topics:?}");
    let advice = std::fs::read_to_string(sandbox.work().join("advice")).expect("advice");
    assert!(advice.starts_with("No task list here:"), "{advice}");
    assert!(output.stdout.contains("LOOP_COMPLETE"), "{output:?}");
}

#[test]
fn events_are_published_only_into_an_active_run() {
    let sandbox = Sandbox::scripted("say LOOP_COMPLETE", "event_loop: {prompt: x}\n");
    let output = sandbox.ralph(&["emit", "built"]).exits_with(2);
    assert_eq!(
        output.stderr,
        "error: not called by a run: RALPH_RUN_ID is not set\nhint: agents call this; to send a run a message: ralph \
         tell TEXT\n"
    );
    sandbox.ralph(&["run"]).exits_with(0);
    let run = sandbox.newest_run();
    let id = run.file_name().expect("an id").to_owned();
    let emit = |topic: &str| {
        let mut command = sandbox.command(&["emit", topic]);
        let output = command.env("RALPH_RUN_ID", &id).output().expect("ralph");
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(emit("built").contains("is not active"), "{}", emit("built"));
    assert!(
        emit("two words").contains("invalid topic"),
        "{}",
        emit("two words")
    );
    assert!(!run.join("inbox").exists());
}

#[test]
fn disallowed_tools_require_an_agent_that_reports_its_tools() {
    let sandbox = sandbox_of_emitting_agent("#!/bin/sh\necho never > called\n");
    let sandbox = sandbox.with_file(
        "ralph.yml",
        "cli: {backend: custom, command: ./agent.sh}\nevent_loop: {prompt: x}\n\
         hats: {all: {triggers: ['*'], disallowed_tools: [Edit]}}\n",
    );
    let output = sandbox.ralph(&["run"]).exits_with(2);
    assert!(
        output
            .stderr
            .starts_with("error: hats.all.disallowed_tools cannot be enforced"),
        "{output:?}"
    );
    assert!(!sandbox.work().join("called").exists());
}

#[test]
fn file_of_ralph_orchestrator_runs_and_its_other_settings_are_listed() {
    let sandbox = sandbox_of_emitting_agent(
        "#!/bin/sh\ncat > prompt\nralph emit work.done 'built'; ralph emit LOOP_COMPLETE\necho worked\n",
    );
    let sandbox = sandbox.with_file(
        "ralph.yml",
        "event_loop: {prompt: x, max_iterations: 3, starting_event: work.start, required_events: [work.done], \
         checkpoint_interval: 5}\n\
         cli: {backend: custom, command: ./agent.sh, prompt_mode: stdin}\n\
         core: {specs_dir: specs, guardrails: [search first]}\n\
         hats:\n  builder: {name: The builder, triggers: [work.start], publishes: [work.done, LOOP_COMPLETE]}\n",
    );
    // `work.done` goes to the coordinator of the import, which then completes the run.
    let output = sandbox.ralph(&["run"]).exits_with(3);
    assert!(
        output.stderr.contains(
            "is a file of ralph-orchestrator; settings without a counterpart: core.specs_dir, \
             event_loop.checkpoint_interval"
        ),
        "{output:?}"
    );
    let prompt = std::fs::read_to_string(sandbox.work().join("prompt")).expect("a prompt");
    assert!(prompt.contains("- search first"), "{prompt}");
    assert!(prompt.contains("hat `coordinator`"), "{prompt}");
}

#[test]
fn status_block_completes_a_run_only_if_a_ralphrc_is_in_force() {
    let script = "#!/bin/sh\ncat > /dev/null\nprintf -- '---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: \
                  true\\n---END_RALPH_STATUS---\\n'\n";
    for (with_ralphrc, code) in [(true, 0), (false, 3)] {
        let sandbox = sandbox_of_emitting_agent(script).with_file(
            "ralph.yml",
            "cli: {backend: custom, command: ./agent.sh, prompt_mode: stdin}\nevent_loop: {prompt: x, max_iterations: 1}\n",
        );
        let sandbox = match with_ralphrc {
            true => sandbox.with_file(".ralphrc", "PROJECT_TYPE=rust\n"),
            false => sandbox,
        };
        sandbox.ralph(&["run"]).exits_with(code);
    }
}

#[test]
fn kstrl_project_runs_its_command_with_its_prompt_and_gate() {
    let script = "#!/bin/sh\ncat > prompt\necho '<promise>COMPLETE</promise>'\n";
    let sandbox = sandbox_of_emitting_agent(script).with_file(
        "kstrl.toml",
        "[agent]\ncommand = \"./agent.sh | cat\"\n[paths]\nprompt = \"task.md\"\n[verify]\ntest_command = \"touch tested\"\n",
    );
    std::fs::remove_file(sandbox.work().join("ralph.yml")).expect("a file");
    let sandbox = sandbox.with_file("task.md", "Build it.\n");
    sandbox.ralph(&["run"]).exits_with(0);
    let prompt = std::fs::read_to_string(sandbox.work().join("prompt")).expect("a prompt");
    assert!(prompt.starts_with("Build it."), "{prompt}");
    assert!(sandbox.work().join("tested").exists(), "the gate has run");
}

#[test]
fn doctor_fails_if_the_configured_command_does_not_exist() {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_file("ralph.yml", "cli: {backend: custom, command: no-such-agent}\n");
    let output = sandbox.ralph(&["doctor"]).exits_with(1);
    assert!(
        output.stdout.contains("custom command `no-such-agent` not found"),
        "{output:?}"
    );
}
