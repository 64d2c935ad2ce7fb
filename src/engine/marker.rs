//! Finds markers in the assistant's text: completion markers and failure markers.

use std::cell::LazyCell;

use crate::policy::MarkerPlacement;

use aho_corasick::AhoCorasick;

use super::{status_block, topic};

/// The default completion markers.
const COMPLETION: &[&str] = &[
    "LOOP_COMPLETE",
    "<promise>COMPLETE</promise>",
    "<<<RALPHEX:COMPLETED>>>",
    "<<<RALPHEX:ALL_TASKS_DONE>>>",
];

/// The failure markers.
const FAILURE: &[&str] = &["<<<RALPHEX:FAILED>>>", "<<<RALPHEX:TASK_FAILED>>>"];

/// How many of the last non-empty lines count if the output has no messages.
pub(crate) const TAIL_LINES: usize = 20;

/// Which markers count, and where.
#[derive(Debug, Clone)]
pub struct Markers {
    completion: Vec<String>,
    placement: MarkerPlacement,
    status_block: StatusBlock,
    /// Searches for all markers at once; nearly every text has none.
    finder: AhoCorasick,
}

/// Whether a `RALPH_STATUS` block may claim completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StatusBlock {
    #[default]
    Ignored,
    Claims,
}

/// What the markers in a text claim.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum Claim {
    None,
    Done {
        marker: String,
    },
    Failed {
        marker: String,
    },
    /// A marker was found but does not count.
    Ignored {
        marker: String,
        reason: &'static str,
    },
}

pub(crate) const EARLIER_MESSAGE: &str = "it was in an earlier message that was followed by more work";
const NOT_ALONE: &str = "it must be alone on its own line";
const IN_FENCE: &str = "it was inside a code fence";
const IN_EVENT: &str = "it was inside an event payload";
const ECHOED: &str = "it only repeated the prompt";
const TOO_EARLY: &str = "it was followed by more than 20 lines of other output";

impl Markers {
    /// An empty list means the default markers.
    pub fn new(completion: Vec<String>, placement: MarkerPlacement) -> Self {
        let completion = if completion.is_empty() {
            COMPLETION.iter().map(ToString::to_string).collect()
        } else {
            completion
        };
        let markers = completion.iter().map(String::as_str);
        let finder = AhoCorasick::new(markers.chain(FAILURE.iter().copied()))
            .expect("markers have far fewer letters than an automaton may have states");
        Self {
            completion,
            placement,
            status_block: StatusBlock::Ignored,
            finder,
        }
    }

    /// Also accepts the status block of other tools as a claim.
    #[must_use]
    pub fn with_status_block(mut self, status_block: StatusBlock) -> Self {
        self.status_block = status_block;
        self
    }

    /// The claim of the last status block in a text.
    pub(crate) fn claim_in_status_block(&self, text: &str) -> Claim {
        match self.status_block {
            StatusBlock::Claims if status_block::signals_exit(text) => Claim::Done {
                marker: status_block::MARKER.to_owned(),
            },
            StatusBlock::Claims | StatusBlock::Ignored => Claim::None,
        }
    }

    /// The marker that prompts ask for.
    pub(crate) fn preferred(&self) -> &str {
        self.completion.first().map_or("LOOP_COMPLETE", String::as_str)
    }

    /// Whether a prompt already mentions a completion marker.
    pub(crate) fn mentioned_in(&self, prompt: &str) -> bool {
        self.completion
            .iter()
            .any(|marker| prompt.contains(marker.as_str()))
    }

    pub(crate) fn is_completion(&self, text: &str) -> bool {
        self.completion.iter().any(|marker| marker == text)
    }

    pub(crate) fn counts_anywhere(&self) -> bool {
        self.placement == MarkerPlacement::Anywhere
    }

