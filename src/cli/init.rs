//! `ralph init`: a commented `ralph.yml` and a `PROMPT.md` to begin with. Overwrites nothing.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use crate::agent;
use crate::config::{ImportedFile, Partial, nearest_foreign};
use crate::ui::Terminal;

use super::args::{ForeignName, InitArguments};
use super::config::converted;
use super::context::{Context, user_directory};
use super::error::CliError;
use super::exit::Exit;

const CONFIG: &str = "ralph.yml";
const TASK: &str = "PROMPT.md";

/// What is not a task yet: `ralph run` refuses it.
pub(super) const PROMPT: &str = "\
# Task

Say here what is to be done, as you would to a colleague who has the code but not your head.

- What should be true in the end? (\"`cargo test` passes\", \"every page has a title\")
- What must not change?
- Which files or documents should be read first?

Work in small steps. In each round: look at what is already done, do the next most useful thing, check it.
";

pub(super) fn init(arguments: &InitArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    match arguments.from() {
        Some((from, file)) => import_config(&context, from, file, terminal),
        None => write_defaults(&context, terminal),
    }
}

/// What to begin with where nothing is there.
fn write_defaults(context: &Context, terminal: &Terminal) -> Result<Exit, CliError> {
    let settings = context
        .load(Partial::default(), None)
        .map(|loaded| loaded.settings);
    let settings = settings.unwrap_or_default();
    let found = agent::resolve(&settings, &context.probe()).ok();
    let agent = found.as_ref().map(|agent| agent.name.as_str());
    // Another Ralph's file may say where the task is.
    let theirs = settings.event_loop.prompt_file.as_deref();
    let task = theirs.map_or(Path::new(TASK), |path| {
        path.strip_prefix(&context.cwd).unwrap_or(path)
    });
    let task = task.display().to_string();
    let mut text = write(
        context,
        CONFIG,
        &config(agent, &as_yaml(&task), check_for(&context.cwd)),
    )?
    .text(CONFIG);
    if theirs.is_none() || task == TASK {
        text.push_str(&write(context, TASK, PROMPT)?.text(TASK));
    }
    text.push_str(&match agent {
        Some(_) => format!("\nNow write the task into {task}, then: ralph run\n"),
        None => "\nNo agent was found; `ralph doctor` says what was looked for.\n".to_owned(),
    });
    text.push_str(&other_ralphs(context));
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// Whose files are read here too, and how they are carried over.
fn other_ralphs(context: &Context) -> String {
    let user = user_directory();
    let names = [
        (ImportedFile::Ralphrc, ForeignName::Ralphrc),
        (ImportedFile::Ralphex, ForeignName::Ralphex),
    ];
    let found = names.into_iter().filter_map(|(whose, name)| {
        let path = nearest_foreign(whose, &context.cwd, user.as_deref())?;
        Some(format!(
            "{} is read too, below ralph.yml; to carry it over, remove ralph.yml, then: ralph init --from-{name}\n",
            path.display()
        ))
    });
    found.collect()
}

/// The `ralph.yml` that says what another Ralph's file says. That file stays, and so does a `ralph.yml` that is there.
fn import_config(
    context: &Context,
    from: ForeignName,
    file: Option<&Path>,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let yaml = converted(context, from, file)?;
    let written = write(context, CONFIG, &yaml)?;
    let (advice, exit) = match written {
        Written::New => (
            "What has no counterpart is named in its first lines.\nTo see every setting and where it comes from: \
             ralph config show --origin\n"
                .to_owned(),
            Exit::Success,
        ),
        Written::Exists => (
            format!("To see what it would have been: ralph config convert --from {from}\n"),
            Exit::Failed,
        ),
    };
    let text = format!("{}\n{advice}", written.text(CONFIG));
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(exit)
}

/// What became of a file that was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    New,
    Exists,
}

impl Written {
    fn text(self, name: &str) -> String {
        match self {
            Self::New => format!("wrote   {name}\n"),
            Self::Exists => format!("exists  {name} (left as it is)\n"),
        }
    }
}

fn write(context: &Context, name: &str, content: &str) -> Result<Written, CliError> {
    let path = context.cwd.join(name);
    match write_new(&path, content) {
        Ok(()) => Ok(Written::New),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Written::Exists),
        Err(source) => Err(CliError::Unwritable { path, source }),
    }
}

fn write_new(path: &Path, content: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content.as_bytes())
}

/// How the tests of this project are run, by what lies in it; a guess, and so a comment in what is written.
fn check_for(project: &Path) -> &'static str {
    const CHECKS: [(&str, &str); 6] = [
        ("Cargo.toml", "cargo test"),
        ("package.json", "npm test"),
        ("go.mod", "go test ./..."),
        ("pyproject.toml", "python3 -m pytest"),
        ("pom.xml", "mvn -q test"),
        ("Makefile", "make test"),
    ];
    let found = CHECKS.iter().find(|(file, _)| project.join(file).exists());
    found.map_or("make test", |(_, check)| check)
}

/// A path as YAML takes it: as it is where nothing in it means something else.
fn as_yaml(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if path.chars().all(plain) {
        return path.to_owned();
    }
    serde_json::Value::from(path).to_string()
}

/// Every setting that people change, with its default; what is not commented out is what was found here.
fn config(agent: Option<&str>, task: &str, check: &str) -> String {
    let backend = match agent {
        Some(agent) => {
            format!("  backend: {agent:<19} # found here; `auto` takes the first that is installed\n")
        }
        None => "  backend: auto                # the first agent that is installed\n".to_owned(),
    };
    format!(
        "\
# What `ralph run` does in this directory. Every key is optional; a misspelt one is an error.
# How an editor completes and checks this file is told by `ralph schema --help`.

cli:
{backend}  # model: NAME                # leave it to the agent

event_loop:
  prompt_file: {task:<15} # read again for each iteration
  max_iterations: 100
  max_runtime_seconds: 14400   # four hours
  # max_cost_usd: 10
  # max_no_progress: 5         # give up when nothing changes any more
  # allowed_paths: [\"src/**\"]  # an iteration that changes other files fails

# \"Done\" is believed only when these succeed. Without any, the agent's word is taken.
# gates:
#   - name: tests
#     run: {check}

# Told what happens, with a JSON document on stdin.
# hooks:
#   on_complete: notify-send ralph \"$RALPH_HOOK_MESSAGE\"
#   on_fail: notify-send ralph \"$RALPH_HOOK_MESSAGE\"
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Request, load};

    #[test]
    fn what_it_writes_is_valid_also_with_its_comments_taken_away() {
        let plain = config(Some("claude"), TASK, "cargo test");
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
        for text in [plain, config(None, TASK, "go test ./..."), uncommented] {
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

    #[test]
    fn the_check_is_the_one_of_the_project() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(check_for(place.path()), "make test");
        std::fs::write(place.path().join("package.json"), "{}").unwrap();
        assert_eq!(check_for(place.path()), "npm test");
    }
}
