//! Tests of the agents' command lines and of their description in `docs/agents.md`.

use super::*;
use crate::agent::{AGENTS, Evidence};

fn call(name: &str, prompt: &str) -> Invocation {
    call_with(name, prompt, &Settings::default())
}

fn call_with(name: &str, prompt: &str, settings: &Settings) -> Invocation {
    let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
    let resolved = ResolvedAgent::builtin(agent, agent.programs[0].into(), None, settings);
    resolved.invocation(prompt, Path::new("/run/prompt.md")).unwrap()
}

fn line(invocation: &Invocation) -> String {
    let stdin = match &invocation.stdin {
        StdinSource::Null => "/dev/null".to_owned(),
        StdinSource::PromptFile(path) => path.display().to_string(),
        StdinSource::Terminal => "terminal".to_owned(),
        StdinSource::Protocol => "messages".to_owned(),
    };
    format!(
        "{} {} < {stdin}",
        invocation.program.display(),
        invocation.args.join(" ".as_ref()).display()
    )
}

#[test]
fn command_line_of_each_agent_matches_its_table_row() {
    let calls: Vec<String> = AGENTS
        .iter()
        .flat_map(|agent| {
            ["say hi".to_owned(), "- a list".to_owned()].map(|prompt| line(&call(agent.name, &prompt)))
        })
        .collect();
    insta::assert_snapshot!(calls.join("\n"), @"
    claude --dangerously-skip-permissions --output-format stream-json --verbose -p say hi < /dev/null
    claude --dangerously-skip-permissions --output-format stream-json --verbose -p < /run/prompt.md
    kiro-cli chat --no-interactive --trust-all-tools say hi < /dev/null
    kiro-cli chat --no-interactive --trust-all-tools < /run/prompt.md
    agy --dangerously-skip-permissions --print-timeout 24h --output-format stream-json -p say hi < /dev/null
    agy --dangerously-skip-permissions --print-timeout 24h --output-format stream-json -p Read the file /run/prompt.md and do what it says; it is your whole task. < /dev/null
    gemini --yolo --skip-trust -o stream-json -p say hi < /dev/null
    gemini --yolo --skip-trust -o stream-json < /run/prompt.md
    codex exec --dangerously-bypass-approvals-and-sandbox --json say hi < /dev/null
    codex exec --dangerously-bypass-approvals-and-sandbox --json - < /run/prompt.md
    amp --dangerously-allow-all --stream-json -x say hi < /dev/null
    amp --dangerously-allow-all --stream-json -x < /run/prompt.md
    opencode run --auto --format json --thinking < /run/prompt.md
    opencode run --auto --format json --thinking < /run/prompt.md
    copilot --allow-all --no-ask-user --output-format json --usage-output-file /run/usage.json -p say hi < /dev/null
    copilot --allow-all --no-ask-user --output-format json --usage-output-file /run/usage.json < /run/prompt.md
    cursor-agent -p --force --trust --output-format stream-json say hi < /dev/null
    cursor-agent -p --force --trust --output-format stream-json Read the file /run/prompt.md and do what it says; it is your whole task. < /dev/null
    qwen --yolo -o stream-json < /run/prompt.md
    qwen --yolo -o stream-json < /run/prompt.md
    pi -p --mode json < /run/prompt.md
    pi -p --mode json < /run/prompt.md
    kimi --output-format stream-json -p say hi < /dev/null
    kimi --output-format stream-json -p Read the file /run/prompt.md and do what it says; it is your whole task. < /dev/null
    vibe --auto-approve --trust --output streaming -p < /run/prompt.md
    vibe --auto-approve --trust --output streaming -p < /run/prompt.md
    cline --json say hi < /dev/null
    cline --json Read the file /run/prompt.md and do what it says; it is your whole task. < /dev/null
    ");
}

#[test]
fn long_prompts_and_special_first_characters_use_stdin() {
    for prompt in [
        "-x".to_owned(),
        "/help".to_owned(),
        "@file".to_owned(),
        "ü".repeat(7001),
        String::new(),
    ] {
        assert_eq!(call("codex", &prompt).args.last().unwrap(), "-", "{prompt:.10}");
    }
    let longest = format!("{} {}", "ü".repeat(3999), "ü".repeat(3000));
    assert_eq!(*call("codex", &longest).args.last().unwrap(), *longest);
    assert_eq!(
        call("codex", "resume").args.last().unwrap(),
        "-",
        "a single word could be a subcommand"
    );
}

#[test]
fn prompt_over_the_agents_limit_is_rejected_with_both_sizes() {
    let codex = AGENTS.iter().find(|agent| agent.name == "codex").unwrap();
    let resolved = ResolvedAgent::builtin(codex, "codex".into(), None, &Settings::default());
    let error = resolved
        .invocation(&"x".repeat(1_048_577), Path::new("p"))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "prompt too long for OpenAI Codex: 1048577 characters (limit: 1048576 characters)"
    );
}

