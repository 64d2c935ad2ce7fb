//! Compares the scanner with serde.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Default, PartialEq)]
struct ScanSample<'a> {
    name: Field<'a>,
    age: Field<'a>,
    inner: Option<Box<Self>>,
    content: Vec<Self>,
    text: Option<String>,
    rest: Option<&'a str>,
}

impl<'a> FromScan<'a> for ScanSample<'a> {
    fn read_field(&mut self, name: &str, value: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "name" => self.name = value.field()?,
            "age" => self.age = value.field()?,
            "inner" => value.nested(self.inner.get_or_insert_default().as_mut())?,
            "content" => match value.content()? {
                Content::Absent => {}
                Content::Text(text) => self.text = Some(text.into_owned()),
                Content::Blocks(blocks) => self.content = blocks,
            },
            "rest" => self.rest = value.raw()?.map(RawValue::get),
            _ => drop(value.skip_value()?),
        }
        Some(())
    }
}

/// The expected fields, taken from a parsed `Value`.
fn expected(value: &Value, raw: &mut Vec<String>) -> Expected {
    let field = |name: &str| match &value[name] {
        Value::Null | Value::Array(_) | Value::Object(_) => Field::Absent,
        Value::Bool(flag) => Field::Flag(*flag),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) => Field::Count(count),
            (None, real) => Field::Real(real.unwrap_or_default()),
        },
        Value::String(text) => Field::Text(Cow::Owned(text.clone())),
    };
    let rest = value.get("rest").filter(|rest| !rest.is_null());
    raw.extend(rest.map(Value::to_string));
    let blocks = value["content"].as_array().map_or(&[][..], Vec::as_slice);
    Expected {
        name: field("name"),
        age: field("age"),
        inner: value.get("inner").map(|inner| Box::new(expected(inner, raw))),
        content: blocks.iter().map(|block| expected(block, raw)).collect(),
        text: value["content"].as_str().map(str::to_owned),
    }
}

#[derive(Debug, PartialEq)]
struct Expected {
    name: Field<'static>,
    age: Field<'static>,
    inner: Option<Box<Self>>,
    content: Vec<Self>,
    text: Option<String>,
}

fn owned(sample: ScanSample<'_>, raw: &mut Vec<String>) -> Expected {
    let field = |field: Field<'_>| match field {
        Field::Text(text) => Field::Text(Cow::Owned(text.into_owned())),
        Field::Absent => Field::Absent,
        Field::Flag(flag) => Field::Flag(flag),
        Field::Count(count) => Field::Count(count),
        Field::Real(real) => Field::Real(real),
    };
    raw.extend(sample.rest.map(|rest| {
        let value: Value = serde_json::from_str(rest).unwrap();
        value.to_string()
    }));
    Expected {
        name: field(sample.name),
        age: field(sample.age),
        inner: sample.inner.map(|inner| Box::new(owned(*inner, raw))),
        content: sample
            .content
            .into_iter()
            .map(|block| owned(block, raw))
            .collect(),
        text: sample.text,
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        "[ -~\\n\\t\"\\\\é🦀]{0,12}".prop_map(Value::from),
    ];
    let names = prop_oneof![
        Just("name"),
        Just("age"),
        Just("inner"),
        Just("content"),
        Just("rest"),
        Just("other"),
        Just("a\\\"b"),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn scanned_fields_equal_serde_result(value in values(), pretty in any::<bool>()) {
        let object = json!({ "inner": value, "name": "n" });
        let text = if pretty { serde_json::to_string_pretty(&object).unwrap() } else { object.to_string() };
        // Serialization may change the last digit of a fraction.
        let object: Value = serde_json::from_str(&text).unwrap();
        let scanned: ScanSample<'_> = JsonScanner::object(&text).unwrap();
        let (mut raw, mut expected_raw) = (Vec::new(), Vec::new());
        let scanned = owned(scanned, &mut raw);
        prop_assert_eq!(scanned, expected(&object, &mut expected_raw));
        raw.sort_unstable();
        expected_raw.sort_unstable();
        prop_assert_eq!(raw, expected_raw);
    }

    #[test]
    fn truncated_line_is_rejected(value in values(), part in 0.0..1.0_f64) {
        let text = json!({ "inner": value, "name": "né" }).to_string();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the text")]
        let cut = text.floor_char_boundary((text.len() as f64 * part) as usize);
        prop_assert!(JsonScanner::object::<ScanSample<'_>>(&text[..cut]).is_none());
    }

    #[test]
    fn invalid_json_is_rejected(value in values(), at in any::<prop::sample::Index>(), piece in "[{}\\[\\]\",:\\\\u0-9a \u{0}-\u{1f}]{0,2}") {
        let mut text = json!({ "inner": value, "name": "n" }).to_string();
        let from = text.floor_char_boundary(at.index(text.len()));
        let to = text.ceil_char_boundary((from + 1).min(text.len()));
        text.replace_range(from..to, &piece);
        let scanned = JsonScanner::object::<ScanSample<'_>>(&text);
        let serde_accepts = serde_json::from_str::<serde_json::Map<String, Value>>(&text).is_ok();
        prop_assert!(scanned.is_none() || serde_json::from_str::<IgnoredAny>(&text).is_ok(), "{}", text);
        prop_assert!(scanned.is_some() || !serde_accepts, "{}", text);
    }
}

#[test]
fn non_objects_are_rejected() {
    for text in [
        "",
        "{",
        "[]",
        "null",
        r#"{"name":"a"}}"#,
        r#"{"name":"a"} x"#,
        r#"{"name" "a"}"#,
        r#"{"name":}"#,
        r#"{"name":"a",}"#,
        r#"{"other":nul}"#,
        r#"{"other":1.2.3}"#,
        r#"{"other":01}"#,
        r#"{"other":{"a" "b"}}"#,
        r#"{"other":[1,]}"#,
        r#"{"other":"\q"}"#,
        r#"{"other":"\u12x4"}"#,
        r#"{"na\qme":1}"#,
        "{\"other\":\"\u{1}\"}",
        r#"{"rest":{"a":tru}}"#,
        "{\"name\":\"a\u{1b}[0m\"}",
    ] {
        assert!(JsonScanner::object::<ScanSample<'_>>(text).is_none(), "{text}");
    }
}

#[test]
fn lone_surrogate_is_replaced_in_text_and_rejected_in_raw_values() {
    let read: ScanSample<'_> = JsonScanner::object(r#"{"name":"a\ud83d\n","other":"\ud83d"}"#).unwrap();
    assert_eq!(read.name.text(), Some("a\u{fffd}\n"));
    assert!(JsonScanner::object::<ScanSample<'_>>(r#"{"rest":{"a":"\ud83d"}}"#).is_none());
    assert!(JsonScanner::object::<ScanSample<'_>>(r#"{"name":"\q"}"#).is_none());
}

#[test]
fn text_without_escapes_is_borrowed() {
    let read: ScanSample<'_> = JsonScanner::object(r#"{ "name" : "plain" , "age" : "a\nb" }"#).unwrap();
    assert!(matches!(read.name, Field::Text(Cow::Borrowed("plain"))));
    assert_eq!(read.age.text(), Some("a\nb"));
}
