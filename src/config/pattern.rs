//! Patterns of paths, as shells have them: `*` and `?` stay within one directory, `**` as a whole part of a path stands for
//! any directories, or everything below; `[a-z]`, `[!a]`, `{this,that}`; `\` takes its meaning from the sign after it. Pure.
//!
//! A pattern becomes a list of steps, and a path is held against all ways through them at once, so that no pattern takes
//! longer than its length times that of the path.

use std::ops::RangeInclusive;
use std::str::FromStr;

#[derive(Debug, Clone)]
pub struct PathPattern {
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    /// Reads one of these signs; the next step follows.
    Read(Signs),
    /// Goes on at either place.
    Fork(usize, usize),
}

#[derive(Debug, Clone)]
enum Signs {
    All,
    AllButSlash,
    One(char),
    Among(Vec<RangeInclusive<char>>),
    NotAmong(Vec<RangeInclusive<char>>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("unclosed character class; missing ']'")]
    UnclosedClass,
    #[error("a range from '{0}' to '{1}' is empty")]
    EmptyRange(char, char),
    #[error("unclosed group; missing '}}' (a plain '{{' is written '\\{{')")]
    UnclosedGroup,
    #[error("unopened group; missing '{{' (a plain '}}' is written '\\}}')")]
    UnopenedGroup,
    #[error("a '\\' at the end")]
    DanglingEscape,
}

impl PathPattern {
    pub fn matches(&self, path: &str) -> bool {
        let mut here = self.reached(std::iter::once(0));
        for sign in path.chars() {
            let reads =
                |at: &usize| matches!(self.steps.get(*at), Some(Step::Read(signs)) if signs.have(sign));
            here = self.reached(here.into_iter().filter(reads).map(|at| at + 1));
        }
        here.contains(&self.steps.len())
    }

    /// The steps that wait for a sign, from these on, and the end.
    fn reached(&self, from: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut seen = vec![false; self.steps.len() + 1];
        let mut open: Vec<usize> = from.collect();
        let mut reached = Vec::new();
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match self.steps.get(at) {
                Some(Step::Fork(one, other)) => open.extend([*one, *other]),
                Some(Step::Read(_)) | None => reached.push(at),
            }
        }
        reached
    }
}

impl Signs {
    fn have(&self, sign: char) -> bool {
        let within = |ranges: &[RangeInclusive<char>]| ranges.iter().any(|range| range.contains(&sign));
        match self {
            Self::All => true,
            Self::AllButSlash => sign != '/',
            Self::One(wanted) => sign == *wanted,
            Self::Among(ranges) => sign != '/' && within(ranges),
            Self::NotAmong(ranges) => sign != '/' && !within(ranges),
        }
    }
}

impl FromStr for PathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let mut reader = Reader {
            rest: text,
            steps: Vec::new(),
            groups: Vec::new(),
        };
        reader.read()?;
        Ok(Self { steps: reader.steps })
    }
}

struct Reader<'a> {
    rest: &'a str,
    steps: Vec<Step>,
    /// The groups that are open, from the outermost on.
    groups: Vec<Group>,
}

