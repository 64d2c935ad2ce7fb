//! `.ralphrc`: bash assignments, read with the eyes only. Quotes, comments, `export` and `${NAME:-default}` are
//! understood; whatever would run something is told and left alone.

use super::{Place, Said, Scene};
use crate::config::diagnostic::{closest, printable};
use crate::config::settings::{OutputFormat, Session};

/// What is known and has no counterpart here.
const WITHOUT_COUNTERPART: &[&str] = &[
    "BEADS_FILTER",
    "CB_AUTO_RESET",
    "CB_COOLDOWN_MINUTES",
    "CB_NO_PROGRESS_THRESHOLD",
    "CB_OUTPUT_DECLINE_THRESHOLD",
    "CB_PERMISSION_DENIAL_THRESHOLD",
    "CB_SAME_ERROR_THRESHOLD",
    "CLAUDE_AUTO_UPDATE",
    "CLAUDE_MIN_VERSION",
    "CLAUDE_SESSION_EXPIRY_HOURS",
    "GITHUB_REPO",
    "GITHUB_TASK_LABEL",
    "MAX_CALLS_PER_HOUR",
    "MAX_TOKENS_PER_HOUR",
    "PERMISSION_DENIAL_MODE",
    "PRD_FILE",
    "RALPH_SHELL_INIT_FILE",
    "SESSION_EXPIRY_HOURS",
    "TASK_SOURCES",
];
/// What only says how it looks, or is called; nobody misses it.
const HARMLESS: &[&str] = &[
    "PROJECT_NAME",
    "PROJECT_TYPE",
    "RALPH_VERBOSE",
    "VERBOSE_PROGRESS",
];
const KNOWN: &[&str] = &[
    "ALLOWED_TOOLS",
    "CLAUDE_ALLOWED_TOOLS",
    "CLAUDE_CODE_CMD",
    "CLAUDE_OUTPUT_FORMAT",
    "CLAUDE_PERMISSION_MODE",
    "CLAUDE_TIMEOUT_MINUTES",
    "CLAUDE_USE_CONTINUE",
    "PLATFORM_DRIVER",
    "SESSION_CONTINUITY",
];

#[derive(Debug, PartialEq, Eq)]
struct Assignment {
    name: String,
    value: String,
    /// From 1.
    line: usize,
}

pub(super) fn read(text: &str, scene: &Scene<'_>) -> Said {
    let mut said = Said::default();
    let mut unheard = Vec::new();
    let (assignments, left_alone) = assignments(text, scene.environment);
    said.warnings.extend(left_alone.iter().map(|(line, why)| {
        format!(
            "{}:{line}: {why}; .ralphrc is read, never executed",
            scene.path.display()
        )
    }));
    for assignment in &assignments {
        let name = assignment.name.as_str();
        if WITHOUT_COUNTERPART.contains(&name) {
            unheard.push(name.to_owned());
        } else if !KNOWN.contains(&name) && !HARMLESS.contains(&name) {
            let meant =
                closest(name, KNOWN).map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
            let place = format!("{}:{}", scene.path.display(), assignment.line);
            said.warnings
                .push(format!("{place}: `{}` is not known{meant}", printable(name)));
        }
    }
    said.tell_unheard(scene, &unheard);
    // The last assignment counts; the environment counts more.
    let value_of = |name: &str| {
        let given = scene
            .environment
            .iter()
            .find(|(given, value)| given == name && !value.is_empty());
        let given = given.map(|(_, value)| (value.clone(), Place::Variable(name.to_owned())));
        let written = || {
            assignments
                .iter()
                .rev()
                .find(|assignment| assignment.name == name)
        };
        given.or_else(|| written().map(|found| (found.value.clone(), Place::Line(found.line))))
    };
    translate(&value_of, scene, &mut said);
    said
}

type Lookup<'a> = dyn Fn(&str) -> Option<(String, Place)> + 'a;

fn translate(value_of: &Lookup<'_>, scene: &Scene<'_>, said: &mut Said) {
    let filled = |name: &str| value_of(name).filter(|(value, _)| !value.is_empty());
    let driver = filled("PLATFORM_DRIVER");
    if let Some((name, place)) = &driver {
        said.wishes.cli.backend = Some(format!("driver:{name}"));
        said.place("cli.backend", place);
    }
    if let Some((tools, place)) = filled("ALLOWED_TOOLS").or_else(|| filled("CLAUDE_ALLOWED_TOOLS")) {
        said.wishes.driver.allowed_tools = Some(tools);
        said.place("driver.allowed_tools", &place);
    }
    if let Some((mode, place)) = filled("CLAUDE_PERMISSION_MODE") {
        said.wishes.driver.permission_mode = Some(mode);
        said.place("driver.permission_mode", &place);
    }
    let command = filled("CLAUDE_CODE_CMD").filter(|(command, _)| driver.is_none() && command != "claude");
    if let Some((command, place)) = command {
        said.wishes.cli.claude_command = Some(command);
        said.place("cli.claude_command", &place);
    }
    let driver = driver.map(|(name, _)| name);
    let session = value_of("SESSION_CONTINUITY").or_else(|| value_of("CLAUDE_USE_CONTINUE"));
    translate_session(session, driver.is_some(), scene, said);
    translate_format(filled("CLAUDE_OUTPUT_FORMAT"), scene, said);
    translate_timeout(filled("CLAUDE_TIMEOUT_MINUTES"), driver.as_deref(), scene, said);
    translate_prompt(scene, said);
}

