//! The same agent with its own screen: how it is called when somebody sits in front of it. It asks before it does
//! something, as it does when it is started by hand: what approves everything unseen is left out.

use std::path::Path;

use crate::config::Settings;

use super::invocation::{PromptDelivery, is_small_and_safe, read_the_file, wishes};
use super::table::Agent;
use super::{AGENTS, AgentError, ResolvedAgent, StdinSource, Terminal};

/// How an agent's own screen is opened with a first prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interactive {
    pub args: &'static [&'static str],
    pub prompt: FirstPrompt,
}

/// How the first prompt reaches it. A long one, or one that may be misread, is named instead: read this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstPrompt {
    /// `-i PROMPT`
    Flag(&'static str),
    Positional,
    /// On stdin, from the prompt's file; keys come from the terminal all the same.
    Stdin,
}

impl ResolvedAgent {
    /// This agent, to be shown and typed into.
    pub fn on_a_screen(self, settings: &Settings) -> Result<Self, AgentError> {
        let row = AGENTS.iter().find(|agent| agent.name == self.name);
        let (args, delivery) = match &self.delivery {
            PromptDelivery::Builtin(_) => {
                let (agent, interactive) = row
                    .and_then(|agent| Some((agent, agent.interactive?)))
                    .ok_or_else(|| self.has_no_screen("its row names no call that opens one"))?;
                let args = interactive_args(agent, interactive, settings);
                (args, PromptDelivery::Interactive(interactive.prompt))
            }
            PromptDelivery::CustomArgument { .. } => (self.args.clone(), self.delivery.clone()),
            PromptDelivery::CustomStdin => {
                return Err(self.has_no_screen("`prompt_mode: stdin` takes the place of the keyboard"));
            }
            PromptDelivery::Provider => {
                return Err(self.has_no_screen("a provider in claude's place is only ever called with -p"));
            }
            PromptDelivery::Driver(_) => {
                return Err(self.has_no_screen("a driver script builds a call without one"));
            }
            PromptDelivery::Interactive(_) => return Ok(self),
        };
        Ok(Self {
            args,
            delivery,
            terminal: Terminal::Screen,
            // A screen is text, whatever the program could print elsewhere, and names no session.
            format: "plain".to_owned(),
            filter: None,
            usage_flag: None,
            resume: None,
            ..self
        })
    }

    fn has_no_screen(&self, why: &'static str) -> AgentError {
        let agent = self.display_name.clone();
        AgentError::NoScreen { agent, why }
    }

    /// The end of the arguments, and what stdin is.
    pub(super) fn first_prompt(
        &self,
        way: FirstPrompt,
        prompt: &str,
        prompt_file: &Path,
    ) -> (Vec<String>, StdinSource) {
        let words = match way {
            FirstPrompt::Stdin => {
                return (Vec::new(), StdinSource::PromptFile(prompt_file.to_owned()));
            }
            // A single word in the place of a prompt may be the name of a subcommand.
            FirstPrompt::Flag(_) | FirstPrompt::Positional
                if is_small_and_safe(prompt) && prompt.contains(' ') =>
            {
                prompt.to_owned()
            }
            FirstPrompt::Flag(_) | FirstPrompt::Positional => read_the_file(prompt_file),
        };
        let flag = match way {
            FirstPrompt::Flag(flag) => Some(flag.to_owned()),
            FirstPrompt::Positional | FirstPrompt::Stdin => None,
        };
        (flag.into_iter().chain([words]).collect(), StdinSource::Screen)
    }
}

