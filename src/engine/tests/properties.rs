//! Property tests: random simulations that follow the contract between engine and caller (each launch is answered and
//! has exactly one end), and invariants that the engine must always keep.

mod generators;

use proptest::prelude::*;

use super::{answer, command, header, policy as usual_policy, stop_by, wake};
use crate::engine::*;
use crate::event::{ErrorClass, Flow, Meta, RateLimitStatus, StartKind, Tag, ToolEnd, ToolStart, ToolStatus};
use crate::policy::{Admission, Hat, QuotaCause, QuotaWait};

use generators::{agent_event, answered, exited, gate_ended, key, launched, review_answer, review_prepared};

/// The state outside the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExternalState {
    Quiet,
    /// The engine requested the prompt.
    ReadingPrompt,
    /// The agent was launched; whether it started is not yet known.
    Launching,
    Agent,
    Gate,
    /// The user is asked a question.
    Asked,
    AskedForPlace,
    Over,
}

/// How children behave after the random part of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChildBehavior {
    /// Children exit by themselves and succeed.
    Cooperative,
    /// Children exit only when they are killed.
    IgnoresStop,
}

/// One random input: kind, variant and delay in milliseconds.
type RandomInput = (u8, u8, u16);

struct Simulation {
    engine: Engine,
    at: Duration,
    external: ExternalState,
    killed: bool,
    interrupted: bool,
    open_iterations: i64,
    last_iteration: u64,
    run_ended: u64,
    /// Results of checks that the engine waits for.
    checks: Vec<Input>,
    hooks: u64,
    holds_place: bool,
    /// Since the last iteration.
    asked_for_place: bool,
    hat_history: HatHistory,
    log: Vec<String>,
}

impl Simulation {
    fn new(policy: Policy) -> Self {
        Self {
            engine: Engine::new(policy),
            at: Duration::ZERO,
            external: ExternalState::Quiet,
            killed: false,
            interrupted: false,
            open_iterations: 0,
            last_iteration: 0,
            run_ended: 0,
            checks: Vec::new(),
            hooks: 0,
            holds_place: false,
            asked_for_place: false,
            hat_history: HatHistory::default(),
            log: Vec::new(),
        }
    }

    fn input(&mut self, mut input: Input) {
        if let Input::Command(request) = &mut input {
            request.id = self.log.len().to_string();
            self.interrupted |= matches!(request.command, Command::Stop { .. } | Command::Kill);
        }
        match input {
            Input::AgentStarted { .. } => self.external = ExternalState::Agent,
            Input::CouldNotStart { .. }
            | Input::AgentEnded { .. }
            | Input::GateEnded(_)
            | Input::Command(CommandRequest {
                command: Command::Answer { .. },
                ..
            })
            | Input::PlaceAnswered(_)
            | Input::Prompt(_) => {
                (self.external, self.killed) = (ExternalState::Quiet, false);
            }
            _ => {}
        }
        self.log.push(format!("{:?} < {input:?}", self.at));
        let was_over = self.external == ExternalState::Over;
        for action in self.engine.step(self.at, input) {
            self.log.push(format!("{:?} > {action:?}", self.at));
            assert!(!was_over, "action after the end: {action:?}");
            self.on_action(action);
        }
        self.compare_with_history();
    }

    fn child_runs(&self) -> bool {
        matches!(
            self.external,
            ExternalState::Launching | ExternalState::Agent | ExternalState::Gate
        )
    }