#[test]
fn plain_transcript_disables_structured_output() {
    let mut settings = Settings::default();
    settings.cli.transcript = Some("plain".into());
    let args = call_with("claude", "hi", &settings).args;
    assert_eq!(args, ["--dangerously-skip-permissions", "-p", "hi"]);
}

#[test]
fn model_adapter_args_and_extra_args_precede_the_prompt() {
    let mut settings = Settings::default();
    settings.cli.model = Some("opus".into());
    settings.cli.extra_args = vec!["--debug".into()];
    settings.adapters.entry("claude".into()).or_default().args = vec!["--add-dir".into(), "..".into()];
    let args = call_with("claude", "hi", &settings).args;
    assert_eq!(
        args[4..],
        ["--model", "opus", "--add-dir", "..", "--debug", "-p", "hi"]
    );
}

#[test]
fn claude_gets_a_terminal_without_pty_mode() {
    assert_eq!(call("claude", "hi").terminal, Terminal::Pty);
    assert_eq!(call("codex", "hi").terminal, Terminal::Pipe);
}

#[test]
fn prompt_text_with_special_meaning_is_escaped() {
    let escaped = |name: &str, prompt: &str| {
        let agent = AGENTS.iter().find(|agent| agent.name == name).unwrap();
        let resolved = ResolvedAgent::builtin(agent, name.into(), None, &Settings::default());
        resolved.escape_prompt(prompt).into_owned()
    };
    assert_eq!(escaped("claude", "/help"), "\n/help");
    assert_eq!(escaped("claude", "see /help and @file"), "see /help and @file");
    assert_eq!(escaped("gemini", "see @file, a@b.c"), r"see \@file, a\@b.c");
    assert_eq!(escaped("codex", "/help @file"), "/help @file");
    let args = call("claude", &escaped("claude", "/help")).args;
    assert_eq!(args.last().unwrap(), "-p", "passed on stdin");
}

