//! The table of built-in agents, one row per product. Detection order, help, doctor and error texts come from this
//! table; no other file names a product.

use crate::event::UsageMeaning;

use super::access::AgentAccess;
use super::account::{Login, LoginFile};
use super::interactive::{FirstPrompt, Interactive};
use super::permission_mode::PermissionMode;
use super::table::{
    AcpServer, Agent, Delivery, Evidence, LongPrompt, PromptLimit, PromptQuirk, Resume, ShortPrompt,
    StructuredOutput, Terminal,
};

/// The built-in agents in detection order.
pub static AGENTS: &[Agent] = &[
    Agent {
        name: "claude",
        display_name: "Claude Code",
        programs: &["claude"],
        headless: &["--dangerously-skip-permissions"],
        structured: Some(StructuredOutput {
            flags: &["--output-format", "stream-json", "--verbose"],
            format: "claude",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::Flag("-p"),
            long: LongPrompt::Stdin(&["-p"]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Positional,
            // Newer versions start in a mode that approves most tools by itself.
            permission_mode: Some(PermissionMode {
                flag: "--permission-mode",
                replaced_by: &["--dangerously-skip-permissions", "--settings"],
                asking: "default",
                directory_variable: "CLAUDE_CONFIG_DIR",
                directory: ".claude",
                file: "settings.json",
                pointer: "/permissions/defaultMode",
            }),
        }),
        resume: Some(Resume::Before("--resume")),
        acp: Some(AcpServer {
            program: "claude-agent-acp",
            args: &[],
            usage: UsageMeaning::Prompt,
        }),
        prompt_quirk: PromptQuirk::FirstSlash,
        terminal: Terminal::Pty,
        model_flag: Some("--model"),
        prompt_limit: Some(PromptLimit::Bytes(10_000_000)),
        environment: &[],
        root_environment: &[("IS_SANDBOX", "1")],
        access: AgentAccess {
            files: &[
                ".claude",
                ".claude.json",
                ".config/claude",
                ".local/share/claude",
                ".local/state/claude",
            ],
            hosts: &[
                "api.anthropic.com",
                "console.anthropic.com",
                "platform.claude.com",
                "claude.ai",
                "statsig.anthropic.com",
                "*.claude.ai",
            ],
            variables: &[
                "ANTHROPIC_*",
                "CLAUDE_*",
                "AWS_BEARER_TOKEN_BEDROCK",
                "DISABLE_*",
                "MAX_THINKING_TOKENS",
                "IS_SANDBOX",
            ],
        },
        auth_hint: "Run `claude` once and log in, or set ANTHROPIC_API_KEY.",
        limit_phrases: &[
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
        tested_with: Evidence::Version("2.1.327"),
        min_version: Some("2.1.197"),
    },
    Agent {
        name: "kiro",
        display_name: "Kiro",
        programs: &["kiro-cli"],
        headless: &["chat", "--no-interactive", "--trust-all-tools"],
        structured: None,
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::Positional,
            long: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &["chat"],
            prompt: FirstPrompt::Positional,
            permission_mode: None,
        }),
        resume: None,
        acp: None,
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".kiro", ".local/share/kiro-cli", ".aws/sso/cache", ".config/kiro"],
            hosts: &[
                "*.kiro.dev",
                "*.amazonaws.com",
                "*.amazoncognito.com",
                "*.awsapps.com",
            ],
            variables: &["KIRO_*"],
        },
        auth_hint: "Run `kiro-cli login`, or set KIRO_API_KEY.",
        limit_phrases: &[
            "ThrottlingException",
            "Monthly request limit reached",
            "You've reached your monthly request limit",
        ],
        install: "https://kiro.dev/docs/cli",
        tested_with: Evidence::Documentation,
        min_version: None,
    },
    Agent {
        name: "agy",
        display_name: "Antigravity CLI",
        programs: &["agy"],
        // Without a longer limit, it stops after five minutes.
        headless: &["--dangerously-skip-permissions", "--print-timeout", "24h"],
        structured: Some(StructuredOutput {
            flags: &["--output-format", "stream-json"],
            format: "agy",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::Flag("-p"),
            long: LongPrompt::ReadFile,
        },
        interactive: None,
        resume: Some(Resume::Before("--conversation")),
        acp: None,
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".gemini", ".antigravity", ".config/antigravity"],
            hosts: &["*.googleapis.com", "accounts.google.com", "antigravity.google"],
            variables: &["ANTIGRAVITY_*", "GOOGLE_*"],
        },
        auth_hint: "Run `agy` once and log in.",
        limit_phrases: &["RESOURCE_EXHAUSTED", "Resource exhausted"],
        install: "https://antigravity.google/docs/cli/overview",
        tested_with: Evidence::Documentation,
        min_version: None,
    },
    Agent {
        name: "gemini",
        display_name: "Gemini CLI",
        programs: &["gemini"],
        headless: &["--yolo", "--skip-trust"],
        structured: Some(StructuredOutput {
            flags: &["-o", "stream-json"],
            format: "gemini",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::Flag("-p"),
            long: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Flag("-i"),
            permission_mode: None,
        }),
        resume: Some(Resume::Before("--resume")),
        acp: Some(AcpServer {
            program: "gemini",
            args: &["--acp", "--skip-trust"],
            usage: UsageMeaning::Prompt,
        }),
        prompt_quirk: PromptQuirk::AtSign,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: Some(PromptLimit::Bytes(8 << 20)),
        // Skipping the wrapper process halves the startup time.
        environment: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
        root_environment: &[],
        access: AgentAccess {
            files: &[".gemini"],
            hosts: &["*.googleapis.com", "accounts.google.com"],
            variables: &["GEMINI_*", "GOOGLE_*"],
        },
        auth_hint: "Set GEMINI_API_KEY. Personal Google accounts need Antigravity (`agy`) instead.",
        limit_phrases: &[
            "You exceeded your current quota",
            "You have exhausted your capacity on this model",
            "You have exhausted your daily quota on this model",
            "RESOURCE_EXHAUSTED",
            "Resource exhausted",
            "Quota exceeded for quota metric ",
        ],
        install: "https://github.com/google-gemini/gemini-cli",
        tested_with: Evidence::Version("0.61.0"),
        min_version: Some("0.61.0"),
    },
    Agent {
        name: "codex",
        display_name: "OpenAI Codex",
        programs: &["codex"],
        headless: &["exec", "--dangerously-bypass-approvals-and-sandbox"],
        structured: Some(StructuredOutput {
            flags: &["--json"],
            format: "codex",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::Positional,
            long: LongPrompt::Stdin(&["-"]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Positional,
            permission_mode: None,
        }),
        resume: Some(Resume::Before("resume")),
        acp: Some(AcpServer {
            program: "codex-acp",
            args: &[],
            usage: UsageMeaning::None,
        }),
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: Some(PromptLimit::Characters(1_048_576)),
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".codex"],
            hosts: &[
                "api.openai.com",
                "auth.openai.com",
                "chatgpt.com",
                "*.chatgpt.com",
            ],
            variables: &["OPENAI_*", "CODEX_*"],
        },
        auth_hint: "Run `codex login`, or set CODEX_API_KEY.",
        limit_phrases: &[
            "You've hit your usage limit",
            "exceeded retry limit, last status: 429 ",
            "Rate limit reached for ",
            "usage_limit_reached",
        ],
        install: "https://github.com/openai/codex",
        tested_with: Evidence::Version("0.169.0"),
        min_version: Some("0.166.0"),
    },
    Agent {
        name: "amp",
        display_name: "Amp",
        programs: &["amp"],
        headless: &["--dangerously-allow-all"],
        structured: Some(StructuredOutput {
            flags: &["--stream-json"],
            format: "amp",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::Flag("-x"),
            long: LongPrompt::Stdin(&["-x"]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Stdin,
            permission_mode: None,
        }),
        resume: None,
        acp: None,
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: None,
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".config/amp", ".local/share/amp", ".cache/amp", ".amp"],
            hosts: &["ampcode.com", "*.ampcode.com"],
            variables: &["AMP_*"],
        },
        auth_hint: "Run `amp login`, or set AMP_API_KEY.",
        limit_phrases: &[],
        install: "https://ampcode.com/manual",
        tested_with: Evidence::Documentation,
        min_version: None,
    },
    Agent {
        name: "opencode",
        display_name: "OpenCode",
        programs: &["opencode"],
        headless: &["run", "--auto"],
        structured: Some(StructuredOutput {
            flags: &["--format", "json", "--thinking"],
            format: "opencode",
        }),
        usage_flag: None,
        // OpenCode wraps a prompt argument in quotes; stdin is passed unchanged.
        prompt: Delivery {
            short: ShortPrompt::AsLong,
            long: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Flag("--prompt"),
            permission_mode: None,
        }),
        resume: Some(Resume::Before("--session")),
        acp: Some(AcpServer {
            program: "opencode",
            args: &["acp"],
            usage: UsageMeaning::LastRequest,
        }),
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[
                ".config/opencode",
                ".local/share/opencode",
                ".local/state/opencode",
                ".cache/opencode",
                ".opencode",
            ],
            hosts: &[
                "opencode.ai",
                "*.opencode.ai",
                "models.dev",
                "api.anthropic.com",
                "api.openai.com",
                "openrouter.ai",
            ],
            variables: &["OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*"],
        },
        auth_hint: "Run `opencode auth login`.",
        limit_phrases: &["Rate limit reached for "],
        install: "https://opencode.ai/docs",
        tested_with: Evidence::Version("1.18.33"),
        min_version: Some("1.18.33"),
    },
    Agent {
        name: "copilot",
        display_name: "GitHub Copilot CLI",
        programs: &["copilot"],
        headless: &["--allow-all", "--no-ask-user"],
        structured: Some(StructuredOutput {
            flags: &["--output-format", "json"],
            format: "copilot",
        }),
        usage_flag: Some("--usage-output-file"),
        prompt: Delivery {
            short: ShortPrompt::Flag("-p"),
            long: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Flag("-i"),
            permission_mode: None,
        }),
        resume: Some(Resume::Joined("--resume=")),
        acp: Some(AcpServer {
            program: "copilot",
            args: &["--acp"],
            usage: UsageMeaning::Prompt,
        }),
        prompt_quirk: PromptQuirk::Nothing,
        // On a pipe, Copilot exits without waiting for a slow reader and loses the rest of its output.
        terminal: Terminal::Pty,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".copilot", ".config/github-copilot"],
            hosts: &["api.github.com", "github.com", "*.githubcopilot.com"],
            variables: &["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"],
        },
        auth_hint: "Run `copilot` once and `/login`, or set GH_TOKEN.",
        limit_phrases: &[
            "Rate limit reached for ",
            "Sorry, you've hit a rate limit ",
            "You've hit your rate limit",
            "Sorry, you have exceeded your Copilot token usage",
            "You have exceeded your premium request allowance",
        ],
        install: "https://docs.github.com/copilot/how-tos/copilot-cli",
        tested_with: Evidence::Version("1.0.102"),
        min_version: Some("1.0.102"),
    },
    Agent {
        name: "cursor",
        display_name: "Cursor CLI",
        programs: &["cursor-agent"],
        headless: &["-p", "--force", "--trust"],
        structured: Some(StructuredOutput {
            flags: &["--output-format", "stream-json"],
            format: "cursor",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::Positional,
            long: LongPrompt::ReadFile,
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Positional,
            permission_mode: None,
        }),
        resume: None,
        acp: None,
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".cursor", ".config/cursor", ".local/share/cursor-agent"],
            hosts: &["*.cursor.sh", "*.cursor.com", "cursor.com"],
            variables: &["CURSOR_*"],
        },
        auth_hint: "Run `cursor-agent login`, or set CURSOR_API_KEY.",
        limit_phrases: &["You've hit your usage limit", "resource_exhausted"],
        install: "https://cursor.com/cli",
        tested_with: Evidence::Documentation,
        min_version: None,
    },
    Agent {
        name: "qwen",
        display_name: "Qwen Code",
        programs: &["qwen"],
        headless: &["--yolo"],
        structured: Some(StructuredOutput {
            flags: &["-o", "stream-json"],
            format: "qwen",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::AsLong,
            long: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Flag("-i"),
            permission_mode: None,
        }),
        resume: Some(Resume::Before("--resume")),
        acp: Some(AcpServer {
            program: "qwen",
            args: &["--acp"],
            usage: UsageMeaning::Requests,
        }),
        prompt_quirk: PromptQuirk::FirstSlashAndAtSign,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[("QWEN_CODE_SUPPRESS_YOLO_WARNING", "1")],
        root_environment: &[],
        access: AgentAccess {
            files: &[".qwen"],
            hosts: &["*.aliyuncs.com", "chat.qwen.ai", "qwen.ai"],
            variables: &["QWEN_*", "OPENAI_*", "DASHSCOPE_*", "BAILIAN_*"],
        },
        auth_hint: "Run `qwen` once and log in, or set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL.",
        limit_phrases: &["Rate limit reached for "],
        install: "https://qwenlm.github.io/qwen-code-docs",
        tested_with: Evidence::Version("0.24.4"),
        min_version: Some("0.24.4"),
    },
    Agent {
        name: "pi",
        display_name: "Pi",
        programs: &["pi"],
        headless: &["-p"],
        structured: Some(StructuredOutput {
            flags: &["--mode", "json"],
            format: "pi",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::AsLong,
            long: LongPrompt::Stdin(&[]),
        },
        interactive: Some(Interactive {
            args: &[],
            prompt: FirstPrompt::Positional,
            permission_mode: None,
        }),
        resume: Some(Resume::Before("--session")),
        acp: None,
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".pi"],
            hosts: &[
                "api.anthropic.com",
                "api.openai.com",
                "openrouter.ai",
                "*.googleapis.com",
            ],
            variables: &["PI_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*", "GEMINI_*"],
        },
        auth_hint: "Run `pi` once and `/login`, or set the API key of a provider.",
        limit_phrases: &["Rate limit reached for "],
        install: "https://pi.dev/docs",
        tested_with: Evidence::Version("0.87.1"),
        min_version: Some("0.87.1"),
    },
    Agent {
        name: "kimi",
        display_name: "Kimi Code",
        programs: &["kimi"],
        headless: &[],
        structured: Some(StructuredOutput {
            flags: &["--output-format", "stream-json"],
            format: "kimi",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::Flag("-p"),
            long: LongPrompt::ReadFile,
        },
        interactive: None,
        resume: Some(Resume::Before("--session")),
        acp: Some(AcpServer {
            program: "kimi",
            args: &["acp"],
            usage: UsageMeaning::None,
        }),
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: Some("--model"),
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".kimi", ".config/kimi", ".local/share/kimi"],
            hosts: &["api.moonshot.ai", "api.moonshot.cn", "api.kimi.com", "*.kimi.com"],
            variables: &["KIMI_*", "MOONSHOT_*"],
        },
        auth_hint: "Run `kimi` once and `/login`.",
        limit_phrases: &[],
        install: "https://www.kimi.com/code/docs",
        tested_with: Evidence::Version("2.1.0"),
        min_version: Some("2.1.0"),
    },
    Agent {
        name: "vibe",
        display_name: "Mistral Vibe",
        programs: &["vibe"],
        headless: &["--auto-approve", "--trust"],
        structured: Some(StructuredOutput {
            flags: &["--output", "streaming"],
            format: "vibe",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::AsLong,
            long: LongPrompt::Stdin(&["-p"]),
        },
        interactive: None,
        resume: Some(Resume::Before("--resume")),
        acp: Some(AcpServer {
            program: "vibe-acp",
            args: &[],
            usage: UsageMeaning::Prompt,
        }),
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: None,
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".vibe"],
            hosts: &["api.mistral.ai", "*.mistral.ai"],
            variables: &["MISTRAL_*", "VIBE_*"],
        },
        auth_hint: "Run `vibe --setup`, or set MISTRAL_API_KEY.",
        limit_phrases: &[],
        install: "https://docs.mistral.ai/mistral-vibe",
        tested_with: Evidence::Captured("3.0.2"),
        min_version: None,
    },
    Agent {
        name: "cline",
        display_name: "Cline",
        programs: &["cline"],
        headless: &[],
        structured: Some(StructuredOutput {
            flags: &["--json"],
            format: "cline",
        }),
        usage_flag: None,
        prompt: Delivery {
            short: ShortPrompt::Positional,
            long: LongPrompt::ReadFile,
        },
        interactive: None,
        resume: None,
        acp: Some(AcpServer {
            program: "cline",
            args: &["--acp"],
            usage: UsageMeaning::None,
        }),
        prompt_quirk: PromptQuirk::Nothing,
        terminal: Terminal::Pipe,
        model_flag: None,
        prompt_limit: None,
        environment: &[],
        root_environment: &[],
        access: AgentAccess {
            files: &[".cline", ".config/cline"],
            hosts: &[
                "api.cline.bot",
                "*.cline.bot",
                "api.anthropic.com",
                "openrouter.ai",
            ],
            variables: &["CLINE_*", "ANTHROPIC_*", "OPENROUTER_*", "OPENAI_*"],
        },
        auth_hint: "Run `cline auth`.",
        limit_phrases: &[],
        install: "https://docs.cline.bot/cline-cli",
        tested_with: Evidence::Captured("3.0.65"),
        min_version: None,
    },
];

