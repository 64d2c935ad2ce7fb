//! `ralph config`: every setting with where it comes from, and the `ralph.yml` that another Ralph's file would be.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::agent;
use crate::config::{ImportedFile, Loaded, Origin, Theirs, equivalent_yaml, nearest_foreign};
use crate::ui::{Cell, Table, Terminal, Tone, clean};

use super::args::{ConfigCommand, ForeignName, SettingsArguments};
use super::context::{Context, user_directory};
use super::error::CliError;
use super::exit::Exit;

pub(super) fn config(arguments: &SettingsArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let text = match &arguments.command {
        ConfigCommand::Show { origin, json } => {
            let loaded = context.load(arguments.choice.overrides()?, arguments.choice.config.as_ref())?;
            loaded
                .warnings
                .iter()
                .try_for_each(|warning| terminal.warn(warning))
                .map_err(CliError::Output)?;
            show(&loaded, *origin, *json, terminal)
        }
        ConfigCommand::Convert { from, file } => converted(&context, *from, file.as_deref())?,
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn show(loaded: &Loaded, with_origin: bool, as_json: bool, terminal: &Terminal) -> String {
    let settings = serde_json::to_value(&loaded.settings).unwrap_or(Value::Null);
    let mut rows = Vec::new();
    flatten("", &settings, &mut rows);
    if as_json {
        let described = rows.into_iter().map(|(key, value)| {
            let described = if with_origin {
                json!({ "value": value, "origin": origin_words(&loaded.origin(&key)) })
            } else {
                value.clone()
            };
            (key, described)
        });
        let all: Map<String, Value> = described.collect();
        return serde_json::to_string_pretty(&all).unwrap_or_default() + "\n";
    }
    let mut table = if with_origin {
        Table::new(["SETTING", "VALUE", "FROM"])
    } else {
        Table::new(["SETTING", "VALUE", ""])
    };
    for (key, value) in rows {
        let origin = loaded.origin(&key);
        let tone = if origin == Origin::Default {
            Tone::Faint
        } else {
            Tone::Plain
        };
        let value = match value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.replace('\n', "\\n"),
            other => other.to_string(),
        };
        let from = if with_origin {
            origin_words(&origin)
        } else {
            String::new()
        };
        table.row([
            Cell::new(&key, tone),
            Cell::new(&clean::clean(&value), tone),
            Cell::new(&clean::clean(&from), tone),
        ]);
    }
    terminal.render(&table)
}

/// `event_loop.max_iterations` and its value; lists stay whole.
pub(super) fn flatten<'a>(key: &str, value: &'a Value, rows: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                let dot = if key.is_empty() { "" } else { "." };
                flatten(&format!("{key}{dot}{name}"), member, rows);
            }
        }
        Value::Object(_) => {}
        other => rows.push((key.to_owned(), other)),
    }
}

fn origin_words(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File { path, line } => format!("{}:{line}", path.display()),
        Origin::Environment { variable } => format!("${variable}"),
        Origin::Flag => "command line".to_owned(),
    }
}

/// The `ralph.yml` for this directory that says what the other Ralph's file says.
pub(super) fn converted(
    context: &Context,
    from: ForeignName,
    file: Option<&Path>,
) -> Result<String, CliError> {
    let whose = match from {
        ForeignName::Ralphrc => ImportedFile::Ralphrc,
        ForeignName::Ralphex => ImportedFile::Ralphex,
    };
    let usual = || nearest_foreign(whose, &context.cwd, user_directory().as_deref());
    let path = match file {
        Some(file) => context.cwd.join(file),
        None => usual().ok_or(CliError::NothingToConvert { from })?,
    };
    let text = std::fs::read(&path).map_err(|source| CliError::Unreadable {
        path: path.clone(),
        source,
    })?;
    Ok(equivalent_yaml(&Theirs {
        whose,
        path: &path,
        text: &String::from_utf8_lossy(&text),
        agents: &agent::names(),
        base: &context.cwd,
    }))
}