    /// The claim in one whole message.
    pub(crate) fn claim_in_message(&self, text: &str) -> Claim {
        if !self.any_in(text) {
            return Claim::None;
        }
        if self.counts_anywhere() {
            return self.claim_anywhere(text);
        }
        let outside = topic::without_events(text);
        let lines: Vec<&str> = outside.lines().collect();
        let fenced = fenced_lines(&lines, UnclosedFence::ExtendsToEnd);
        let last = lines.iter().rposition(|line| !line.trim().is_empty());
        let claims = lines.iter().enumerate().filter(|(index, _)| !fenced[*index]);
        let found = claims.filter_map(|(index, line)| self.on_line(line, Some(index) == last));
        self.strongest(found)
            .unwrap_or_else(|| self.explain_ignored(text, &outside, &lines, &fenced))
    }

    /// The claim in the last non-empty lines of an output without messages. Lines that echo the prompt do not count.
    pub(crate) fn claim_in_tail(&self, tail: &OutputTail, prompt: &str) -> Claim {
        if self.counts_anywhere() {
            return tail
                .anywhere
                .clone()
                .map_or(Claim::None, |marker| self.claim(&marker));
        }
        let lines: Vec<&str> = tail.lines.iter().map(String::as_str).collect();
        let fenced = fenced_lines(&lines, UnclosedFence::Ignored);
        // Built only if a marker is found: most output has none, and a prompt may be long.
        let echoed = LazyCell::new(|| PromptEcho::new(prompt));
        let first = lines.len().saturating_sub(TAIL_LINES);
        let mut reason = None;
        let mut found = Vec::new();
        for (index, line) in lines.iter().enumerate().skip(first) {
            let Some(marker) = self.on_line(line, index + 1 == lines.len()) else {
                continue;
            };
            if fenced[index] {
                reason = Some((marker, IN_FENCE));
            } else if echoed.covers(&lines, index) {
                reason = Some((marker, ECHOED));
            } else {
                found.push(marker);
            }
        }
        let seen = || tail.anywhere.clone().map(|marker| (marker, NOT_ALONE));
        let too_early = || tail.too_early.clone().map(|marker| (marker, TOO_EARLY));
        self.strongest(found.into_iter())
            .unwrap_or_else(|| match reason.or_else(too_early).or_else(seen) {
                Some((marker, reason)) => Claim::Ignored { marker, reason },
                None => Claim::None,
            })
    }

    /// The marker that is alone on this line or, if it is bracketed, ends the last line of the text.
    fn on_line(&self, line: &str, is_last: bool) -> Option<String> {
        let bare = strip_decoration(line);
        let ends = |marker: &str| is_last && is_bracketed(marker) && bare.ends_with(marker);
        self.all()
            .find(|marker| bare == *marker || ends(marker))
            .map(str::to_owned)
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.completion
            .iter()
            .map(String::as_str)
            .chain(FAILURE.iter().copied())
    }

    fn any_in(&self, text: &str) -> bool {
        self.finder.is_match(text)
    }

    fn claim_anywhere(&self, text: &str) -> Claim {
        self.strongest(
            self.all()
                .filter(|marker| text.contains(marker))
                .map(str::to_owned),
        )
        .unwrap_or(Claim::None)
    }

    /// A failure marker overrides a completion marker in the same text.
    fn strongest(&self, markers: impl Iterator<Item = String>) -> Option<Claim> {
        let mut done = None;
        for marker in markers {
            match self.claim(&marker) {
                Claim::Done { marker } => done = Some(Claim::Done { marker }),
                failed => return Some(failed),
            }
        }
        done
    }

    fn claim(&self, marker: &str) -> Claim {
        let marker = marker.to_owned();
        if self.completion.contains(&marker) {
            Claim::Done { marker }
        } else {
            Claim::Failed { marker }
        }
    }

