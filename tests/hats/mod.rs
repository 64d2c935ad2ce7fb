//! Hats, gates and prompts as a user meets them: the real program, the fake agent, and the set of hats that
//! docs/hats.md shows.

use crate::sandbox::Sandbox;

const MANUAL: &str = include_str!("../../docs/hats.md");

/// What stands in the manual between a line that opens such a block and its end.
fn block(kind: &str) -> &'static str {
    let (_, rest) = MANUAL.split_once(&format!("```{kind}\n")).expect("a block");
    rest.split_once("```").expect("the end of the block").0
}

/// The rows of the documented night: hat, topic delivered, topic published.
fn night() -> Vec<[&'static str; 3]> {
    let rows = MANUAL.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells[..] {
            ["", number, hat, came, published, ""] if number.parse::<u32>().is_ok() => {
                Some([hat, came, published])
            }
            _ => None,
        }
    });
    rows.collect()
}

/// What the fake agent does so that the row comes true.
fn script(published: &str) -> String {
    let act = match published.split_once(' ') {
        None => format!("say <event topic=\"{published}\">about {published}</event>"),
        Some((topic, target)) if target.starts_with("for ") => {
            let target = target.trim_start_matches("for ");
            format!("say <event topic=\"{topic}\" target=\"{target}\">about {topic}</event>")
        }
        Some(("nothing:", _)) => "say LOOP_COMPLETE".to_owned(),
        Some(_) => "say built it".to_owned(),
    };
    format!("read-stdin\nsay working\n{act}\n")
}

#[test]
fn the_documented_hats_are_worn_along_the_documented_topics() {
    let night = night();
    assert_eq!(night.len(), 12);
    let sandbox = Sandbox::new();
    sandbox.configure(block("yaml"));
    for (index, [.., published]) in night.iter().enumerate() {
        sandbox.script(&(index + 1).to_string(), &script(published));
    }
    sandbox.live_in();
    let before = sandbox.git_state();
    let told = sandbox
        .ralph(&["run", "-p", "Build a parser.", "--max-iterations", "100"])
        .exits_with(0);
    assert!(sandbox.git_state() == before, "the user's git is as it was");
    for (index, [hat, came, _]) in night.iter().enumerate() {
        let number = index + 1;
        assert_eq!(
            sandbox.agent_variable(number, "RALPH_HAT").as_deref(),
            Some(*hat),
            "{number}"
        );
        let prompt = sandbox.prompt(number);
        assert!(prompt.starts_with("Build a parser.\n\n(From ralph: "), "{prompt}");
        assert!(
            prompt.contains(&format!("\n- {came}")),
            "{number}: {came} in {prompt}"
        );
    }
    assert!(!sandbox.was_called(13));
    assert!(told.stdout.contains("iteration 12/100 · reviewer"), "{told:?}");
}

#[test]
fn the_documented_drawing_is_what_the_program_draws_and_nothing_is_wrong_with_it() {
    let sandbox = Sandbox::new();
    sandbox.configure(block("yaml"));
    assert_eq!(sandbox.ralph(&["hats", "graph"]).stdout, block("text"));
    let told = sandbox.ralph(&["hats", "validate"]);
    assert_eq!(
        (told.exit(), told.stdout.as_str()),
        (0, "✓ 3 hats, nothing wrong\n")
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
        shown.stdout.contains("trusts nobody.") && shown.stdout.contains("run the tests"),
        "{shown:?}"
    );
}

#[test]
fn two_hats_for_one_topic_are_refused_by_name() {
    let sandbox = Sandbox::new();
    sandbox.configure("hats:\n  ada: {triggers: [task.start, x]}\n  bob: {triggers: [x]}\n");
    sandbox.script("1", "say never");
    let told = sandbox.ralph(&["run", "-p", "task"]);
    assert_eq!(told.exit(), 2);
    assert_eq!(
        told.stderr,
        "error: two hats claim the topic `x`: `ada` and `bob`\n  keep it in one of hats.ada.triggers and \
         hats.bob.triggers\n  ralph hats validate shows all that is wrong\n"
    );
    assert!(!sandbox.was_called(1));
    let told = sandbox.ralph(&["hats", "validate", "--json"]);
    assert_eq!(told.exit(), 2);
    assert_eq!(told.json()["findings"][0]["kind"], "claimed_twice");
}

