//! `ralph review`: has agents judge the changes of a run or of git revisions, and prints their findings. Nothing is edited.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::config::Settings;
use crate::engine::{MessageBoundaries, SingleReview, decide_single_review, review_answer_in};
use crate::event::{GateResult, ReviewAnswer, Severity, TranscriptEvent, Usage};
use crate::files::{self, ReadRule};
use crate::policy::Gate;
use crate::run::{CallMode, Host, REVIEW_PATCH_FILE, ReviewCheckout, Trial, TrialOutput};
use crate::trust::Consent;
use crate::ui::Terminal;
use crate::ui::clean::clean;

use super::args::{ReviewArguments, ReviewFormat};
use super::common::ignore_broken_pipe;
use super::consent;
use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::review_error::ReviewError;
use super::review_report::{ReviewReport, ReviewerReport};
use super::review_subject::{self, ReviewSubject};
use super::roles::{PlannedAgent, PlannedAgents, RoleRequest};

/// The name of a review without a configured gate.
const NAME: &str = "review";

/// A reviewer and its agent.
struct PlannedReviewer {
    name: String,
    planned: PlannedAgent,
    instructions: Option<String>,
}

pub(super) fn review(
    arguments: &ReviewArguments,
    terminal: &Terminal,
    host: &Host,
) -> Result<Exit, CliError> {
    let context = Context::here(host)?;
    let loaded = context.load(arguments.choice.overrides()?, arguments.choice.config.as_ref())?;
    consent::require(&context, &loaded, Consent::of(arguments.choice.trust), terminal)?;
    let settings = loaded.settings;
    let gates = gates(arguments, &settings)?;
    let unwritable = |source| CliError::Unwritable {
        path: std::env::temp_dir(),
        source,
    };
    let scratch = crate::process::scratch("ralph-review-").map_err(unwritable)?;
    let mut place = Place::new(scratch, &context, &arguments.selection)?;
    let format = arguments.format();
    let mut reports = Vec::new();
    for gate in &gates {
        let reviewers = reviewers(&context, &settings, gate, arguments)?;
        let announce = |text: String| match format {
            ReviewFormat::Text => terminal.print(&clean(&text)).map_err(CliError::Output),
            ReviewFormat::Json | ReviewFormat::Sarif => Ok(()),
        };
        announce(format!("▸ {} · {}\n", gate.name, place.subject.name))?;
        let mut answers = Vec::new();
        let mut reports_of_gate = Vec::new();
        for reviewer in &reviewers {
            announce(format!("  {} by {} …\n", reviewer.name, reviewer.planned.label))?;
            let (answer, report) = place.ask(reviewer, arguments, host)?;
            reports_of_gate.push(report);
            answers.push((reviewer.name.clone(), answer));
        }
        let block = arguments.block.or(gate.block).unwrap_or(Severity::High);
        let quorum = gate.quorum.and_then(|quorum| usize::try_from(quorum).ok());
        let quorum = quorum.unwrap_or(answers.len()).max(1);
        let (findings, result) = decide_single_review(&gate.name, block, quorum, &answers);
        reports.push(ReviewReport {
            gate: gate.name.clone(),
            subject: place.subject.name.clone(),
            block,
            result,
            reviewers: reports_of_gate,
            findings,
        });
    }
    let text = match format {
        ReviewFormat::Text => super::review_report::text(&reports, terminal),
        ReviewFormat::Json => super::review_report::json(&reports),
        ReviewFormat::Sarif => super::review_report::sarif(&reports),
    };
    terminal
        .print(&text)
        .map(|()| Exit::Success)
        .or_else(ignore_broken_pipe)?;
    Ok(exit(&reports))
}

/// A review without a valid answer is no review.
fn exit(reports: &[ReviewReport]) -> Exit {
    let has = |wanted: fn(GateResult) -> bool| reports.iter().any(|report| wanted(report.result));
    match (
        has(|result| result == GateResult::Unanswered),
        has(|result| !result.passed()),
    ) {
        (true, _) => Exit::Unreviewed,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Success,
    }
}

/// The gates whose reviewers are asked: those of the configuration, unless the command line names an agent or a prompt.
fn gates(arguments: &ReviewArguments, settings: &Settings) -> Result<Vec<Gate>, CliError> {
    let configured: Vec<Gate> = settings
        .gates
        .iter()
        .filter(|gate| gate.is_review())
        .cloned()
        .collect();
    if let Some(name) = &arguments.gate {
        let known = configured.iter().map(|gate| gate.name.clone()).collect();
        let found = configured.into_iter().find(|gate| gate.name == *name);
        return found.map(|gate| vec![gate]).ok_or_else(|| CliError::UnknownName {
            what: "gate",
            name: name.clone(),
            known,
        });
    }
    let choice = &arguments.choice;
    let is_named = choice.agent.is_some()
        || choice.agent_cmd.is_some()
        || choice.model.is_some()
        || arguments.prompt_file.is_some();
    if is_named || configured.is_empty() {
        return Ok(vec![Gate::new(NAME, "")]);
    }
    Ok(configured)
}

