//! Parses `.ralphrc`: bash assignments, without executing anything. Quotes, comments, `export` and
//! `${NAME:-default}` are supported; lines that would run a command are ignored with a warning.

use std::path::{Path, PathBuf};

use super::{ImportContext, ImportedFrom, ImportedSettings};
use crate::config::diagnostic::{closest, printable};
use crate::config::settings::OutputFormat;
use crate::policy::{Gate, Seconds, Session};

/// The driver of a file that names none.
const DEFAULT_DRIVER: &str = "claude-code";
/// `QUALITY_GATE_TIMEOUT` of a file that does not set it.
const DEFAULT_GATE_TIMEOUT: u64 = 120;

/// Known variables that ralph does not support.
const UNSUPPORTED: &[&str] = &[
    "AGENT_FILE",
    "BEADS_FILTER",
    "CB_AUTO_RESET",
    "CB_COOLDOWN_MINUTES",
    "CB_OUTPUT_DECLINE_THRESHOLD",
    "CB_PERMISSION_DENIAL_THRESHOLD",
    "CB_READ_ONLY_TIMEOUT_THRESHOLD",
    "CLAUDE_AUTO_UPDATE",
    "CLAUDE_MIN_VERSION",
    "CLAUDE_SESSION_EXPIRY_HOURS",
    "DRY_RUN",
    "ENABLE_BACKUP",
    "ENABLE_NOTIFICATIONS",
    "FIX_PLAN_FILE",
    "GITHUB_REPO",
    "GITHUB_TASK_LABEL",
    "MAX_CALLS_PER_HOUR",
    "MAX_TOKENS_PER_HOUR",
    "PERMISSION_DENIAL_MODE",
    "PRD_FILE",
    "QUALITY_GATE_MODE",
    "QUALITY_GATE_ON_COMPLETION_ONLY",
    "RALPH_SHELL_INIT_FILE",
    "REVIEW_ENABLED",
    "REVIEW_INTERVAL",
    "REVIEW_MODE",
    "SESSION_EXPIRY_HOURS",
    "TASK_SOURCES",
    "WRITE_TIMEOUT_MINUTES",
];
/// Known variables that have no effect on a run; ignored without a warning.
const IGNORED: &[&str] = &[
    "PROJECT_NAME",
    "PROJECT_TYPE",
    "RALPH_VERBOSE",
    "VERBOSE_PROGRESS",
];
/// Variables that are converted to settings.
const SUPPORTED: &[&str] = &[
    "ALLOWED_TOOLS",
    "CB_NO_PROGRESS_THRESHOLD",
    "CB_SAME_ERROR_THRESHOLD",
    "CLAUDE_ALLOWED_TOOLS",
    "CLAUDE_CODE_CMD",
    "CLAUDE_OUTPUT_FORMAT",
    "CLAUDE_PERMISSION_MODE",
    "CLAUDE_TIMEOUT_MINUTES",
    "CLAUDE_USE_CONTINUE",
    "PLATFORM_DRIVER",
    "PROMPT_FILE",
    "QUALITY_GATES",
    "QUALITY_GATE_TIMEOUT",
    "SESSION_CONTINUITY",
    "TEST_COMMAND",
];

#[derive(Debug, PartialEq, Eq)]
struct Assignment {
    name: String,
    value: String,
    /// 1-based.
    line: usize,
}

pub(super) fn read(text: &str, context: &ImportContext<'_>) -> ImportedSettings {
    let mut imported = ImportedSettings::default();
    let mut unsupported = Vec::new();
    let (assignments, ignored) = assignments(text, context.environment);
    imported.warnings.extend(ignored.iter().map(|(line, why)| {
        format!(
            "{}:{line}: {why}; ignored (.ralphrc is parsed, not executed)",
            context.path.display()
        )
    }));
    for assignment in &assignments {
        let name = assignment.name.as_str();
        if UNSUPPORTED.contains(&name) {
            unsupported.push(name.to_owned());
        } else if !SUPPORTED.contains(&name) && !IGNORED.contains(&name) {
            let meant =
                closest(name, SUPPORTED).map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
            let location = format!("{}:{}", context.path.display(), assignment.line);
            imported.warnings.push(format!(
                "{location}: unknown variable `{}`{meant}",
                printable(name)
            ));
        }
    }
    imported.warn_unsupported(context, &unsupported);
    // The last assignment wins; the environment takes precedence over the file.
    let value_of = |name: &str| {
        let variable = context
            .environment
            .iter()
            .find(|(variable, value)| variable == name && !value.is_empty());
        let variable = variable.map(|(_, value)| (value.clone(), ImportedFrom::Variable(name.to_owned())));
        let assignment = || {
            assignments
                .iter()
                .rev()
                .find(|assignment| assignment.name == name)
        };
        variable.or_else(|| assignment().map(|found| (found.value.clone(), ImportedFrom::Line(found.line))))
    };
    convert(&value_of, context, &mut imported);
    imported
}