    fn on_action(&mut self, action: Action) {
        let child_runs = self.child_runs();
        match action {
            Action::Emit(event) => self.note(&event),
            Action::ScanWorkspace | Action::CheckDisk | Action::WriteSummary(_) => {}
            Action::TakeSnapshot { .. } | Action::RestoreSnapshot { .. } | Action::CheckPaths => {
                assert!(!child_runs, "files are checked or restored while a child runs");
                self.on_file_action(&action);
            }
            Action::ResolveSession { .. } => self.checks.push(Input::SessionResolved(Some("s".into()))),
            Action::RunHook { .. } => self.hooks += 1,
            Action::ReadPrompt => {
                assert!(!child_runs, "prompt read while a child runs");
                self.external = ExternalState::ReadingPrompt;
            }
            Action::RequestPlace { .. }
            | Action::ReleasePlace { .. }
            | Action::ReportLimit { .. }
            | Action::ReportWait(_)
            | Action::ReportSpend { .. } => self.on_account_action(&action, child_runs),
            Action::Launch { .. } => {
                self.check_place();
                self.begin(ExternalState::Launching);
            }
            Action::CheckTree { tree } => {
                assert!(!child_runs, "checked while a child runs");
                self.checks.push(tree_check(tree, self.log.len()));
            }
            Action::PrepareReview { .. } | Action::LaunchReviewer(_) | Action::CheckReview => {
                assert!(!child_runs, "a review step while a child runs");
                self.on_review_action(&action);
            }
            Action::RunGate(_) | Action::RunProtectedGate(_) | Action::RunCheckpoint(_) => {
                self.begin(ExternalState::Gate)
            }
            Action::AskUser => {
                assert!(!child_runs, "asked while a child runs");
                assert_eq!(self.engine.agent().transcript.messages, MessageBoundaries::Screen);
                self.external = ExternalState::Asked;
            }
            Action::AskQuestion => {
                assert!(!child_runs, "asked while a child runs");
                self.external = ExternalState::Asked;
            }
            Action::Stop { .. } => assert!(child_runs, "there is nothing to stop"),
            Action::Kill => {
                assert!(child_runs, "there is nothing to kill");
                self.killed = true;
            }
            Action::Finish(_) => {
                assert!(!child_runs, "finished while a child runs");
                assert_eq!((self.run_ended, self.open_iterations), (1, 0));
                let may_give_up = self.engine.interrupted.is_some();
                assert!(self.hooks == 0 || may_give_up, "finished while a hook runs");
                self.external = ExternalState::Over;
            }
        }
    }

    fn on_file_action(&mut self, action: &Action) {
        let problem = format!("problem {}", self.log.len() % 3);
        self.checks.push(match action {
            Action::TakeSnapshot { moment, .. } => Input::SnapshotTaken {
                moment: *moment,
                taken: Err(problem),
            },
            Action::RestoreSnapshot { .. } => Input::SnapshotRestored(Err(problem)),
            _ => path_check(self.log.len()),
        });
    }

    fn on_review_action(&mut self, action: &Action) {
        match action {
            Action::PrepareReview { .. } => self.checks.push(review_prepared(self.log.len())),
            Action::LaunchReviewer(_) => {
                assert!(
                    !self.interrupted,
                    "nothing begins after an interrupt:\n{}",
                    self.log.join("\n")
                );
                self.external = ExternalState::Launching;
            }
            _ => {
                let altered = match self.log.len() % 5 {
                    0 => vec!["a.rs".to_owned()],
                    _ => Vec::new(),
                };
                self.checks.push(Input::ReviewChecked { altered });
            }
        }
    }

    fn begin(&mut self, child: ExternalState) {
        assert!(!self.child_runs(), "two children at once");
        assert!(
            !self.interrupted,
            "nothing begins after an interrupt:\n{}",
            self.log.join("\n")
        );
        self.external = child;
    }

    fn on_account_action(&mut self, action: &Action, child_runs: bool) {
        match action {
            Action::RequestPlace { .. } => {
                assert!(!child_runs && !self.holds_place, "a place is requested once");
                self.asked_for_place = true;
                self.external = ExternalState::AskedForPlace;
            }
            Action::ReleasePlace { end, .. } => {
                assert!(!child_runs || self.holds_place);
                self.holds_place &= *end == PlaceEnd::GaveUp;
            }
            Action::ReportLimit { .. } => assert!(self.holds_place, "a report about the account of another"),
            _ => {}
        }
    }

    /// Checks that an agent whose account is shared is not launched without a place.
    fn check_place(&self) {
        let shares = self.engine.agent().account.is_some() || self.engine.policy.budgets.is_set();
        assert_eq!(self.holds_place, shares, "an agent without a place");
    }

    /// Between two iterations, a hat queue restored from the history must equal the current one.
    fn compare_with_history(&self) {
        // A hat is activated before its iteration waits for a place.
        if self.open_iterations == 0 && !self.asked_for_place && self.external != ExternalState::Over {
            let mut other = Engine::new(self.engine.policy.clone());
            other.restore_hats(&self.hat_history);
            assert_eq!(
                format!("{:?}", other.hat_queue),
                format!("{:?}", self.engine.hat_queue)
            );
        }
    }