fn interactive_args(agent: &Agent, interactive: Interactive, settings: &Settings) -> Vec<String> {
    let own = interactive.args.iter().map(ToString::to_string);
    own.chain(wishes(agent, settings)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PromptMode;

    fn called(name: &str, prompt: &str, settings: &Settings) -> String {
        let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
        let selected = ResolvedAgent::builtin(agent, agent.programs[0].into(), None, settings);
        let call = selected
            .on_a_screen(settings)
            .unwrap()
            .invocation(prompt, Path::new("/run/prompt.md"))
            .unwrap();
        assert_eq!(call.terminal, Terminal::Screen);
        let stdin = match &call.stdin {
            StdinSource::Null => "/dev/null".to_owned(),
            StdinSource::PromptFile(path) => path.display().to_string(),
            StdinSource::Screen => "screen".to_owned(),
        };
        let args = call.args.join(" ".as_ref());
        format!("{} {} < {stdin}", call.program.display(), args.display())
    }

    #[test]
    fn each_agents_screen_is_opened_as_its_row_says() {
        let calls: Vec<String> = AGENTS
            .iter()
            .flat_map(|agent| {
                ["say hi", "- a list"].map(|prompt| called(agent.name, prompt, &Settings::default()))
            })
            .collect();
        insta::assert_snapshot!(calls.join("\n"), @"
        claude say hi < screen
        claude Read the file /run/prompt.md and do what it says; it is your whole task. < screen
        kiro-cli chat say hi < screen
        kiro-cli chat Read the file /run/prompt.md and do what it says; it is your whole task. < screen
        gemini -i say hi < screen
        gemini -i Read the file /run/prompt.md and do what it says; it is your whole task. < screen
        codex say hi < screen
        codex Read the file /run/prompt.md and do what it says; it is your whole task. < screen
        amp  < /run/prompt.md
        amp  < /run/prompt.md
        opencode --prompt say hi < screen
        opencode --prompt Read the file /run/prompt.md and do what it says; it is your whole task. < screen
        copilot -i say hi < screen
        copilot -i Read the file /run/prompt.md and do what it says; it is your whole task. < screen
        cursor-agent say hi < screen
        cursor-agent Read the file /run/prompt.md and do what it says; it is your whole task. < screen
        ");
    }

    #[test]
    fn no_screen_is_opened_with_everything_approved_unseen() {
        let approving = ["dangerously", "yolo", "trust", "force", "allow-all", "auto"];
        for agent in AGENTS {
            let call = called(agent.name, "say hi", &Settings::default());
            let found = approving.iter().find(|word| call.contains(*word));
            assert_eq!(found, None, "{call}");
        }
    }

    #[test]
    fn models_and_the_users_own_arguments_come_before_the_prompt() {
        let mut settings = Settings::default();
        settings.cli.model = Some("opus".into());
        settings.cli.extra_args = vec!["--debug".into()];
        settings.adapters.entry("claude".into()).or_default().args = vec!["--add-dir".into(), "..".into()];
        assert_eq!(
            called("claude", "say hi", &settings),
            "claude --model opus --add-dir .. --debug say hi < screen"
        );
    }

    #[test]
    fn the_manual_says_what_the_rows_say() {
        let manual = include_str!("../../docs/agents.md");
        for agent in AGENTS.iter().filter(|agent| agent.resume.is_some()) {
            let call = called(agent.name, "THE PROMPT", &Settings::default());
            let call = call.replace("THE PROMPT < screen", "PROMPT");
            let line = format!("- on its own screen: `{call}`\n");
            assert!(manual.contains(&line), "{line}");
        }
    }

    #[test]
    fn a_command_of_ones_own_is_called_as_ever_if_its_prompt_is_an_argument() {
        let mut settings = Settings::default();
        settings.cli.args = vec!["--ui".into()];
        let own =
            |settings: &Settings| ResolvedAgent::custom("/opt/my-ai".into(), settings).on_a_screen(settings);
        let call = own(&settings).unwrap().invocation("hi", Path::new("p")).unwrap();
        assert_eq!(
            (call.args, call.stdin),
            (vec!["--ui".into(), "hi".into()], StdinSource::Screen)
        );
        settings.cli.prompt_mode = PromptMode::Stdin;
        assert_eq!(
            own(&settings).unwrap_err().to_string(),
            "my-ai has no screen to type into: `prompt_mode: stdin` takes the place of the keyboard"
        );
    }
}