type Lookup<'a> = dyn Fn(&str) -> Option<(String, ImportedFrom)> + 'a;

fn convert(value_of: &Lookup<'_>, context: &ImportContext<'_>, imported: &mut ImportedSettings) {
    let non_empty = |name: &str| value_of(name).filter(|(value, _)| !value.is_empty());
    let command = non_empty("CLAUDE_CODE_CMD").filter(|(command, _)| command != "claude");
    let named = non_empty("PLATFORM_DRIVER");
    // The driver of these tools is claude-code unless the file names another one or another program.
    let default = || (DEFAULT_DRIVER.to_owned(), ImportedFrom::Line(1));
    let driver = match &command {
        Some(_) => named,
        None => Some(named.unwrap_or_else(default)),
    };
    if let Some((name, origin)) = &driver {
        imported.settings.cli.backend = Some(format!("driver:{name}"));
        imported.set_origin("cli.backend", origin);
    }
    if let Some((tools, origin)) = non_empty("ALLOWED_TOOLS").or_else(|| non_empty("CLAUDE_ALLOWED_TOOLS")) {
        imported.settings.driver.allowed_tools = Some(tools);
        imported.set_origin("driver.allowed_tools", &origin);
    }
    if let Some((mode, origin)) = non_empty("CLAUDE_PERMISSION_MODE") {
        imported.settings.driver.permission_mode = Some(mode);
        imported.set_origin("driver.permission_mode", &origin);
    }
    if let Some((command, origin)) = command.filter(|_| driver.is_none()) {
        imported.settings.cli.claude_command = Some(command);
        imported.set_origin("cli.claude_command", &origin);
        convert_wrapper_arguments(imported, &origin);
    }
    let driver = driver.map(|(name, _)| name);
    let session = value_of("SESSION_CONTINUITY").or_else(|| value_of("CLAUDE_USE_CONTINUE"));
    convert_session(session, driver.is_some(), context, imported);
    convert_format(non_empty("CLAUDE_OUTPUT_FORMAT"), context, imported);
    convert_timeout(
        non_empty("CLAUDE_TIMEOUT_MINUTES"),
        driver.as_deref(),
        context,
        imported,
    );
    convert_prompt(non_empty("PROMPT_FILE"), context, imported);
    convert_gates(&non_empty, context, imported);
    convert_limits(&non_empty, context, imported);
    imported.settings.event_loop.completion_status_block = Some(true);
    imported.set_origin("event_loop.completion_status_block", &ImportedFrom::Line(1));
}

/// A program that replaces claude gets the tools and the permission mode as arguments, because no driver passes them on.
fn convert_wrapper_arguments(imported: &mut ImportedSettings, origin: &ImportedFrom) {
    let driver = &imported.settings.driver;
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let mode = driver
        .permission_mode
        .as_deref()
        .map(|mode| format!(" --permission-mode {}", quoted(mode)));
    let tools = driver
        .allowed_tools
        .as_deref()
        .map(|tools| format!(" --allowedTools {}", quoted(tools)));
    if mode.is_some() || tools.is_some() {
        let options: String = mode.into_iter().chain(tools).collect();
        let arguments = format!("--output-format stream-json --verbose{options}");
        imported.settings.cli.claude_args = Some(arguments);
        imported.set_origin("cli.claude_args", origin);
    }
}

