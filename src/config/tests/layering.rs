//! Tests of the precedence of layers and of the origin of settings.

use std::fs;
use std::path::{Path, PathBuf};

use super::{ConfigFixture, relative_files, settings_of};
use crate::config::{Mode, Origin, PartialEventLoop, PromptMode, Settings};
use crate::policy::{Gate, MarkerPlacement, OnDeclaredFailure, Seconds, Session};

#[test]
fn without_files_all_settings_are_defaults() {
    let loaded = ConfigFixture::new().loaded();
    assert_eq!(loaded.settings, Settings::default());
    assert_eq!(loaded.files, Vec::<PathBuf>::new());
    assert_eq!(loaded.origin("event_loop.max_iterations"), Origin::Default);
}

#[test]
fn defaults_match_the_documentation() {
    let settings = Settings::default();
    assert_eq!(
        (settings.cli.backend.as_str(), settings.cli.idle_timeout_secs),
        ("auto", Seconds(30))
    );
    assert_eq!(
        (settings.cli.prompt_mode, settings.cli.default_mode),
        (PromptMode::Arg, Mode::Autonomous)
    );
    let limits = settings.event_loop;
    assert_eq!(
        (limits.max_iterations, limits.max_runtime_seconds),
        (100, Seconds(14_400))
    );
    assert_eq!(
        (limits.max_consecutive_failures, limits.cooldown_seconds),
        (5, Seconds::ZERO)
    );
    assert_eq!(
        (limits.stop_grace_seconds, limits.result_grace_seconds),
        (Seconds(5), Seconds(30))
    );
    assert_eq!(limits.max_line_bytes, 268_435_456);
    assert_eq!(limits.on_declared_failure, OnDeclaredFailure::Stop);
    assert_eq!(
        (limits.completion_match, settings.session),
        (MarkerPlacement::Line, Session::Fresh)
    );
}

#[test]
fn empty_files_and_empty_sections_change_nothing() {
    for text in [
        "",
        "\n\n",
        "# nothing\n",
        "---\n",
        "cli:\nadapters:\nevent_loop:\ngates:\nhats:\n",
        "{}",
        "\u{feff}",
    ] {
        assert_eq!(settings_of(text), Settings::default(), "{text:?}");
    }
}

#[test]
fn long_comments_do_not_exceed_the_parser_limits() {
    let comment = "  # backend: claude\n".repeat(500);
    let text = format!("cli:\n{comment}  args:\n{comment}  - a\n{comment}  model: x\n");
    let fixture = ConfigFixture::new().write("project/ralph.yml", text);
    let loaded = fixture.loaded();
    assert_eq!(loaded.settings.cli.model.as_deref(), Some("x"));
    let path = fixture.path("project/ralph.yml");
    assert_eq!(loaded.origin("cli.model"), Origin::File { path, line: 1504 });
}

#[test]
fn later_layers_override_earlier_ones() {
    let mut fixture = ConfigFixture::new()
        .write(
            "home/ralph.yml",
            "event_loop: {max_iterations: 1, cooldown_seconds: 1, max_tokens: 1}\n",
        )
        .write(
            "project/ralph.yml",
            "event_loop:\n  max_iterations: 2\n  cooldown_seconds: 2\n",
        )
        .set("RALPH_MAX_ITERATIONS", "3");
    let loaded = fixture.loaded();
    let limits = &loaded.settings.event_loop;
    assert_eq!(
        (limits.max_iterations, limits.cooldown_seconds, limits.max_tokens),
        (3, Seconds(2), Some(1))
    );
    assert_eq!(
        relative_files(&loaded, fixture.root.path()),
        [Path::new("home/ralph.yml"), Path::new("project/ralph.yml")]
    );

    fixture.flags.event_loop.max_iterations = Some(4);
    assert_eq!(fixture.loaded().settings.event_loop.max_iterations, 4);
}

