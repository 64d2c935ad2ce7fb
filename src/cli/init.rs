//! `ralph init`: writes a commented `ralph.yml` and a `PROMPT.md`. Never overwrites files.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use crate::agent;
use crate::config::{ImportedFile, PartialSettings, nearest_import, user_directory};
use crate::run::Host;
use crate::ui::Terminal;

use super::args::{ImportArgument, InitArguments};
use super::context::Context;
use super::convert::convert;
use super::error::CliError;
use super::exit::Exit;
use super::prompt::TEMPLATE;

const CONFIG: &str = "ralph.yml";
const PROMPT_FILE: &str = "PROMPT.md";

pub(super) fn init(arguments: &InitArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    match arguments.from() {
        Some((from, file)) => import_config(&context, from, file, terminal),
        None => write_defaults(&context, terminal),
    }
}

/// Writes the default files.
fn write_defaults(context: &Context, terminal: &Terminal) -> Result<Exit, CliError> {
    let settings = context
        .load(PartialSettings::default(), None)
        .map(|loaded| loaded.settings);
    let settings = settings.unwrap_or_default();
    let found = agent::resolve(&settings, &context.probe()).ok();
    let agent = found.as_ref().map(|agent| agent.name.as_str());
    // Another Ralph's configuration may set the prompt file.
    let imported = settings.event_loop.prompt_file.as_deref();
    let prompt_file = imported.map_or(Path::new(PROMPT_FILE), |path| {
        path.strip_prefix(&context.cwd).unwrap_or(path)
    });
    let prompt_file = prompt_file.display().to_string();
    let mut text = write(
        context,
        CONFIG,
        &config(agent, &yaml_scalar(&prompt_file), test_command(&context.cwd)),
    )?
    .text(CONFIG);
    if imported.is_none() || prompt_file == PROMPT_FILE {
        text.push_str(&write(context, PROMPT_FILE, TEMPLATE)?.text(PROMPT_FILE));
    }
    text.push_str(&match agent {
        Some(_) => format!("\nNext: describe the task in {prompt_file}, then: ralph run\n"),
        None => "\nNo agent was found; for details: ralph doctor\n".to_owned(),
    });
    text.push_str(&other_ralphs(context));
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

/// Lists other Ralphs' files that are also read, and how to convert them.
fn other_ralphs(context: &Context) -> String {
    let user = user_directory();
    let names = [
        (ImportedFile::Ralphrc, ImportArgument::Ralphrc),
        (ImportedFile::Ralphex, ImportArgument::Ralphex),
        (ImportedFile::Kstrl, ImportArgument::Kstrl),
    ];
    let found = names.into_iter().filter_map(|(format, name)| {
        let path = nearest_import(format, &context.cwd, user.as_deref())?;
        Some(format!(
            "{} is also read, with lower precedence; to convert it, remove ralph.yml, then: ralph init --from-{name}\n",
            path.display()
        ))
    });
    found.collect()
}

/// Writes another Ralph's configuration as `ralph.yml`. Keeps the original and an existing `ralph.yml`.
fn import_config(
    context: &Context,
    from: ImportArgument,
    file: Option<&Path>,
    terminal: &Terminal,
) -> Result<Exit, CliError> {
    let yaml = convert(context, from, file)?;
    let written = write(context, CONFIG, &yaml)?;
    let (advice, exit) = match written {
        Written::New => (
            "Settings without an equivalent are listed at the top of the file.\nTo show every setting and its origin: \
             ralph config show --origin\n"
                .to_owned(),
            Exit::Success,
        ),
        Written::Exists => (
            format!("To print the converted configuration: ralph config convert --from {from}\n"),
            Exit::Failed,
        ),
    };
    let text = format!("{}\n{advice}", written.text(CONFIG));
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(exit)
}

/// Whether a file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    New,
    Exists,
}

