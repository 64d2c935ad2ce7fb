//! Decides whether two tasks may change the same files, from their `touches` patterns.

/// Whether a file can match a pattern of each list. A task without patterns can be run beside any other.
pub(super) fn overlap(one: &[String], other: &[String]) -> bool {
    one.iter()
        .any(|one| other.iter().any(|other| patterns_overlap(one, other)))
}

/// If in doubt, patterns overlap: the cost is time, and not a conflict.
fn patterns_overlap(one: &str, other: &str) -> bool {
    let parts = |pattern: &str| -> Vec<String> {
        let parts = pattern.split('/').filter(|part| !part.is_empty() && *part != ".");
        parts.map(str::to_owned).collect()
    };
    let (one, other) = (parts(one), parts(other));
    for (one, other) in one.iter().zip(&other) {
        if one == "**" || other == "**" {
            return true;
        }
        if !parts_overlap(one, other) {
            return false;
        }
    }
    // The shorter pattern names a directory above the longer one, or they are equal.
    true
}

fn parts_overlap(one: &str, other: &str) -> bool {
    let wildcards: &[char] = &['*', '?', '[', '{'];
    let prefix = |part: &str| part.split(wildcards).next().unwrap_or_default().to_owned();
    let suffix = |part: &str| {
        part.rsplit(['*', '?', ']', '}'])
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    match (one.contains(wildcards), other.contains(wildcards)) {
        (false, false) => one == other,
        (true, false) => other.starts_with(&prefix(one)) && other.ends_with(&suffix(one)),
        (false, true) => one.starts_with(&prefix(other)) && one.ends_with(&suffix(other)),
        (true, true) => {
            let starts = |a: String, b: String| a.starts_with(&b) || b.starts_with(&a);
            let ends = |a: String, b: String| a.ends_with(&b) || b.ends_with(&a);
            starts(prefix(one), prefix(other)) && ends(suffix(one), suffix(other))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_overlap_if_a_file_can_match_both() {
        let yes = [
            ("src/**", "src/a.rs"),
            ("src", "src/a/b.rs"),
            ("**/*.rs", "docs/a.md"),
            ("src/*.rs", "src/a*"),
            ("a.rs", "./a.rs"),
            ("src/{a,b}.rs", "src/a.rs"),
        ];
        let no = [
            ("src/**", "docs/**"),
            ("src/*.rs", "src/*.md"),
            ("src/a.rs", "src/b.rs"),
            ("src/a*/x", "src/b*/x"),
            ("src/*.rs", "src/a.md"),
        ];
        for (one, other) in yes {
            assert!(
                patterns_overlap(one, other) && patterns_overlap(other, one),
                "{one} {other}"
            );
        }
        for (one, other) in no {
            assert!(
                !patterns_overlap(one, other) && !patterns_overlap(other, one),
                "{one} {other}"
            );
        }
        assert!(!overlap(&[], &["src".into()]));
    }
}