#[test]
fn origin_is_known_for_every_layer() {
    let mut fixture = ConfigFixture::new()
        .write(
            "home/ralph.yml",
            "session: continue\nevent_loop:\n  max_tokens: 5\n",
        )
        .write(
            "project/ralph.yml",
            "event_loop:\n  # a comment\n  cooldown_seconds: 2\nhats:\n  a.b:\n    triggers: [x]\n",
        )
        .set("RALPH_AGENT_CMD", "my-agent --fast");
    fixture.flags.cli.extra_args = Some(vec!["--verbose".to_owned()]);
    let loaded = fixture.loaded();
    let file = |name: &str, line| Origin::File {
        path: fixture.path(name),
        line,
    };
    let variable = || Origin::Environment {
        variable: "RALPH_AGENT_CMD".to_owned(),
    };
    assert_eq!(loaded.origin("session"), file("home/ralph.yml", 1));
    assert_eq!(loaded.origin("event_loop.max_tokens"), file("home/ralph.yml", 3));
    assert_eq!(
        loaded.origin("event_loop.cooldown_seconds"),
        file("project/ralph.yml", 3)
    );
    assert_eq!(loaded.origin("hats.a.b.triggers"), file("project/ralph.yml", 6));
    assert_eq!(loaded.origin("hats.a.b.publishes"), Origin::Default);
    assert_eq!(loaded.origin("cli.command"), variable());
    assert_eq!(loaded.origin("cli.backend"), variable());
    assert_eq!(loaded.origin("cli.extra_args"), Origin::Flag);
    assert_eq!(loaded.origin("event_loop.max_iterations"), Origin::Default);
    assert_eq!(loaded.origin("no.such.key"), Origin::Default);
}

#[test]
fn origin_of_an_aliased_value_is_the_line_of_the_alias() {
    let fixture = ConfigFixture::new().write(
        "project/ralph.yml",
        "adapters:\n  claude: &long\n    timeout: 900\n  codex: *long\n  amp:\n    <<: *long\n    model: x\n",
    );
    let loaded = fixture.loaded();
    let adapters = &loaded.settings.adapters;
    assert_eq!(
        (adapters["codex"].timeout, adapters["amp"].timeout),
        (Some(Seconds(900)), Some(Seconds(900)))
    );
    let line = |line| Origin::File {
        path: fixture.path("project/ralph.yml"),
        line,
    };
    assert_eq!(loaded.origin("adapters.codex.timeout"), line(4));
    assert_eq!(loaded.origin("adapters.codex.model"), Origin::Default);
    assert_eq!(loaded.origin("adapters.amp.timeout"), line(5));
}

#[test]
fn maps_merge_key_by_key_and_lists_are_replaced() {
    let loaded = ConfigFixture::new()
        .write(
            "home/ralph.yml",
            "adapters:\n  claude: {timeout: 5, args: [a, b]}\n  codex: {enabled: false}\n\
             gates:\n- {name: one, run: x}\n- {name: two, run: y}\n\
             hats:\n  planner: {description: plans, triggers: [start]}\n",
        )
        .write(
            "project/ralph.yml",
            "adapters:\n  claude: {model: opus, args: [c]}\ngates:\n- {name: three, run: z, timeout: 9}\n\
             hats:\n  planner: {triggers: [begin]}\n",
        )
        .loaded();
    let settings = loaded.settings;
    let claude = &settings.adapters["claude"];
    assert_eq!(
        (claude.enabled, claude.timeout, claude.model.as_deref()),
        (true, Some(Seconds(5)), Some("opus"))
    );
    assert_eq!(claude.args, ["c"]);
    assert!(!settings.adapters["codex"].enabled);
    let three = Gate {
        timeout: Seconds(9),
        ..Gate::new("three", "z")
    };
    assert_eq!(settings.gates, [three]);
    let planner = &settings.hats["planner"];
    assert_eq!(
        (planner.description.as_str(), planner.triggers.as_slice()),
        ("plans", &["begin".to_owned()][..])
    );
}