#[test]
fn resume_arguments_match_the_table_row() {
    let calls: Vec<String> = AGENTS
        .iter()
        .filter(|agent| agent.resume.is_some())
        .map(|agent| {
            let resolved =
                ResolvedAgent::builtin(agent, agent.programs[0].into(), None, &Settings::default());
            let call = resolved.invocation_in_session("- go on", Path::new("/run/prompt.md"), Some("ID"));
            line(&call.unwrap())
        })
        .collect();
    insta::assert_snapshot!(calls.join("\n"), @"
    claude --dangerously-skip-permissions --output-format stream-json --verbose --resume ID -p < /run/prompt.md
    agy --dangerously-skip-permissions --print-timeout 24h --output-format stream-json --conversation ID -p Read the file /run/prompt.md and do what it says; it is your whole task. < /dev/null
    gemini --yolo --skip-trust -o stream-json --resume ID < /run/prompt.md
    codex exec --dangerously-bypass-approvals-and-sandbox --json resume ID - < /run/prompt.md
    opencode run --auto --format json --thinking --session ID < /run/prompt.md
    copilot --allow-all --no-ask-user --output-format json --resume=ID --usage-output-file /run/usage.json < /run/prompt.md
    qwen --yolo -o stream-json --resume ID < /run/prompt.md
    pi -p --mode json --session ID < /run/prompt.md
    kimi --output-format stream-json --session ID -p Read the file /run/prompt.md and do what it says; it is your whole task. < /dev/null
    vibe --auto-approve --trust --output streaming --resume ID -p < /run/prompt.md
    ");
}

#[test]
fn agents_manual_matches_the_table() {
    let manual = include_str!("../../../docs/agents.md");
    for agent in AGENTS {
        let Evidence::Version(version) = agent.tested_with else {
            continue;
        };
        let start = manual.find(&format!("\n## {}\n", agent.display_name));
        let section = &manual[start.expect(agent.name) + 1..];
        let section = section.split("\n## ").next().unwrap();
        let call = call(agent.name, "- a list");
        let resume = agent.resume.unwrap().args("ID").join(" ");
        for line in [
            format!("checked with version {version}\n"),
            format!("- log in: {}\n", agent.auth_hint),
            format!("({})", agent.install),
            format!(
                "- command: `{} {}`\n",
                call.program.display(),
                call.args
                    .join(" ".as_ref())
                    .to_string_lossy()
                    .replace("/run/usage.json", "FILE")
            ),
            format!("- sessions: `{resume}`\n"),
        ] {
            assert!(section.contains(&line), "{} lacks {line}", agent.name);
        }
        let limit = match agent.prompt_limit {
            Some(PromptLimit::Bytes(limit)) => format!("at most {limit} bytes"),
            Some(PromptLimit::Characters(limit)) => format!("at most {limit} characters"),
            None => String::new(),
        };
        assert!(section.contains(&limit), "{} lacks {limit}", agent.name);
    }
}

#[test]
fn root_environment_is_set_for_root_only() {
    let claude = AGENTS.iter().find(|agent| agent.name == "claude").unwrap();
    assert_eq!(
        environment(claude, UserKind::Root),
        [("IS_SANDBOX".to_owned(), "1".to_owned())]
    );
    assert_eq!(environment(claude, UserKind::Ordinary), []);
}

fn custom(prompt: &str, change: impl FnOnce(&mut Settings)) -> Result<Invocation, AgentError> {
    let mut settings = Settings::default();
    settings.cli.args = vec!["--headless".into()];
    change(&mut settings);
    ResolvedAgent::custom("/opt/my-ai".into(), &settings).invocation(prompt, Path::new("/run/prompt.md"))
}

#[test]
fn custom_command_receives_its_prompt_as_configured() {
    assert_eq!(custom("test", |_| ()).unwrap().args, ["--headless", "test"]);
    let flag = |settings: &mut Settings| settings.cli.prompt_flag = Some("--prompt".into());
    assert_eq!(
        custom("test", flag).unwrap().args,
        ["--headless", "--prompt", "test"]
    );
    let stdin = |settings: &mut Settings| settings.cli.prompt_mode = PromptMode::Stdin;
    let call = custom("test", stdin).unwrap();
    assert_eq!(call.args, ["--headless"]);
    assert_eq!(call.stdin, StdinSource::PromptFile("/run/prompt.md".into()));
}

#[test]
fn custom_prompt_is_never_an_option_and_never_exceeds_the_argument_limit() {
    assert_eq!(custom("- item", |_| ()).unwrap().args, ["--headless", "\n- item"]);
    let error = custom(&"x".repeat(ARGUMENT_BYTE_LIMIT), |_| ()).unwrap_err();
    assert!(
        error.to_string().ends_with("131072 bytes (limit: 131071 bytes)"),
        "{error}"
    );
    assert!(custom(&"x".repeat(ARGUMENT_BYTE_LIMIT - 1), |_| ()).is_ok());
}
