//! Tests of projects with `.ralphrc` or ralphex configuration: running them unchanged and converting them to
//! `ralph.yml`.

use std::fs;

use super::sandbox::Sandbox;

/// A fake-agent script that prints one Codex message.
fn codex(text: &str) -> String {
    let text = serde_json::to_string(text).expect("JSON").replace('\\', "\\\\");
    format!(
        r#"say {{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}}
say {{"type":"turn.started"}}
say {{"type":"item.completed","item":{{"id":"item_0","type":"agent_message","text":{text}}}}}
say {{"type":"turn.completed","usage":{{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}}}
"#
    )
}

fn bmalph_project() -> Sandbox {
    let settings = "# written by another tool\nPLATFORM_DRIVER=\"codex\"\nALLOWED_TOOLS=\"Write,Read,Bash(git *)\"\n\
                    SESSION_CONTINUITY=true\nCLAUDE_TIMEOUT_MINUTES=15\nMAX_CALLS_PER_HOUR=100\n";
    Sandbox::new()
        .agent("codex", &codex("not yet"))
        .file("agent/2.script", codex("All done.\nLOOP_COMPLETE"))
        .file("project/.ralph/.ralphrc", settings)
        .file("project/.ralph/PROMPT.md", "Do what the plan says.\n")
}

#[test]
fn project_with_ralphrc_runs_without_ralph_yml() {
    let sandbox = bmalph_project();
    let done = sandbox.ralph(&["run"]);
    assert_eq!(done.code, 0, "{done:?}");
    let first = sandbox.argv(1);
    assert!(first.contains(&"exec".to_owned()) && !first.contains(&"resume".to_owned()));
    assert!(
        first.last().unwrap().starts_with("Do what the plan says."),
        "{first:?}"
    );
    let second = sandbox.argv(2);
    let resumed = second
        .windows(2)
        .any(|words| words[0] == "resume" && words[1].starts_with("0199a213"));
    assert!(resumed, "{second:?}");
    assert!(
        done.stderr.contains("unsupported settings: MAX_CALLS_PER_HOUR"),
        "{done:?}"
    );
}

#[test]
fn project_with_ralphex_config_runs_without_ralph_yml() {
    let message = |text: &str| {
        format!(
            "say {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\
                 say {{\"type\":\"result\",\"result\":\"\"}}\n"
        )
    };
    let sandbox = Sandbox::new()
        .agent("my-claude", &message("task 1 is done"))
        .file("agent/2.script", message("<<<RALPHEX:ALL_TASKS_DONE>>>"))
        .file(
            "project/.ralphex/config",
            "claude_command = my-claude\nclaude_args = --quick \"two words\"\niteration_delay_ms = 1\n",
        )
        .file("project/docs/plans/plan.md", "# Plan\n");
    let done = sandbox.ralph(&["run", "-P", "docs/plans/plan.md"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(sandbox.argv(2)[..3], ["--quick", "two words", "-p"]);
    assert!(!sandbox.path("agent/3.argv").exists());
}

#[test]
fn init_converts_a_file_and_overwrites_nothing() {
    let sandbox = bmalph_project();
    let printed = sandbox.ralph(&["config", "convert", "--from", "ralphrc"]);
    let before = sandbox.ralph(&["config", "show", "--json"]);
    let done = sandbox.ralph(&["init", "--from-ralphrc"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.starts_with("wrote   ralph.yml\n"), "{done:?}");
    let written = fs::read_to_string(sandbox.project().join("ralph.yml")).unwrap();
    assert_eq!(written, printed.stdout, "one code path");
    assert!(
        written.contains("# Not converted: ") && written.contains("MAX_CALLS_PER_HOUR"),
        "{written}"
    );
    fs::remove_file(sandbox.project().join(".ralph/.ralphrc")).unwrap();
    assert_eq!(before.stdout, sandbox.ralph(&["config", "show", "--json"]).stdout);
    assert_eq!(sandbox.ralph(&["run"]).code, 0);

    let sandbox = sandbox.file("project/.ralphrc", "PLATFORM_DRIVER=cursor\n");
    let again = sandbox.ralph(&["init", "--from-ralphrc", ".ralphrc"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(
        again.stdout.contains("exists  ralph.yml (unchanged)"),
        "{again:?}"
    );
    assert_eq!(
        fs::read_to_string(sandbox.project().join("ralph.yml")).unwrap(),
        written
    );
}

#[test]
fn plain_init_keeps_an_imported_prompt_and_explains_conversion() {
    let sandbox = bmalph_project();
    let done = sandbox.ralph(&["init"]);
    assert_eq!(done.code, 0, "{done:?}");
    insta::assert_snapshot!(sandbox.redact(&done.stdout), @"
    wrote   ralph.yml

    Next: describe the task in .ralph/PROMPT.md, then: ralph run
    /box/project/.ralph/.ralphrc is also read, with lower precedence; to convert it, remove ralph.yml, then: ralph init --from-ralphrc
    ");
    assert!(!sandbox.project().join("PROMPT.md").exists());
    let shown = sandbox.ralph(&["config", "show", "--json"]);
    assert!(
        sandbox
            .redact(&shown.stdout)
            .contains("/box/project/.ralph/PROMPT.md"),
        "{shown:?}"
    );
    assert_eq!(sandbox.ralph(&["run"]).code, 0);
}

#[test]
fn init_finds_the_ralphex_files() {
    let users = Sandbox::new().file(
        "home/.config/ralphex/config",
        "claude_command = mine\nclaude_args =\n",
    );
    assert_eq!(users.ralph(&["init", "--from-ralphex"]).code, 0);
    let written = fs::read_to_string(users.project().join("ralph.yml")).unwrap();
    assert!(
        written.ends_with("cli:\n  claude_args: \"\"\n  claude_command: \"mine\"\n"),
        "{written}"
    );

    let projects = Sandbox::new()
        .file("home/.config/ralphex/config", "claude_command = mine\n")
        .file("project/.ralphex/config", "claude_command = ours\n");
    assert_eq!(projects.ralph(&["init", "--from-ralphex"]).code, 0);
    let written = fs::read_to_string(projects.project().join("ralph.yml")).unwrap();
    assert!(written.contains("ours"), "{written}");

    let nothing = Sandbox::new().ralph(&["init", "--from-ralphex"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");
    assert!(
        nothing.stderr.contains("ralph init --from-ralphex FILE"),
        "{nothing:?}"
    );
}

/// A wrapper as ralphex documents it: takes the prompt from `-p`, ignores other arguments, prints a delta for each
/// line and a result at the end.
fn wrapper(call: &str) -> String {
    format!(
        r#"#!/usr/bin/env bash
set -euo pipefail
prompt=""
while (( $# > 0 )); do
    if [[ "$1" == -p ]]; then prompt="${{2:-}}"; shift; fi
    shift
done
if [[ -z "$prompt" ]]; then echo "missing prompt" >&2; exit 1; fi
{call} | while IFS= read -r line; do
    line="${{line//\\/\\\\}}"; line="${{line//\"/\\\"}}"
    printf '{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"%s\\n"}}}}\n' "$line"
done
printf '{{"type":"result","result":""}}\n'
"#
    )
}

#[test]
fn wrappers_of_three_tools_complete_a_run_with_each_signal() {
    for (tool, call) in [
        ("codex", "codex exec \"$prompt\""),
        ("gemini", "gemini -p \"$prompt\" 2>/dev/null"),
        ("ollama", "ollama run \"${OLLAMA_MODEL:-llama3}\" \"$prompt\""),
    ] {
        for (signal, code) in [
            ("COMPLETED", 0),
            ("ALL_TASKS_DONE", 0),
            ("FAILED", 1),
            ("TASK_FAILED", 1),
        ] {
            let sandbox = Sandbox::new()
                .agent(tool, "say looking at \"it\"\nsay a \\\\ too")
                .file(
                    "agent/3.script",
                    format!("say finally\nsay <<<RALPHEX:{signal}>>>"),
                )
                .program("project/wrap.sh", &wrapper(call))
                .file(
                    "project/.ralphex/config",
                    "claude_command = ./wrap.sh\nclaude_args =\n",
                );
            let done = sandbox.ralph(&["run", "-p", "do it", "-n", "5"]);
            assert_eq!(done.code, code, "{tool} {signal}: {done:?}");
            assert!(done.stdout.contains("looking at \"it\""), "{tool}: {done:?}");
            assert!(sandbox.path("agent/3.argv").exists() && !sandbox.path("agent/4.argv").exists());
            assert!(sandbox.argv(1).last().unwrap().starts_with("do it"), "{tool}");
        }
    }
}

/// The tool fails, its output is discarded, and the wrapper exits successfully.
#[test]
fn wrapper_that_hides_a_failure_does_not_use_up_iterations() {
    for hiding in [
        "tool \"$prompt\" 2>/dev/null || true",
        "{ tool \"$prompt\" || :; } 2>/dev/null",
    ] {
        let sandbox = Sandbox::new()
            .agent("tool", "err quota exceeded\nexit 1")
            .program("project/wrap.sh", &wrapper(&format!("({hiding})")))
            .file(
                "project/ralph.yml",
                "cli: {claude_command: ./wrap.sh, claude_args: ''}\nevent_loop: {max_consecutive_failures: 2}\n",
            );
        let done = sandbox.ralph(&["run", "-p", "do it", "-n", "50"]);
        assert_eq!(done.code, 1, "{hiding}: {done:?}");
        assert!(done.stdout.contains("no answer"), "{hiding}: {done:?}");
        assert!(
            done.stdout.contains("agent       claude by wrap.sh"),
            "{hiding}: {done:?}"
        );
        assert!(!sandbox.path("agent/3.argv").exists(), "{hiding}");
    }
}

fn delta(text: &str) -> String {
    format!(
        "say {{\"type\":\"content_block_delta\",\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n"
    )
}

const RESULT: &str = "say {\"type\":\"result\",\"result\":\"\"}\n";

/// The output of a wrapper, and the exit code of a run with one iteration.
#[test]
fn wrapper_output_is_interpreted_as_documented() {
    let marker = "<<<RALPHEX:COMPLETED>>>";
    let repeated = format!("say {{\"type\":\"result\",\"result\":\"{marker}\"}}\n");
    let wrapped = format!("say {{\"type\":\"result\",\"result\":{{\"output\":\"{marker}\"}}}}\n");
    let message = format!(
        "say {{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{marker}\"}}]}}}}\n"
    );
    let stop = message.replace("assistant", "message_stop");
    let keepalive = delta("");
    for (what, script, code) in [
        ("a delta", delta(marker) + RESULT, 0),
        (
            "a split delta",
            delta("<<<RALPHEX:COMP") + &delta("LETED>>>") + RESULT,
            0,
        ),
        ("a message", message + RESULT, 0),
        ("the last message", stop + RESULT, 0),
        ("the result's text", delta("hm") + &repeated, 0),
        ("the result's output", delta("hm") + &wrapped, 0),
        (
            "noise",
            format!("say Loading model…\n{}say {{half\n{RESULT}", delta(marker)),
            0,
        ),
        (
            "several results",
            delta("one") + RESULT + &delta(marker) + RESULT,
            0,
        ),
        (
            "work after the claim",
            delta(marker) + RESULT + &delta("but wait") + RESULT,
            3,
        ),
        ("an exit code", delta(marker) + RESULT + "exit 7", 1),
        ("no result", delta(marker), 1),
        (
            "a failed result",
            delta(marker) + "say {\"type\":\"result\",\"is_error\":true,\"result\":\"no\"}",
            1,
        ),
        ("keepalives only", keepalive.repeat(50) + RESULT, 1),
    ] {
        let sandbox = Sandbox::new().agent("other", &script).file(
            "project/ralph.yml",
            "cli: {claude_command: other, claude_args: ''}\nevent_loop: {max_consecutive_failures: 1}\n",
        );
        let done = sandbox.ralph(&["run", "-p", "x", "-n", "1"]);
        assert_eq!(done.code, code, "{what}: {done:?}");
        if what == "noise" {
            assert!(
                done.stdout.contains("Loading model") && done.stdout.contains("{half"),
                "{done:?}"
            );
        }
    }
}

/// Empty deltas count as output for the idle timeout.
#[test]
fn keepalives_prevent_the_idle_timeout() {
    let script = (delta("") + "sleep 400\n").repeat(5) + &delta("<<<RALPHEX:COMPLETED>>>") + RESULT;
    let sandbox = Sandbox::new().agent("other", &script).file(
        "project/ralph.yml",
        "cli: {claude_command: other, claude_args: ''}\nadapters: {claude: {idle_timeout: 1}}\n",
    );
    let done = sandbox.ralph(&["run", "-p", "x", "-n", "1"]);
    assert_eq!(done.code, 0, "{done:?}");
}
