//! A JSON value kept as the text in which it came.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A JSON value as text: cheap to carry from an agent's line to the journal, parsed only by who looks inside.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Json(#[schemars(with = "serde_json::Value")] Box<RawValue>);

impl Json {
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The parsed value, for those who look inside.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(self.0.get()).unwrap_or(serde_json::Value::Null)
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        let null = || RawValue::NULL.to_owned();
        Self(serde_json::value::to_raw_value(&value).unwrap_or_else(|_| null()))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || self.value() == other.value()
    }
}

/// By way of a value: a `RawValue` cannot be read inside a tagged enum, where serde buffers what it has seen.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde_json::Value::deserialize(deserializer).map(Self::from)
    }
}
