//! Markers: does what the assistant said mean that the work is done, or that it failed? Looks at text only;
//! what to do about the answer is decided elsewhere in this room.

use std::cell::LazyCell;

use aho_corasick::AhoCorasick;

use super::topic;

/// The words by which an agent may say that everything is done, when the configuration names none.
const COMPLETION: &[&str] = &[
    "LOOP_COMPLETE",
    "<promise>COMPLETE</promise>",
    "<<<RALPHEX:COMPLETED>>>",
    "<<<RALPHEX:ALL_TASKS_DONE>>>",
];

/// The words by which it may say that it has failed.
const FAILURE: &[&str] = &["<<<RALPHEX:FAILED>>>", "<<<RALPHEX:TASK_FAILED>>>"];

/// How many of the last non-empty lines count where an agent's output has no messages.
pub(crate) const TAIL_LINES: usize = 20;

/// Which markers count, and where.
#[derive(Debug, Clone)]
pub struct Markers {
    completion: Vec<String>,
    placement: Placement,
    /// All of them at once: nearly every text has none.
    finder: AhoCorasick,
}

/// Where a marker must stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Alone on a line of the final message.
    Line,
    /// Anywhere in anything the assistant said.
    Anywhere,
}

/// What a text says about being done.
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
    /// A marker stands there, but not in a way that counts.
    Ignored {
        marker: String,
        reason: &'static str,
    },
}

pub(crate) const EARLIER_MESSAGE: &str = "it stood in an earlier message that was followed by more work";
const MID_SENTENCE: &str = "it stood in the middle of a sentence, not alone on a line";
const IN_FENCE: &str = "it stood inside a code fence";
const IN_EVENT: &str = "it stood inside an event's payload";
const ECHOED: &str = "it only repeated the prompt";
const TOO_EARLY: &str = "it was followed by more than 20 lines of other output";

impl Markers {
    /// An empty list stands for the built-in set.
    pub fn new(completion: Vec<String>, placement: Placement) -> Self {
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
            finder,
        }
    }

    /// The marker that a prompt should ask for.
    pub(crate) fn preferred(&self) -> &str {
        self.completion.first().map_or("LOOP_COMPLETE", String::as_str)
    }

    /// Whether a prompt already tells the agent how to say that it is done.
    pub(crate) fn mentioned_in(&self, prompt: &str) -> bool {
        self.completion
            .iter()
            .any(|marker| prompt.contains(marker.as_str()))
    }

    pub(crate) fn counts_anywhere(&self) -> bool {
        self.placement == Placement::Anywhere
    }

    /// Judges one whole message.
    pub(crate) fn in_message(&self, text: &str) -> Claim {
        if !self.any_in(text) {
            return Claim::None;
        }
        if self.counts_anywhere() {
            return self.naive(text);
        }
        let outside = topic::without_events(text);
        let lines: Vec<&str> = outside.lines().collect();
        let fenced = fenced_lines(&lines, UnclosedFence::RunsToTheEnd);
        let last = lines.iter().rposition(|line| !line.trim().is_empty());
        let claims = lines.iter().enumerate().filter(|(index, _)| !fenced[*index]);
        let found = claims.filter_map(|(index, line)| self.on_line(line, Some(index) == last));
        self.strongest(found)
            .unwrap_or_else(|| self.why_not(text, &outside, &lines, &fenced))
    }

    /// Judges the last non-empty lines of an output without messages. Lines that echo the prompt do not count.
    pub(crate) fn in_tail(&self, tail: &Tail, prompt: &str) -> Claim {
        if self.counts_anywhere() {
            return tail
                .anywhere
                .clone()
                .map_or(Claim::None, |marker| self.claim(&marker));
        }
        let lines: Vec<&str> = tail.lines.iter().map(String::as_str).collect();
        let fenced = fenced_lines(&lines, UnclosedFence::IsNone);
        // Hardly any output has a marker in it, and a prompt may be long.
        let echoed = LazyCell::new(|| Echo::new(prompt));
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
        let seen = || tail.anywhere.clone().map(|marker| (marker, MID_SENTENCE));
        let early = || tail.early.clone().map(|marker| (marker, TOO_EARLY));
        self.strongest(found.into_iter())
            .unwrap_or_else(|| match reason.or_else(early).or_else(seen) {
                Some((marker, reason)) => Claim::Ignored { marker, reason },
                None => Claim::None,
            })
    }

    /// The marker that stands alone on this line or, if it is a bracketed one, ends the text's last line.
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

    fn naive(&self, text: &str) -> Claim {
        self.strongest(
            self.all()
                .filter(|marker| text.contains(marker))
                .map(str::to_owned),
        )
        .unwrap_or(Claim::None)
    }

    /// A failure outweighs a claim of success in the same text: no false "done".
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

    fn why_not(&self, text: &str, outside: &str, lines: &[&str], fenced: &[bool]) -> Claim {
        let Some(marker) = self.all().find(|marker| text.contains(marker)) else {
            return Claim::None;
        };
        let in_prose = |(line, fenced): (&&str, &bool)| !fenced && line.contains(marker);
        let reason = if !outside.contains(marker) {
            IN_EVENT
        } else if lines.iter().zip(fenced).any(in_prose) {
            MID_SENTENCE
        } else {
            IN_FENCE
        };
        Claim::Ignored {
            marker: marker.to_owned(),
            reason,
        }
    }
}

