//! Renders run events and stores the state that later output needs. `transcript` renders the agent's events, `callouts`
//! the end of an iteration and `report` the end of a run.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::changes::RunChanges;
use super::output_buffer::{Label, Page};
use super::status::PlainActivity;
use super::tools::IterationTools;
use super::{PlainOptions, Verbosity};
use crate::event::{
    DescribeContext, Description, Detail, GateResult, NoteTag, PassedGates, PlanItem, Record, RunEvent,
    RunHeader, TestReport, Usage, gate_failure, later, pause_label,
};
use crate::ui::{Tone, UsageByRole, clean::clean, units};

pub(super) mod labels {
    //! All labels of the gutter; at most seven letters.
    use super::{Label, NoteTag, Tone};

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

    pub(in super::super) fn of(tag: NoteTag) -> Label {
        match tag {
            NoteTag::Note | NoteTag::Iteration => NOTE,
            NoteTag::Warning => WARN,
            NoteTag::Error => ERROR,
            NoteTag::System | NoteTag::Session => SYS,
            NoteTag::Wait | NoteTag::Pause => WAIT,
            NoteTag::Topic => TOPIC,
            NoteTag::User => USER,
            NoteTag::File => FILE,
            NoteTag::Plan => PLAN,
            NoteTag::Gate => GATE,
            NoteTag::Verdict => REPORT,
        }
    }
}

/// How many lines of a failed gate's output are shown.
const GATE_TAIL_LINES: usize = 12;
/// How many gates the final report lists.
const MAX_GATES: usize = 20;

pub(super) struct PlainRenderer {
    pub(super) page: Page,
    pub(super) verbosity: Verbosity,
    pub(super) zone: TimeZone,
    pub(super) header: Option<RunHeader>,
    pub(super) run_started: Timestamp,
    pub(super) iteration: IterationState,
    /// The usage of completed iterations.
    pub(super) used: Usage,
    pub(super) roles: UsageByRole,
    pub(super) gates: Vec<GateCounts>,
    pub(super) changes: RunChanges,
    pub(super) passed_gates: PassedGates,
    pub(super) activity: PlainActivity,
}

/// The state of the current iteration.
#[derive(Default)]
pub(super) struct IterationState {
    pub(super) number: u64,
    pub(super) attempt: u64,
    pub(super) started: Timestamp,
    pub(super) usage: Usage,
    pub(super) tools: IterationTools,
    pub(super) plan: Vec<PlanItem>,
    /// The session line that was printed last.
    pub(super) session_line: String,
}

pub(super) struct GateCounts {
    pub(super) name: String,
    pub(super) passed: u64,
    pub(super) failed: u64,
}