    fn explain_ignored(&self, text: &str, outside: &str, lines: &[&str], fenced: &[bool]) -> Claim {
        let Some(marker) = self.all().find(|marker| text.contains(marker)) else {
            return Claim::None;
        };
        let in_prose = |(line, fenced): (&&str, &bool)| !fenced && line.contains(marker);
        let reason = if !outside.contains(marker) {
            IN_EVENT
        } else if lines.iter().zip(fenced).any(in_prose) {
            NOT_ALONE
        } else {
            IN_FENCE
        };
        Claim::Ignored {
            marker: marker.to_owned(),
            reason,
        }
    }
}

/// The last non-empty lines of an output without messages, and the markers before them.
#[derive(Debug, Default)]
pub(crate) struct OutputTail {
    /// One more line than counts, so that the predecessor of the first one is known.
    lines: std::collections::VecDeque<String>,
    /// A marker that was found anywhere in the output.
    anywhere: Option<String>,
    /// A marker that was alone on a line before the tail.
    too_early: Option<String>,
}

/// Longer lines cannot be a lone marker; only their end is stored, where a bracketed marker may be.
const MAX_TAIL_LINE_BYTES: usize = 4096;

impl OutputTail {
    pub(crate) fn push(&mut self, line: &str, markers: &Markers) {
        if line.trim().is_empty() {
            return;
        }
        if markers.any_in(line) {
            let found = markers.all().find(|marker| line.contains(marker));
            self.anywhere = found.map(str::to_owned);
        }
        let mut stored = self.reuse_oldest_line(markers);
        stored.push_str(tail_of(line, MAX_TAIL_LINE_BYTES));
        self.lines.push_back(stored);
    }

    /// Removes the oldest line if the tail is full, notes its marker and returns its cleared buffer.
    fn reuse_oldest_line(&mut self, markers: &Markers) -> String {
        if self.lines.len() <= TAIL_LINES {
            return String::new();
        }
        let mut oldest = self.lines.pop_front().unwrap_or_default();
        if self.anywhere.is_some()
            && let Some(marker) = markers.on_line(&oldest, false)
        {
            self.too_early = Some(marker);
        }
        oldest.clear();
        oldest
    }
}

/// The last `bytes` bytes of a text, from a character boundary on.
fn tail_of(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// Detects output lines that repeat the prompt.
struct PromptEcho<'a> {
    prompt: Vec<&'a str>,
}

impl<'a> PromptEcho<'a> {
    fn new(prompt: &'a str) -> Self {
        Self {
            prompt: prompt
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect(),
        }
    }

    /// A line is an echo if the line before it (for the prompt's first line: after it) is from the prompt as well. The
    /// marker line alone proves nothing, because the prompt may show it on its own line, just as the agent prints it.
    fn covers(&self, lines: &[&str], index: usize) -> bool {
        let at = |index: Option<usize>| index.and_then(|index| lines.get(index)).map(|line| line.trim());
        let (this, before, after) = (at(Some(index)), at(index.checked_sub(1)), at(Some(index + 1)));
        self.prompt.iter().enumerate().any(|(i, line)| {
            let neighbor = match i.checked_sub(1) {
                Some(previous) => before == Some(self.prompt[previous]),
                None => after.is_some() && after == self.prompt.get(1).copied(),
            };
            Some(*line) == this && neighbor
        })
    }
}

fn is_bracketed(marker: &str) -> bool {
    marker.starts_with('<') && marker.ends_with('>')
}