/// The last non-empty lines of an output without messages, and what was seen before them.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// One more than counts, so that the line before the first is known.
    lines: std::collections::VecDeque<String>,
    /// A marker that was seen anywhere.
    anywhere: Option<String>,
    /// A marker that stood alone on a line that has since moved out of the tail.
    early: Option<String>,
}

/// Longer lines hold no lone marker; their end is kept, where a bracketed one may stand.
const LONGEST_KEPT_LINE: usize = 4096;

impl Tail {
    pub(crate) fn push(&mut self, line: &str, markers: &Markers) {
        if line.trim().is_empty() {
            return;
        }
        if markers.any_in(line) {
            let found = markers.all().find(|marker| line.contains(marker));
            self.anywhere = found.map(str::to_owned);
        }
        let mut kept = self.line_that_moves_out(markers);
        kept.push_str(tail_of(line, LONGEST_KEPT_LINE));
        self.lines.push_back(kept);
    }

    /// Makes room for one more line. The one that goes leaves its memory, and the marker that it may have been.
    fn line_that_moves_out(&mut self, markers: &Markers) -> String {
        if self.lines.len() <= TAIL_LINES {
            return String::new();
        }
        let mut gone = self.lines.pop_front().unwrap_or_default();
        if self.anywhere.is_some()
            && let Some(marker) = markers.on_line(&gone, false)
        {
            self.early = Some(marker);
        }
        gone.clear();
        gone
    }
}

/// The last `bytes` bytes of a text, moved forward to a character boundary; all of a shorter one.
fn tail_of(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// Whether lines of an output are the prompt's own, printed again.
struct Echo<'a> {
    prompt: Vec<&'a str>,
}

impl<'a> Echo<'a> {
    fn new(prompt: &'a str) -> Self {
        Self {
            prompt: prompt
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect(),
        }
    }

    /// A line is an echo when the line before it (or, for the prompt's first line, after it) is the prompt's too.
    /// The marker alone proves nothing: the prompt may show it on a line of its own, as the agent should.
    fn covers(&self, lines: &[&str], index: usize) -> bool {
        let at = |index: Option<usize>| index.and_then(|index| lines.get(index)).map(|line| line.trim());
        let (this, before, after) = (at(Some(index)), at(index.checked_sub(1)), at(Some(index + 1)));
        self.prompt.iter().enumerate().any(|(i, line)| {
            let neighbour = match i.checked_sub(1) {
                Some(previous) => before == Some(self.prompt[previous]),
                None => after.is_some() && after == self.prompt.get(1).copied(),
            };
            Some(*line) == this && neighbour
        })
    }
}

fn is_bracketed(marker: &str) -> bool {
    marker.starts_with('<') && marker.ends_with('>')
}

