//! Prints values like `jq -j`: strings without quotes, other values as indented JSON.

use jaq_json::{Num, Val};

pub(super) fn print(value: &Val, out: &mut String) {
    match value {
        Val::TStr(text) | Val::BStr(text) => out.push_str(&String::from_utf8_lossy(text)),
        other => print_json(other, 0, out),
    }
}

fn print_json(value: &Val, depth: usize, out: &mut String) {
    match value {
        Val::Null => out.push_str("null"),
        Val::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Val::Num(number) => print_number(number, out),
        Val::TStr(text) | Val::BStr(text) => print_text(&String::from_utf8_lossy(text), out),
        Val::Arr(items) if items.is_empty() => out.push_str("[]"),
        Val::Obj(members) if members.is_empty() => out.push_str("{}"),
        Val::Arr(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                begin_line(index, depth + 1, out);
                print_json(item, depth + 1, out);
            }
            end_block(']', depth, out);
        }
        Val::Obj(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                begin_line(index, depth + 1, out);
                print_json(key, depth + 1, out);
                out.push_str(": ");
                print_json(member, depth + 1, out);
            }
            end_block('}', depth, out);
        }
    }
}

fn begin_line(index: usize, depth: usize, out: &mut String) {
    out.push_str(if index == 0 { "\n" } else { ",\n" });
    out.push_str(&"  ".repeat(depth));
}

fn end_block(bracket: char, depth: usize, out: &mut String) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(bracket);
}

fn print_text(text: &str, out: &mut String) {
    // A string can always be serialized.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    out.push_str(&quoted.replace('\u{7f}', "\\u007f"));
}

/// Prints integral numbers without a decimal point, as jq does. Unlike in jq, large integers keep all digits.
fn print_number(number: &Num, out: &mut String) {
    let figure = match number {
        Num::Int(whole) => return out.push_str(&whole.to_string()),
        Num::BigInt(whole) => return out.push_str(&whole.to_string()),
        Num::Float(figure) => *figure,
        Num::Dec(literal) => literal.parse().unwrap_or(f64::NAN),
    };
    if figure.is_nan() {
        out.push_str("null");
    } else if figure.is_infinite() {
        out.push_str(if figure > 0.0 {
            "1.7976931348623157e+308"
        } else {
            "-1.7976931348623157e+308"
        });
    } else if figure.fract() == 0.0 && figure.abs() < 1e17 {
        out.push_str(&format!("{figure:.0}"));
    } else if figure.abs() >= 1e17 || figure.abs() < 1e-5 {
        let scientific = format!("{figure:e}");
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let (sign, digits) = exponent
            .strip_prefix('-')
            .map_or(('+', exponent), |digits| ('-', digits));
        out.push_str(&format!("{mantissa}e{sign}{digits:0>2}"));
    } else {
        out.push_str(&figure.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(json: &str) -> String {
        let mut out = String::new();
        print(&jaq_json::read::parse_single(json.as_bytes()).unwrap(), &mut out);
        out
    }

    #[test]
    fn values_are_printed_as_jq_prints_them() {
        for (json, text) in [
            (r#""a\nb""#, "a\nb"),
            ("null", "null"),
            ("1.0", "1"),
            ("1e3", "1000"),
            ("1.5", "1.5"),
            ("-0.0", "-0"),
            ("1e-7", "1e-07"),
            ("3.0e10", "30000000000"),
            ("[]", "[]"),
            (r#"{"a":[],"b":{}}"#, "{\n  \"a\": [],\n  \"b\": {}\n}"),
            (
                r#"[1,{"d":"é\u007f\n"}]"#,
                "[\n  1,\n  {\n    \"d\": \"é\\u007f\\n\"\n  }\n]",
            ),
        ] {
            assert_eq!(printed(json), text, "{json}");
        }
    }
}
