//! Suggests the command that a misspelled one means: the nearest one, and among equals the most used.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// The most used commands first.
const MOST_USED: [&str; 14] = [
    "run", "runs", "show", "logs", "attach", "plan", "init", "doctor", "diff", "tell", "top", "agents",
    "demo", "config",
];
/// More differences than this are no misspelling.
const MAX_DISTANCE: usize = 2;
const MAX_SUGGESTIONS: usize = 2;

/// Replaces the suggestions of clap for an unknown command.
pub(super) fn improve(mut error: Error, root: &Command) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let names = root
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| command.get_name().to_owned());
    let similar = similar(word, names);
    if similar.is_empty() {
        error.remove(ContextKind::SuggestedSubcommand);
    } else {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(similar));
    }
    error
}

/// The names with the fewest differences; of those that start with the word, all count as near.
fn similar(word: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let word = word.to_lowercase();
    let mut near: Vec<(usize, usize, String)> = names
        .filter_map(|name| {
            let distance = match name.starts_with(&word) && word.len() > 1 {
                true => 0,
                false => strsim::damerau_levenshtein(&word, &name),
            };
            let allowed = MAX_DISTANCE.min(word.chars().count().div_ceil(4));
            let rank = MOST_USED.iter().position(|used| *used == name);
            (distance <= allowed).then(|| (distance, rank.unwrap_or(usize::MAX), name))
        })
        .collect();
    near.sort();
    let best = near.first().map_or(0, |(distance, ..)| *distance);
    near.retain(|(distance, ..)| *distance == best);
    near.truncate(MAX_SUGGESTIONS);
    near.into_iter().map(|(.., name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_and_most_used_command_is_suggested() {
        let root = crate::cli::command();
        let suggest = |word: &str| {
            let visible = root.get_subcommands().filter(|command| !command.is_hide_set());
            let names = visible.map(|command| command.get_name().to_owned());
            similar(word, names)
        };
        assert_eq!(suggest("rnu"), ["run"]);
        assert_eq!(suggest("rums"), ["runs"]);
        assert_eq!(suggest("atach"), ["attach"]);
        assert_eq!(suggest("sohw"), ["show"]);
        assert_eq!(suggest("dotcor"), ["doctor"]);
        assert_eq!(suggest("comp"), ["completions"]);
        assert_eq!(suggest("make"), Vec::<String>::new());
    }
}