fn reviewers(
    context: &Context,
    settings: &Settings,
    gate: &Gate,
    arguments: &ReviewArguments,
) -> Result<Vec<PlannedReviewer>, CliError> {
    let mut reviewers = Vec::new();
    for reviewer in gate.all_reviewers() {
        let key = format!("gates.{}", gate.name);
        let request = RoleRequest {
            key: &key,
            agent: reviewer.agent.as_deref(),
            model: reviewer.model.as_deref(),
            args: &reviewer.args,
        };
        let planned = PlannedAgents::reviewer(settings, &context.probe(), request)?;
        let file = arguments.prompt_file.as_ref().or(reviewer.prompt_file.as_ref());
        reviewers.push(PlannedReviewer {
            name: reviewer.name,
            planned,
            instructions: file.map(|path| read(path)).transpose()?,
        });
    }
    Ok(reviewers)
}

fn read(path: &Path) -> Result<String, CliError> {
    let bytes = files::read(path, ReadRule::PROMPT).map_err(|source| ReviewError::Prompt {
        path: path.to_owned(),
        source,
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The checkout in which reviewers work.
struct Place {
    subject: ReviewSubject,
    directory: PathBuf,
    checkout: ReviewCheckout,
    _scratch: TempDir,
}

impl Place {
    fn new(scratch: TempDir, context: &Context, selection: &[String]) -> Result<Self, CliError> {
        let directory = scratch.path().join("checkout");
        let mut checkout = ReviewCheckout::new(&directory);
        let subject = review_subject::check_out(context, selection, &mut checkout, scratch.path())?;
        Ok(Self {
            subject,
            directory,
            checkout,
            _scratch: scratch,
        })
    }

    /// Asks a reviewer, and once more if its answer is not valid.
    fn ask(
        &mut self,
        reviewer: &PlannedReviewer,
        arguments: &ReviewArguments,
        host: &Host,
    ) -> Result<(Option<ReviewAnswer>, ReviewerReport), CliError> {
        let mut problem: Option<String> = None;
        let mut usage = Usage::default();
        for _ in 0..2 {
            let prompt = SingleReview {
                task: &self.subject.task,
                instructions: reviewer.instructions.as_deref(),
                patch: &self.subject.patch,
                patch_file: REVIEW_PATCH_FILE,
                problem: problem.as_deref(),
            }
            .prompt();
            let planned = &reviewer.planned;
            let trial = Trial {
                agent: &planned.agent,
                format: planned.format,
                filter: planned.filter.as_ref(),
                prompt: &prompt,
                workspace: self.directory.clone(),
                supervisors: host.supervisors().clone(),
                timeout: arguments.timeout.duration(),
                variables: vec![("RALPH_REVIEWER".into(), reviewer.name.clone().into())],
            };
            let output = trial.call(CallMode::AsConfigured);
            let answer = match &output {
                Ok(output) => {
                    usage.add(&usage_of(&output.events));
                    answer_in(output, &prompt, planned)
                }
                Err(error) => Err(error.to_string()),
            };
            let altered = self.checkout.altered();
            let answer = match &altered[..] {
                [] => answer,
                files => Err(format!("it changed files of its checkout: {}", files.join(", "))),
            };
            match answer {
                Ok(answer) => {
                    let report = ReviewerReport::new(&reviewer.name, &planned.label, None, usage);
                    return Ok((Some(answer), report));
                }
                // What it judges next is no longer the change.
                Err(why) if !altered.is_empty() => {
                    return Ok((
                        None,
                        ReviewerReport::new(&reviewer.name, &planned.label, Some(why), usage),
                    ));
                }
                Err(why) => problem = Some(why),
            }
        }
        Ok((
            None,
            ReviewerReport::new(&reviewer.name, &reviewer.planned.label, problem, usage),
        ))
    }
}

/// The usage that an agent reported.
fn usage_of(events: &[TranscriptEvent]) -> Usage {
    let mut total = Usage::default();
    for event in events {
        if let TranscriptEvent::Usage { usage } = event {
            total.accumulate(usage);
        }
    }
    total
}

fn answer_in(output: &TrialOutput, prompt: &str, planned: &PlannedAgent) -> Result<ReviewAnswer, String> {
    let messages = match planned.format.capabilities.messages {
        true => MessageBoundaries::Delimited,
        false => MessageBoundaries::LinesOnly,
    };
    let answer = review_answer_in(&output.events, prompt, messages);
    match output.end {
        None => Err("it timed out".to_owned()),
        Some(end) if !end.success() => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let cause = stderr
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default();
            Err(format!("the agent ended with {end}: {}", cause.trim())
                .trim_end_matches([':', ' '])
                .to_owned())
        }
        Some(_) => answer,
    }
}