/// `TEST_COMMAND` and `QUALITY_GATES`, which are separated by semicolons.
fn convert_gates(
    value_of: &dyn Fn(&str) -> Option<(String, ImportedFrom)>,
    context: &ImportContext<'_>,
    imported: &mut ImportedSettings,
) {
    let timeout = value_of("QUALITY_GATE_TIMEOUT")
        .and_then(|(word, origin)| positive("QUALITY_GATE_TIMEOUT", &word, &origin, context, imported));
    let timeout = Seconds(timeout.unwrap_or(DEFAULT_GATE_TIMEOUT));
    let directory = project_directory(context.path);
    let gate = |name: String, run: &str| Gate {
        timeout,
        cwd: Some(directory.clone()),
        ..Gate::new(name, run)
    };
    let mut gates = Vec::new();
    let mut origins = Vec::new();
    if let Some((command, origin)) = value_of("TEST_COMMAND") {
        gates.push(gate("tests".to_owned(), command.trim()));
        origins.push(origin);
    }
    if let Some((commands, origin)) = value_of("QUALITY_GATES") {
        let commands = commands
            .split(';')
            .map(str::trim)
            .filter(|command| !command.is_empty());
        gates.extend(
            commands
                .enumerate()
                .map(|(index, run)| gate(format!("quality {}", index + 1), run)),
        );
        origins.push(origin);
    }
    if let Some(origin) = origins.first().filter(|_| !gates.is_empty()) {
        imported.settings.gates = Some(gates);
        imported.set_origin("gates", origin);
    }
}

fn convert_limits(
    value_of: &dyn Fn(&str) -> Option<(String, ImportedFrom)>,
    context: &ImportContext<'_>,
    imported: &mut ImportedSettings,
) {
    if let Some((word, origin)) = value_of("CB_NO_PROGRESS_THRESHOLD")
        && let Some(number) = positive("CB_NO_PROGRESS_THRESHOLD", &word, &origin, context, imported)
    {
        imported.settings.event_loop.max_no_progress = Some(number);
        imported.set_origin("event_loop.max_no_progress", &origin);
    }
    if let Some((word, origin)) = value_of("CB_SAME_ERROR_THRESHOLD")
        && let Some(number) = positive("CB_SAME_ERROR_THRESHOLD", &word, &origin, context, imported)
    {
        imported.settings.event_loop.max_consecutive_failures = Some(number);
        imported.set_origin("event_loop.max_consecutive_failures", &origin);
    }
}

/// A number of at least 1; anything else is reported.
fn positive(
    name: &str,
    word: &str,
    origin: &ImportedFrom,
    context: &ImportContext<'_>,
    imported: &mut ImportedSettings,
) -> Option<u64> {
    let number = word
        .parse::<u64>()
        .ok()
        .filter(|number| (1..=31_536_000).contains(number));
    if number.is_none() {
        let warning = invalid_value(context, origin, name, "an integer of at least 1", word);
        imported.warnings.push(warning);
    }
    number
}

/// The directory that the file configures: the one that contains `.ralph`, or the file itself.
fn project_directory(path: &Path) -> PathBuf {
    let directory = path.parent().unwrap_or(path);
    match directory.ends_with(".ralph") {
        true => directory.parent().unwrap_or(directory).to_owned(),
        false => directory.to_owned(),
    }
}

fn convert_format(
    value: Option<(String, ImportedFrom)>,
    context: &ImportContext<'_>,
    imported: &mut ImportedSettings,
) {
    let Some((word, origin)) = value else {
        return;
    };
    let formats = [OutputFormat::Json, OutputFormat::Text];
    match formats.into_iter().find(|format| format.as_str() == word) {
        Some(format) => {
            imported.settings.driver.output_format = Some(format);
            imported.set_origin("driver.output_format", &origin);
        }
        None => imported.warnings.push(invalid_value(
            context,
            &origin,
            "CLAUDE_OUTPUT_FORMAT",
            "json or text",
            &word,
        )),
    }
}

fn convert_timeout(
    value: Option<(String, ImportedFrom)>,
    driver: Option<&str>,
    context: &ImportContext<'_>,
    imported: &mut ImportedSettings,
) {
    const MINUTES_PER_YEAR: u64 = 525_600;
    let Some((word, origin)) = value else {
        return;
    };
    let agent = agent_of(driver, context.agents);
    match word.parse::<u64>() {
        Ok(minutes @ 1..=MINUTES_PER_YEAR) => {
            imported
                .settings
                .adapters
                .entry(agent.clone())
                .or_default()
                .timeout = Some(Seconds(minutes * 60));
            imported.set_origin(&format!("adapters.{agent}.timeout"), &origin);
        }
        _ => imported.warnings.push(invalid_value(
            context,
            &origin,
            "CLAUDE_TIMEOUT_MINUTES",
            "minutes between 1 and 525600",
            &word,
        )),
    }
}