/// Strips whitespace, Markdown emphasis, backticks and closing punctuation. A question mark stays, because a question
/// is not a claim.
fn strip_decoration(line: &str) -> &str {
    let emphasis = |c: char| matches!(c, '*' | '_' | '`' | '~') || c.is_whitespace();
    let closing = |c: char| emphasis(c) || matches!(c, '.' | '!' | ',' | ';' | ':' | '。' | '！');
    line.trim_start_matches(emphasis).trim_end_matches(closing)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnclosedFence {
    /// The rest of the text is code, as in Markdown.
    ExtendsToEnd,
    /// The fence is no fence: in the tail of a log, unpaired backticks may have any meaning.
    Ignored,
}

/// The opening line of a code fence that is still open at the end of the text.
pub(crate) fn fence_left_open(text: &str) -> Option<&str> {
    let mut open: Option<(&str, CodeFence)> = None;
    let mut from = 0;
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    for end in ends {
        let line = &text[from..end];
        from = end + 1;
        match &open {
            None => open = CodeFence::opening(line).map(|fence| (line, fence)),
            Some((_, fence)) if fence.is_closed_by(line) => open = None,
            Some(_) => {}
        }
    }
    open.map(|(line, _)| line)
}

/// For each line, whether it is part of a code fence, including the fence lines.
fn fenced_lines(lines: &[&str], unclosed: UnclosedFence) -> Vec<bool> {
    let mut fenced = vec![false; lines.len()];
    let mut open: Option<(usize, CodeFence)> = None;
    for (index, line) in lines.iter().enumerate() {
        match &open {
            None => open = CodeFence::opening(line).map(|fence| (index, fence)),
            Some((start, fence)) if fence.is_closed_by(line) => {
                fenced[*start..=index].fill(true);
                open = None;
            }
            Some(_) => {}
        }
    }
    if let Some((start, _)) = open
        && unclosed == UnclosedFence::ExtendsToEnd
    {
        fenced[start..].fill(true);
    }
    fenced
}

/// Three or more backticks or tildes at the beginning of a line.
pub(crate) struct CodeFence {
    mark: char,
    length: usize,
}

impl CodeFence {
    pub(crate) fn opening(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        let info = &line[length..];
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self { mark, length })
    }

    pub(crate) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.chars().all(|c| c == self.mark) && line.chars().count() >= self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(text: &str) -> Claim {
        Markers::new(Vec::new(), MarkerPlacement::Line).claim_in_message(text)
    }

    fn done(marker: &str) -> Claim {
        Claim::Done {
            marker: marker.into(),
        }
    }

    fn ignored(reason: &'static str) -> Claim {
        Claim::Ignored {
            marker: "LOOP_COMPLETE".into(),
            reason,
        }
    }

    #[test]
    fn marker_alone_on_a_line_counts() {
        for text in [
            "LOOP_COMPLETE",
            "All done.\n\nLOOP_COMPLETE\n",
            "  LOOP_COMPLETE  ",
            "**LOOP_COMPLETE**",
            "`LOOP_COMPLETE`",
            "LOOP_COMPLETE.",
            "_LOOP_COMPLETE_!",
            "LOOP_COMPLETE\n\nSummary: three files changed.",
            "done\r\nLOOP_COMPLETE\r\n",
            "```\ncode\n```\nLOOP_COMPLETE",
            "<event topic=\"x\">payload</event>\nLOOP_COMPLETE",
        ] {
            assert_eq!(claim(text), done("LOOP_COMPLETE"), "{text:?}");
        }
    }

    #[test]
    fn markers_in_prose_fences_payloads_and_questions_are_ignored() {
        for (text, reason) in [
            ("I will not print LOOP_COMPLETE until the tests pass.", NOT_ALONE),
            ("LOOP_COMPLETE?", NOT_ALONE),
            ("- LOOP_COMPLETE", NOT_ALONE),
            ("> LOOP_COMPLETE", NOT_ALONE),
            ("Final: LOOP_COMPLETE", NOT_ALONE),
            ("NOT_LOOP_COMPLETE", NOT_ALONE),
            ("```\nLOOP_COMPLETE\n```", IN_FENCE),
            ("~~~text\nLOOP_COMPLETE\n~~~", IN_FENCE),
            ("````\n```\nLOOP_COMPLETE\n```\n````", IN_FENCE),
            ("```\nLOOP_COMPLETE", IN_FENCE),
            ("<event topic=\"build.done\">\nLOOP_COMPLETE\n</event>", IN_EVENT),
        ] {
            assert_eq!(claim(text), ignored(reason), "{text:?}");
        }
        assert_eq!(claim("loop_complete"), Claim::None, "markers are case-sensitive");
        assert_eq!(claim("incomplete"), Claim::None);
    }

    #[test]
    fn bracketed_marker_counts_at_the_end_of_the_last_line() {
        assert_eq!(
            claim("All tests pass. <promise>COMPLETE</promise>"),
            done("<promise>COMPLETE</promise>")
        );
        assert_eq!(
            claim("Done: <<<RALPHEX:ALL_TASKS_DONE>>>\n\n"),
            done("<<<RALPHEX:ALL_TASKS_DONE>>>")
        );
        let earlier = "I will say <promise>COMPLETE</promise>\nwhen I am done.";
        assert!(matches!(
            claim(earlier),
            Claim::Ignored {
                reason: NOT_ALONE,
                ..
            }
        ));
    }

    #[test]
    fn failure_marker_overrides_completion_marker() {
        let failed = Claim::Failed {
            marker: "<<<RALPHEX:FAILED>>>".into(),
        };
        assert_eq!(claim("LOOP_COMPLETE\n<<<RALPHEX:FAILED>>>"), failed);
        assert_eq!(claim("<<<RALPHEX:FAILED>>>\nLOOP_COMPLETE"), failed);
    }

    #[test]
    fn unclosed_event_tag_does_not_hide_a_marker() {
        assert_eq!(
            claim("<event topic=\"a\">never closed\nLOOP_COMPLETE"),
            done("LOOP_COMPLETE")
        );
    }

    #[test]
    fn configured_marker_replaces_the_defaults() {
        let markers = Markers::new(vec!["SHIPPED".into()], MarkerPlacement::Line);
        assert_eq!(markers.claim_in_message("LOOP_COMPLETE"), Claim::None);
        assert_eq!(markers.claim_in_message("ok\nSHIPPED"), done("SHIPPED"));
    }

    #[test]
    fn placement_anywhere_accepts_substrings() {
        let markers = Markers::new(Vec::new(), MarkerPlacement::Anywhere);
        assert_eq!(
            markers.claim_in_message("so LOOP_COMPLETE it is"),
            done("LOOP_COMPLETE")
        );
    }

    fn tail_claim(output: &str, prompt: &str) -> Claim {
        let markers = Markers::new(Vec::new(), MarkerPlacement::Line);
        let mut tail = OutputTail::default();
        output.lines().for_each(|line| tail.push(line, &markers));
        markers.claim_in_tail(&tail, prompt)
    }

    #[test]
    fn lone_marker_in_the_last_lines_of_plain_output_counts() {
        assert_eq!(
            tail_claim("working\nLOOP_COMPLETE\ntokens used: 12", ""),
            done("LOOP_COMPLETE")
        );
        let old = format!("LOOP_COMPLETE\n{}", "more work\n".repeat(TAIL_LINES + 1));
        assert_eq!(tail_claim(&old, ""), ignored(TOO_EARLY));
        let edge = format!("LOOP_COMPLETE\n{}", "\nmore work\n".repeat(TAIL_LINES - 1));
        assert_eq!(tail_claim(&edge, ""), done("LOOP_COMPLETE"));
        assert_eq!(
            tail_claim("I shall print LOOP_COMPLETE later", ""),
            ignored(NOT_ALONE)
        );
        assert_eq!(tail_claim("```\nLOOP_COMPLETE\n```", ""), ignored(IN_FENCE));
    }

    #[test]
    fn echoed_prompt_in_plain_output_is_ignored() {
        let prompt = "Fix the bug.\nWhen done, print:\nLOOP_COMPLETE\n";
        assert_eq!(tail_claim(prompt, prompt), ignored(ECHOED));
        let answered = format!("{prompt}\nI fixed it.\nLOOP_COMPLETE");
        assert_eq!(tail_claim(&answered, prompt), done("LOOP_COMPLETE"));
        let first_line = "LOOP_COMPLETE\nis what you print when done";
        assert_eq!(tail_claim(first_line, first_line), ignored(ECHOED));
    }
}