    fn note(&mut self, event: &RunEvent) {
        self.hat_history.apply(event);
        match event {
            RunEvent::IterationStarted { iteration, .. } => {
                assert!(*iteration >= self.last_iteration, "iterations go forward");
                self.last_iteration = *iteration;
                self.open_iterations += 1;
                self.asked_for_place = false;
                assert_eq!(self.open_iterations, 1, "one iteration at a time");
            }
            RunEvent::IterationEnded { .. } => self.open_iterations -= 1,
            RunEvent::RunEnded { outcome, .. } => {
                if let RunOutcome::Complete { .. } = outcome {
                    let mut findings = self.engine.findings().iter();
                    assert!(
                        !findings.any(|finding| finding.status.blocks()),
                        "complete with an open finding"
                    );
                }
                self.run_ended += 1;
            }
            _ => {}
        }
    }

    fn tick_at_deadline(&mut self) {
        if let Some(due) = self.engine.deadline() {
            self.at = self.at.max(due);
        }
        self.input(Input::Tick);
    }

    /// Grants a place, or refuses it for one of the causes.
    fn answer_place(&mut self, choice: usize) {
        let until = Timestamp::from_second(60).unwrap();
        let cause = match choice % 5 {
            0 => Some(QuotaCause::Limited { window: None }),
            1 => Some(QuotaCause::Parallel { running: 2 }),
            _ => None,
        };
        self.holds_place = cause.is_none();
        self.input(Input::PlaceAnswered(PlaceAnswer {
            agent: 0,
            admission: match cause {
                Some(cause) => Admission::Wait(QuotaWait { cause, until }),
                None => Admission::Start(StartKind::Normal),
            },
            at: Timestamp::UNIX_EPOCH,
            spend: None,
        }));
    }

    fn answer_check(&mut self) {
        let check = self.checks.remove(0);
        self.input(check);
    }

    fn end_hook(&mut self) {
        self.hooks -= 1;
        let problem = self.hooks.is_multiple_of(2).then(|| "it failed".to_owned());
        self.input(Input::HookEnded(problem));
    }

    fn is_reviewing(&self) -> bool {
        matches!(&self.engine.state, EngineState::GateRunning(gate_run) if gate_run.is_review())
    }

    /// Sends one random input that is possible now.
    fn random_input(&mut self, (what, form, later): RandomInput) {
        self.at += Duration::from_millis(later.into());
        match what {
            0..5 => {
                let by = [Interrupt::Int, Interrupt::Term][usize::from(form % 2)];
                return self.input(stop_by(by));
            }
            5..10 => return self.tick_at_deadline(),
            10..13 => return self.input(Input::Tick),
            13..16 => return self.input(wake()),
            16..30 if !self.checks.is_empty() => return self.answer_check(),
            16..40 if self.hooks > 0 => return self.end_hook(),
            16.. => {}
        }
        match self.external {
            ExternalState::Quiet | ExternalState::Over => self.input(Input::Tick),
            ExternalState::ReadingPrompt if form == 0 => self.input(Input::Prompt(Err("gone".into()))),
            ExternalState::ReadingPrompt => self.input(Input::Prompt(Ok("task".into()))),
            ExternalState::Launching if form < 40 => self.input(Input::CouldNotStart { error: "no".into() }),
            ExternalState::Launching => self.input(launched()),
            // Without this case, hardly any simulation would reach a gate.
            ExternalState::Agent if what > 225 => {
                self.input(Input::Transcript(agent_event(0)));
                self.input(Input::Transcript(agent_event(10)));
                self.input(exited(0));
            }
            ExternalState::Agent if what > 150 && self.is_reviewing() => {
                self.input(Input::Transcript(review_answer(form)));
                self.input(Input::Transcript(agent_event(10)));
                self.input(exited(0));
            }
            ExternalState::Agent if what > 190 => self.input(exited(form)),
            ExternalState::Agent => match form % 8 {
                0 => self.input(Input::OutputSeen { bytes: 1 }),
                2 if self.engine.agent().transcript.messages == MessageBoundaries::Screen => {
                    self.input(key(form / 8));
                }
                1 => self.input(Input::Stderr(
                    "You've hit your usage limit, try again in 5m".into(),
                )),
                _ => self.input(Input::Transcript(agent_event(form / 8))),
            },
            ExternalState::Gate if what > 128 => self.input(gate_ended(form)),
            ExternalState::Gate => self.input(Input::OutputSeen { bytes: 1 }),
            ExternalState::Asked => self.input(answered(form)),
            ExternalState::AskedForPlace => self.answer_place(usize::from(form)),
        }
    }

