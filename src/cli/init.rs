//! `ralph init`: a commented `ralph.yml` and a `PROMPT.md` to begin with. Overwrites nothing.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use crate::agent;
use crate::config::Partial;
use crate::ui::Terminal;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;

const PROMPT: &str = "\
# Task

Say here what is to be done, as you would to a colleague who has the code but not your head.

- What should be true in the end? (\"`cargo test` passes\", \"every page has a title\")
- What must not change?
- Which files or documents should be read first?

Work in small steps. In each round: look at what is already done, do the next most useful thing, check it.
";

pub(super) fn init(terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let settings = context
        .load(Partial::default(), None)
        .map(|loaded| loaded.settings);
    let found = agent::resolve(&settings.unwrap_or_default(), &context.probe()).ok();
    let agent = found.as_ref().map(|agent| agent.name.as_str());
    let mut text = String::new();
    for (name, content) in [("ralph.yml", config(agent)), ("PROMPT.md", PROMPT.to_owned())] {
        let line = match write_new(&context.cwd.join(name), &content) {
            Ok(()) => format!("wrote   {name}\n"),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                format!("exists  {name} (left as it is)\n")
            }
            Err(source) => {
                let path = context.cwd.join(name);
                return Err(CliError::Init { path, source });
            }
        };
        text.push_str(&line);
    }
    text.push_str(match agent {
        Some(_) => "\nNow write the task into PROMPT.md, then: ralph run\n",
        None => "\nNo agent was found; `ralph doctor` says what was looked for.\n",
    });
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn write_new(path: &Path, content: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content.as_bytes())
}

/// Every setting that people change, with its default; what is not commented out is what was found here.
fn config(agent: Option<&str>) -> String {
    let backend = match agent {
        Some(agent) => format!(
            "  backend: {agent}              # found here; `auto` takes the first that is installed\n"
        ),
        None => "  backend: auto                # the first agent that is installed\n".to_owned(),
    };
    format!(
        "\
# What `ralph run` does in this directory. Every key is optional; a misspelt one is an error.

cli:
{backend}  # model: NAME                # leave it to the agent

event_loop:
  prompt_file: PROMPT.md       # read again for each iteration
  max_iterations: 100
  max_runtime_seconds: 14400   # four hours
  # max_cost_usd: 10
  # max_no_progress: 5         # give up when nothing changes any more
  # allowed_paths: [\"src/**\"]  # an iteration that changes other files fails

# \"Done\" is believed only when these succeed. Without any, the agent's word is taken.
# gates:
#   - name: tests
#     run: make test

# Told what happens, with a JSON document on stdin.
# hooks:
#   on_complete: notify-send \"ralph is done\"
#   on_fail: notify-send \"ralph needs you\"
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Request, load};

    #[test]
    fn what_it_writes_is_valid_also_with_its_comments_taken_away() {
        let plain = config(Some("claude"));
        let uncommented: String = plain
            .lines()
            .map(|line| match line.trim_start().strip_prefix("# ") {
                Some(rest) if rest.contains(": ") || rest.ends_with(':') || rest.starts_with([' ', '-']) => {
                    format!("{}{rest}\n", &line[..line.len() - line.trim_start().len()])
                }
                Some(_) | None => format!("{line}\n"),
            })
            .collect();
        assert_ne!(plain, uncommented);
        for text in [plain, config(None), uncommented] {
            let place = tempfile::tempdir().unwrap();
            std::fs::write(place.path().join("ralph.yml"), &text).unwrap();
            let loaded = load(&Request {
                cwd: place.path(),
                user_dir: None,
                file: None,
                environment: &[],
                flags: Partial::default(),
                agents: &agent::names(),
                transcripts: &[],
            });
            assert!(loaded.is_ok(), "{}\n{text}", loaded.unwrap_err());
        }
    }
}
