//! Examples at the end of each command's help and manual page.

use clap::Command;

/// Keyed by the command path; the empty path is the program itself. Most common example first.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("", &["ralph demo", "ralph run -p \"make the tests pass\""]),
    (
        "run",
        &[
            "ralph run --agent codex -p \"make the tests pass\" --max-iterations 20",
            "ralph run --continue",
        ],
    ),
    ("understand", &["ralph understand 3"]),
    ("init", &["ralph init", "ralph init --from-ralphrc"]),
    (
        "tell",
        &[
            "ralph tell \"the tests live in spec/, not in tests/\"",
            "ralph tell --pause",
        ],
    ),
    (
        "runs",
        &[
            "ralph runs --since 2d --outcome failed",
            "ralph runs --agent codex --json | jq -r '.[].id'",
        ],
    ),
    (
        "wave",
        &["ralph wave emit review.file --payloads src/a.rs src/b.rs"],
    ),
    (
        "wave emit",
        &["ralph wave emit review.file --payloads src/a.rs src/b.rs"],
    ),
    ("tools", &["ralph tools task"]),
    ("emit", &["ralph emit build.done \"all tests pass\""]),
    (
        "quota",
        &["ralph quota", "ralph quota --json | jq -r '.[].limited_until'"],
    ),
    ("show", &["ralph show", "ralph show 20261115-2045 --json"]),
    ("diff", &["ralph diff 3", "ralph diff 20261115-2045 2..5 --stat"]),
    (
        "review",
        &[
            "ralph review",
            "ralph review main..HEAD --agent codex",
            "ralph review --format sarif > review.sarif",
        ],
    ),
    (
        "restore",
        &["ralph restore @3", "ralph restore 20261115-2045@6 src/parser.rs"],
    ),
    (
        "fork",
        &[
            "ralph fork @6 --agent codex",
            "ralph fork 20261115-2045@2 -p \"use the other parser\"",
        ],
    ),
    ("race", &["ralph race @3 --agent claude,codex,gemini"]),
    (
        "receipt",
        &[
            "ralph receipt",
            "ralph receipt -o receipt.json --sign ~/.ssh/id_ed25519",
        ],
    ),
    (
        "verify",
        &[
            "ralph verify",
            "ralph verify 20261115-2045 --json | jq -r .head",
            "ralph verify receipt.json",
        ],
    ),
    (
        "logs",
        &[
            "ralph logs -f",
            "ralph logs 20261115-2045 --iteration 3 -v",
            "ralph logs --tag ai",
        ],
    ),
    (
        "clean",
        &[
            "ralph clean --dry-run",
            "ralph clean --keep 5 --yes",
            "ralph clean --older-than 30d",
        ],
    ),
    (
        "export",
        &[
            "ralph export -o night.html",
            "ralph export 20261115-2045 --format md",
        ],
    ),
    (
        "plan",
        &["ralph plan run PLAN.md", "ralph plan run PLAN.md --jobs 4"],
    ),
    (
        "plan run",
        &[
            "ralph plan run PLAN.md --jobs 4 --max-cost 20",
            "ralph plan run --continue",
        ],
    ),
    ("plan status", &["ralph plan status --watch"]),
    ("plan tell", &["ralph plan tell add-login \"use the new API\""]),
    ("plan retry", &["ralph plan retry add-login"]),
    ("plan skip", &["ralph plan skip add-login"]),
    ("plan stop", &["ralph plan stop add-login"]),
    (
        "plan check",
        &["ralph plan check PLAN.md", "ralph plan check gh:ready --json"],
    ),
    (
        "worker",
        &["ralph worker --engine temporal://127.0.0.1:7233/default --slots 2"],
    ),
    (
        "fleet",
        &["ralph fleet doctor --engine temporal://127.0.0.1:7233/default --repo git@host:team/app.git"],
    ),
    (
        "serve",
        &["ralph serve --open", "ralph serve --steer --port 8000"],
    ),
    (
        "bench",
        &["ralph bench run tasks.yml --agent claude,codex --repeat 3 --max-cost 10"],
    ),
    (
        "bench run",
        &[
            "ralph bench run tasks.yml --agent claude@opus,codex --repeat 3 --max-cost 10",
            "ralph bench run --continue",
        ],
    ),
    (
        "bench report",
        &["ralph bench report latest --json | jq '.agents'"],
    ),
    ("bench list", &["ralph bench list --json"]),
    ("agents", &["ralph agents", "ralph agents test claude"]),
    ("top", &["ralph top", "ralph top --json | jq '.[].id'"]),
    ("docs", &["ralph docs", "ralph docs gates"]),
    (
        "agents test",
        &[
            "ralph agents test codex",
            "ralph agents test custom --agent-cmd 'my-agent --headless'",
        ],
    ),
    (
        "agents report",
        &[
            "ralph agents report",
            "ralph agents report latest --iteration 3 -o report.txt",
        ],
    ),
    (
        "doctor",
        &[
            "ralph doctor",
            "ralph doctor --bundle report.txt",
            "ralph doctor --json | jq '.[] | select(.state == \"broken\")'",
        ],
    ),
    ("drivers", &["ralph drivers list", "ralph drivers check"]),
    (
        "drivers list",
        &["ralph drivers list", "ralph drivers list --json"],
    ),
    ("drivers check", &["ralph drivers check my-agent"]),
    ("drivers new", &["ralph drivers new my-agent"]),
    ("config", &["ralph config show --origin"]),
    (
        "config show",
        &["ralph config show --origin", "ralph config show --json"],
    ),
    (
        "config convert",
        &["ralph config convert --from ralphrc > ralph.yml"],
    ),
    (
        "as-claude",
        &["ralph as-claude --agent codex -p \"make the tests pass\""],
    ),
    (
        "trust",
        &["ralph trust --show", "ralph trust", "ralph trust --revoke"],
    ),
    ("hats", &["ralph hats", "ralph hats validate"]),
    ("hats list", &["ralph hats list", "ralph hats list --json"]),
    ("hats show", &["ralph hats show builder"]),
    ("hats validate", &["ralph hats validate"]),
    ("hats graph", &["ralph hats graph", "ralph hats graph --mermaid"]),
    ("gates", &["ralph gates", "ralph gates run"]),
    ("gates list", &["ralph gates list", "ralph gates list --json"]),
    ("gates run", &["ralph gates run", "ralph gates run tests"]),
    ("demo", &["ralph demo", "ralph demo --keep --no-tui"]),
    ("attach", &["ralph attach", "ralph attach 20261115-2045"]),
    (
        "transcript",
        &["ralph transcript session.jsonl --transcript claude --json | jq -r .type"],
    ),
    (
        "replay",
        &[
            "ralph replay latest --speed 10",
            "ralph replay 20261115-2045",
            "ralph replay session.jsonl --transcript claude",
        ],
    ),
    (
        "schema",
        &["ralph schema config > ralph.schema.json", "ralph schema events"],
    ),
    (
        "completions",
        &[
            "source <(ralph completions bash)",
            "ralph completions zsh > \"${fpath[1]}/_ralph\"",
            "ralph completions fish > ~/.config/fish/completions/ralph.fish",
        ],
    ),
    (
        "man",
        &[
            "ralph man run | man -l -",
            "ralph man --out /usr/local/share/man/man1",
        ],
    ),
];

/// Adds the examples to every command that has any.
pub(in crate::cli) fn with_examples(root: Command) -> Command {
    add_examples("", root)
}

fn add_examples(path: &str, command: Command) -> Command {
    let examples = EXAMPLES.iter().find(|(of, _)| *of == path);
    let command = match examples {
        Some((_, examples)) => command.after_help(format_examples(examples)),
        None => command,
    };
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        add_examples(path.trim_start(), inner)
    })
}

fn format_examples(examples: &[&str]) -> String {
    match examples {
        [only] => format!("Example: {only}"),
        several => format!("Examples:\n  {}", several.join("\n  ")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Arguments;

    #[test]
    fn every_example_belongs_to_a_command() {
        for (path, _) in EXAMPLES {
            let mut command = &Arguments::command();
            for word in path.split_whitespace() {
                command = command.find_subcommand(word).unwrap_or_else(|| panic!("{path}"));
            }
        }
    }
}
