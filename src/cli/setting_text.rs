//! Settings as text, for `ralph config show` and `ralph doctor --bundle`.

use serde_json::Value;

use crate::config::Origin;

/// A value on one line.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.replace('\n', "\\n"),
        other => other.to_string(),
    }
}

/// Where a setting comes from.
pub(super) fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File { path, line } => format!("{}:{line}", path.display()),
        Origin::Environment { variable } => format!("${variable}"),
        Origin::Flag => "command line".to_owned(),
    }
}