/// `PROMPT_FILE` is relative to `.ralph/`; without it, the prompt is `.ralph/PROMPT.md`.
fn convert_prompt(
    named: Option<(String, ImportedFrom)>,
    context: &ImportContext<'_>,
    imported: &mut ImportedSettings,
) {
    let directory = project_directory(context.path).join(".ralph");
    let (prompt, origin) = match named {
        Some((name, origin)) => (directory.join(name), origin),
        None => (directory.join("PROMPT.md"), ImportedFrom::Line(1)),
    };
    if prompt.is_file() || matches!(origin, ImportedFrom::Line(line) if line > 1) {
        imported.settings.event_loop.prompt_file = Some(prompt);
        imported.set_origin("event_loop.prompt_file", &origin);
    }
}

/// Applies only to drivers, because ralph asks only drivers for a session id.
fn convert_session(
    value: Option<(String, ImportedFrom)>,
    has_driver: bool,
    context: &ImportContext<'_>,
    imported: &mut ImportedSettings,
) {
    let Some((word, origin)) = value else {
        return;
    };
    let session = match word.as_str() {
        "true" => Session::Continue,
        "false" => Session::Fresh,
        _ => {
            return imported.warnings.push(invalid_value(
                context,
                &origin,
                "SESSION_CONTINUITY",
                "true or false",
                &word,
            ));
        }
    };
    if has_driver {
        imported.settings.session = Some(session);
        imported.set_origin("session", &origin);
    }
}

/// The built-in agent that the driver starts, or `custom`.
fn agent_of(driver: Option<&str>, agents: &[&str]) -> String {
    let driver = driver.unwrap_or("claude-code");
    let known = agents.iter().find(|agent| driver.starts_with(**agent));
    known.map_or("custom", |agent| agent).to_owned()
}

fn invalid_value(
    context: &ImportContext<'_>,
    origin: &ImportedFrom,
    name: &str,
    expected: &str,
    found: &str,
) -> String {
    let location = match origin {
        ImportedFrom::Line(line) => format!("{}:{line}: `{name}`", context.path.display()),
        ImportedFrom::Variable(variable) => format!("environment variable `{variable}`"),
    };
    format!(
        "{location}: expected {expected}, found `{}`; ignored",
        printable(found)
    )
}

/// All assignments in order, and the ignored lines with the reason.
fn assignments(text: &str, environment: &[(String, String)]) -> (Vec<Assignment>, Vec<(usize, String)>) {
    let mut found: Vec<Assignment> = Vec::new();
    let mut ignored = Vec::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
        let first = rest[..end].trim();
        let mut used = end;
        if !first.is_empty() && !first.starts_with('#') {
            match split_assignment(first) {
                None => ignored.push((
                    line,
                    format!("expected `KEY=value`, found `{}`", printable(&short(first))),
                )),
                Some(name) => {
                    let start = rest.find('=').map_or(end, |equals| equals + 1);
                    let value =
                        AssignmentValue::parse(&rest[start..], |name| lookup(name, &found, environment));
                    used = used.max(start + value.length);
                    used += rest[used..]
                        .find('\n')
                        .filter(|_| !rest[..used].ends_with('\n'))
                        .map_or(0, |newline| newline + 1);
                    match value.text {
                        Ok(value) => found.push(Assignment {
                            name: name.to_owned(),
                            value,
                            line,
                        }),
                        Err(why) => ignored.push((line, format!("`{name}` {why}"))),
                    }
                }
            }
        }
        line += rest[..used.min(rest.len())].matches('\n').count();
        rest = &rest[used.min(rest.len())..];
    }
    (found, ignored)
}

fn short(line: &str) -> String {
    line.chars().take(40).collect()
}