struct Group {
    /// Where the present alternative begins.
    fork: usize,
    /// Where those before it end.
    ends: Vec<usize>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), PatternError> {
        let mut before = '/';
        while let Some(sign) = self.next() {
            match sign {
                '*' if self.is_whole_part(before) => {
                    self.directories();
                    continue;
                }
                '*' => self.any(Signs::AllButSlash),
                '?' => self.steps.push(Step::Read(Signs::AllButSlash)),
                '[' => self.class()?,
                '{' => {
                    let fork = self.fork();
                    self.groups.push(Group {
                        fork,
                        ends: Vec::new(),
                    });
                }
                ',' if !self.groups.is_empty() => self.alternative(),
                '}' => self.close()?,
                '\\' => {
                    let meant = self.next().ok_or(PatternError::DanglingEscape)?;
                    self.steps.push(Step::Read(Signs::One(meant)));
                }
                plain => self.steps.push(Step::Read(Signs::One(plain))),
            }
            // The beginning of an alternative may be that of a part.
            if !matches!(sign, '{' | ',') || self.groups.is_empty() {
                before = sign;
            }
        }
        match self.groups.is_empty() {
            true => Ok(()),
            false => Err(PatternError::UnclosedGroup),
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut signs = self.rest.chars();
        let sign = signs.next();
        self.rest = signs.as_str();
        sign
    }

    /// Whether a `*` is the first of a `**` with nothing else beside it.
    fn is_whole_part(&self, before: char) -> bool {
        let Some(after) = self.rest.strip_prefix('*').filter(|_| before == '/') else {
            return false;
        };
        let in_group = !self.groups.is_empty();
        match after.chars().next() {
            None | Some('/') => true,
            Some(',' | '}') => in_group,
            Some(_) => false,
        }
    }

    /// The rest of `**`, and the slash after it: any directories, also none; at the end, all that is below.
    fn directories(&mut self) {
        self.next();
        if !self.rest.starts_with('/') {
            return self.any(Signs::All);
        }
        let fork = self.fork();
        self.any(Signs::All);
        self.next();
        self.steps.push(Step::Read(Signs::One('/')));
        self.steps[fork] = Step::Fork(fork + 1, self.steps.len());
    }

    /// Any number of these signs.
    fn any(&mut self, signs: Signs) {
        let start = self.steps.len();
        self.steps.push(Step::Fork(start + 1, start + 3));
        self.steps.push(Step::Read(signs));
        self.steps.push(Step::Fork(start, start));
    }

    /// A fork that goes to the next step alone, until it is known where else.
    fn fork(&mut self) -> usize {
        let at = self.steps.len();
        self.steps.push(Step::Fork(at + 1, at + 1));
        at
    }

    /// The present alternative ends, another one begins.
    fn alternative(&mut self) {
        let end = self.fork();
        let fork = self.fork();
        if let Some(group) = self.groups.last_mut() {
            group.ends.push(end);
            self.steps[group.fork] = Step::Fork(group.fork + 1, fork);
            group.fork = fork;
        }
    }

    fn close(&mut self) -> Result<(), PatternError> {
        let group = self.groups.pop().ok_or(PatternError::UnopenedGroup)?;
        let after = self.steps.len();
        for end in group.ends {
            self.steps[end] = Step::Fork(after, after);
        }
        Ok(())
    }

    /// What stands between brackets. A `]` at the beginning is meant as it stands, a `-` there or at the end too.
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
        self.steps.push(Step::Read(match negated {
            true => Signs::NotAmong(ranges),
            false => Signs::Among(ranges),
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
    fn what_a_pattern_allows_and_what_it_does_not() {
        for (text, allowed, other) in [
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
            assert!(pattern.matches(allowed), "{text} allows {allowed}");
            assert!(!pattern.matches(other), "{text} does not allow {other}");
        }
        assert!(pattern("**").matches("a") && pattern("**").matches("a/b"));
    }

    #[test]
    fn what_is_no_pattern_is_said() {
        for (text, error) in [
            ("a[b", PatternError::UnclosedClass),
            ("[]", PatternError::UnclosedClass),
            ("[z-a]", PatternError::EmptyRange('z', 'a')),
            ("{a,b", PatternError::UnclosedGroup),
            ("a}", PatternError::UnopenedGroup),
            ("a\\", PatternError::DanglingEscape),
        ] {
            assert_eq!(text.parse::<PathPattern>().unwrap_err(), error, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_takes_long_or_panics(text in "[ab*?/{},\\[\\]!\\\\-]{0,200}", path in "[ab/]{0,200}") {
            if let Ok(pattern) = text.parse::<PathPattern>() {
                pattern.matches(&path);
            }
        }

        #[test]
        fn a_path_allows_itself(path in "[a-z./]{0,40}") {
            prop_assert!(pattern(&path).matches(&path));
        }
    }
}
