//! Tests of the import, with small files in the format of ralph-orchestrator.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::config::yaml::Document;

const AGENTS: &[&str] = &["claude", "codex", "pi"];

fn import(text: &str) -> Result<ImportedSettings, Vec<Problem>> {
    let document = Document::new(Path::new("ralph.yml"), text);
    assert!(is_recognized(document.spans()), "{text}");
    let values: Value = document.read_values().expect("valid YAML");
    read(Path::new("ralph.yml"), &values, document.spans(), AGENTS)
}

fn imported(text: &str) -> (Value, Vec<String>) {
    let imported = import(text).expect("a usable file");
    let settings = serde_json::to_value(&imported.settings).expect("JSON");
    (settings, imported.warnings)
}

#[test]
fn files_of_this_ralph_are_not_recognized() {
    for text in [
        "event_loop: {prompt: x, starting_event: a, max_iterations: 3}\nhats: {a: {triggers: ['*']}}\n",
        "max_iterations: 3\n",
        "cli: {backend: codex}\nadapters: {codex: {timeout: 3}}\n",
        "",
    ] {
        let document = Document::new(Path::new("ralph.yml"), text);
        assert!(!is_recognized(document.spans()), "{text}");
    }
}

#[test]
fn no_key_of_this_ralph_is_taken_for_one_of_the_other() {
    for pattern in RECOGNIZED_BY.iter().chain(NO_COUNTERPART) {
        let key = pattern.replace('*', "NAME");
        let parts: Vec<&str> = key.split('.').collect();
        let set = SettingsBuilder::default().set(&parts, json!(true), &ImportedFrom::Line(1));
        // Both have a section of this name.
        if key != "hooks" {
            assert_eq!(set, Err(Rejected::UnknownKey), "{key}");
        }
    }
}