    /// Continues without randomness until the run ends, within a bounded number of steps.
    fn run_to_end(&mut self, children: ChildBehavior) {
        for _ in 0..1500 {
            self.at += Duration::from_millis(1);
            match (self.external, children) {
                (ExternalState::Over, _) => return,
                _ if !self.checks.is_empty() => self.answer_check(),
                _ if self.hooks > 0 => self.end_hook(),
                (ExternalState::Quiet, _) => self.tick_at_deadline(),
                (ExternalState::Asked, _) => self.input(answer(Answer::Continue)),
                (ExternalState::AskedForPlace, _) => self.answer_place(self.log.len()),
                (ExternalState::ReadingPrompt, _) => self.input(Input::Prompt(Ok("task".into()))),
                (ExternalState::Launching, _) => self.input(launched()),
                (ExternalState::Agent, ChildBehavior::Cooperative) => {
                    self.input(Input::Transcript(TranscriptEvent::message(Tag::Ai, "working")));
                    self.input(exited(0));
                }
                (ExternalState::Gate, ChildBehavior::Cooperative) => self.input(gate_ended(0)),
                (ExternalState::Agent, ChildBehavior::IgnoresStop) if self.killed => self.input(exited(2)),
                (ExternalState::Gate, ChildBehavior::IgnoresStop) if self.killed => self.input(gate_ended(2)),
                (ExternalState::Agent | ExternalState::Gate, ChildBehavior::IgnoresStop) => {
                    assert!(
                        self.engine.deadline().is_some(),
                        "a running child needs a deadline"
                    );
                    self.tick_at_deadline();
                }
            }
        }
        panic!("the run does not end");
    }
}

/// A review by two other agents, one of whom has to approve.
fn add_review(policy: &mut Policy, rounds: u64) {
    let mut gate = super::gate("review");
    gate.run.clear();
    (gate.quorum, gate.rounds) = (Some(1), Some(rounds));
    policy.gates.push(gate);
    let reviewers = [1, 2].map(|agent| GateReviewer {
        name: format!("reviewer {agent}"),
        agent,
        instructions: None,
    });
    policy
        .agents
        .rules
        .extend(["codex", "opencode"].map(super::agent));
    policy
        .reviewers
        .by_gate
        .insert("review".into(), reviewers.to_vec());
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let limits = (1..4_u64, 1..4_u64, 0..4_u8, 30..9000_u64);
    (limits, 0..3_usize, any::<[bool; 10]>(), any::<u64>()).prop_map(|(limits, gates, flags, seed)| {
        let (iterations, failures, budgets, runtime) = limits;
        let [
            hats,
            wall,
            plain,
            cooldown,
            retry,
            interactive,
            hooks,
            paths,
            driver,
            snapshots,
        ] = flags;
        let mut policy = usual_policy();
        policy.seed = seed;
        policy.agents.rules[0].account = (seed % 3 == 0).then(|| "me".to_owned());
        policy.budgets.per_day_usd = (seed % 5 == 0).then_some(1.0);
        policy.limits.iterations = iterations;
        policy.limits.consecutive_failures = failures;
        policy.limits.runtime = Duration::from_secs(runtime);
        policy.limits.cost_usd = (budgets & 1 == 1).then_some(1.0);
        policy.limits.tokens = (budgets & 2 == 2).then_some(1000);
        policy.gates = (0..gates).map(|index| super::gate(&index.to_string())).collect();
        if snapshots && seed.is_multiple_of(3) {
            add_review(&mut policy, 1 + seed % 2);
        }
        policy.agents.rules[0].timeouts.wall = wall.then_some(Duration::from_secs(120));
        policy.timing.cooldown = Duration::from_secs(u64::from(cooldown));
        if plain {
            policy.agents.rules[0].transcript = TranscriptFeatures {
                messages: if interactive {
                    MessageBoundaries::Screen
                } else {
                    MessageBoundaries::LinesOnly
                },
                end: EndSignal::ExitOnly,
            };
        }
        if retry {
            policy.on_declared_failure = OnDeclaredFailure::Retry;
        }
        if hats {
            policy.hats = some_hats();
        }
        if hooks {
            policy.hooks = BTreeSet::from([HookKind::Iteration, HookKind::Complete, HookKind::Fail]);
        }
        if paths {
            policy.workspace_checks.allowed_paths = Check::On;
        }
        if snapshots {
            policy.snapshots = Check::On;
        }
        if driver {
            policy.agents.rules[0].session_source = SessionSource::Driver;
        }
        policy
    })
}

