//! As much of JSON Schema as our own schemas use. A keyword that it does not know makes it panic: a check that is
//! silently left out would prove nothing.

use std::fmt;

use serde_json::{Map, Value};

/// Where, and against what.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    place: String,
    problem: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.place, self.problem)
    }
}

pub(super) fn validate(schema: &Value, value: &Value) -> Result<(), Refusal> {
    Check {
        root: schema,
        place: String::new(),
    }
    .check(schema, value)
}

struct Check<'a> {
    root: &'a Value,
    place: String,
}

impl Check<'_> {
    fn check(&self, schema: &Value, value: &Value) -> Result<(), Refusal> {
        let keywords = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(keywords) => keywords,
            other => return self.refuse(format!("{other} takes nothing")),
        };
        for (keyword, wanted) in keywords {
            self.keyword(keyword, wanted, keywords, value)?;
        }
        Ok(())
    }

    fn keyword(
        &self,
        keyword: &str,
        wanted: &Value,
        all: &Map<String, Value>,
        value: &Value,
    ) -> Result<(), Refusal> {
        match keyword {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => Ok(()),
            "$ref" => {
                let name = wanted.as_str().expect("a reference").trim_start_matches('#');
                self.check(self.root.pointer(name).expect("a definition"), value)
            }
            "const" => self.demand(wanted == value, || format!("{value} is not {wanted}")),
            "enum" => self.demand(items(wanted).contains(value), || {
                format!("{value} is none of {wanted}")
            }),
            "type" => {
                let fits = match wanted {
                    Value::Array(kinds) => kinds.iter().any(|kind| is_a(value, kind)),
                    kind => is_a(value, kind),
                };
                self.demand(fits, || format!("{value} is no {wanted}"))
            }
            "minimum" => self.demand(value.as_f64() >= wanted.as_f64(), || {
                format!("{value} is below {wanted}")
            }),
            "exclusiveMinimum" => self.demand(value.as_f64() > wanted.as_f64(), || {
                format!("{value} is not above {wanted}")
            }),
            "maximum" => self.demand(value.as_f64() <= wanted.as_f64(), || {
                format!("{value} is above {wanted}")
            }),
            "allOf" => items(wanted)
                .iter()
                .try_for_each(|schema| self.check(schema, value)),
            "anyOf" => self.demand(self.fitting(wanted, value) >= 1, || "fits no choice".to_owned()),
            "oneOf" => {
                let fitting = self.fitting(wanted, value);
                self.demand(fitting == 1, || format!("{value} fits {fitting} choices"))
            }
            "required" => items(wanted).iter().try_for_each(|name| {
                let there = value.get(name.as_str().expect("a name")).is_some();
                self.demand(there || !value.is_object(), || format!("{name} is missing"))
            }),
            "properties" => members(value).try_for_each(|(name, inner)| match wanted.get(name) {
                Some(schema) => self.below(name).check(schema, inner),
                None => Ok(()),
            }),
            "additionalProperties" => members(value)
                .filter(|(name, _)| {
                    all.get("properties")
                        .is_none_or(|known| known.get(name).is_none())
                })
                .try_for_each(|(name, inner)| self.below(name).check(wanted, inner)),
            "propertyNames" => {
                members(value).try_for_each(|(name, _)| self.check(wanted, &Value::from(name.as_str())))
            }
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .try_for_each(|(index, item)| self.below(&index.to_string()).check(wanted, item)),
            unknown => panic!("the validator does not know `{unknown}`"),
        }
    }

    fn fitting(&self, choices: &Value, value: &Value) -> usize {
        items(choices)
            .iter()
            .filter(|schema| self.check(schema, value).is_ok())
            .count()
    }

    fn below(&self, name: &str) -> Self {
        Self {
            root: self.root,
            place: format!("{}/{name}", self.place),
        }
    }

    fn demand(&self, fits: bool, problem: impl FnOnce() -> String) -> Result<(), Refusal> {
        if fits { Ok(()) } else { self.refuse(problem()) }
    }

    fn refuse(&self, problem: String) -> Result<(), Refusal> {
        let place = self.place.clone();
        Err(Refusal { place, problem })
    }
}

fn items(list: &Value) -> &Vec<Value> {
    list.as_array().expect("a list")
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn is_a(value: &Value, kind: &Value) -> bool {
    match kind.as_str().expect("a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    }
}