/// Beginnings of usage-limit messages that any agent may print, including custom commands.
pub static GENERAL_LIMIT_PHRASES: &[&str] = &[
    "429 Too Many Requests",
    "429 {",
    "HTTP 429",
    "Too many requests",
    "Rate limit exceeded",
    "Usage limit reached",
    "rate_limit_error",
    "rate_limit_exceeded",
];

/// Environment variables that mark a nested agent session. An agent that inherits them refuses to start or hangs.
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

/// Where the accounts of agents are found. An agent without a row has one account per user.
pub(super) static LOGINS: &[Login] = &[
    Login {
        agent: "claude",
        keys: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        address: Some("ANTHROPIC_BASE_URL"),
        file: Some(LoginFile {
            directory_variable: Some("CLAUDE_CONFIG_DIR"),
            directory: "",
            file: ".claude.json",
            pointer: "/oauthAccount/emailAddress",
        }),
    },
    Login {
        agent: "codex",
        keys: &["CODEX_API_KEY", "OPENAI_API_KEY"],
        address: Some("OPENAI_BASE_URL"),
        file: Some(LoginFile {
            directory_variable: Some("CODEX_HOME"),
            directory: ".codex",
            file: "auth.json",
            pointer: "/tokens/account_id",
        }),
    },
    Login {
        agent: "gemini",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        address: Some("GOOGLE_GEMINI_BASE_URL"),
        file: Some(LoginFile {
            directory_variable: None,
            directory: ".gemini",
            file: "google_accounts.json",
            pointer: "/active",
        }),
    },
    Login {
        agent: "copilot",
        keys: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
        address: None,
        file: Some(LoginFile {
            directory_variable: None,
            directory: ".copilot",
            file: "config.json",
            pointer: "/last_logged_in_user/login",
        }),
    },
    Login {
        agent: "amp",
        keys: &["AMP_API_KEY"],
        address: None,
        file: None,
    },
    Login {
        agent: "cursor",
        keys: &["CURSOR_API_KEY"],
        address: None,
        file: None,
    },
    Login {
        agent: "kiro",
        keys: &["KIRO_API_KEY"],
        address: None,
        file: None,
    },
    Login {
        agent: "vibe",
        keys: &["MISTRAL_API_KEY"],
        address: None,
        file: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_from_version_output_and_compared() {
        let row = |has_min_version| {
            AGENTS
                .iter()
                .find(|agent| agent.min_version.is_some() == has_min_version)
                .unwrap()
        };
        let known = row(true);
        let min_version = known.min_version.unwrap();
        for (output, outdated) in [
            ("0.0.9 (Claude Code)".to_owned(), true),
            (format!("codex-cli {min_version}"), false),
            (format!("v{min_version}, commit abc"), false),
            ("v999.0.0".to_owned(), false),
            ("no number here".to_owned(), false),
            ("0.0.9, commit abc".to_owned(), true),
        ] {
            assert_eq!(known.is_outdated(&output), outdated, "{output}");
        }
        assert!(!row(false).is_outdated("0.0.1"));
    }

    #[test]
    fn tested_version_satisfies_the_minimum_version() {
        for agent in AGENTS {
            if let Evidence::Version(tested) = agent.tested_with {
                assert!(!agent.is_outdated(tested), "{}", agent.name);
            }
        }
    }
}
