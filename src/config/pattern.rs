//! Path patterns (globs): `*` and `?` match within one directory, `**` as a whole path component matches any number
//! of directories or everything below; `[a-z]`, `[!a]` and `{this,that}` are supported; `\` escapes the next
//! character.
//!
//! A pattern is compiled to an NFA whose states are simulated in parallel, so that matching takes at most time
//! proportional to the length of the pattern times the length of the path.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// A compiled path pattern.
#[derive(Debug, Clone)]
pub struct PathPattern {
    steps: Vec<Step>,
}

/// One state of the NFA.
#[derive(Debug, Clone)]
enum Step {
    /// Consumes one character of the class and continues with the next step.
    Match(CharClass),
    /// Continues with both steps.
    Split(usize, usize),
}

#[derive(Debug, Clone)]
enum CharClass {
    Any,
    AnyExceptSlash,
    One(char),
    In(Vec<RangeInclusive<char>>),
    NotIn(Vec<RangeInclusive<char>>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("unclosed character class; missing ']'")]
    UnclosedClass,
    #[error("empty character range '{0}'-'{1}'")]
    EmptyRange(char, char),
    #[error("unclosed group; missing '}}' (write '\\{{' for a literal '{{')")]
    UnclosedGroup,
    #[error("unopened group; missing '{{' (write '\\}}' for a literal '}}')")]
    UnopenedGroup,
    #[error("trailing '\\'")]
    TrailingBackslash,
}

impl PathPattern {
    pub fn matches(&self, path: &str) -> bool {
        let mut states = self.closure(std::iter::once(0));
        for c in path.chars() {
            let matches =
                |at: &usize| matches!(self.steps.get(*at), Some(Step::Match(class)) if class.contains(c));
            states = self.closure(states.into_iter().filter(matches).map(|at| at + 1));
        }
        states.contains(&self.steps.len())
    }

    /// The `Match` steps, and the end, that are reachable from these steps without consuming a character.
    fn closure(&self, from: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut seen = vec![false; self.steps.len() + 1];
        let mut pending: Vec<usize> = from.collect();
        let mut reached = Vec::new();
        while let Some(at) = pending.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match self.steps.get(at) {
                Some(Step::Split(one, other)) => pending.extend([*one, *other]),
                Some(Step::Match(_)) | None => reached.push(at),
            }
        }
        reached
    }
}

impl CharClass {
    fn contains(&self, c: char) -> bool {
        let within = |ranges: &[RangeInclusive<char>]| ranges.iter().any(|range| range.contains(&c));
        match self {
            Self::Any => true,
            Self::AnyExceptSlash => c != '/',
            Self::One(expected) => c == *expected,
            Self::In(ranges) => c != '/' && within(ranges),
            Self::NotIn(ranges) => c != '/' && !within(ranges),
        }
    }
}

impl FromStr for PathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let mut parser = PatternParser {
            rest: text,
            steps: Vec::new(),
            groups: Vec::new(),
        };
        parser.parse()?;
        Ok(Self { steps: parser.steps })
    }
}

struct PatternParser<'a> {
    rest: &'a str,
    steps: Vec<Step>,
    /// The open groups, outermost first.
    groups: Vec<Group>,
}

struct Group {
    /// The split step at the start of the current alternative.
    split: usize,
    /// The last steps of the previous alternatives.
    ends: Vec<usize>,
}