#[test]
fn later_prompt_replaces_an_earlier_prompt_file_and_vice_versa() {
    let mut fixture = ConfigFixture::new()
        .write("home/ralph.yml", "event_loop: {prompt_file: P.md}\n")
        .write("project/ralph.yml", "event_loop: {prompt: work}\n");
    let loaded = fixture.loaded();
    assert_eq!(loaded.settings.event_loop.prompt.as_deref(), Some("work"));
    assert_eq!(loaded.settings.event_loop.prompt_file, None);
    assert_eq!(loaded.origin("event_loop.prompt_file"), Origin::Default);

    fixture.flags.event_loop = PartialEventLoop {
        prompt_file: Some("Q.md".into()),
        ..PartialEventLoop::default()
    };
    let loaded = fixture.loaded();
    assert_eq!(loaded.settings.event_loop.prompt, None);
    assert_eq!(
        loaded.settings.event_loop.prompt_file,
        Some(fixture.path("project/Q.md"))
    );
    assert_eq!(loaded.origin("event_loop.prompt"), Origin::Default);
}

#[test]
fn paths_are_relative_to_their_file() {
    let mut fixture = ConfigFixture::new().write(
        "project/ralph.yml",
        "pricing: p.yml\nevent_loop: {prompt_file: docs/P.md}\n",
    );
    fixture.cwd = fixture.path("project/deep/er");
    let settings = fixture.loaded().settings;
    assert_eq!(settings.pricing, Some(fixture.path("project/p.yml")));
    assert_eq!(
        settings.event_loop.prompt_file,
        Some(fixture.path("project/docs/P.md"))
    );

    let fixture = fixture.set("RALPH_PROMPT_FILE", "Q.md");
    let here = fixture.path("project/deep/er/Q.md");
    assert_eq!(fixture.loaded().settings.event_loop.prompt_file, Some(here));
}

#[test]
fn only_the_nearest_project_file_is_read() {
    let mut fixture = ConfigFixture::new()
        .write("ralph.yml", "session: continue\n")
        .write("project/ralph.yml", "cli: {model: near}\n");
    fixture.cwd = fixture.path("project/src/deep");
    let loaded = fixture.loaded();
    assert_eq!(
        relative_files(&loaded, fixture.root.path()),
        [Path::new("project/ralph.yml")]
    );
    assert_eq!(
        (loaded.settings.cli.model.as_deref(), loaded.settings.session),
        (Some("near"), Session::Fresh)
    );
}

#[test]
fn config_option_replaces_only_the_project_file() {
    let mut fixture = ConfigFixture::new()
        .write("home/ralph.yml", "session: continue\n")
        .write("project/ralph.yml", "cli: {model: project}\n")
        .write("project/other.yml", "cli: {backend: codex}\n");
    fixture.file = Some("other.yml".into());
    let settings = fixture.loaded().settings;
    assert_eq!(
        (settings.cli.backend.as_str(), settings.cli.model),
        ("codex", None)
    );
    assert_eq!(settings.session, Session::Continue);
}

#[test]
fn in_the_users_directory_the_file_is_read_once() {
    let mut fixture = ConfigFixture::new().write("home/ralph.yml", "session: continue\n");
    fixture.cwd = fixture.path("home");
    assert_eq!(fixture.loaded().files, [fixture.path("home/ralph.yml")]);
}

