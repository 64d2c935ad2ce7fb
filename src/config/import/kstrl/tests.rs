//! Tests of the import, with small files in the format of kstrl.

use serde_json::{Value, json};

use super::*;

fn imported(text: &str, environment: &[(&str, &str)]) -> (Value, ImportedSettings) {
    let environment: Vec<(String, String)> = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let context = ImportContext {
        path: Path::new("/p/kstrl.toml"),
        environment: &environment,
        agents: &["claude", "codex"],
    };
    let imported = read(text, &context);
    let settings = serde_json::to_value(&imported.settings).expect("JSON");
    (settings, imported)
}

#[test]
fn settings_with_a_counterpart_are_mapped() {
    let (settings, imported) = imported(
        "[agent]\ntype = \"codex\"\nmodel = \"m\"\n[run]\nmax_iterations = 10\nsleep_seconds = 1.5\n\
         [paths]\nprompt = \"tasks/p.md\"\nallowed = [\"src/\", \"README.md\"]\nprd = \"prd.json\"\n\
         [timeout]\nagent_iteration = 1800.0\n[breaker]\nno_progress_iterations = 3\n\
         [verify]\ntest_command = \"pytest\"\nlint_command = \"\"\nsubprocess_timeout = 60\n\
         [factory]\nmax_cost_usd = 2.5\nmax_parallel = 4\nsingle_pr = false\n[knowledge]\nenabled = true\n",
        &[],
    );
    assert_eq!(settings["cli"]["backend"], "codex");
    assert_eq!(settings["cli"]["model"], "m");
    let event_loop = &settings["event_loop"];
    assert_eq!(event_loop["max_iterations"], 10);
    assert_eq!(event_loop["cooldown_seconds"], 2);
    assert_eq!(event_loop["prompt_file"], "tasks/p.md");
    assert_eq!(event_loop["allowed_paths"], json!(["src/**", "README.md"]));
    assert_eq!(event_loop["max_no_progress"], 3);
    assert_eq!(event_loop["max_cost_usd"], 2.5);
    assert_eq!(settings["adapters"]["codex"]["timeout"], 1800);
    assert_eq!(settings["gates"][0]["run"], "pytest");
    assert_eq!(settings["gates"][0]["timeout"], 60);
    assert_eq!(settings["gates"][1], Value::Null);
    assert_eq!(
        imported.warnings,
        ["/p/kstrl.toml: ignoring unsupported settings: paths.prd, factory, knowledge"]
    );
}

#[test]
fn variables_take_precedence_over_the_file() {
    let (settings, imported) = imported(
        "[agent]\ntype = \"codex\"\n[run]\nmax_iterations = 10\n",
        &[
            ("AGENT_CMD", "my-agent --fast | tee log"),
            ("MAX_ITERATIONS", "3"),
            ("ALLOWED_PATHS", "src/, docs/"),
            ("MODEL", "m"),
            ("PROMPT_FILE", "p.md"),
        ],
    );
    assert_eq!(settings["cli"]["backend"], "custom");
    assert_eq!(settings["cli"]["command"], "sh");
    assert_eq!(
        settings["cli"]["args"],
        json!(["-c", "my-agent --fast | tee log"])
    );
    assert_eq!(settings["cli"]["prompt_mode"], "stdin");
    assert_eq!(settings["event_loop"]["max_iterations"], 3);
    assert_eq!(
        settings["event_loop"]["allowed_paths"],
        json!(["src/**", "docs/**"])
    );
    assert_eq!(settings["event_loop"]["prompt_file"], "p.md");
    let origin = imported
        .origins
        .iter()
        .find(|(key, _)| key == "event_loop.max_iterations");
    assert_eq!(
        origin.map(|(_, from)| from.clone()),
        Some(ImportedFrom::Variable("MAX_ITERATIONS".into()))
    );
}

#[test]
fn limit_of_zero_is_disabled_and_wrong_values_are_reported() {
    let (settings, imported) = imported(
        "[timeout]\nagent_iteration = 0\n[breaker]\nno_progress_iterations = 0\n[agent]\ntype = \"emacs\"\n\
         [run]\nmax_iterations = \"many\"\n",
        &[],
    );
    assert_eq!(settings["adapters"], json!({}));
    assert_eq!(settings["event_loop"]["max_no_progress"], 0);
    assert_eq!(
        imported.warnings,
        [
            "/p/kstrl.toml:6: `type`: expected claude-code, claude-sdk, codex or auto, found \"emacs\"; ignored",
            "/p/kstrl.toml:8: `max_iterations`: expected an integer, found `many`; ignored",
        ]
    );
}

#[test]
fn sandbox_is_refused_and_not_dropped() {
    let (_, with_sandbox) = imported("[sandbox]\nenabled = true\n", &[]);
    assert_eq!(with_sandbox.refusals.len(), 1);
    let (_, without) = imported("[sandbox]\nenabled = false\n", &[]);
    assert!(without.refusals.is_empty());
}
