//! The built-in agents: one row of data each. Detection order, help, doctor and error texts all read this table;
//! no other file names a product.

use super::interactive::{FirstPrompt, Interactive};
use super::table::{
    Agent, Delivery, Evidence, LongPrompt, PromptLimit, PromptQuirk, Resume, ShortPrompt, Structured,
    Terminal,
};

/// In the order of detection.
pub static AGENTS: &[Agent] = &[
    Agent {
        name: "claude",
        display_name: "Claude Code",
        programs: &["claude"],
        headless: &["--dangerously-skip-permissions"],
        structured: Some(Structured {
            flags: &["--output-format", "stream-json", "--verbose"],
            format: "claude",
        }),
        usage_flag: None,
        prompt: Delivery {
            small: ShortPrompt::Flag("-p"),
            large: LongPrompt::Stdin(&["-p"]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Positional,
        }),
        resume: Some(Resume::Before("--resume")),
        misreads: PromptQuirk::FirstSlash,
        terminal: Terminal::Pty,
        model_flag: Some("--model"),
        prompt_limit: Some(PromptLimit::Bytes(10_000_000)),
        environment: &[],
        environment_of_root: &[("IS_SANDBOX", "1")],
        auth_hint: "Run `claude` once and log in, or set ANTHROPIC_API_KEY.",
        limits: &[
            "Claude AI usage limit reached",
            "Claude usage limit reached",
            "You've hit your limit",
            "You've hit your session limit",
            "You've hit your weekly limit",
            "You've hit your usage limit",
            "You've hit your Opus limit",
            "You've hit your Sonnet limit",
            "You've reached your usage limit",
            "5-hour limit reached",
            "Session limit reached",
            "Weekly limit reached",
            "Opus weekly limit reached",
            "Opus limit reached",
            "Request rejected (429)",
        ],
        install: "https://docs.claude.com/en/docs/claude-code",
        tested_with: Evidence::Version("2.1.197"),
        oldest: Some("2.1.197"),
    },
    Agent {
        name: "kiro",
        display_name: "Kiro",
        programs: &["kiro-cli"],
        headless: &["chat", "--no-interactive", "--trust-all-tools"],
        structured: None,
        usage_flag: None,
        prompt: Delivery {
            small: ShortPrompt::Positional,
            large: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &["chat"],
            prompt: FirstPrompt::Positional,
        }),
        resume: None,
        misreads: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        environment_of_root: &[],
        auth_hint: "Run `kiro-cli login`, or set KIRO_API_KEY.",
        limits: &[
            "ThrottlingException",
            "Monthly request limit reached",
            "You've reached your monthly request limit",
        ],
        install: "https://kiro.dev/docs/cli",
        tested_with: Evidence::Documentation,
        oldest: None,
    },
    Agent {
        name: "gemini",
        display_name: "Gemini CLI",
        programs: &["gemini"],
        headless: &["--yolo", "--skip-trust"],
        structured: Some(Structured {
            flags: &["-o", "stream-json"],
            format: "gemini",
        }),
        usage_flag: None,
        prompt: Delivery {
            small: ShortPrompt::Flag("-p"),
            large: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Flag("-i"),
        }),
        resume: Some(Resume::Before("--resume")),
        misreads: PromptQuirk::AtSign,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: Some(PromptLimit::Bytes(8 << 20)),
        // Without its wrapper process it starts in half the time.
        environment: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
        environment_of_root: &[],
        auth_hint: "Run `gemini` once and log in, or set GEMINI_API_KEY.",
        limits: &[
            "You exceeded your current quota",
            "You have exhausted your capacity on this model",
            "You have exhausted your daily quota on this model",
            "RESOURCE_EXHAUSTED",
            "Resource exhausted",
            "Quota exceeded for quota metric ",
        ],
        install: "https://github.com/google-gemini/gemini-cli",
        tested_with: Evidence::Version("0.61.0"),
        oldest: Some("0.61.0"),
    },
    Agent {
        name: "codex",
        display_name: "OpenAI Codex",
        programs: &["codex"],
        headless: &["exec", "--dangerously-bypass-approvals-and-sandbox"],
        structured: Some(Structured {
            flags: &["--json"],
            format: "codex",
        }),
        usage_flag: None,
        prompt: Delivery {
            small: ShortPrompt::Positional,
            large: LongPrompt::Stdin(&["-"]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Positional,
        }),
        resume: Some(Resume::Before("resume")),
        misreads: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: Some(PromptLimit::Characters(1_048_576)),
        environment: &[],
        environment_of_root: &[],
        auth_hint: "Run `codex login`, or set CODEX_API_KEY.",
        limits: &[
            "You've hit your usage limit",
            "exceeded retry limit, last status: 429 ",
            "Rate limit reached for ",
            "usage_limit_reached",
        ],
        install: "https://github.com/openai/codex",
        tested_with: Evidence::Version("0.166.0"),
        oldest: Some("0.166.0"),
    },
    Agent {
        name: "amp",
        display_name: "Amp",
        programs: &["amp"],
        headless: &["--dangerously-allow-all"],
        structured: Some(Structured {
            flags: &["--stream-json"],
            format: "amp",
        }),
        usage_flag: None,
        prompt: Delivery {
            small: ShortPrompt::Flag("-x"),
            large: LongPrompt::Stdin(&["-x"]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Stdin,
        }),
        resume: None,
        misreads: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: None,
        prompt_limit: None,
        environment: &[],
        environment_of_root: &[],
        auth_hint: "Run `amp login`, or set AMP_API_KEY.",
        limits: &[],
        install: "https://ampcode.com/manual",
        tested_with: Evidence::Documentation,
        oldest: None,
    },
    Agent {
        name: "opencode",
        display_name: "OpenCode",
        programs: &["opencode"],
        headless: &["run", "--auto"],
        structured: Some(Structured {
            flags: &["--format", "json", "--thinking"],
            format: "opencode",
        }),
        usage_flag: None,
        // It wraps an argument in quotes; on stdin the prompt arrives as it is.
        prompt: Delivery {
            small: ShortPrompt::AsLarge,
            large: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Flag("--prompt"),
        }),
        resume: Some(Resume::Before("--session")),
        misreads: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        environment_of_root: &[],
        auth_hint: "Run `opencode auth login`.",
        limits: &["Rate limit reached for "],
        install: "https://opencode.ai/docs",
        tested_with: Evidence::Version("1.18.33"),
        oldest: Some("1.18.33"),
    },
    Agent {
        name: "copilot",
        display_name: "GitHub Copilot CLI",
        programs: &["copilot"],
        headless: &["--allow-all", "--no-ask-user"],
        structured: Some(Structured {
            flags: &["--output-format", "json"],
            format: "copilot",
        }),
        usage_flag: Some("--usage-output-file"),
        prompt: Delivery {
            small: ShortPrompt::Flag("-p"),
            large: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Flag("-i"),
        }),
        resume: Some(Resume::Joined("--resume=")),
        misreads: PromptQuirk::Nothing,
        // On a pipe it ends without waiting for a slow reader, and the rest of its output is lost.
        terminal: Terminal::Pty,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        environment_of_root: &[],
        auth_hint: "Run `copilot` once and `/login`, or set GH_TOKEN.",
        limits: &[
            "Rate limit reached for ",
            "Sorry, you've hit a rate limit ",
            "You've hit your rate limit",
            "Sorry, you have exceeded your Copilot token usage",
            "You have exceeded your premium request allowance",
        ],
        install: "https://docs.github.com/copilot/how-tos/copilot-cli",
        tested_with: Evidence::Version("1.0.102"),
        oldest: Some("1.0.102"),
    },
    Agent {
        name: "cursor",
        display_name: "Cursor CLI",
        programs: &["cursor-agent"],
        headless: &["-p", "--force", "--trust"],
        structured: Some(Structured {
            flags: &["--output-format", "stream-json"],
            format: "cursor",
        }),
        usage_flag: None,
        prompt: Delivery {
            small: ShortPrompt::Positional,
            large: LongPrompt::ReadFile,
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Positional,
        }),
        resume: None,
        misreads: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        environment_of_root: &[],
        auth_hint: "Run `cursor-agent login`, or set CURSOR_API_KEY.",
        limits: &["You've hit your usage limit", "resource_exhausted"],
        install: "https://cursor.com/cli",
        tested_with: Evidence::Documentation,
        oldest: None,
    },
];