#[test]
fn ralph_yaml_is_reported_as_ignored() {
    let fixture = ConfigFixture::new().write("project/ralph.yaml", "session: continue\n");
    let loaded = fixture.loaded();
    assert_eq!(loaded.settings.session, Session::Fresh);
    assert!(
        loaded.warnings[0].ends_with("ralph.yaml: the file must be named ralph.yml"),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn every_variable_is_applied() {
    let loaded = ConfigFixture::new()
        .set("RALPH_AGENT_CMD", "'my agent' --flag \"a b\"")
        .set("RALPH_TRANSCRIPT", "rtf1")
        .set("RALPH_MODEL", "big")
        .set("RALPH_MAX_RUNTIME_SECONDS", "60")
        .set("RALPH_MAX_COST_USD", "2.50")
        .set("HOME", "/nowhere")
        .loaded();
    let cli = &loaded.settings.cli;
    assert_eq!(
        (cli.backend.as_str(), cli.command.as_deref()),
        ("custom", Some("my agent"))
    );
    assert_eq!(cli.args, ["--flag", "a b"]);
    assert_eq!(
        (cli.transcript.as_deref(), cli.model.as_deref()),
        (Some("rtf1"), Some("big"))
    );
    let limits = &loaded.settings.event_loop;
    assert_eq!(
        (limits.max_runtime_seconds, limits.max_cost_usd),
        (Seconds(60), Some(2.5))
    );
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn explicit_agent_takes_precedence_over_the_implied_custom_agent() {
    let fixture = ConfigFixture::new()
        .set("RALPH_AGENT_CMD", "x")
        .set("RALPH_AGENT", "codex");
    let loaded = fixture.loaded();
    assert_eq!(loaded.settings.cli.backend, "codex");
    let variable = "RALPH_AGENT".to_owned();
    assert_eq!(loaded.origin("cli.backend"), Origin::Environment { variable });
}

#[test]
fn command_from_the_environment_replaces_the_arguments() {
    let fixture = ConfigFixture::new()
        .write("project/ralph.yml", "cli: {command: a, args: [b]}\n")
        .set("RALPH_AGENT_CMD", "c");
    let cli = fixture.loaded().settings.cli;
    assert_eq!((cli.command.as_deref(), cli.args.len()), (Some("c"), 0));
}

#[test]
fn empty_variable_counts_as_unset() {
    let loaded = ConfigFixture::new()
        .set("RALPH_MAX_ITERATIONS", "")
        .set("RALPH_AGENT", "")
        .loaded();
    assert_eq!(loaded.settings, Settings::default());
}

#[test]
fn unknown_variables_cause_warnings_and_reserved_ones_do_not() {
    let fixture = ConfigFixture::new()
        .set("RALPH_RUN_ID", "x")
        .set("RALPH_TRUST", "1")
        .set("RALPH_SECRETS", "COOKIE")
        .set("RALPH_HOOK_MESSAGE", "Done.")
        .set("RALPH_BENCH_DIR", "/b")
        .set("RALPH_SUPERVISORS", "1")
        .set("RALPH_MAX_ITERATION", "5");
    let loaded = fixture.set("RALPH_BANANA", "1").loaded();
    assert_eq!(
        loaded.warnings,
        [
            "environment variable `RALPH_MAX_ITERATION` has no effect; did you mean `RALPH_MAX_ITERATIONS`?",
            "environment variable `RALPH_BANANA` has no effect",
        ]
    );
}

#[test]
fn auto_resets_an_earlier_transcript() {
    let mut fixture = ConfigFixture::new().write("project/ralph.yml", "cli: {transcript: claude}\n");
    assert_eq!(
        fixture.loaded().settings.cli.transcript.as_deref(),
        Some("claude")
    );
    fixture.flags.cli.transcript = Some("auto".to_owned());
    assert_eq!(fixture.loaded().settings.cli.transcript, None);
}

#[test]
fn single_marker_needs_no_list() {
    let one = settings_of("event_loop: {completion_promise: DONE}\n").event_loop;
    let two = settings_of("event_loop: {completion_promise: [DONE, '<promise>X</promise>']}\n").event_loop;
    assert_eq!(one.completion_promise, ["DONE"]);
    assert_eq!(two.completion_promise, ["DONE", "<promise>X</promise>"]);
}

#[test]
fn empty_claude_args_differs_from_unset() {
    assert_eq!(
        settings_of("cli: {claude_args: ''}\n").cli.claude_args.as_deref(),
        Some("")
    );
}

#[test]
fn symlink_to_a_file_is_followed() {
    let fixture = ConfigFixture::new().write("elsewhere/real.yml", "session: continue\n");
    std::os::unix::fs::symlink(
        fixture.path("elsewhere/real.yml"),
        fixture.path("project/ralph.yml"),
    )
    .unwrap();
    assert_eq!(fixture.loaded().settings.session, Session::Continue);
    fs::remove_file(fixture.path("elsewhere/real.yml")).unwrap();
    assert!(fixture.load().is_err());
}
