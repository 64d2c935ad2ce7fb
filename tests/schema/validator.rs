//! A validator for the JSON Schema keywords that ralph's schemas use. It panics on unknown keywords, because a skipped check
//! would prove nothing.

use std::fmt;

use serde_json::{Map, Value};

/// The location and description of a violation.
#[derive(Debug, PartialEq)]
pub(crate) struct SchemaViolation {
    path: String,
    problem: String,
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.path, self.problem)
    }
}

pub(super) fn validate(schema: &Value, value: &Value) -> Result<(), SchemaViolation> {
    Validator {
        root: schema,
        path: String::new(),
    }
    .check(schema, value)
}

struct Validator<'a> {
    root: &'a Value,
    path: String,
}

impl Validator<'_> {
    fn check(&self, schema: &Value, value: &Value) -> Result<(), SchemaViolation> {
        let keywords = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(keywords) => keywords,
            other => return self.reject(format!("{other} accepts no value")),
        };
        for (keyword, expected) in keywords {
            self.keyword(keyword, expected, keywords, value)?;
        }
        Ok(())
    }

    fn keyword(
        &self,
        keyword: &str,
        expected: &Value,
        all: &Map<String, Value>,
        value: &Value,
    ) -> Result<(), SchemaViolation> {
        match keyword {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => Ok(()),
            "pattern" => match value.as_str() {
                Some(text) => self.ensure(matches_pattern(expected, text), || {
                    format!("{value} does not match {expected}")
                }),
                None => Ok(()),
            },
            "$ref" => {
                let name = expected
                    .as_str()
                    .expect("$ref is a string")
                    .trim_start_matches('#');
                self.check(self.root.pointer(name).expect("the definition exists"), value)
            }
            "const" => self.ensure(expected == value, || format!("{value} is not {expected}")),
            "enum" => self.ensure(items(expected).contains(value), || {
                format!("{value} is not one of {expected}")
            }),
            "type" => {
                let valid = match expected {
                    Value::Array(kinds) => kinds.iter().any(|kind| is_a(value, kind)),
                    kind => is_a(value, kind),
                };
                self.ensure(valid, || format!("{value} is not of type {expected}"))
            }
            // Keywords for numbers accept every other value.
            "minimum" | "exclusiveMinimum" | "maximum" if !value.is_number() => Ok(()),
            "minimum" => self.ensure(value.as_f64() >= expected.as_f64(), || {
                format!("{value} is below {expected}")
            }),
            "exclusiveMinimum" => self.ensure(value.as_f64() > expected.as_f64(), || {
                format!("{value} is not above {expected}")
            }),
            "maximum" => self.ensure(value.as_f64() <= expected.as_f64(), || {
                format!("{value} is above {expected}")
            }),
            "minLength" => self.ensure(
                value
                    .as_str()
                    .is_none_or(|text| text.chars().count() as u64 >= expected.as_u64().unwrap_or(0)),
                || format!("{value} is shorter than {expected}"),
            ),
            "allOf" => items(expected)
                .iter()
                .try_for_each(|schema| self.check(schema, value)),
            "anyOf" => self.ensure(self.count_matching(expected, value) >= 1, || {
                "matches no alternative".to_owned()
            }),
            "oneOf" => {
                let matching = self.count_matching(expected, value);
                self.ensure(matching == 1, || {
                    format!("{value} matches {matching} alternatives")
                })
            }
            _ => self.children(keyword, expected, all, value),
        }
    }

    /// Checks the keywords that apply to the members of an object or array.
    fn children(
        &self,
        keyword: &str,
        expected: &Value,
        all: &Map<String, Value>,
        value: &Value,
    ) -> Result<(), SchemaViolation> {
        match keyword {
            "required" => items(expected).iter().try_for_each(|name| {
                let present = value
                    .get(name.as_str().expect("a property name is a string"))
                    .is_some();
                self.ensure(present || !value.is_object(), || format!("{name} is missing"))
            }),
            "properties" => members(value).try_for_each(|(name, inner)| match expected.get(name) {
                Some(schema) => self.child(name).check(schema, inner),
                None => Ok(()),
            }),
            "additionalProperties" => members(value)
                .filter(|(name, _)| {
                    all.get("properties")
                        .is_none_or(|properties| properties.get(name).is_none())
                })
                .try_for_each(|(name, inner)| self.child(name).check(expected, inner)),
            "propertyNames" => {
                members(value).try_for_each(|(name, _)| self.check(expected, &Value::from(name.as_str())))
            }
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .try_for_each(|(index, item)| self.child(&index.to_string()).check(expected, item)),
            unknown => panic!("unsupported keyword `{unknown}`"),
        }
    }

    fn count_matching(&self, choices: &Value, value: &Value) -> usize {
        items(choices)
            .iter()
            .filter(|schema| self.check(schema, value).is_ok())
            .count()
    }

    fn child(&self, name: &str) -> Self {
        Self {
            root: self.root,
            path: format!("{}/{name}", self.path),
        }
    }

    fn ensure(&self, valid: bool, problem: impl FnOnce() -> String) -> Result<(), SchemaViolation> {
        if valid { Ok(()) } else { self.reject(problem()) }
    }

    fn reject(&self, problem: String) -> Result<(), SchemaViolation> {
        let path = self.path.clone();
        Err(SchemaViolation { path, problem })
    }
}

fn items(list: &Value) -> &Vec<Value> {
    list.as_array().expect("the keyword has a list")
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Supports the patterns that the schemas contain, and panics on others.
fn matches_pattern(pattern: &Value, text: &str) -> bool {
    match pattern.as_str().expect("a pattern is a string") {
        "^(0|[1-9][0-9]*|(?=[0-9])([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$" => {
            text.parse::<ralph::policy::Seconds>().is_ok()
        }
        "^([0-9]|[1-9][0-9]|100)%?$" => text.parse::<ralph::policy::Percent>().is_ok(),
        other => panic!("unknown pattern {other}"),
    }
}

fn is_a(value: &Value, kind: &Value) -> bool {
    match kind.as_str().expect("a type is a string") {
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
