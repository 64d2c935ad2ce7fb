//! JUnit XML, as far as test results need it. Many test tools can write it.

use super::text::location;
use crate::event::{TestFailure, TestReport};

/// Parses text that contains a `<testsuite>`.
pub(super) fn parse(text: &str) -> Option<TestReport> {
    if !text.contains("<testsuite") {
        return None;
    }
    let mut report = TestReport::default();
    for part in text.split("<testcase").skip(1) {
        let Some((attributes, rest)) = opening_tag(part) else {
            continue;
        };
        let body = match attributes.ends_with('/') {
            true => "",
            false => rest.split("</testcase>").next().unwrap_or_default(),
        };
        let failed = element(body, "failure").or_else(|| element(body, "error"));
        match failed {
            Some((tag, content)) => {
                report.failed += 1;
                report.failures.push(failure(attributes, tag, &content));
            }
            None if body.contains("<skipped") => report.skipped += 1,
            None => report.passed += 1,
        }
    }
    Some(report)
}

/// Splits a text after the `>` that ends a tag. Attribute values may contain `>`.
fn opening_tag(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            (None, '>') => return Some((text[..index].trim_end(), &text[index + 1..])),
            (None | Some(_), _) => {}
        }
    }
    None
}

/// The attributes and the text of the first element with this name.
fn element<'a>(body: &'a str, name: &str) -> Option<(&'a str, String)> {
    let start = body.find(&format!("<{name}"))?;
    let (attributes, rest) = opening_tag(&body[start + name.len() + 1..])?;
    let content = match attributes.ends_with('/') {
        true => "",
        false => rest.split(&format!("</{name}>")).next().unwrap_or_default(),
    };
    let content = content.trim();
    let content = match content
        .strip_prefix("<![CDATA[")
        .and_then(|data| data.strip_suffix("]]>"))
    {
        Some(data) => data.to_owned(),
        None => unescaped(content),
    };
    Some((attributes, content))
}

fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    while let Some((before, after)) = rest.split_once(&format!("{name}=")) {
        let quote = after.chars().next().filter(|quote| ['"', '\''].contains(quote));
        let value = quote.and_then(|quote| after[1..].split(quote).next());
        if before.ends_with(char::is_whitespace) || before.is_empty() {
            return value.map(unescaped);
        }
        rest = after;
    }
    None
}

fn failure(test: &str, tag: &str, content: &str) -> TestFailure {
    let message = attribute(tag, "message").filter(|message| !message.trim().is_empty());
    let named = attribute(test, "file").map(|file| {
        let line = attribute(test, "line").and_then(|line| line.parse().ok());
        (file, line)
    });
    // Otherwise the first location in the text of the error is used.
    let found = || {
        let words = content.split([' ', '(', ')', '\n']);
        let place = words
            .filter(|word| !word.contains("node_modules"))
            .find_map(|word| location(word).filter(|(file, _)| file.contains('.')));
        place.map(|(file, line)| (file, Some(line)))
    };
    let (file, line) = named.or_else(found).unzip();
    let class = attribute(test, "classname").unwrap_or_default();
    let name = attribute(test, "name").unwrap_or_default();
    let (class, name) = (class.trim(), name.trim());
    TestFailure {
        name: Some(match class.is_empty() || name.starts_with(class) {
            true => name.to_owned(),
            false => format!("{class}.{name}"),
        }),
        file,
        line: line.flatten(),
        message: message.unwrap_or_else(|| content.to_owned()),
    }
}

fn unescaped(text: &str) -> String {
    const ENTITIES: [(&str, &str); 7] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&#10;", "\n"),
        // Last, so that `&amp;lt;` becomes `&lt;`.
        ("&amp;", "&"),
    ];
    let replace = |text: String, (entity, character): &(&str, &str)| text.replace(entity, character);
    ENTITIES.iter().fold(text.to_owned(), replace)
}