/// How the message of a usage limit begins in any agent, the user's own included.
pub static GENERAL_LIMITS: &[&str] = &[
    "429 Too Many Requests",
    "429 {",
    "HTTP 429",
    "Too many requests",
    "Rate limit exceeded",
    "Usage limit reached",
    "rate_limit_error",
    "rate_limit_exceeded",
];

/// Variables that make an agent believe that it runs inside another agent's session; it then refuses to start, or
/// hangs in silence.
pub static NESTED_SESSION: &[&str] = &[
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_BRIDGE_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_PID",
    "CLAUDE_EFFORT",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say_and_compared() {
        let row = |oldest| {
            AGENTS
                .iter()
                .find(|agent| agent.oldest.is_some() == oldest)
                .unwrap()
        };
        let known = row(true);
        let oldest = known.oldest.unwrap();
        for (answer, older) in [
            ("0.0.9 (Claude Code)".to_owned(), true),
            (format!("codex-cli {oldest}"), false),
            (format!("v{oldest}, commit abc"), false),
            ("v999.0.0".to_owned(), false),
            ("no number here".to_owned(), false),
            ("0.0.9, commit abc".to_owned(), true),
        ] {
            assert_eq!(known.is_outdated(&answer), older, "{answer}");
        }
        assert!(!row(false).is_outdated("0.0.1"));
    }

    #[test]
    fn no_row_needs_more_than_it_was_tested_with() {
        for agent in AGENTS {
            if let Evidence::Version(tested) = agent.tested_with {
                assert!(!agent.is_outdated(tested), "{}", agent.name);
            }
        }
    }
}