#[test]
fn settings_with_a_counterpart_are_mapped() {
    let (settings, warnings) = imported(
        "event_loop:\n  starting_event: begin\n  required_events: [built]\n  cooldown_delay_seconds: 5\n  \
         idle_timeout_secs: 900\n  max_runtime_seconds: 99999999999\n  completion_promise: ''\n\
         cli: {backend: pi, args: [--thinking, high]}\n\
         core: {guardrails: [search first]}\n\
         backpressure: {gates: [{name: fmt, command: cargo fmt --check}]}\n",
    );
    let event_loop = &settings["event_loop"];
    assert_eq!(event_loop["starting_event"], "begin");
    assert_eq!(event_loop["required_events"], json!(["built"]));
    assert_eq!(event_loop["cooldown_seconds"], 5);
    assert_eq!(event_loop["max_runtime_seconds"], YEAR);
    assert_eq!(event_loop["completion_promise"], Value::Null);
    assert_eq!(event_loop["guardrails"], json!(["search first"]));
    assert_eq!(settings["adapters"]["pi"]["idle_timeout"], 900);
    assert_eq!(settings["adapters"]["pi"]["args"], json!(["--thinking", "high"]));
    assert_eq!(settings["cli"]["args"], Value::Null);
    assert_eq!(settings["gates"][0]["run"], "cargo fmt --check");
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn settings_of_a_whole_file_apply_to_every_agent_that_may_be_selected() {
    let (settings, _) = imported("event_loop: {idle_timeout_secs: 60}\n");
    for agent in AGENTS {
        assert_eq!(settings["adapters"][agent]["idle_timeout"], 60, "{agent}");
    }
}

#[test]
fn settings_without_a_counterpart_are_listed_once() {
    let (_, warnings) = imported(
        "memories: {enabled: true, budget: 2000}\ntasks: {enabled: true}\nskills: {dirs: [a]}\nRObot: {enabled: false}\n\
         core: {specs_dir: specs, scratchpad: s.md}\nhooks: {enabled: false}\n\
         hats:\n  a: {name: A, triggers: ['*'], concurrency: 3, timeout: 600, aggregate: {mode: wait_for_all}}\n  \
         b: {name: B, triggers: [b], concurrency: 1}\n",
    );
    assert_eq!(
        warnings,
        [
            "ralph.yml is a file of ralph-orchestrator; settings without a counterpart: RObot, core.scratchpad, \
          core.specs_dir, hats.a.aggregate, hats.a.concurrency, hats.a.timeout, memories, skills, tasks"
        ]
    );
}

#[test]
fn hats_keep_their_agents() {
    let (settings, warnings) = imported(
        "cli: {backend: claude}\n\
         hats:\n  a: {triggers: ['*'], backend: codex, backend_args: [-x]}\n  b: {triggers: [b], backend: claude}\n  \
         c: {triggers: [c], backend: {type: pi, args: [--thinking, high]}}\n  d: {triggers: [d], backend: {command: my-agent}}\n",
    );
    let hats = &settings["hats"];
    assert_eq!(
        (&hats["a"]["agent"], &hats["a"]["args"]),
        (&json!("codex"), &json!(["-x"]))
    );
    assert_eq!(hats["b"]["agent"], Value::Null);
    assert_eq!(
        (&hats["c"]["agent"], &hats["c"]["args"]),
        (&json!("pi"), &json!(["--thinking", "high"]))
    );
    assert!(warnings[0].ends_with(": hats.d.backend"), "{warnings:?}");
}

#[test]
fn hats_keep_their_names_and_get_a_coordinator() {
    let (settings, _) = imported(
        "event_loop: {completion_promise: all.done}\n\
         hats:\n  builder:\n    name: The builder\n    triggers: [build.task]\n    publishes: [build.done]\n    \
         instructions: Build.\n    extra_instructions: [Test., Commit.]\n    disallowed_tools: [Edit]\n  \
         closer:\n    name: The closer\n    triggers: ['build.*']\n    default_publishes: all.done\n",
    );
    let hats = &settings["hats"];
    assert_eq!(hats["builder"]["display_name"], "The builder");
    assert_eq!(hats["builder"]["instructions"], "Build.\n\nTest.\n\nCommit.");
    assert_eq!(hats["builder"]["disallowed_tools"], json!(["Edit"]));
    assert_eq!(hats["closer"]["default_publishes"], Value::Null);
    assert_eq!(hats["coordinator"]["triggers"], json!(["*"]));
    assert_eq!(hats["coordinator"]["publishes"], json!(["build.task"]));
}

#[test]
fn file_with_a_hat_for_all_events_or_without_hats_gets_no_coordinator() {
    let (settings, _) = imported("hats: {a: {name: A, triggers: ['*']}}\n");
    assert_eq!(settings["hats"].as_object().map(serde_json::Map::len), Some(1));
    let (settings, _) = imported("core: {}\n");
    assert_eq!(settings["hats"].as_object().map(serde_json::Map::len), Some(0));
    let (settings, _) = imported("hats: {coordinator: {name: A, triggers: [a]}}\n");
    assert_eq!(settings["hats"]["ralph"]["triggers"], json!(["*"]));
}

#[test]
fn older_keys_are_read() {
    let (settings, warnings) = imported(
        "agent: codex\nprompt_file: TASK.md\nmax_iterations: 7\nmax_runtime: 60\nmax_cost: 2.5\nverbose: true\n\
         archive_prompts: true\nevent_loop: {starting_hat: b}\nhats: {b: {name: B, triggers: [go, '*']}}\n",
    );
    assert_eq!(settings["cli"]["backend"], "codex");
    let event_loop = &settings["event_loop"];
    assert_eq!(event_loop["prompt_file"], "TASK.md");
    assert_eq!(event_loop["max_iterations"], 7);
    assert_eq!(event_loop["max_runtime_seconds"], 60);
    assert_eq!(event_loop["max_cost_usd"], 2.5);
    assert_eq!(event_loop["starting_event"], "go");
    assert!(
        warnings[0].ends_with(": archive_prompts, verbose"),
        "{warnings:?}"
    );
}

#[test]
fn unknown_keys_wrong_values_and_permissions_are_all_reported() {
    let problems = import(
        "core: {}\nevent_loop: {max_iteration: 3, max_consecutive_failures: many}\nhats: {a: {name: A, trigger: [x]}}\n\
         adapters: {claude: {tool_permissions: [Read]}}\nextra: 1\n",
    )
    .expect_err("five problems");
    let texts: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.key, problem.message))
        .collect();
    assert_eq!(
        texts,
        [
            "adapters.claude.tool_permissions: tool permissions cannot be enforced for this agent",
            "event_loop.max_consecutive_failures: expected an integer, found `many`",
            "event_loop.max_iteration: unknown key",
            "extra: unknown key",
            "hats.a.trigger: unknown key",
        ]
    );
    assert_eq!(
        problems[2].help.as_deref(),
        Some("did you mean `max_iterations`?")
    );
}