impl PlainRenderer {
    pub(super) fn new(options: PlainOptions, zone: TimeZone) -> Self {
        let mut page = Page::new(options.live, options.color, options.width);
        page.silent = options.verbosity == Verbosity::Quiet;
        Self {
            page,
            verbosity: options.verbosity,
            zone,
            header: None,
            run_started: Timestamp::UNIX_EPOCH,
            iteration: IterationState::default(),
            used: Usage::default(),
            roles: UsageByRole::default(),
            gates: Vec::new(),
            changes: RunChanges::default(),
            passed_gates: PassedGates::default(),
            activity: PlainActivity::Idle,
        }
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    pub(super) fn next_tick(&self) -> Option<Duration> {
        if !self.page.live || self.page.silent {
            return None;
        }
        self.activity.next_tick()
    }

    /// Events with a form of their own have an arm here; all others are described in words.
    pub(super) fn apply(&mut self, record: &Record) {
        let at = record.at;
        self.passed_gates.apply(&record.event);
        self.roles.apply(&record.event);
        if let RunEvent::Snapshot(snapshot) = &record.event {
            self.changes.apply(snapshot);
        }
        match &record.event {
            RunEvent::RunStarted(header) => self.run_started(header, at),
            RunEvent::IterationStarted {
                iteration,
                attempt,
                hat,
                agent,
                prompt_bytes: _,
            } => {
                let role = [hat.as_deref(), agent.as_deref()];
                self.iteration_started(*iteration, *attempt, role, at);
            }
            // With `--quiet`, only the final report is printed, and it does not use the transcript.
            RunEvent::Transcript { .. } if self.page.silent => {}
            RunEvent::Transcript { iteration: _, event } => self.transcript(event, at),
            RunEvent::Stderr { iteration: _, text } => self.stderr(text),
            RunEvent::GateStarted { name, command, .. } => self.gate_started(name, command, at),
            RunEvent::GateEnded {
                iteration,
                name,
                result,
                duration_ms,
                output,
                details,
            } => {
                // Gates that have to fail before the first iteration say nothing about the work.
                if *iteration > 0 {
                    self.count_gate(name, result.passed());
                }
                self.gate_ended(name, *result, *duration_ms, (output, details.report.as_ref()));
            }
            RunEvent::IterationEnded {
                iteration: _,
                attempt: _,
                outcome,
                duration_ms,
                usage,
            } => self.iteration_ended(outcome, *duration_ms, usage, at),
            RunEvent::WaitEnded => self.wait_ended(at),
            RunEvent::Paused => self.paused(),
            RunEvent::Asking => self.asking(),
            RunEvent::QuestionAsked { question, .. } => self.question_asked(question),
            RunEvent::RunEnded {
                outcome,
                iterations,
                duration_ms,
                usage,
            } => self.run_ended(outcome, *iterations, *duration_ms, usage),
            event => {
                self.follow_activity(event, at);
                let gates = std::mem::take(&mut self.passed_gates);
                self.describe(event.describe(&self.context(at, &gates)));
                self.passed_gates = gates;
            }
        }
    }

    /// Updates the state that the status line and the report show, for events that are printed in words.
    fn follow_activity(&mut self, event: &RunEvent, at: Timestamp) {
        match event {
            RunEvent::RunResumed(resumption) => self.run_resumed(resumption, at),
            RunEvent::Waiting { why, wait_ms, reason } => {
                let until = (*wait_ms > 0).then(|| later(at, Duration::from_millis(*wait_ms)));
                let why = reason.clone().unwrap_or_else(|| pause_label(*why).to_owned());
                self.activity = PlainActivity::Waiting { why, until };
            }
            RunEvent::Stopping { .. } => self.activity = PlainActivity::Stopping { since: at },
            RunEvent::ReviewStarted { gate, .. } => {
                let name = gate.clone();
                self.activity = PlainActivity::Gate { name, since: at };
            }
            _ => {}
        }
    }

    pub(super) fn context<'a>(&'a self, at: Timestamp, gates: &'a PassedGates) -> DescribeContext<'a> {
        DescribeContext {
            at,
            zone: &self.zone,
            gates,
        }
    }

    /// Prints a description: names on one line, sentences in full.
    pub(super) fn describe(&mut self, description: Option<Description>) {
        let Some(description) = description else { return };
        if description.detail > Detail::Normal && !self.is_verbose() {
            return;
        }
        let (label, text) = (labels::of(description.tag), description.text.as_str());
        match description.tag {
            NoteTag::Topic | NoteTag::Session | NoteTag::File | NoteTag::Plan => {
                let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
                let tone = match description.tag {
                    NoteTag::Topic => Tone::Accent,
                    _ => Tone::Plain,
                };
                self.page.line(label);
                self.page.put(tone, name);
                self.page.put_spaced(Tone::Plain, rest);
                self.page.end_row();
            }
            _ => self.note(label, text),
        }
    }

    /// Prints a labeled text of any length.
    pub(super) fn note(&mut self, label: Label, text: &str) {
        self.page.begin(label, None);
        self.page.text(Tone::Plain, text);
        self.page.close();
    }

    fn iteration_started(&mut self, number: u64, attempt: u64, role: [Option<&str>; 2], at: Timestamp) {
        self.iteration = IterationState {
            number,
            attempt,
            started: at,
            ..IterationState::default()
        };
        self.activity = PlainActivity::Agent;
        let of = self
            .header
            .as_ref()
            .map(|header| format!("/{}", header.max_iterations));
        let mut title = format!("iteration {number}{}", of.unwrap_or_default());
        if attempt > 1 {
            title += &format!(" · attempt {attempt}");
        }
        for part in role.into_iter().flatten() {
            title += &format!(" · {part}");
        }
        self.page.line_without_gutter(Tone::Plain, "");
        let time = units::clock(at, at, &self.zone);
        self.page.rule(&title, &time);
    }

    fn stderr(&mut self, text: &str) {
        if !self.page.is_open(labels::ERR, None) {
            self.page.begin(labels::ERR, None);
        }
        self.page
            .text(Tone::Plain, text.strip_suffix('\n').unwrap_or(text));
        self.page.text(Tone::Plain, "\n");
    }

    fn gate_started(&mut self, name: &str, command: &str, at: Timestamp) {
        self.activity = PlainActivity::Gate {
            name: name.to_owned(),
            since: at,
        };
        self.page.line(labels::GATE);
        self.page.put(Tone::Plain, "▸");
        self.page.put_spaced(Tone::Accent, name);
        // A gate of the command line has no other name than its command.
        if command != name {
            self.page.put_spaced(Tone::Plain, command);
        }
        self.page.end_row();
    }

    fn gate_ended(
        &mut self,
        name: &str,
        result: GateResult,
        duration_ms: u64,
        (output, report): (&str, Option<&TestReport>),
    ) {
        self.activity = PlainActivity::Agent;
        let passed = result.passed();
        let duration = units::duration(Duration::from_millis(duration_ms));
        let failure = gate_failure(result).map(|failure| format!(" · {failure}"));
        let tests = report.map(|report| format!(" · {report}"));
        let (mark, tone) = if passed {
            ("✓", Tone::Good)
        } else {
            ("✗", Tone::Bad)
        };
        self.page.line(labels::GATE);
        self.page.put(tone, mark);
        self.page.put_spaced(Tone::Accent, name);
        self.page.put_spaced(
            Tone::Plain,
            &format!(
                "· {duration}{}{}",
                failure.unwrap_or_default(),
                tests.unwrap_or_default()
            ),
        );
        self.page.end_row();
        if self.is_verbose() {
            self.gate_output(output, usize::MAX);
        } else if !passed {
            self.gate_output(output, GATE_TAIL_LINES);
        }
    }

    fn gate_output(&mut self, output: &str, max_lines: usize) {
        let output = clean(output);
        let lines: Vec<&str> = output.trim_end().lines().collect();
        let hidden = lines.len().saturating_sub(max_lines);
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
        let index = self.gates.iter().position(|gate| gate.name == name);
        let index = index.unwrap_or_else(|| {
            self.gates.truncate(MAX_GATES - 1);
            self.gates.push(GateCounts {
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

    /// Prints a line only if the wait ended early.
    fn wait_ended(&mut self, at: Timestamp) {
        if let PlainActivity::Waiting {
            until: Some(until), ..
        } = self.activity
        {
            let left = units::since(at, until);
            if left >= Duration::from_secs(1) {
                let left = units::duration(left);
                self.note(labels::WAIT, &format!("continuing {left} early"));
            }
        }
        self.activity = PlainActivity::Idle;
        // Removes the countdown even if nothing was printed.
        self.page.hide_status();
    }
}