/// A line without surrounding blanks, markdown emphasis, backticks and closing punctuation. A question mark stays:
/// who asks has not finished.
fn strip_decoration(line: &str) -> &str {
    let emphasis = |c: char| matches!(c, '*' | '_' | '`' | '~') || c.is_whitespace();
    let closing = |c: char| emphasis(c) || matches!(c, '.' | '!' | ',' | ';' | ':' | '。' | '！');
    line.trim_start_matches(emphasis).trim_end_matches(closing)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UnclosedFence {
    /// As in markdown.
    RunsToTheEnd,
    /// In the tail of a log three backticks alone may be anything.
    IsNone,
}

/// The line that opens the code fence in which this text breaks off, if it does.
pub(crate) fn fence_left_open(text: &str) -> Option<&str> {
    let mut open: Option<(&str, Fence)> = None;
    let mut from = 0;
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    for end in ends {
        let line = &text[from..end];
        from = end + 1;
        match &open {
            None => open = Fence::opening(line).map(|fence| (line, fence)),
            Some((_, fence)) if fence.is_closed_by(line) => open = None,
            Some(_) => {}
        }
    }
    open.map(|(line, _)| line)
}

/// For each line, whether it lies inside a code fence (the fence lines themselves included).
fn fenced_lines(lines: &[&str], unclosed: UnclosedFence) -> Vec<bool> {
    let mut fenced = vec![false; lines.len()];
    let mut open: Option<(usize, Fence)> = None;
    for (index, line) in lines.iter().enumerate() {
        match &open {
            None => open = Fence::opening(line).map(|fence| (index, fence)),
            Some((start, fence)) if fence.is_closed_by(line) => {
                fenced[*start..=index].fill(true);
                open = None;
            }
            Some(_) => {}
        }
    }
    if let Some((start, _)) = open
        && unclosed == UnclosedFence::RunsToTheEnd
    {
        fenced[start..].fill(true);
    }
    fenced
}

/// A run of three or more backticks or tildes at the beginning of a line.
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn opening(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        let info = &line[length..];
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self { mark, length })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.chars().all(|c| c == self.mark) && line.chars().count() >= self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(text: &str) -> Claim {
        Markers::new(Vec::new(), Placement::Line).in_message(text)
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
    fn a_marker_alone_on_a_line_counts() {
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
    fn prose_fences_payloads_and_questions_do_not_count() {
        for (text, reason) in [
            (
                "I will not print LOOP_COMPLETE until the tests pass.",
                MID_SENTENCE,
            ),
            ("LOOP_COMPLETE?", MID_SENTENCE),
            ("- LOOP_COMPLETE", MID_SENTENCE),
            ("> LOOP_COMPLETE", MID_SENTENCE),
            ("Final: LOOP_COMPLETE", MID_SENTENCE),
            ("NOT_LOOP_COMPLETE", MID_SENTENCE),
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
    fn bracketed_markers_also_count_at_the_end_of_the_last_line() {
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
                reason: MID_SENTENCE,
                ..
            }
        ));
    }

    #[test]
    fn a_declared_failure_outweighs_a_completion_in_the_same_message() {
        let failed = Claim::Failed {
            marker: "<<<RALPHEX:FAILED>>>".into(),
        };
        assert_eq!(claim("LOOP_COMPLETE\n<<<RALPHEX:FAILED>>>"), failed);
        assert_eq!(claim("<<<RALPHEX:FAILED>>>\nLOOP_COMPLETE"), failed);
    }

    #[test]
    fn an_unclosed_event_tag_swallows_nothing() {
        assert_eq!(
            claim("<event topic=\"a\">never closed\nLOOP_COMPLETE"),
            done("LOOP_COMPLETE")
        );
    }

    #[test]
    fn a_configured_promise_replaces_the_set() {
        let markers = Markers::new(vec!["SHIPPED".into()], Placement::Line);
        assert_eq!(markers.in_message("LOOP_COMPLETE"), Claim::None);
        assert_eq!(markers.in_message("ok\nSHIPPED"), done("SHIPPED"));
    }

    #[test]
    fn anywhere_restores_the_substring_rule() {
        let markers = Markers::new(Vec::new(), Placement::Anywhere);
        assert_eq!(
            markers.in_message("so LOOP_COMPLETE it is"),
            done("LOOP_COMPLETE")
        );
    }

    fn tail_claim(output: &str, prompt: &str) -> Claim {
        let markers = Markers::new(Vec::new(), Placement::Line);
        let mut tail = Tail::default();
        output.lines().for_each(|line| tail.push(line, &markers));
        markers.in_tail(&tail, prompt)
    }

    #[test]
    fn plain_output_counts_a_lone_marker_in_its_last_lines() {
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
            ignored(MID_SENTENCE)
        );
        assert_eq!(tail_claim("```\nLOOP_COMPLETE\n```", ""), ignored(IN_FENCE));
    }

    #[test]
    fn plain_output_that_echoes_the_prompt_does_not_complete() {
        let prompt = "Fix the bug.\nWhen done, print:\nLOOP_COMPLETE\n";
        assert_eq!(tail_claim(prompt, prompt), ignored(ECHOED));
        let answered = format!("{prompt}\nI fixed it.\nLOOP_COMPLETE");
        assert_eq!(tail_claim(&answered, prompt), done("LOOP_COMPLETE"));
        let first_line = "LOOP_COMPLETE\nis what you print when done";
        assert_eq!(tail_claim(first_line, first_line), ignored(ECHOED));
    }
}