fn tree_check(tree: Option<String>, number: usize) -> Input {
    Input::TreeChecked(match number % 3 {
        0 => Err("git is gone".into()),
        more => Ok(CheckedTree {
            tree: tree.unwrap_or_default(),
            changed: vec!["a".into(); more - 1],
            changed_checks: Vec::new(),
        }),
    })
}

fn path_check(form: usize) -> Input {
    Input::PathsChecked(match form % 8 {
        0 => Err("git is gone".into()),
        1 => Ok(vec!["outside".into()]),
        _ => Ok(Vec::new()),
    })
}

fn some_hats() -> Hats {
    let hat = |name: &str, trigger: &str, most| Hat {
        name: name.into(),
        triggers: vec![trigger.into()],
        max_activations: most,
        default_publishes: Some("build.done".into()),
        ..Hat::default()
    };
    let rules = vec![
        hat("builder", "plan.ready", Some(1)),
        hat("planner", "task.start", None),
        hat("reviewer", "build.*", Some(2)),
    ];
    Hats::new(rules).expect("a usable set")
}

/// Plays one simulation and returns its log.
fn play(policy: &Policy, random_inputs: &[RandomInput], children: ChildBehavior) -> Vec<String> {
    let mut simulation = Simulation::new(policy.clone());
    simulation.input(Input::Started(Box::new(header())));
    for random_input in random_inputs {
        simulation.random_input(*random_input);
    }
    simulation.run_to_end(children);
    // Late inputs are ignored.
    for late in [
        Input::Tick,
        wake(),
        exited(0),
        gate_ended(0),
        stop_by(Interrupt::Int),
        command(Command::Kill),
        answer(Answer::Done),
    ] {
        assert_eq!(simulation.engine.step(simulation.at, late), []);
    }
    simulation.log
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_run_has_one_child_at_a_time_and_ends(
        policy in any_policy(),
        random_inputs in prop::collection::vec(any::<RandomInput>(), 0..160),
        ignores_stop in any::<bool>(),
    ) {
        let children = if ignores_stop { ChildBehavior::IgnoresStop } else { ChildBehavior::Cooperative };
        let first = play(&policy, &random_inputs, children);
        let second = play(&policy, &random_inputs, children);
        prop_assert_eq!(first, second, "same inputs, different actions");
    }
}

/// Guards against a trivial property test: the simulations must reach every outcome.
#[test]
fn simulations_reach_every_outcome() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let simulations = (
        any_policy(),
        prop::collection::vec(any::<RandomInput>(), 0..160),
        any::<bool>(),
    );
    let mut all = String::new();
    for _ in 0..2000 {
        let tree = simulations.new_tree(&mut runner).expect("a simulation");
        let (policy, random_inputs, ignores_stop) = tree.current();
        let children = if ignores_stop {
            ChildBehavior::IgnoresStop
        } else {
            ChildBehavior::Cooperative
        };
        all.push_str(&play(&policy, &random_inputs, children).join("\n"));
    }
    for part in [
        "Finish(Complete",
        "Finish(Failed { reason: \"the agent reported failure",
        "iterations failed in a row",
        "Finish(AuthRequired",
        "Finish(LimitReached { limit: Iterations",
        "Finish(LimitReached { limit: Runtime",
        "Finish(LimitReached { limit: Cost",
        "Finish(LimitReached { limit: Tokens",
        "Finish(Interrupted",
        "Finish(Unreviewed",
        "outcome: TimedOut",
        "outcome: RateLimited",
        "why: RateLimit",
        "outcome: CouldNotStart",
        "rejected_by: Some",
        "TopicRerouted",
        "MarkerIgnored",
        "> Kill",
        "Finish(Complete { marker: \"(the user's word)\"",
        "kill requested",
        "OutsideAllowedPaths",
        "PathsNotChecked",
        "text: \"it failed\"",
    ] {
        assert!(all.contains(part), "no simulation has {part}");
    }
}
