//! Completion in real shells, and manual pages with real `groff`. Tests print SKIPPED if a program is not installed.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::commands;
use crate::sandbox::{Running, Sandbox, claude};

const CONFIG: &str = "\
gates:
  - {name: unit, run: 'true'}
hats:
  builder: { triggers: [task.start] }
  reviewer: { triggers: [review] }
";

/// Creates a workspace with two runs, two hats, a gate and a driver, and `ralph` on the PATH. Returns the run ids, newest
/// first.
fn workspace() -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new()
        .with_agent("claude")
        .with_script("default", &claude::session("LOOP_COMPLETE"))
        .with_file("ralph.yml", CONFIG);
    symlink(env!("CARGO_BIN_EXE_ralph"), sandbox.path("bin/ralph")).expect("ralph on the PATH");
    sandbox.ralph(&["drivers", "new", "mine"]).exits_with(0);
    for _ in 0..2 {
        sandbox
            .ralph(&["run", "-q", "--no-tui", "-p", "do it"])
            .exits_with(0);
    }
    let runs = sandbox.ralph(&["runs", "--json"]).exits_with(0).json();
    let ids = runs.as_array().expect("runs").iter();
    let ids: Vec<String> = ids
        .map(|run| run["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    (sandbox, ids)
}

#[track_caller]
fn installed(program: &str) -> Option<PathBuf> {
    let found = which::which(program).ok();
    if found.is_none() {
        crate::sandbox::skip::skip(&format!("{program} is not installed"));
    }
    found
}

/// Returns command lines with their expected completions of the next word.
fn expected(ids: &[String]) -> Vec<(&'static str, Vec<String>)> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut runs = ids.to_vec();
    runs.push("latest".to_owned());
    let mut expected: Vec<(&str, Vec<String>)> = ["show", "logs", "export", "attach", "run --continue"]
        .iter()
        .map(|command| (*command, runs.clone()))
        .collect();
    expected.push(("hats show", texts(&["builder", "reviewer"])));
    expected.push(("gates run", texts(&["unit"])));
    expected.push(("schema", texts(&["events", "config", "review"])));
    expected
}

/// Returns the completions of bash.
fn in_bash(sandbox: &Sandbox, bash: &str, line: &str, prefix: &str) -> Vec<String> {
    let script = "
        eval \"$(ralph completions bash)\"
        complete -p ralph >/dev/null || exit 9
        prefix=${@: -1}
        COMP_WORDS=(ralph \"$@\")
        COMP_CWORD=$#
        _clap_complete_ralph ralph \"$prefix\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = sandbox.command_for(bash);
    command.args(["--norc", "--noprofile", "-c", script, "bash"]);
    command.args(line.split_whitespace()).arg(prefix);
    offered(&Running::start(&mut command).finish().exits_with(0).stdout)
}

fn offered(text: &str) -> Vec<String> {
    let words = text
        .lines()
        .map(|line| line.split('\t').next().unwrap_or_default());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_runs_agents_hats_gates_drivers_and_formats() {
    let Some(bash) = installed("bash") else { return };
    let bash = bash.to_str().expect("a path");
    let (sandbox, ids) = workspace();
    for (line, words) in expected(&ids) {
        let options = |word: &String| !word.starts_with('-');
        let offered: Vec<String> = in_bash(&sandbox, bash, line, "")
            .into_iter()
            .filter(options)
            .collect();
        assert_eq!(offered, words, "ralph {line} <TAB>");
    }
    let agents = in_bash(&sandbox, bash, "run --agent", "");
    for agent in [
        "claude",
        "cursor",
        "auto",
        "custom",
        "driver:mine",
        "driver:codex",
    ] {
        assert!(agents.contains(&agent.to_owned()), "{agent}: {agents:?}");
    }
    assert_eq!(in_bash(&sandbox, bash, "agents test", "cu"), ["cursor", "custom"]);
    assert_eq!(in_bash(&sandbox, bash, "drivers check", "mi"), ["mine"]);
    assert_eq!(
        in_bash(&sandbox, bash, "run --transcript", "co"),
        ["codex", "codex-text", "copilot"]
    );
    assert_eq!(in_bash(&sandbox, bash, "run", "--max-it"), ["--max-iterations"]);
    assert_eq!(in_bash(&sandbox, bash, "", "und"), ["understand"]);
    let replay = in_bash(&sandbox, bash, "replay", "");
    assert!(
        replay.contains(&ids[0]) && replay.contains(&"ralph.yml".to_owned()),
        "{replay:?}"
    );
    let tell = in_bash(&sandbox, bash, "tell", "");
    assert!(!tell.contains(&ids[0]), "no run is active: {tell:?}");
    // With an invalid configuration, nothing is offered and no error is printed.
    std::fs::write(sandbox.work().join("ralph.yml"), "hats: [\n").expect("an invalid configuration");
    assert_eq!(in_bash(&sandbox, bash, "hats show", "b"), Vec::<String>::new());
    assert_eq!(in_bash(&sandbox, bash, "show", &ids[0]), [ids[0].clone()]);
}

#[test]
fn fish_completes_runs_and_agents() {
    let Some(fish) = installed("fish") else { return };
    let (sandbox, ids) = workspace();
    let complete = |line: &str| {
        let mut command = sandbox.command_for(fish.to_str().expect("a path"));
        let script = format!("ralph completions fish | source; complete -C '{line}'");
        command.args(["--no-config", "-c", &script]);
        offered(&Running::start(&mut command).finish().exits_with(0).stdout)
    };
    let runs = complete("ralph show ");
    assert!(ids.iter().all(|id| runs.contains(id)), "{runs:?}");
    assert_eq!(complete("ralph run --agent cu"), ["cursor", "custom"]);
    assert_eq!(complete("ralph hats show b"), ["builder"]);
}

/// zsh completes only in an interactive shell, so one zsh runs another on a pseudo-terminal.
#[test]
fn zsh_completes_runs_and_agents() {
    let Some(zsh) = installed("zsh") else { return };
    let (sandbox, ids) = workspace();
    let script = "
        zmodload zsh/zpty || exit 9
        zpty inner 'TERM=xterm zsh -f -i'
        zpty -w inner 'PS1=; autoload -Uz compinit; compinit -u -D; source <(ralph completions zsh); print ready-$((1+1))'
        zpty -r inner seen '*ready-2*' || exit 8
        zpty -w -n inner $'ralph show \\t'
        zpty -r inner seen \"*$1*\" || exit 7
        print -r -- $seen
        zpty -w -n inner $'\\x15ralph run --agent curs\\t'
        zpty -r inner seen '*cursor*' || exit 6
        print -r -- $seen
        zpty -d inner";
    let mut command = sandbox.command_for(zsh.to_str().expect("a path"));
    command.args(["-f", "-c", script, "zsh", &ids[0]]);
    for tool in ["zsh", "expr"] {
        let found = which::which(tool).expect("a tool that zsh and its script call");
        symlink(found, sandbox.path("bin").join(tool)).expect("it on the PATH");
    }
    let output = Running::start(&mut command).finish().exits_with(0);
    assert!(output.stdout.contains(&ids[0]), "{}", output.stdout);
    assert!(output.stdout.contains("cursor"), "{}", output.stdout);
}

fn run_on(program: &str, arguments: &[&str], page: &std::path::Path) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).arg(page).env("LC_ALL", "C.UTF-8");
    command.output().expect("it starts")
}

#[test]
fn every_command_has_a_page_that_groff_renders_without_warnings() {
    let sandbox = Sandbox::new();
    let output = sandbox.ralph(&["man", "--out", "pages"]).exits_with(0);
    let commands = commands();
    assert_eq!(
        output.stdout,
        format!("Wrote {} pages to pages\n", commands.len())
    );
    let groff = installed("groff");
    for (path, command) in commands {
        let name = std::iter::once("ralph".to_owned())
            .chain(path.clone())
            .collect::<Vec<_>>()
            .join("-");
        let file = sandbox.work().join(format!("pages/{name}.1"));
        let page = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES"] {
            assert!(
                page.contains(&format!(".SH {section}\n")),
                "{name}: {section}\n{page}"
            );
        }
        let words: Vec<&str> = ["man"]
            .into_iter()
            .chain(path.iter().map(String::as_str))
            .collect();
        assert_eq!(
            sandbox.ralph(&words).exits_with(0).stdout,
            page,
            "{name}, one by one"
        );
        if groff.is_none() {
            continue;
        }
        let rendered = run_on("groff", &["-man", "-ww", "-Tutf8", "-P-cbu"], &file);
        assert!(rendered.status.success(), "{name}: {rendered:?}");
        assert_eq!(String::from_utf8_lossy(&rendered.stderr), "", "{name}");
        let rendered = String::from_utf8_lossy(&rendered.stdout).into_owned();
        let rendered = rendered.split_whitespace().collect::<Vec<_>>().join(" ");
        for option in command.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(
                rendered.contains(&format!("--{option}")),
                "{name}: {option}\n{rendered}"
            );
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.split(' ').take(3).collect::<Vec<_>>().join(" ");
        assert!(
            rendered.contains(&first),
            "{name} - {about} should be under NAME:\n{rendered}"
        );
    }
}
