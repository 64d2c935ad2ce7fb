//! Imports the hats, and adds the one that ralph-orchestrator has by default: it takes every event that no other
//! hat takes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{OrchestratorImport, members, text};
use crate::policy::START_TOPIC;

const COORDINATOR: &str = "coordinator";
/// The trigger of the hat that takes every other event.
const ANY: &str = "*";

impl OrchestratorImport<'_> {
    pub(super) fn hats(&mut self, value: &Value) {
        for (name, hat) in members(value) {
            for (key, value) in members(hat) {
                self.hat_key(name, key, value);
            }
            if let Some(extra) = hat.get("extra_instructions") {
                let parts: Vec<&str> = std::iter::once(&hat["instructions"])
                    .chain(extra.as_array().into_iter().flatten())
                    .filter_map(Value::as_str)
                    .collect();
                let from = format!("hats.{name}.extra_instructions");
                self.set(&from, &["hats", name, "instructions"], &parts.join("\n\n").into());
            }
        }
    }

    fn hat_key(&mut self, hat: &str, key: &str, value: &Value) {
        let from = format!("hats.{hat}.{key}");
        match key {
            "name" => self.set(&from, &["hats", hat, "display_name"], value),
            // Appended to the instructions.
            "extra_instructions" => {}
            // Completion must be claimed by the agent, and is not assumed.
            "default_publishes" if text(value) == self.completion_topic => {}
            "backend" => self.hat_backend(hat, value),
            "backend_args" => self.set(&from, &["hats", hat, "args"], value),
            "concurrency" if *value == 1 => {}
            _ => self.other(&from, &["hats", hat, key], value),
        }
    }

    /// The name of an agent, or `{type, args}`. A command of its own has no counterpart.
    fn hat_backend(&mut self, hat: &str, value: &Value) {
        let from = format!("hats.{hat}.backend");
        let agent = text(value).or_else(|| text(&value["type"]));
        match agent {
            Some(agent) if agent == self.backend => {}
            Some(agent) => self.set(&from, &["hats", hat, "agent"], &agent.into()),
            None => return self.not_there(&from),
        }
        if value["args"].as_array().is_some_and(|args| !args.is_empty()) {
            self.set(&from, &["hats", hat, "args"], &value["args"]);
        }
        for (key, _) in members(value).filter(|(key, _)| !matches!(*key, "type" | "args")) {
            self.not_there(&format!("{from}.{key}"));
        }
    }

    /// An older way to say which hat is the first.
    pub(super) fn starting_hat(&mut self, hat: &Value, hats: &Value) {
        let topic = text(hat).and_then(|hat| text(&hats[hat.as_str()]["triggers"][0]));
        if let Some(topic) = topic
            && !self.builder.is_set(&["event_loop", "starting_event"])
        {
            self.set(
                "event_loop.starting_hat",
                &["event_loop", "starting_event"],
                &topic.into(),
            );
        }
    }

    /// Adds the hat that takes the events of no other hat, unless the file has one.
    pub(super) fn add_coordinator(&mut self, hats: &Value) {
        let triggers = |hat: &Value| -> Vec<String> {
            hat["triggers"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(text)
                .collect()
        };
        let all: Vec<(&str, &Value, Vec<String>)> = members(hats)
            .map(|(name, hat)| (name, hat, triggers(hat)))
            .collect();
        let has_default = all
            .iter()
            .any(|(.., triggers)| triggers.iter().any(|topic| topic == ANY));
        if all.is_empty() || has_default {
            return;
        }
        let name = match hats[COORDINATOR].is_null() {
            true => COORDINATOR,
            false => "ralph",
        };
        let mut topics = BTreeSet::new();
        let mut instructions =
            "You coordinate the hats. From the events and the state of the work, decide which hat continues, and publish \
             one of its topics. When the whole task is done and checked, say so.\n"
                .to_owned();
        for (hat, definition, triggers) in &all {
            let exact: Vec<&str> = triggers
                .iter()
                .map(String::as_str)
                .filter(|topic| !topic.contains('*'))
                .collect();
            topics.extend(exact.iter().map(ToString::to_string));
            let description = text(&definition["description"]).unwrap_or_default();
            instructions.push_str(&format!("- {hat} ({}): {description}\n", exact.join(", ")));
        }
        topics.remove(START_TOPIC);
        let hat = json!({
            "description": "Decides which hat continues.",
            "triggers": [ANY],
            "publishes": topics,
            "instructions": instructions,
        });
        for (key, value) in members(&hat) {
            self.set("hats", &["hats", name, key], value);
        }
    }
}
