//! The settings of one layer: how paths become absolute, how a layer is merged, and how its values are read and written.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::policy::Hat;
use crate::policy::section::override_with;

use super::settings::{PartialSettings, PartialSnapshots, Settings};

impl PartialSettings {
    /// Makes paths absolute. Paths in a file are relative to the directory of that file.
    pub(super) fn make_paths_absolute(&mut self, base: &Path) {
        for path in [
            &mut self.event_loop.prompt_file,
            &mut self.pricing,
            &mut self.cli.driver_dir,
        ]
        .into_iter()
        .flatten()
        {
            *path = base.join(&path);
        }
        for program in [&mut self.cli.command, &mut self.cli.claude_command] {
            // A plain name is searched for in PATH. No shell expands `~`, which the error for a missing program explains.
            let is_path = |path: &&mut String| path.contains('/') && !path.starts_with('~');
            if let Some(path) = program.as_mut().filter(is_path) {
                let relative = path.strip_prefix("./").unwrap_or(path);
                *path = base.join(relative).to_string_lossy().into_owned();
            }
        }
        for gate in self.gates.iter_mut().flatten() {
            gate.cwd = gate.cwd.take().map(|cwd| base.join(cwd));
            let own = std::iter::once(&mut gate.prompt_file);
            let of_reviewers = gate
                .reviewers
                .iter_mut()
                .map(|reviewer| &mut reviewer.prompt_file);
            for path in own.chain(of_reviewers).flatten() {
                *path = base.join(&path);
            }
        }
        let gates = self.gates.iter_mut().flatten().map(|gate| &mut gate.sandbox);
        let adapters = self
            .adapters
            .values_mut()
            .filter_map(|adapter| adapter.sandbox.as_mut());
        let hats = self.hats.values_mut().filter_map(|hat| hat.sandbox.as_mut());
        for sandbox in gates.chain(adapters).chain(hats).chain([&mut self.sandbox]) {
            let lists = [&mut sandbox.write, &mut sandbox.read];
            for path in lists.into_iter().flatten().flatten() {
                // `~` and variables are expanded when a job starts.
                if !path.starts_with(['/', '~', '$']) {
                    let relative = path.trim_start_matches("./");
                    let absolute = if relative == "." {
                        base.to_owned()
                    } else {
                        base.join(relative)
                    };
                    *path = absolute.to_string_lossy().into_owned();
                }
            }
        }
    }

    /// Merges this layer into the settings of the lower layers.
    pub(super) fn apply_to(self, settings: &mut Settings) {
        self.cli.apply_to(&mut settings.cli);
        settings.cli.transcript.take_if(|name| name == AUTO);
        for (name, adapter) in self.adapters {
            adapter.apply_to(settings.adapters.entry(name).or_default());
        }
        // A prompt from this layer replaces both the prompt and the prompt file of lower layers.
        if self.event_loop.prompt.is_some() || self.event_loop.prompt_file.is_some() {
            settings.event_loop.prompt = None;
            settings.event_loop.prompt_file = None;
        }
        self.event_loop.apply_to(&mut settings.event_loop);
        override_with(self.gates, &mut settings.gates);
        self.hooks.apply_to(&mut settings.hooks);
        self.notify.apply_to(&mut settings.notify);
        self.quota.apply_to(&mut settings.quota);
        settings.budgets.lower(self.budgets);
        for (name, hat) in self.hats {
            let hats = &mut settings.hats;
            hat.apply_to(hats.entry(name.clone()).or_insert_with(|| Hat::named(&name)));
        }
        override_with(self.session, &mut settings.session);
        self.driver.apply_to(&mut settings.driver);
        self.snapshots.apply_to(&mut settings.snapshots);
        self.worktree.apply_to(&mut settings.worktree);
        self.ui.apply_to(&mut settings.ui);
        self.sandbox.apply_to(&mut settings.sandbox);
        self.env.apply_to(&mut settings.env);
        override_with(self.pricing, &mut settings.pricing);
    }
}

/// The transcript name that resets the choice of a lower layer.
pub(super) const AUTO: &str = "auto";

/// Accepts `null` for a section whose lines are all commented out.
pub(super) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Serializes a path lossily, because paths may not be UTF-8 but JSON must be.
pub(super) fn path_as_text<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

/// Accepts `on`, `off` or the section.
pub(super) fn switch_or_section<'de, D: Deserializer<'de>>(from: D) -> Result<PartialSnapshots, D::Error> {
    struct SwitchOrSection;

    impl<'de> Visitor<'de> for SwitchOrSection {
        type Value = PartialSnapshots;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("`on`, `off` or a mapping")
        }

        fn visit_bool<E: de::Error>(self, enabled: bool) -> Result<Self::Value, E> {
            Ok(PartialSnapshots {
                enabled: Some(enabled),
                ..PartialSnapshots::default()
            })
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            match text {
                "on" | "true" => self.visit_bool(true),
                "off" | "false" => self.visit_bool(false),
                _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
            }
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(PartialSnapshots::default())
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            PartialSnapshots::deserialize(MapAccessDeserializer::new(map))
        }
    }

    from.deserialize_any(SwitchOrSection)
}

/// The JSON schema of `one_or_many`.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only the derived schema is used")]
pub(super) enum StringOrList {
    String(#[schemars(length(min = 1))] String),
    List(#[schemars(inner(length(min = 1)))] Vec<String>),
}

/// Accepts a string or a list of strings. An untagged enum would lose the location of an error in the list.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Option<Vec<String>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a list of strings")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Some(vec![text.to_owned()]))
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = items.next_element()? {
                texts.push(text);
            }
            Ok(Some(texts))
        }
    }

    from.deserialize_any(OneOrMany)
}
