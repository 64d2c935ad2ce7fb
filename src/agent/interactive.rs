//! Interactive mode: how an agent's own TUI is started. Auto-approval flags are left out, so the agent asks for
//! permission as it does when the user starts it by hand.

use std::path::Path;

use crate::config::Settings;

use super::invocation::{PromptDelivery, is_safe_argument, read_file_instruction, user_args};
use super::permission_mode::{PermissionMode, Variables};
use super::table::Agent;
use super::{AGENTS, AgentError, ResolvedAgent, StdinSource, Terminal};

/// How to start an agent's own TUI with a first prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interactive {
    pub args: &'static [&'static str],
    pub prompt: FirstPrompt,
    pub permission_mode: Option<PermissionMode>,
}

/// How the first prompt is passed. A long prompt, or one with a special first character, is replaced by an
/// instruction to read the prompt file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstPrompt {
    /// `-i PROMPT`
    Flag(&'static str),
    Positional,
    /// On stdin, from the prompt file. The agent still reads keys from the terminal.
    Stdin,
}

impl ResolvedAgent {
    /// Converts this agent to interactive mode.
    pub fn into_interactive(
        mut self,
        settings: &Settings,
        variables: Variables<'_>,
    ) -> Result<Self, AgentError> {
        let row = AGENTS.iter().find(|agent| agent.name == self.name);
        let (args, delivery) = match &self.delivery {
            PromptDelivery::Builtin(_) => {
                let (agent, interactive) = row
                    .and_then(|agent| Some((agent, agent.interactive?)))
                    .ok_or_else(|| self.not_interactive("ralph does not know how to start its TUI"))?;
                let args = self.interactive_args(agent, interactive, settings, variables);
                (args, PromptDelivery::Interactive(interactive.prompt))
            }
            PromptDelivery::CustomArgument { .. } => (self.args.clone(), self.delivery.clone()),
            PromptDelivery::CustomStdin => {
                return Err(self.not_interactive("`prompt_mode: stdin` occupies the keyboard input"));
            }
            PromptDelivery::Wrapper => {
                return Err(self.not_interactive("a Claude-compatible wrapper only supports `-p`"));
            }
            PromptDelivery::Driver(_) => {
                return Err(self.not_interactive("driver scripts build non-interactive commands"));
            }
            PromptDelivery::Acp { .. } => {
                return Err(self.not_interactive("the Agent Client Protocol has no screen"));
            }
            PromptDelivery::Interactive(_) => return Ok(self),
        };
        Ok(Self {
            args,
            delivery,
            terminal: Terminal::Interactive,
            // A TUI prints no structured output and reports no session id.
            format: "plain".to_owned(),
            filter: None,
            usage_flag: None,
            resume: None,
            ..self
        })
    }

    fn interactive_args(
        &mut self,
        agent: &Agent,
        interactive: Interactive,
        settings: &Settings,
        variables: Variables<'_>,
    ) -> Vec<String> {
        let user_args = user_args(agent, settings);
        let mut args: Vec<String> = interactive.args.iter().map(ToString::to_string).collect();
        if let Some(permission) = interactive.permission_mode
            && !permission.is_replaced(&user_args)
        {
            let configured = permission.configured(variables);
            let source = if configured.is_some() {
                "set in the user's settings"
            } else {
                "the user's settings name none"
            };
            let mode = configured.unwrap_or_else(|| permission.asking.to_owned());
            self.warnings.push(format!(
                "{} runs in permission mode `{mode}` ({source})",
                agent.name
            ));
            args.extend([permission.flag.to_owned(), mode]);
        }
        args.extend(user_args);
        args
    }

    fn not_interactive(&self, reason: &'static str) -> AgentError {
        let agent = self.display_name.clone();
        AgentError::NotInteractive { agent, reason }
    }

