//! `ralph tools`: ralph-orchestrator's agents call it. Prints one line about what to do instead.

use crate::ui::Terminal;

use super::args::ToolsArguments;
use super::error::CliError;
use super::exit::Exit;

pub(super) fn tools(arguments: &ToolsArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let tool = arguments.words.first().map(|word| word.to_string_lossy());
    let line = advice(tool.as_deref().unwrap_or_default());
    terminal.print(&format!("{line}\n")).map_err(CliError::Output)?;
    Ok(Exit::Failed)
}

fn advice(tool: &str) -> &'static str {
    match tool {
        "memory" => {
            "No memories here: write what later iterations need to a file of the project, such as NOTES.md, and read it first."
        }
        "task" => {
            "No task list here: keep the tasks as a checklist in a file of the project, such as TASKS.md, and update it there."
        }
        "skill" => "No skills here: read the skill's own file, for example .claude/skills/NAME/SKILL.md.",
        "interact" => {
            "No messages to a person here: continue with the safest assumption and state it in your answer."
        }
        _ => {
            "No tools here: keep notes and tasks in files of the project, and publish events with `ralph emit TOPIC PAYLOAD`."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_a_replacement_in_one_line() {
        let tools = ["memory", "task", "skill", "interact", "", "other"];
        let mut lines: Vec<&str> = tools.iter().map(|tool| advice(tool)).collect();
        assert!(lines.iter().all(|line| !line.contains('\n')));
        lines.dedup();
        assert_eq!(lines.len(), 5, "unknown tools share one line");
    }
}
