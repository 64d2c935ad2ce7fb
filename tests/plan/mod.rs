//! Tests of `ralph plan` with the real binary, the real loop, git and an agent that follows the titles of the tasks.

mod in_place;
mod interrupted;
mod random;
mod worktrees;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::sandbox::{CommandOutput, Running, Sandbox};

/// The words of a task's title are instructions: `Append FILE TEXT`, `Write FILE TEXT`, `Fail`, `Hang`. The agent marks every
/// task as done, as agents do.
const AGENT: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
echo $$ >> "$FAKE_AGENT/pids"
prompt=$(cat)
title=$(printf '%s\n' "$prompt" | grep -m1 '^# ')
printf '%s\n' "$prompt" > "$FAKE_AGENT/$(printf '%s' "$title" | tr -c 'a-zA-Z0-9\n' _).$$.prompt"
printf '%s\n' "$RALPH_PORT_BASE" > "$FAKE_AGENT/$$.port"
set -- $title
[ -f PLAN.md ] && sed -i 's/\[ \]/[x]/' PLAN.md
case "$2" in
Append) echo "$4" >> "$3" ;;
Write) echo "$4" > "$3" ;;
Commit) echo "$4" > "$3"; git add "$3"; git commit -qm "by the agent" ;;
Fail) exit 1 ;;
Hang) sleep 600 ;;
Once) [ -f "$FAKE_AGENT/once" ] || { touch "$FAKE_AGENT/once"; sleep 600; } ;;
esac
echo LOOP_COMPLETE
"#;

const CONFIG: &str = "cli: {backend: custom, command: ./agent.sh, prompt_mode: stdin}\nevent_loop: {max_iterations: 1, max_consecutive_failures: 1}\n";

impl Sandbox {
    /// A repository with this plan, and with a gate of the project.
    pub(crate) fn with_plan(plan: &str, config: &str) -> Self {
        let sandbox = Self::new()
            .with_file("PLAN.md", plan)
            .with_file("agent.sh", AGENT);
        fs::write(sandbox.work().join("ralph.yml"), format!("{CONFIG}{config}")).expect("a configuration");
        let agent = sandbox.work().join("agent.sh");
        fs::set_permissions(agent, fs::Permissions::from_mode(0o755)).expect("an executable agent");
        sandbox.plan_git(&["init", "--quiet", "--initial-branch=main"]);
        for (key, value) in [("user.name", "Me"), ("user.email", "me@example.com")] {
            sandbox.plan_git(&["config", key, value]);
        }
        sandbox.commit_all("start");
        sandbox
    }

    pub(crate) fn commit_all(&self, message: &str) {
        self.plan_git(&["add", "--all"]);
        self.plan_git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    /// Runs git in the workspace and returns its output.
    pub(crate) fn plan_git(&self, arguments: &[&str]) -> String {
        let mut command: Command = self.command_for("git");
        let output = command.args(arguments).output().expect("git");
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(crate) fn plan(&self, arguments: &[&str]) -> CommandOutput {
        self.start_plan(arguments).finish()
    }

    pub(crate) fn start_plan(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(&["plan"]);
        command.args(arguments).env("RALPH_TRUST", "1");
        Running::start(&mut command)
    }

    /// The state of each task, by title.
    pub(crate) fn task_states(&self) -> Vec<(String, String)> {
        let status = self.plan(&["status", "--json"]).exits_with(0).json();
        let tasks = status["tasks"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        tasks
            .iter()
            .map(|task| (text(&task["title"]), text(&task["state"])))
            .collect()
    }

    /// The records of the newest execution of `PLAN.md`.
    pub(crate) fn plan_journal(&self) -> Vec<Value> {
        let plans = self.project().directory().join("plans/plan");
        let mut executions: Vec<_> = fs::read_dir(plans)
            .expect("executions")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        executions.retain(|path| path.join("plan.jsonl").exists());
        executions.sort();
        let newest = executions.pop().expect("an execution");
        let text = fs::read_to_string(newest.join("plan.jsonl")).expect("a journal");
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub(crate) fn plan_text(&self) -> String {
        fs::read_to_string(self.work().join("PLAN.md")).expect("the plan")
    }

    /// The prompts that the agent received for tasks whose title starts with this.
    pub(crate) fn prompts_of(&self, title: &str) -> Vec<String> {
        let start = format!("__{}", title.replace([' ', '.'], "_"));
        let entries = fs::read_dir(self.path("agent"))
            .expect("the agent's files")
            .flatten();
        let mut found: Vec<_> = entries
            .filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with(&start) && name.ends_with(".prompt")
            })
            .map(|entry| {
                (
                    entry.metadata().and_then(|data| data.modified()).expect("a time"),
                    entry.path(),
                )
            })
            .collect();
        found.sort();
        found
            .iter()
            .map(|(_, path)| fs::read_to_string(path).expect("a prompt"))
            .collect()
    }

    /// The user's branch, index and files.
    pub(crate) fn checkout(&self) -> String {
        let index = fs::read(self.work().join(".git/index")).expect("an index");
        let parts = [
            self.plan_git(&["rev-parse", "HEAD"]),
            self.plan_git(&["symbolic-ref", "HEAD"]),
            self.plan_git(&["status", "--porcelain", "--ignored"]),
            self.plan_git(&["ls-files", "--stage"]),
            self.plan_text(),
            format!("{}", index.len()),
        ];
        parts.join("\n")
    }
}
