//! The bundle of `ralph doctor --bundle`: one text file for a bug report, without secrets and prompts.

use std::path::Path;

use crate::event::Secrets;

/// The parts of a bundle.
pub struct BundleFacts<'a> {
    pub ralph: &'a str,
    /// Operating system, kernel and architecture.
    pub system: String,
    /// Names and versions of the programs that ralph uses.
    pub programs: Vec<(&'static str, String)>,
    /// The findings of `ralph doctor`.
    pub findings: String,
    pub settings: Vec<BundleSetting>,
    /// The `RALPH_*` variables.
    pub variables: Vec<(String, String)>,
    /// The newest run with a debug log.
    pub run: Option<RunLogFacts>,
}

/// A setting, its value and its origin.
pub struct BundleSetting {
    pub key: String,
    pub value: String,
    pub origin: String,
}

/// The debug log of a run.
pub struct RunLogFacts {
    pub id: String,
    /// The end of the log.
    pub log: String,
    /// Number of bytes before it.
    pub omitted: u64,
}

/// The last part of a key whose value is a text for the agent.
const PROMPT_KEYS: &[&str] = &["prompt", "instructions"];

/// Writes the bundle. Secrets are redacted, the home directory is written as `~`, and of prompts only the length is given.
pub fn bundle(facts: &BundleFacts<'_>, secrets: &Secrets, home: Option<&Path>) -> String {
    let mut text = format!(
        "# ralph doctor bundle\n\nFor a bug report. Secrets that ralph recognizes are redacted and prompts are left out.\nRead this \
         file before you send it to anyone.\n\n## Versions\n\nralph {}\n{}\n",
        facts.ralph, facts.system
    );
    for (name, version) in &facts.programs {
        text.push_str(&format!("{name}: {version}\n"));
    }
    text.push_str(&format!("\n## Checks\n\n{}", facts.findings));
    text.push_str("\n## Settings\n\n");
    for setting in &facts.settings {
        let BundleSetting { key, value, origin } = setting;
        text.push_str(&format!("{key}: {}  ({origin})\n", shown_value(key, value)));
    }
    text.push_str("\n## Environment\n\n");
    for (name, value) in &facts.variables {
        text.push_str(&format!("{name}={}\n", value.escape_debug()));
    }
    if facts.variables.is_empty() {
        text.push_str("no RALPH_* variables\n");
    }
    text.push_str("\n## Debug log\n\n");
    match &facts.run {
        None => text.push_str("no run of this project has a debug log\n"),
        Some(RunLogFacts { id, log, omitted }) => {
            text.push_str(&format!("run {id}\n"));
            if *omitted > 0 {
                text.push_str(&format!("the first {omitted} bytes are left out\n"));
            }
            text.push_str(&format!("\n{log}"));
        }
    }
    let text = secrets.redact_text(text);
    match home.and_then(Path::to_str).filter(|home| home.len() > 1) {
        Some(home) => text.replace(home.trim_end_matches('/'), "~"),
        None => text,
    }
}

fn shown_value(key: &str, value: &str) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    match PROMPT_KEYS.contains(&last) && value != "-" {
        true => format!("[{} characters]", value.chars().count()),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_contains_no_secret_no_prompt_and_not_the_home_directory() {
        let setting = |key: &str, value: &str| BundleSetting {
            key: key.to_owned(),
            value: value.to_owned(),
            origin: "/home/ada/ralph.yml:3".to_owned(),
        };
        let facts = BundleFacts {
            ralph: "1.2.3",
            system: "Linux 6.1 x86_64".to_owned(),
            programs: vec![("git", "git version 2.50".to_owned())],
            findings: "  ✓ everything\n".to_owned(),
            settings: vec![
                setting("event_loop.prompt", "my plan"),
                setting("hats.writer.instructions", "-"),
                setting("cli.command", "agent --key hunter2-hunter2"),
            ],
            variables: vec![("RALPH_LOG".to_owned(), "debug".to_owned())],
            run: Some(RunLogFacts {
                id: "20261115-204501-k3f9".to_owned(),
                log: "INFO main: using hunter2-hunter2 in /home/ada/work\n".to_owned(),
                omitted: 7,
            }),
        };
        let secrets = Secrets::from_env([("MY_TOKEN".into(), "hunter2-hunter2".into())]);
        insta::assert_snapshot!(bundle(&facts, &secrets, Some(Path::new("/home/ada"))), @r"
        # ralph doctor bundle

        For a bug report. Secrets that ralph recognizes are redacted and prompts are left out.
        Read this file before you send it to anyone.

        ## Versions

        ralph 1.2.3
        Linux 6.1 x86_64
        git: git version 2.50

        ## Checks

          ✓ everything

        ## Settings

        event_loop.prompt: [7 characters]  (~/ralph.yml:3)
        hats.writer.instructions: -  (~/ralph.yml:3)
        cli.command: agent --key [redacted]  (~/ralph.yml:3)

        ## Environment

        RALPH_LOG=debug

        ## Debug log

        run 20261115-204501-k3f9
        the first 7 bytes are left out

        INFO main: using [redacted] in ~/work
        ");
    }
}
