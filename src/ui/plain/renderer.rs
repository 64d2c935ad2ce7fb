//! The fold: what the face remembers of a run, and what each thing that the run did looks like on the page.
//! What the agent did is in `transcript`, the end of an iteration in `callouts`, that of a run in `report`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::page::{Label, Page};
use super::status::Activity;
use super::tools::Tools;
use super::{PlainOptions, Verbosity};
use crate::event::{
    GateResult, Level, Pause, PlanItem, ProcessEnd, Record, RunEvent, RunHeader, TopicEvent, Usage,
};
use crate::ui::{Tone, clean::clean, describe, units};

pub(super) mod labels {
    //! Every word that can stand in the gutter; seven letters at most.
    use super::{Label, Tone};

    pub(in super::super) const AI: Label = Label::new("AI", Tone::Strong);
    pub(in super::super) const THINK: Label = Label::new("THINK", Tone::Faint);
    pub(in super::super) const SYS: Label = Label::new("SYS", Tone::Faint);
    pub(in super::super) const TOOL: Label = Label::new("TOOL", Tone::Accent);
    pub(in super::super) const PROMPT: Label = Label::new("PROMPT", Tone::Faint);
    pub(in super::super) const USER: Label = Label::new("USER", Tone::Strong);
    pub(in super::super) const ERR: Label = Label::new("ERR", Tone::Warning);
    pub(in super::super) const FILE: Label = Label::new("FILE", Tone::Accent);
    pub(in super::super) const TOPIC: Label = Label::new("TOPIC", Tone::Accent);
    pub(in super::super) const GATE: Label = Label::new("GATE", Tone::Accent);
    pub(in super::super) const WAIT: Label = Label::new("WAIT", Tone::Warning);
    pub(in super::super) const NOTE: Label = Label::new("NOTE", Tone::Strong);
    pub(in super::super) const WARN: Label = Label::new("WARN", Tone::Warning);
    pub(in super::super) const ERROR: Label = Label::new("ERROR", Tone::Bad);
    pub(in super::super) const PLAN: Label = Label::new("PLAN", Tone::Strong);
    pub(in super::super) const ACTIONS: Label = Label::new("ACTIONS", Tone::Strong);
    pub(in super::super) const REPORT: Label = Label::new("REPORT", Tone::Strong);
}

/// How much of a failing gate's output is shown.
const GATE_TAIL_LINES: usize = 12;
/// Gates beyond this many are not told apart in the final report.
const MOST_GATES: usize = 20;

pub(super) struct PlainRenderer {
    pub(super) page: Page,
    pub(super) verbosity: Verbosity,
    pub(super) zone: TimeZone,
    pub(super) header: Option<RunHeader>,
    pub(super) run_started: Timestamp,
    pub(super) iteration: Iteration,
    /// What the ended iterations used.
    pub(super) used: Usage,
    /// What the agent's session had used when the iteration began, and its id.
    pub(super) session: SessionUsage,
    pub(super) gates: Vec<GateTally>,
    pub(super) passed_gates: describe::PassedGates,
    pub(super) activity: Activity,
}

/// What is remembered of the iteration that runs.
#[derive(Default)]
pub(super) struct Iteration {
    pub(super) number: u64,
    pub(super) attempt: u64,
    pub(super) started: Timestamp,
    pub(super) usage: Usage,
    pub(super) tools: Tools,
    pub(super) plan: Vec<PlanItem>,
    /// The beginning of what the agent thought.
    pub(super) thought: String,
    pub(super) said: crate::ui::dedup::MessageDedup,
    /// The session line that was shown.
    pub(super) session_line: String,
}

#[derive(Default)]
pub(super) struct SessionUsage {
    pub(super) id: String,
    pub(super) before: Usage,
    pub(super) latest: Usage,
}

pub(super) struct GateTally {
    pub(super) name: String,
    pub(super) passed: u64,
    pub(super) failed: u64,
}