    /// The last arguments and the source of stdin.
    pub(super) fn first_prompt(
        &self,
        first: FirstPrompt,
        prompt: &str,
        prompt_file: &Path,
    ) -> (Vec<String>, StdinSource) {
        let argument = match first {
            FirstPrompt::Stdin => {
                return (Vec::new(), StdinSource::PromptFile(prompt_file.to_owned()));
            }
            // A single positional word could be parsed as a subcommand.
            FirstPrompt::Flag(_) | FirstPrompt::Positional
                if is_safe_argument(prompt) && prompt.contains(' ') =>
            {
                prompt.to_owned()
            }
            FirstPrompt::Flag(_) | FirstPrompt::Positional => read_file_instruction(prompt_file),
        };
        let flag = match first {
            FirstPrompt::Flag(flag) => Some(flag.to_owned()),
            FirstPrompt::Positional | FirstPrompt::Stdin => None,
        };
        (
            flag.into_iter().chain([argument]).collect(),
            StdinSource::Terminal,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PromptMode;

    fn command_line(name: &str, prompt: &str, settings: &Settings) -> String {
        let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
        let resolved = ResolvedAgent::builtin(agent, agent.programs[0].into(), None, settings);
        let call = resolved
            .into_interactive(settings, &|_| None)
            .unwrap()
            .invocation(prompt, Path::new("/run/prompt.md"))
            .unwrap();
        assert_eq!(call.terminal, Terminal::Interactive);
        let stdin = match &call.stdin {
            StdinSource::Null => "/dev/null".to_owned(),
            StdinSource::PromptFile(path) => path.display().to_string(),
            StdinSource::Terminal => "terminal".to_owned(),
            StdinSource::Protocol => "messages".to_owned(),
        };
        let args = call.args.join(" ".as_ref());
        format!("{} {} < {stdin}", call.program.display(), args.display())
    }

    #[test]
    fn interactive_command_line_matches_the_table_row() {
        let calls: Vec<String> = AGENTS
            .iter()
            .filter(|agent| agent.interactive.is_some())
            .flat_map(|agent| {
                ["say hi", "- a list"].map(|prompt| command_line(agent.name, prompt, &Settings::default()))
            })
            .collect();
        insta::assert_snapshot!(calls.join("\n"), @"
        claude --permission-mode default say hi < terminal
        claude --permission-mode default Read the file /run/prompt.md and do what it says; it is your whole task. < terminal
        kiro-cli chat say hi < terminal
        kiro-cli chat Read the file /run/prompt.md and do what it says; it is your whole task. < terminal
        gemini -i say hi < terminal
        gemini -i Read the file /run/prompt.md and do what it says; it is your whole task. < terminal
        codex say hi < terminal
        codex Read the file /run/prompt.md and do what it says; it is your whole task. < terminal
        amp  < /run/prompt.md
        amp  < /run/prompt.md
        opencode --prompt say hi < terminal
        opencode --prompt Read the file /run/prompt.md and do what it says; it is your whole task. < terminal
        copilot -i say hi < terminal
        copilot -i Read the file /run/prompt.md and do what it says; it is your whole task. < terminal
        cursor-agent say hi < terminal
        cursor-agent Read the file /run/prompt.md and do what it says; it is your whole task. < terminal
        qwen -i say hi < terminal
        qwen -i Read the file /run/prompt.md and do what it says; it is your whole task. < terminal
        pi say hi < terminal
        pi Read the file /run/prompt.md and do what it says; it is your whole task. < terminal
        ");
    }

    #[test]
    fn interactive_mode_never_auto_approves() {
        let approving = ["dangerously", "yolo", "trust", "force", "allow-all", "auto"];
        for agent in AGENTS.iter().filter(|agent| agent.interactive.is_some()) {
            let call = command_line(agent.name, "say hi", &Settings::default());
            let found = approving.iter().find(|word| call.contains(*word));
            assert_eq!(found, None, "{call}");
        }
    }

    /// The arguments and the warnings of Claude Code with these user settings.
    fn claude_with(json: &str, extra_args: &[&str]) -> (Vec<std::ffi::OsString>, Vec<String>) {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".claude")).unwrap();
        std::fs::write(home.path().join(".claude/settings.json"), json).unwrap();
        let mut settings = Settings::default();
        settings.cli.extra_args = extra_args.iter().map(ToString::to_string).collect();
        let agent = AGENTS.iter().find(|agent| agent.name == "claude").unwrap();
        let resolved = ResolvedAgent::builtin(agent, "claude".into(), None, &settings);
        let variables = |name: &str| (name == "HOME").then(|| home.path().into());
        let agent = resolved.into_interactive(&settings, &variables).unwrap();
        let call = agent.invocation("say hi", Path::new("p")).unwrap();
        (call.args, agent.warnings)
    }

    #[test]
    fn permission_mode_of_the_users_settings_is_used_and_reported() {
        let (args, warnings) = claude_with(r#"{"permissions":{"defaultMode":"plan"}}"#, &[]);
        assert_eq!(args, ["--permission-mode", "plan", "say hi"]);
        assert_eq!(
            warnings,
            ["claude runs in permission mode `plan` (set in the user's settings)"]
        );
        for json in ["", "{}", r#"{"permissions":{"defaultMode":"--yes really"}}"#] {
            let (args, warnings) = claude_with(json, &[]);
            assert_eq!(args, ["--permission-mode", "default", "say hi"], "{json}");
            assert_eq!(
                warnings,
                ["claude runs in permission mode `default` (the user's settings name none)"]
            );
        }
    }

    #[test]
    fn permission_mode_of_the_users_arguments_is_not_overridden() {
        for given in ["--permission-mode=acceptEdits", "--dangerously-skip-permissions"] {
            let (args, warnings) = claude_with(r#"{"permissions":{"defaultMode":"plan"}}"#, &[given]);
            assert_eq!(args, [given, "say hi"]);
            assert!(warnings.is_empty());
        }
    }

    #[test]
    fn model_and_user_args_precede_the_prompt() {
        let mut settings = Settings::default();
        settings.cli.model = Some("opus".into());
        settings.cli.extra_args = vec!["--debug".into()];
        settings.adapters.entry("claude".into()).or_default().args = vec!["--add-dir".into(), "..".into()];
        assert_eq!(
            command_line("claude", "say hi", &settings),
            "claude --permission-mode default --model opus --add-dir .. --debug say hi < terminal"
        );
    }

    #[test]
    fn agents_manual_matches_the_interactive_command_lines() {
        let manual = include_str!("../../docs/agents.md");
        let known = |agent: &&Agent| agent.resume.is_some() && agent.interactive.is_some();
        for agent in AGENTS.iter().filter(known) {
            let call = command_line(agent.name, "THE PROMPT", &Settings::default());
            let call = call.replace("THE PROMPT < terminal", "PROMPT");
            let line = format!("- interactive: `{call}`\n");
            assert!(manual.contains(&line), "{line}");
        }
    }

    #[test]
    fn custom_command_is_interactive_if_its_prompt_is_an_argument() {
        let mut settings = Settings::default();
        settings.cli.args = vec!["--ui".into()];
        let own = |settings: &Settings| {
            ResolvedAgent::custom("/opt/my-ai".into(), settings).into_interactive(settings, &|_| None)
        };
        let call = own(&settings).unwrap().invocation("hi", Path::new("p")).unwrap();
        assert_eq!(
            (call.args, call.stdin),
            (vec!["--ui".into(), "hi".into()], StdinSource::Terminal)
        );
        settings.cli.prompt_mode = PromptMode::Stdin;
        assert_eq!(
            own(&settings).unwrap_err().to_string(),
            "my-ai has no interactive mode: `prompt_mode: stdin` occupies the keyboard input"
        );
    }
}