fn translate_format(given: Option<(String, Place)>, scene: &Scene<'_>, said: &mut Said) {
    let Some((word, place)) = given else {
        return;
    };
    let formats = [OutputFormat::Json, OutputFormat::Text];
    match formats.into_iter().find(|format| format.word() == word) {
        Some(format) => {
            said.wishes.driver.output_format = Some(format);
            said.place("driver.output_format", &place);
        }
        None => said.warnings.push(about(
            scene,
            &place,
            "CLAUDE_OUTPUT_FORMAT",
            "json or text",
            &word,
        )),
    }
}

fn translate_timeout(
    given: Option<(String, Place)>,
    driver: Option<&str>,
    scene: &Scene<'_>,
    said: &mut Said,
) {
    const MINUTES_OF_A_YEAR: u64 = 525_600;
    let Some((word, place)) = given else {
        return;
    };
    let agent = agent_of(driver, scene.agents);
    match word.parse::<u64>() {
        Ok(minutes @ 1..=MINUTES_OF_A_YEAR) => {
            said.wishes.adapters.entry(agent.clone()).or_default().timeout = Some(minutes * 60);
            said.place(&format!("adapters.{agent}.timeout"), &place);
        }
        _ => said.warnings.push(about(
            scene,
            &place,
            "CLAUDE_TIMEOUT_MINUTES",
            "a number of minutes",
            &word,
        )),
    }
}

/// The prompt has a place of its own there, and needs no word in the file.
fn translate_prompt(scene: &Scene<'_>, said: &mut Said) {
    let inside = scene.path.parent().filter(|parent| parent.ends_with(".ralph"));
    let prompt = match inside {
        Some(directory) => directory.join("PROMPT.md"),
        None => scene.path.with_file_name(".ralph").join("PROMPT.md"),
    };
    if prompt.is_file() {
        said.wishes.event_loop.prompt_file = Some(prompt);
        said.place("event_loop.prompt_file", &Place::Line(1));
    }
}

/// Only a driver is asked for its session; without one the word would promise too much.
fn translate_session(given: Option<(String, Place)>, has_driver: bool, scene: &Scene<'_>, said: &mut Said) {
    let Some((word, place)) = given else {
        return;
    };
    let session = match word.as_str() {
        "true" => Session::Continue,
        "false" => Session::Fresh,
        _ => {
            return said
                .warnings
                .push(about(scene, &place, "SESSION_CONTINUITY", "true or false", &word));
        }
    };
    if has_driver {
        said.wishes.session = Some(session);
        said.place("session", &place);
    }
}

/// The built-in agent that a driver of this name drives, or else the user's own.
fn agent_of(driver: Option<&str>, agents: &[&str]) -> String {
    let driver = driver.unwrap_or("claude-code");
    let known = agents.iter().find(|agent| driver.starts_with(**agent));
    known.map_or("custom", |agent| agent).to_owned()
}

fn about(scene: &Scene<'_>, place: &Place, name: &str, wanted: &str, given: &str) -> String {
    let place = match place {
        Place::Line(line) => format!("{}:{line}: `{name}`", scene.path.display()),
        Place::Variable(variable) => format!("environment variable `{variable}`"),
    };
    format!(
        "{place} must be {wanted}, but is `{}`; it is ignored",
        printable(given)
    )
}

/// All assignments in order, and the lines that are something else.
fn assignments(text: &str, environment: &[(String, String)]) -> (Vec<Assignment>, Vec<(usize, String)>) {
    let mut found: Vec<Assignment> = Vec::new();
    let mut left_alone = Vec::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
        let first = rest[..end].trim();
        let mut used = end;
        if !first.is_empty() && !first.starts_with('#') {
            match split_assignment(first) {
                None => left_alone.push((line, format!("`{}` is not KEY=value", printable(&short(first))))),
                Some(name) => {
                    let start = rest.find('=').map_or(end, |equals| equals + 1);
                    let value = Value::read(&rest[start..], |name| lookup(name, &found, environment));
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
                        Err(why) => left_alone.push((line, format!("`{name}` {why}"))),
                    }
                }
            }
        }
        line += rest[..used.min(rest.len())].matches('\n').count();
        rest = &rest[used.min(rest.len())..];
    }
    (found, left_alone)
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
    let written = found.iter().rev().find(|assignment| assignment.name == name);
    let given = || {
        environment
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.clone())
    };
    written.map(|assignment| assignment.value.clone()).or_else(given)
}

/// The right side of an assignment.
struct Value {
    text: Result<String, &'static str>,
    /// Bytes that it took.
    length: usize,
}

impl Value {
    fn read(source: &str, lookup: impl Fn(&str) -> Option<String>) -> Self {
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
            problem = Some("has a quote that is never closed");
        }
        Self {
            text: problem.map_or(Ok(text), Err),
            length: at,
        }
    }
}

/// What stands after a `$`: the value of a variable, and how many bytes its name took.
fn expand(source: &str, lookup: &impl Fn(&str) -> Option<String>) -> Result<(String, usize), &'static str> {
    if source.starts_with('(') {
        return Err("would run a command");
    }
    if let Some(inner) = source.strip_prefix('{') {
        let end = inner.find('}').ok_or("has an expansion that is never closed")?;
        let (name, default) = inner[..end].split_once(":-").unwrap_or((&inner[..end], ""));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err("has an expansion that ralph does not read");
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
    fn quotes_comments_and_expansions_are_read() {
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
    fn lines_are_counted_through_long_values() {
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
    fn nothing_that_would_run_is_taken_for_a_value() {
        let text = "A=$(touch /x)\nB=`id`\nif true; then C=1; fi\nD=\"$(rm -rf /)\"\nrm -rf /\nE=\"open";
        let (found, left_alone) = assignments(text, &[]);
        assert_eq!(found, []);
        assert_eq!(
            left_alone.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6]
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[A-Z=\"'${}()\\\\`# \n:a-z-]*") {
            let _ = assignments(&text, &[]);
        }
    }
}