impl PlainRenderer {
    pub(super) fn new(options: PlainOptions, zone: TimeZone) -> Self {
        let mut page = Page::new(options.live, options.colour, options.width);
        page.silent = options.verbosity == Verbosity::Quiet;
        Self {
            page,
            verbosity: options.verbosity,
            zone,
            header: None,
            run_started: Timestamp::UNIX_EPOCH,
            iteration: Iteration::default(),
            used: Usage::default(),
            session: SessionUsage::default(),
            gates: Vec::new(),
            passed_gates: describe::PassedGates::default(),
            activity: Activity::Nothing,
        }
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    pub(super) fn wants_tick(&self) -> Option<Duration> {
        if !self.page.live || self.page.silent {
            return None;
        }
        self.activity.wants_tick()
    }

    pub(super) fn apply(&mut self, record: &Record) {
        let at = record.at;
        self.passed_gates.apply(&record.event);
        match &record.event {
            RunEvent::RunStarted(header) => self.run_started(header, at),
            RunEvent::RunResumed(resumption) => self.run_resumed(resumption, at),
            RunEvent::IterationStarted {
                iteration,
                attempt,
                hat,
                prompt_bytes: _,
            } => self.iteration_started(*iteration, *attempt, hat.as_deref(), at),
            RunEvent::AgentStarted { pid, command, .. } => self.agent_started(*pid, command),
            // The quiet face shows the final report, and nothing of this is in it.
            RunEvent::Transcript { .. } if self.page.silent => {}
            RunEvent::Transcript { iteration: _, event } => self.transcript(event, at),
            RunEvent::Stderr { iteration: _, text } => self.stderr(text),
            RunEvent::MarkerIgnored { marker, reason, .. } => {
                self.note(labels::WARN, &format!("{marker} does not count: {reason}"))
            }
            RunEvent::Topic { iteration: _, event } => self.topic(event),
            RunEvent::TopicRerouted {
                topic, hat, reason, ..
            } => self.topic_rerouted(topic, hat.as_deref(), reason),
            RunEvent::AgentEnded {
                iteration: _,
                end,
                duration_ms,
                swept,
            } => self.agent_ended(*end, *duration_ms, *swept),
            RunEvent::GateStarted { name, command, .. } => self.gate_started(name, command, at),
            RunEvent::GateEnded {
                iteration: _,
                name,
                result,
                duration_ms,
                output,
            } => self.gate_ended(name, *result, *duration_ms, output),
            RunEvent::IterationEnded {
                iteration: _,
                attempt: _,
                outcome,
                duration_ms,
                usage,
            } => self.iteration_ended(outcome, *duration_ms, usage, at),
            RunEvent::Waiting { why, wait_ms } => self.waiting(*why, *wait_ms, at),
            RunEvent::WaitEnded => self.wait_ended(at),
            RunEvent::CommandReceived { order, .. } => self.told(order),
            RunEvent::Progress { unchanged, .. } => self.progress(*unchanged),
            RunEvent::Paused => self.paused(),
            RunEvent::Asking => self.asking(),
            RunEvent::Stopping { reason } => self.stopping(reason, at),
            RunEvent::Notice { level, text } => self.note(notice_label(*level), text),
            RunEvent::RunEnded {
                outcome,
                iterations,
                duration_ms,
                usage,
            } => self.run_ended(outcome, *iterations, *duration_ms, usage),
        }
    }

    /// A labelled text of any length.
    pub(super) fn note(&mut self, label: Label, text: &str) {
        self.page.begin(label, None);
        self.page.text(Tone::Plain, text);
        self.page.close();
    }

    fn iteration_started(&mut self, number: u64, attempt: u64, hat: Option<&str>, at: Timestamp) {
        self.session.before = self.session.latest.clone();
        self.iteration = Iteration {
            number,
            attempt,
            started: at,
            ..Iteration::default()
        };
        self.activity = Activity::Agent;
        let of = self
            .header
            .as_ref()
            .map(|header| format!("/{}", header.max_iterations));
        let mut title = format!("iteration {number}{}", of.unwrap_or_default());
        if attempt > 1 {
            title += &format!(" · attempt {attempt}");
        }
        if let Some(hat) = hat {
            title += &format!(" · {hat}");
        }
        self.page.bare(Tone::Plain, "");
        let time = units::clock(at, at, &self.zone);
        self.page.rule(&title, &time);
    }

    fn agent_started(&mut self, pid: u32, command: &[String]) {
        if self.is_verbose() {
            self.note(
                labels::SYS,
                &format!("started as process {pid}: {}", command.join(" ")),
            );
        }
    }

    fn stderr(&mut self, text: &str) {
        if !self.page.is_open(labels::ERR, None) {
            self.page.begin(labels::ERR, None);
        }
        self.page
            .text(Tone::Plain, text.strip_suffix('\n').unwrap_or(text));
        self.page.text(Tone::Plain, "\n");
    }

    fn topic(&mut self, event: &TopicEvent) {
        self.page.line(labels::TOPIC);
        self.page.put(Tone::Accent, &event.topic);
        if let Some(target) = &event.target {
            self.page.put_spaced(Tone::Plain, "→");
            self.page.put_spaced(Tone::Accent, target);
        }
        self.page.put_spaced(Tone::Plain, &event.payload);
        self.page.end_row();
    }

    fn topic_rerouted(&mut self, topic: &str, hat: Option<&str>, reason: &str) {
        self.page.line(labels::TOPIC);
        self.page.put(Tone::Accent, topic);
        if let Some(hat) = hat {
            self.page.put_spaced(Tone::Plain, "→");
            self.page.put_spaced(Tone::Accent, hat);
        }
        self.page.put_spaced(Tone::Plain, &format!("· {reason}"));
        self.page.end_row();
    }

    fn agent_ended(&mut self, end: ProcessEnd, duration_ms: u64, swept: u64) {
        if self.is_verbose() || !end.success() {
            let took = units::duration(Duration::from_millis(duration_ms));
            self.note(labels::SYS, &format!("{} after {took}", describe::end_words(end)));
        }
        if swept > 0 {
            let left = match swept {
                1 => "one process".to_owned(),
                more => format!("{more} processes"),
            };
            self.note(
                labels::SYS,
                &format!("stopped {left} that the agent had left behind"),
            );
        }
    }

    fn gate_started(&mut self, name: &str, command: &str, at: Timestamp) {
        self.activity = Activity::Gate {
            name: name.to_owned(),
            since: at,
        };
        self.page.line(labels::GATE);
        self.page.put(Tone::Plain, "▸");
        self.page.put_spaced(Tone::Accent, name);
        self.page.put_spaced(Tone::Plain, command);
        self.page.end_row();
    }

    fn gate_ended(&mut self, name: &str, result: GateResult, duration_ms: u64, output: &str) {
        self.activity = Activity::Agent;
        let passed = result == GateResult::Passed;
        self.count_gate(name, passed);
        let took = units::duration(Duration::from_millis(duration_ms));
        let why = describe::gate_words(result).map(|why| format!(" · {why}"));
        let (mark, tone) = if passed {
            ("✓", Tone::Good)
        } else {
            ("✗", Tone::Bad)
        };
        self.page.line(labels::GATE);
        self.page.put(tone, mark);
        self.page.put_spaced(Tone::Accent, name);
        self.page
            .put_spaced(Tone::Plain, &format!("· {took}{}", why.unwrap_or_default()));
        self.page.end_row();
        if self.is_verbose() {
            self.gate_output(output, usize::MAX);
        } else if !passed {
            self.gate_output(output, GATE_TAIL_LINES);
        }
    }

    fn gate_output(&mut self, output: &str, most: usize) {
        let output = clean(output);
        let lines: Vec<&str> = output.trim_end().lines().collect();
        let hidden = lines.len().saturating_sub(most);
        self.page.begin(Label::SAME, None);
        if hidden > 0 {
            let above = units::count(hidden as u64, "line");
            self.page.text(Tone::Faint, &format!("  … {above} above\n"));
        }
        for line in &lines[hidden..] {
            self.page.text(Tone::Plain, &format!("  {line}\n"));
        }
        self.page.close();
    }

    fn count_gate(&mut self, name: &str, passed: bool) {
        let known = self.gates.iter().position(|gate| gate.name == name);
        let index = known.unwrap_or_else(|| {
            self.gates.truncate(MOST_GATES - 1);
            self.gates.push(GateTally {
                name: name.to_owned(),
                passed: 0,
                failed: 0,
            });
            self.gates.len() - 1
        });
        let gate = &mut self.gates[index];
        gate.passed += u64::from(passed);
        gate.failed += u64::from(!passed);
    }

    fn waiting(&mut self, why: Pause, wait_ms: u64, at: Timestamp) {
        let wait = Duration::from_millis(wait_ms);
        let longest = SignedDuration::from_hours(24 * 365);
        let until = at + SignedDuration::try_from(wait).unwrap_or(longest).min(longest);
        self.activity = Activity::Waiting { why, until };
        let text = format!(
            "{}: waiting {}, until {}",
            describe::pause_words(why),
            units::duration(wait),
            units::clock(until, at, &self.zone)
        );
        self.note(labels::WAIT, &text);
    }

    /// Worth a line only when somebody woke the run.
    fn wait_ended(&mut self, at: Timestamp) {
        if let Activity::Waiting { until, .. } = self.activity {
            let left = units::since(at, until);
            if left >= Duration::from_secs(1) {
                let left = units::duration(left);
                self.note(labels::WAIT, &format!("woken {left} early, going on"));
            }
        }
        self.activity = Activity::Nothing;
        // The countdown is over even if nothing was written.
        self.page.uncover();
    }

    fn stopping(&mut self, reason: &str, at: Timestamp) {
        self.activity = Activity::Stopping { since: at };
        self.note(labels::WARN, &format!("stopping: {reason}"));
    }
}

fn notice_label(level: Level) -> Label {
    match level {
        Level::Info => labels::NOTE,
        Level::Warning => labels::WARN,
        Level::Error => labels::ERROR,
    }
}
