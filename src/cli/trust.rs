//! `ralph trust`: lists the commands that would run here, and allows or revokes them.

use crate::bench;
use crate::run::Host;
use crate::trust::{FileTrust, Trust, TrustError, TrustScope, TrustStatus, commands_to_run, describe};
use crate::ui::{Terminal, clean};

use super::args::TrustArguments;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;

pub(super) fn trust(arguments: &TrustArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    if let Some(run) = std::env::var_os("RALPH_RUN_ID").filter(|_| !arguments.show) {
        let run = run.to_string_lossy().into_owned();
        return Err(TrustError::InsideRun { run }.into());
    }
    let context = Context::here(host)?;
    let found = match &arguments.tasks {
        Some(tasks) => bench::commands_to_run(&bench::find_tasks_file(tasks, &context.cwd)?)?,
        None => {
            let loaded = context.load(arguments.choice.overrides()?, arguments.choice.config.as_ref())?;
            commands_to_run(&loaded, &context.cwd, TrustScope::Project)
        }
    };
    let mut trust = context.trust()?;
    let files = trust.check(found)?;
    let text = if arguments.show {
        show(&files, &trust, arguments.json)
    } else if arguments.revoke {
        trust.revoke(&files)?;
        format!("revoked trust for {}\n", file_count(files.len()))
    } else {
        let unknown: Vec<FileTrust> = files.into_iter().filter(FileTrust::is_unknown).collect();
        trust.allow(&unknown)?;
        match unknown.len() {
            0 => "nothing to allow\n".to_owned(),
            count => format!(
                "{}\nallowed {} (stored in {})\n",
                describe(&unknown),
                file_count(count),
                trust.path().display()
            ),
        }
    };
    terminal.print(&clean::clean(&text)).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn file_count(files: usize) -> String {
    if files == 1 {
        "1 file".to_owned()
    } else {
        format!("{files} files")
    }
}

fn show(files: &[FileTrust], trust: &Trust, json: bool) -> String {
    if json {
        let all = serde_json::json!({ "here": files, "allowed": trust.entries() });
        return serde_json::to_string_pretty(&all).unwrap_or_default() + "\n";
    }
    let mut text = String::from("Here:\n");
    for file in files {
        let status = match file.status {
            TrustStatus::Own => "yours",
            TrustStatus::Allowed => "allowed",
            TrustStatus::Unknown => "NOT allowed",
        };
        text.push_str(&format!(
            "  {status:<12} {} ({})\n",
            file.path.display(),
            file.why
        ));
        for command in &file.commands {
            text.push_str(&format!(
                "               {}\n",
                command.replace('\n', "\n                 ")
            ));
        }
    }
    if files.is_empty() {
        text.push_str("  no commands\n");
    }
    text.push_str(&format!("\nAllowed ({}):\n", trust.path().display()));
    for entry in trust.entries() {
        let content: String = entry.content.chars().take(19).collect();
        text.push_str(&format!(
            "  {content}  {}  {}\n",
            entry.at.strftime("%Y-%m-%d"),
            entry.path.display()
        ));
    }
    if trust.entries().is_empty() {
        text.push_str("  none\n");
    }
    text
}
