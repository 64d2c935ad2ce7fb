//! Finds and parses the answer of a reviewer in its final message.

use serde_json::Value;

use crate::event::{ReportedFinding, ReviewAnswer};

/// Only the end of a longer message is searched.
const MAX_BYTES: usize = 1 << 20;
/// How many opening braces are tried.
const MAX_TRIES: usize = 10_000;
/// Further findings are a sign of runaway output.
const MAX_FINDINGS: usize = 200;
/// Longer texts are cut.
const MAX_CLAIM: usize = 4000;
const MAX_NAME: usize = 200;

/// Returns the last JSON object in a text that has the key `findings`, or why there is none. The message of an error is
/// part of the next prompt.
pub(crate) fn parse(text: &str) -> Result<ReviewAnswer, String> {
    let mut from = text.len().saturating_sub(MAX_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let Some(value) = last_object(&text[from..]) else {
        return Err(match text.trim().is_empty() {
            true => "the final message is empty".to_owned(),
            false => "the final message contains no JSON object with the key `findings`".to_owned(),
        });
    };
    let answer: ReviewAnswer = serde_json::from_value(value)
        .map_err(|error| format!("the answer does not conform to the schema: {error}"))?;
    check(answer)
}

fn last_object(text: &str) -> Option<Value> {
    let mut found = None;
    let mut rest = text;
    for _ in 0..MAX_TRIES {
        let Some(start) = rest.find('{') else {
            break;
        };
        let candidate = &rest[start..];
        // Most braces of code are followed by something else.
        if !candidate[1..].trim_start().starts_with(['"', '}']) {
            rest = &candidate[1..];
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(candidate).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                let end = values.byte_offset();
                found = match value.get("findings") {
                    Some(_) => Some(value),
                    None => found,
                };
                rest = &candidate[end..];
            }
            Some(Err(_)) | None => rest = &candidate[1..],
        }
    }
    found
}

fn check(mut answer: ReviewAnswer) -> Result<ReviewAnswer, String> {
    if answer.findings.len() > MAX_FINDINGS {
        let number = answer.findings.len();
        return Err(format!(
            "the answer has {number} findings; report the {MAX_FINDINGS} most serious ones at most"
        ));
    }
    for (index, finding) in answer.findings.iter_mut().enumerate() {
        if finding.claim.trim().is_empty() {
            return Err(format!("findings[{index}].claim is empty"));
        }
        if finding.category.trim().is_empty() {
            return Err(format!("findings[{index}].category is empty"));
        }
        normalize(finding);
    }
    Ok(answer)
}

fn normalize(finding: &mut ReportedFinding) {
    finding.claim = cut(finding.claim.trim(), MAX_CLAIM);
    finding.category = cut(&one_line(&finding.category).to_lowercase(), MAX_NAME);
    finding.check = finding
        .check
        .as_deref()
        .and_then(|check| non_empty(check, MAX_CLAIM));
    finding.id = finding.id.as_deref().and_then(|id| non_empty(id, MAX_NAME));
    finding.contradicts = finding
        .contradicts
        .as_deref()
        .and_then(|id| non_empty(id, MAX_NAME));
    finding.line = finding.line.filter(|line| *line > 0);
    finding.file = finding.file.as_deref().and_then(|file| {
        let file = file.trim().trim_start_matches("./");
        non_empty(file, 4 * MAX_NAME)
    });
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn non_empty(text: &str, max: usize) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| cut(text, max))
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Severity;

    #[test]
    fn last_object_with_findings_counts() {
        let text = "First I thought {\"findings\": [{}]} but then:\n```json\n{\"findings\": [{\"file\": \"./a.rs\", \"line\": \
                    0, \"category\": \"Bug  Risk\", \"severity\": \"high\", \"claim\": \" x \"}], \"resolved\": [\"F1\"], \
                    \"note\": {\"a\": 1}}\n```\nDone {}.";
        let answer = parse(text).unwrap();
        let finding = &answer.findings[0];
        assert_eq!(
            (
                finding.file.as_deref(),
                finding.line,
                &*finding.category,
                finding.severity,
                &*finding.claim
            ),
            (Some("a.rs"), None, "bug risk", Severity::High, "x")
        );
        assert_eq!(answer.resolved, ["F1"]);
        assert_eq!(parse("{\"findings\": []}").unwrap(), ReviewAnswer::default());
    }

    #[test]
    fn anything_else_is_not_an_answer() {
        for (text, problem) in [
            ("", "is empty"),
            ("Looks good to me!", "no JSON object"),
            ("{}", "no JSON object"),
            ("[]", "no JSON object"),
            ("{\"findings\": []", "no JSON object"),
            ("{\"findings\": null}", "schema"),
            ("{\"findings\": [{\"severity\": \"high\"}]}", "schema"),
            (
                "{\"findings\": [{\"category\": \"x\", \"severity\": \"fatal\", \"claim\": \"y\"}]}",
                "unknown variant `fatal`",
            ),
            (
                "{\"findings\": [{\"category\": \"x\", \"severity\": \"low\", \"claim\": \" \"}]}",
                "claim is empty",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
        // Deeply nested or unbalanced text takes no time.
        assert!(parse(&"{".repeat(1 << 20)).is_err());
    }
}