impl Written {
    fn text(self, name: &str) -> String {
        match self {
            Self::New => format!("wrote   {name}\n"),
            Self::Exists => format!("exists  {name} (unchanged)\n"),
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

/// Finds the test command from the project's files.
fn test_command(project: &Path) -> Option<&'static str> {
    const COMMANDS: [(&str, &str); 8] = [
        ("Cargo.toml", "cargo test"),
        ("package.json", "npm test"),
        ("go.mod", "go test ./..."),
        ("pyproject.toml", "python3 -m pytest"),
        ("pytest.ini", "python3 -m pytest"),
        ("pom.xml", "mvn -q test"),
        ("mix.exs", "mix test"),
        ("Makefile", "make test"),
    ];
    let has_target = |file: &str| {
        // A Makefile without tests, and npm's default script, which always fails, are no gates.
        let text = || std::fs::read_to_string(project.join(file)).unwrap_or_default();
        match file {
            "Makefile" => text().lines().any(|line| line.starts_with("test:")),
            "package.json" => {
                let package: serde_json::Value = serde_json::from_str(&text()).unwrap_or_default();
                let script = package["scripts"]["test"].as_str();
                script.is_some_and(|script| !script.contains("no test specified"))
            }
            _ => true,
        }
    };
    let found = COMMANDS
        .iter()
        .find(|(file, _)| project.join(file).exists() && has_target(file));
    found.map(|(_, command)| *command)
}

/// The section `gates`; a comment if the test command is unknown.
fn gates(test_command: Option<&str>) -> String {
    let about =
        "# The run is complete only if all gates succeed. Without gates, completion is not verified.\n";
    match test_command {
        Some(command) => format!(
            "{about}gates:\n  - name: tests\n    run: {command}\n    # protect: [\"tests/**\"]   # the agent's changes to these files do not count\n"
        ),
        None => format!("{about}# gates:\n#   - name: tests\n#     run: make test\n"),
    }
}

/// Quotes a path for YAML if necessary.
fn yaml_scalar(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if path.chars().all(plain) {
        return path.to_owned();
    }
    serde_json::Value::from(path).to_string()
}

/// Returns a `ralph.yml` with the commonly changed settings and their defaults.
fn config(agent: Option<&str>, prompt_file: &str, test_command: Option<&str>) -> String {
    let gates = gates(test_command);
    let backend = match agent {
        Some(agent) => {
            format!("  backend: {agent:<19} # found in PATH; `auto` uses the first installed agent\n")
        }
        None => "  backend: auto                # the first installed agent\n".to_owned(),
    };
    format!(
        "\
# Configuration of `ralph run` in this directory. Every key is optional; unknown keys are errors.
# For editor completion, see `ralph schema --help`.

cli:
{backend}  # model: NAME                # default: chosen by the agent

event_loop:
  prompt_file: {prompt_file:<15} # read before each iteration
  max_iterations: 100
  max_runtime_seconds: 4h
  # max_cost_usd: 10
  # max_wait_seconds: 8h       # longest wait for a usage limit
  # max_no_progress: 5         # stop after 5 iterations without changes
  # allowed_paths: [\"src/**\"]  # an iteration that changes other files fails

{gates}
# Commands to run on events. Each receives a JSON document on stdin.
# hooks:
#   on_complete: notify-send ralph \"$RALPH_HOOK_MESSAGE\"
#   on_fail: notify-send ralph \"$RALPH_HOOK_MESSAGE\"
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LoadRequest, load};

    #[test]
    fn written_config_is_valid_with_and_without_comments() {
        let plain = config(Some("claude"), PROMPT_FILE, Some("cargo test"));
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
        for text in [plain, config(None, PROMPT_FILE, None), uncommented] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("ralph.yml"), &text).unwrap();
            let loaded = load(&LoadRequest {
                cwd: directory.path(),
                user_dir: None,
                file: None,
                environment: &[],
                flags: PartialSettings::default(),
                agents: &agent::names(),
                transcripts: &[],
            });
            assert!(loaded.is_ok(), "{}\n{text}", loaded.unwrap_err());
        }
    }

    #[test]
    fn test_command_depends_on_the_project() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        let command = || test_command(directory.path());
        assert_eq!(command(), None);
        write("Makefile", "all:\n\ttrue\n");
        assert_eq!(command(), None, "no target `test`");
        write("Makefile", "test: all\n\t./t\n");
        assert_eq!(command(), Some("make test"));
        write(
            "package.json",
            r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
        );
        assert_eq!(command(), Some("make test"), "npm's default script is no test");
        write("package.json", r#"{"scripts": {"test": "jest"}}"#);
        assert_eq!(command(), Some("npm test"));
    }
}