impl PatternParser<'_> {
    fn parse(&mut self) -> Result<(), PatternError> {
        let mut previous = '/';
        while let Some(c) = self.next() {
            match c {
                '*' if self.is_double_star(previous) => {
                    self.double_star();
                    continue;
                }
                '*' => self.repeat(CharClass::AnyExceptSlash),
                '?' => self.steps.push(Step::Match(CharClass::AnyExceptSlash)),
                '[' => self.class()?,
                '{' => {
                    let split = self.push_split();
                    self.groups.push(Group {
                        split,
                        ends: Vec::new(),
                    });
                }
                ',' if !self.groups.is_empty() => self.next_alternative(),
                '}' => self.close_group()?,
                '\\' => {
                    let escaped = self.next().ok_or(PatternError::TrailingBackslash)?;
                    self.steps.push(Step::Match(CharClass::One(escaped)));
                }
                literal => self.steps.push(Step::Match(CharClass::One(literal))),
            }
            // The start of an alternative can be the start of a path component.
            if !matches!(c, '{' | ',') || self.groups.is_empty() {
                previous = c;
            }
        }
        match self.groups.is_empty() {
            true => Ok(()),
            false => Err(PatternError::UnclosedGroup),
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    /// True if the `*` starts a `**` that is a whole path component.
    fn is_double_star(&self, previous: char) -> bool {
        let Some(after) = self.rest.strip_prefix('*').filter(|_| previous == '/') else {
            return false;
        };
        let in_group = !self.groups.is_empty();
        match after.chars().next() {
            None | Some('/') => true,
            Some(',' | '}') => in_group,
            Some(_) => false,
        }
    }

    /// Parses the rest of `**` and the slash after it. `**/` matches any number of directories, a final `**`
    /// everything below.
    fn double_star(&mut self) {
        self.next();
        if !self.rest.starts_with('/') {
            return self.repeat(CharClass::Any);
        }
        let split = self.push_split();
        self.repeat(CharClass::Any);
        self.next();
        self.steps.push(Step::Match(CharClass::One('/')));
        self.steps[split] = Step::Split(split + 1, self.steps.len());
    }

    /// Matches any number of characters of the class.
    fn repeat(&mut self, class: CharClass) {
        let start = self.steps.len();
        self.steps.push(Step::Split(start + 1, start + 3));
        self.steps.push(Step::Match(class));
        self.steps.push(Step::Split(start, start));
    }

    /// Adds a split whose targets are set later. Until then it continues with the next step.
    fn push_split(&mut self) -> usize {
        let at = self.steps.len();
        self.steps.push(Step::Split(at + 1, at + 1));
        at
    }

    /// Ends the current alternative and starts the next one.
    fn next_alternative(&mut self) {
        let end = self.push_split();
        let split = self.push_split();
        if let Some(group) = self.groups.last_mut() {
            group.ends.push(end);
            self.steps[group.split] = Step::Split(group.split + 1, split);
            group.split = split;
        }
    }

    fn close_group(&mut self) -> Result<(), PatternError> {
        let group = self.groups.pop().ok_or(PatternError::UnopenedGroup)?;
        let after = self.steps.len();
        for end in group.ends {
            self.steps[end] = Step::Split(after, after);
        }
        Ok(())
    }

    /// Parses a character class. A leading `]` and a leading or trailing `-` are literal.
    fn class(&mut self) -> Result<(), PatternError> {
        let negated = self.rest.starts_with(['!', '^']);
        if negated {
            self.next();
        }
        let mut ranges = Vec::new();
        loop {
            let first = self.next().ok_or(PatternError::UnclosedClass)?;
            if first == ']' && !ranges.is_empty() {
                break;
            }
            let mut ahead = self.rest.chars();
            let last = match (ahead.next(), ahead.next()) {
                (Some('-'), Some(last)) if last != ']' => {
                    self.rest = ahead.as_str();
                    last
                }
                _ => first,
            };
            if last < first {
                return Err(PatternError::EmptyRange(first, last));
            }
            ranges.push(first..=last);
        }
        self.steps.push(Step::Match(match negated {
            true => CharClass::NotIn(ranges),
            false => CharClass::In(ranges),
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> PathPattern {
        text.parse().unwrap()
    }

    #[test]
    fn patterns_match_the_documented_paths() {
        for (text, matching, other) in [
            ("a.txt", "a.txt", "a-txt"),
            ("*.md", "README.md", "docs/README.md"),
            ("*.md", ".md", "README.mdx"),
            ("a?c", "abc", "a/c"),
            ("a?c", "aéc", "ac"),
            ("src/*", "src/a", "src/a/b"),
            ("src/**", "src/a", "src"),
            ("src/**", "src/a/b", "source/a"),
            ("**/a", "a", "ba"),
            ("**/a", "x/y/a", "x/a/b"),
            ("x/**/a", "x/a", "xa"),
            ("x/**/a", "x/y/z/a", "x/ya"),
            ("x/**/*.rs", "x/b.rs", "b.rs"),
            ("**/**/a", "a", "xa"),
            ("a**b", "axxb", "ax/xb"),
            ("[a-cx]", "b", "d"),
            ("[!a-c]", "d", "a"),
            ("[!a]", "b", "/"),
            ("[]-]", "]", "a"),
            ("[a-]", "-", "b"),
            ("{a,b*}/c", "bx/c", "c/c"),
            ("{src/**,docs/*.{md,txt}}", "docs/a.txt", "docs/x/a.txt"),
            ("{src/**,docs/*.{md,txt}}", "src/x/y", "docs/a.rs"),
            ("x/{**/a,b}", "x/y/a", "x/y/b"),
            ("a{,.md}", "a", "a.m"),
            ("a,b", "a,b", "a"),
            ("\\*\\{", "*{", "a{"),
        ] {
            let pattern = pattern(text);
            assert!(pattern.matches(matching), "{text} matches {matching}");
            assert!(!pattern.matches(other), "{text} does not match {other}");
        }
        assert!(pattern("**").matches("a") && pattern("**").matches("a/b"));
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        for (text, error) in [
            ("a[b", PatternError::UnclosedClass),
            ("[]", PatternError::UnclosedClass),
            ("[z-a]", PatternError::EmptyRange('z', 'a')),
            ("{a,b", PatternError::UnclosedGroup),
            ("a}", PatternError::UnopenedGroup),
            ("a\\", PatternError::TrailingBackslash),
        ] {
            assert_eq!(text.parse::<PathPattern>().unwrap_err(), error, "{text}");
        }
    }

    proptest! {
        #[test]
        fn matching_is_fast_and_never_panics(text in "[ab*?/{},\\[\\]!\\\\-]{0,200}", path in "[ab/]{0,200}") {
            if let Ok(pattern) = text.parse::<PathPattern>() {
                pattern.matches(&path);
            }
        }

        #[test]
        fn path_matches_itself(path in "[a-z./]{0,40}") {
            prop_assert!(pattern(&path).matches(&path));
        }
    }
}