/// The name in `export NAME=…`.
fn split_assignment(line: &str) -> Option<&str> {
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (name, _) = line.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

fn lookup(name: &str, found: &[Assignment], environment: &[(String, String)]) -> Option<String> {
    let assignment = found.iter().rev().find(|assignment| assignment.name == name);
    let variable = || {
        environment
            .iter()
            .find(|(variable, _)| variable == name)
            .map(|(_, value)| value.clone())
    };
    assignment
        .map(|assignment| assignment.value.clone())
        .or_else(variable)
}

/// The right side of an assignment.
struct AssignmentValue {
    text: Result<String, &'static str>,
    /// Length in bytes in the source.
    length: usize,
}

impl AssignmentValue {
    fn parse(source: &str, lookup: impl Fn(&str) -> Option<String>) -> Self {
        let mut text = String::new();
        let mut at = 0;
        let mut quote: Option<char> = None;
        let mut problem = None;
        if source.starts_with('(') {
            let length = source.find(')').map_or(source.len(), |end| end + 1);
            return Self {
                text: Err("is an array"),
                length,
            };
        }
        while let Some(character) = source[at..].chars().next() {
            let next = at + character.len_utf8();
            match (character, quote) {
                ('\n', None) | (' ' | '\t' | '\r' | ';', None) => break,
                ('\'' | '"', None) => quote = Some(character),
                (closing, Some(open)) if closing == open => quote = None,
                ('\\', None | Some('"')) => {
                    let Some(escaped) = source[next..].chars().next() else {
                        break;
                    };
                    if quote.is_some() && !"\"\\$`".contains(escaped) {
                        text.push('\\');
                    }
                    text.push(escaped);
                    at = next + escaped.len_utf8();
                    continue;
                }
                ('`', None | Some('"')) => problem = problem.or(Some("would run a command")),
                ('$', None | Some('"')) => match expand(&source[next..], &lookup) {
                    Ok((value, used)) => {
                        text.push_str(&value);
                        at = next + used;
                        continue;
                    }
                    Err(why) => problem = problem.or(Some(why)),
                },
                (other, _) => text.push(other),
            }
            at = next;
        }
        if quote.is_some() {
            problem = Some("has an unclosed quote");
        }
        Self {
            text: problem.map_or(Ok(text), Err),
            length: at,
        }
    }
}

/// Expands a variable reference after `$`. Returns its value and the number of bytes consumed.
fn expand(source: &str, lookup: &impl Fn(&str) -> Option<String>) -> Result<(String, usize), &'static str> {
    if source.starts_with('(') {
        return Err("would run a command");
    }
    if let Some(inner) = source.strip_prefix('{') {
        let end = inner.find('}').ok_or("has an unclosed expansion")?;
        let (name, default) = inner[..end].split_once(":-").unwrap_or((&inner[..end], ""));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err("uses an unsupported expansion");
        }
        let value = lookup(name)
            .filter(|value| !value.is_empty())
            .unwrap_or_else(|| default.to_owned());
        return Ok((value, end + 2));
    }
    let length = source
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(source.len());
    match length {
        0 => Ok(("$".to_owned(), 0)),
        length => Ok((lookup(&source[..length]).unwrap_or_default(), length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(String, String, usize)> {
        let environment = [("HOME".to_owned(), "/home/me".to_owned())];
        let (found, _) = assignments(text, &environment);
        found
            .into_iter()
            .map(|found| (found.name, found.value, found.line))
            .collect()
    }

    fn value(text: &str) -> String {
        values(text).into_iter().map(|(_, value, _)| value).collect()
    }

    #[test]
    fn quotes_comments_and_expansions_are_parsed() {
        for (text, expected) in [
            ("A=b", "b"),
            ("export A=b # c", "b"),
            ("A=\"b c\"   # d", "b c"),
            ("A='b $HOME'", "b $HOME"),
            ("A=\"$HOME/x\"", "/home/me/x"),
            ("A=${NOT_SET:-json}", "json"),
            ("A=\"${HOME:-x}\"", "/home/me"),
            ("A=\"Bash(git *),Read\"", "Bash(git *),Read"),
            ("A=\"a\\\"b\"", "a\"b"),
            ("A=", ""),
            ("A=\"two\nlines\"", "two\nlines"),
            ("  A=b\r\n", "b"),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn multi_line_values_are_counted_in_line_numbers() {
        let text = "# c\nA=\"x\ny\"\nB=2\nC=(1\n2)\nD=4";
        let lines: Vec<_> = values(text)
            .into_iter()
            .map(|(name, _, line)| (name, line))
            .collect();
        assert_eq!(
            lines,
            [("A".to_owned(), 2), ("B".to_owned(), 4), ("D".to_owned(), 7)]
        );
    }

    #[test]
    fn commands_are_never_parsed_as_values() {
        let text = "A=$(touch /x)\nB=`id`\nif true; then C=1; fi\nD=\"$(rm -rf /)\"\nrm -rf /\nE=\"open";
        let (found, ignored) = assignments(text, &[]);
        assert_eq!(found, []);
        assert_eq!(
            ignored.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6]
        );
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(text in "[A-Z=\"'${}()\\\\`# \n:a-z-]*") {
            let _ = assignments(&text, &[]);
        }
    }
}