#[test]
fn an_unknown_hat_or_gate_is_named_with_those_that_there_are() {
    let sandbox = Sandbox::new();
    sandbox.configure("hats:\n  ada: {triggers: [task.start]}\n");
    let told = sandbox.ralph(&["hats", "show", "eve"]);
    assert_eq!(
        (told.exit(), told.stderr.as_str()),
        (2, "error: there is no hat `eve`\n  there are: ada\n")
    );
    let told = sandbox.ralph(&["gates", "run", "eve"]);
    assert_eq!(
        (told.exit(), told.stderr.as_str()),
        (
            2,
            "error: there is no gate `eve`\n  ralph.yml configures none: they go under `gates:`\n"
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
fn gates_run_by_hand_as_the_loop_would_run_them() {
    let sandbox = Sandbox::new();
    sandbox.configure("gates:\n  - {name: good, run: 'echo fine; echo twice >&2'}\n  - {name: bad, run: 'cat; pwd; exit 3'}\n  \
         - {name: slow, run: 'sleep 1000', timeout: 1}\nevent_loop:\n  stop_grace_seconds: 0\n",
    );
    let listed = sandbox.ralph(&["gates", "list"]);
    assert!(listed.stdout.contains("good  echo fine"), "{listed:?}");

    let told = sandbox.ralph(&["gates", "run", "good"]);
    assert_eq!(told.exit(), 0, "{told:?}");
    assert!(told.stdout.contains("  fine\n  twice\n✓ good · "), "{told:?}");

    let told = sandbox.ralph(&["gates", "run", "--json"]);
    assert_eq!(told.exit(), 1, "{told:?}");
    let rows = told.json();
    assert_eq!(rows[0]["result"], "passed");
    assert_eq!(rows[1]["result"]["failed"]["end"]["exited"]["code"], 3);
    let workspace = sandbox.work().canonicalize().expect("the workspace");
    assert_eq!(rows[1]["output"], format!("{}\n", workspace.display()));
    assert_eq!(rows[2]["result"], "timed_out");
}

#[test]
fn a_usage_limit_told_in_words_is_waited_for_and_not_counted() {
    let sandbox = Sandbox::new();
    sandbox.configure("");
    sandbox.script("1", "err Error: Usage limit reached, try again in 1s\nexit 1\n");
    sandbox.script("2", "say LOOP_COMPLETE\n");
    let told = sandbox.ralph(&["run", "-p", "task", "--max-iterations", "1", "--json"]);
    assert_eq!(told.exit(), 0, "{told:?}");
    assert!(
        told.stdout.contains(r#""outcome":"rate_limited","resets_at":"#),
        "{told:?}"
    );
    assert!(told.stdout.contains(r#""why":"rate_limit""#), "{told:?}");
    assert!(told.stdout.contains(r#""iteration":1,"attempt":2"#), "{told:?}");
}

#[test]
fn a_budget_of_tokens_can_be_given_as_a_flag() {
    let sandbox = Sandbox::new();
    sandbox.configure("");
    let usage = r#"say @@RALPH@@ {"type":"usage","usage":{"total_tokens":600}}"#;
    sandbox.script("1", &format!("{usage}\nsay working\n"));
    sandbox.script("2", &format!("{usage}\nsay working\n"));
    let told = sandbox.ralph(&["run", "-p", "task", "--max-tokens", "1000", "--json"]);
    assert_eq!(told.exit(), 3, "{told:?}");
    assert!(told.stdout.contains(r#""limit":"tokens""#), "{told:?}");
    assert!(sandbox.was_called(2) && !sandbox.was_called(3));
}
