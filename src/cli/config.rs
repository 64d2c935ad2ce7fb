//! `ralph config`: prints every setting and its origin, or converts another Ralph's configuration to `ralph.yml`.

use serde_json::{Map, Value, json};

use crate::config::{LoadedConfig, Origin, flatten};
use crate::run::Host;
use crate::ui::{Cell, Table, Terminal, Tone, clean};

use super::args::{ConfigCommand, SettingsArguments};
use super::context::Context;
use super::convert::convert;
use super::error::CliError;
use super::exit::Exit;
use super::setting_text::{origin_text, value_text};

pub(super) fn config(
    arguments: &SettingsArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
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
        ConfigCommand::Convert { from, file } => convert(&context, *from, file.as_deref())?,
    };
    terminal.print(&text).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

fn show(loaded: &LoadedConfig, with_origin: bool, as_json: bool, terminal: &Terminal) -> String {
    let settings = serde_json::to_value(&loaded.settings).unwrap_or(Value::Null);
    let rows = flatten(&settings);
    if as_json {
        let entries = rows.into_iter().map(|(key, value)| {
            let entry = if with_origin {
                json!({ "value": value, "origin": origin_text(&loaded.origin(&key)) })
            } else {
                value.clone()
            };
            (key, entry)
        });
        let all: Map<String, Value> = entries.collect();
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
        let value = value_text(value);
        let from = if with_origin {
            origin_text(&origin)
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
