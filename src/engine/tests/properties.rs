//! What holds for every run, whatever happens in it: random worlds that keep the contract between the engine and
//! its hands (after a launch comes its answer, and later exactly one end), and what the engine must never do.

mod generators;

use proptest::prelude::*;

use super::{header, policy as usual_policy};
use crate::engine::*;
use crate::event::{ErrorClass, Flow, Meta, RateLimitStatus, Tag, ToolEnd, ToolStart, ToolStatus};

use generators::{answered, exited, gate_ended, heard, key, launched};

/// What the world outside the engine looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outside {
    Quiet,
    /// The prompt was asked for.
    Reading,
    /// The agent was launched; whether it started is not yet known.
    Launching,
    Agent,
    Gate,
    /// The user is being asked.
    Asked,
    Over,
}

/// How the world goes on when its random part is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Children end by themselves, and do well.
    Obliging,
    /// No child ever ends unless it is killed.
    Stubborn,
}

/// One thing that chance brings: which, in which form, and how much later.
type Chance = (u8, u8, u16);

struct World {
    engine: Engine,
    at: Duration,
    outside: Outside,
    killed: bool,
    interrupted: bool,
    open_iterations: i64,
    last_iteration: u64,
    run_ended: u64,
    trail: HatHistory,
    log: Vec<String>,
}

impl World {
    fn new(policy: Policy) -> Self {
        Self {
            engine: Engine::new(policy),
            at: Duration::ZERO,
            outside: Outside::Quiet,
            killed: false,
            interrupted: false,
            open_iterations: 0,
            last_iteration: 0,
            run_ended: 0,
            trail: HatHistory::default(),
            log: Vec::new(),
        }
    }

    fn tell(&mut self, input: Input) {
        match input {
            Input::Interrupted(_) => self.interrupted = true,
            Input::Launched { .. } => self.outside = Outside::Agent,
            Input::CouldNotStart { .. }
            | Input::Exited { .. }
            | Input::GateEnded { .. }
            | Input::Answered(_)
            | Input::Prompt(_) => {
                (self.outside, self.killed) = (Outside::Quiet, false);
            }
            _ => {}
        }
        self.log.push(format!("{:?} < {input:?}", self.at));
        let was_over = self.outside == Outside::Over;
        for action in self.engine.step(self.at, input) {
            self.log.push(format!("{:?} > {action:?}", self.at));
            assert!(!was_over, "nothing is done after the end: {action:?}");
            self.obey(action);
        }
        self.compare_with_the_trail();
    }

    fn obey(&mut self, action: Action) {
        let child_runs = matches!(self.outside, Outside::Launching | Outside::Agent | Outside::Gate);
        match action {
            Action::Emit(event) => self.note(&event),
            Action::ReadPrompt => {
                assert!(!child_runs, "a prompt is read before a launch, not during one");
                self.outside = Outside::Reading;
            }
            Action::Launch { .. } => {
                assert!(!child_runs, "two children at once");
                assert!(!self.interrupted, "nothing begins after an interrupt");
                self.outside = Outside::Launching;
            }
            Action::RunGate(_) => {
                assert!(!child_runs, "two children at once");
                assert!(!self.interrupted, "nothing begins after an interrupt");
                self.outside = Outside::Gate;
            }
            Action::Ask => {
                assert!(!child_runs, "asked while a child runs");
                assert_eq!(self.engine.policy.reading.messages, Messages::Watched);
                self.outside = Outside::Asked;
            }
            Action::Stop { .. } => assert!(child_runs, "there is nothing to stop"),
            Action::Kill => {
                assert!(child_runs, "there is nothing to kill");
                self.killed = true;
            }
            Action::Finish(_) => {
                assert!(!child_runs, "finished while a child runs");
                assert_eq!((self.run_ended, self.open_iterations), (1, 0));
                self.outside = Outside::Over;
            }
        }
    }

    /// Between two iterations, the hats of a run that was cut off here stand where they stand now.
    fn compare_with_the_trail(&self) {
        if self.open_iterations == 0 && self.outside != Outside::Over {
            let mut other = Engine::new(self.engine.policy.clone());
            other.follow_hats(&self.trail);
            assert_eq!(format!("{:?}", other.post), format!("{:?}", self.engine.post));
        }
    }

    fn note(&mut self, event: &RunEvent) {
        self.trail.note(event);
        match event {
            RunEvent::IterationStarted { iteration, .. } => {
                assert!(*iteration >= self.last_iteration, "iterations go forward");
                self.last_iteration = *iteration;
                self.open_iterations += 1;
                assert_eq!(self.open_iterations, 1, "one iteration at a time");
            }
            RunEvent::IterationEnded { .. } => self.open_iterations -= 1,
            RunEvent::RunEnded { .. } => self.run_ended += 1,
            _ => {}
        }
    }

    fn tick_at_deadline(&mut self) {
        if let Some(due) = self.engine.deadline() {
            self.at = self.at.max(due);
        }
        self.tell(Input::Tick);
    }

    /// One random thing that can happen now.
    fn chance(&mut self, (what, form, later): Chance) {
        self.at += Duration::from_millis(later.into());
        match what {
            0..5 => {
                let by = [Interrupt::Int, Interrupt::Term][usize::from(form % 2)];
                return self.tell(Input::Interrupted(by));
            }
            5..10 => return self.tick_at_deadline(),
            10..13 => return self.tell(Input::Tick),
            13..16 => return self.tell(Input::WakeUp),
            16.. => {}
        }
        match self.outside {
            Outside::Quiet | Outside::Over => self.tell(Input::Tick),
            Outside::Reading if form == 0 => self.tell(Input::Prompt(Err("gone".into()))),
            Outside::Reading => self.tell(Input::Prompt(Ok("task".into()))),
            Outside::Launching if form < 40 => self.tell(Input::CouldNotStart { error: "no".into() }),
            Outside::Launching => self.tell(launched()),
            // Without these, hardly any world would ever get as far as a gate.
            Outside::Agent if what > 225 => {
                self.tell(Input::Transcript(heard(0)));
                self.tell(Input::Transcript(heard(10)));
                self.tell(exited(0));
            }
            Outside::Agent if what > 190 => self.tell(exited(form)),
            Outside::Agent => match form % 8 {
                0 => self.tell(Input::OutputSeen),
                2 if self.engine.policy.reading.messages == Messages::Watched => {
                    self.tell(Input::KeyTyped(key(form / 8)));
                }
                1 => self.tell(Input::Stderr(
                    "You've hit your usage limit, try again in 5m".into(),
                )),
                _ => self.tell(Input::Transcript(heard(form / 8))),
            },
            Outside::Gate if what > 128 => self.tell(gate_ended(form)),
            Outside::Gate => self.tell(Input::OutputSeen),
            Outside::Asked => self.tell(answered(form)),
        }
    }

    /// Goes on without chance until the run is over; how many steps that may take is bounded.
    fn play_out(&mut self, ending: Ending) {
        for _ in 0..2000 {
            self.at += Duration::from_millis(1);
            match (self.outside, ending) {
                (Outside::Over, _) => return,
                (Outside::Quiet, _) => self.tick_at_deadline(),
                (Outside::Asked, _) => self.tell(Input::Answered(Answer::GoOn)),
                (Outside::Reading, _) => self.tell(Input::Prompt(Ok("task".into()))),
                (Outside::Launching, _) => self.tell(launched()),
                (Outside::Agent, Ending::Obliging) => {
                    self.tell(Input::Transcript(TranscriptEvent::message(Tag::Ai, "working")));
                    self.tell(exited(0));
                }
                (Outside::Gate, Ending::Obliging) => self.tell(gate_ended(0)),
                (Outside::Agent, Ending::Stubborn) if self.killed => self.tell(exited(2)),
                (Outside::Gate, Ending::Stubborn) if self.killed => self.tell(gate_ended(2)),
                (Outside::Agent | Outside::Gate, Ending::Stubborn) => {
                    assert!(
                        self.engine.deadline().is_some(),
                        "nobody would ever stop this child"
                    );
                    self.tick_at_deadline();
                }
            }
        }
        panic!("the run does not end");
    }
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let limits = (1..4_u64, 1..4_u64, 0..4_u8, 30..9000_u64);
    (limits, 0..3_usize, any::<[bool; 6]>(), any::<u64>()).prop_map(|(limits, gates, flags, seed)| {
        let (iterations, failures, budgets, runtime) = limits;
        let [hats, wall, plain, cooldown, retry, watched] = flags;
        let mut policy = usual_policy();
        policy.seed = seed;
        policy.limits.iterations = iterations;
        policy.limits.consecutive_failures = failures;
        policy.limits.runtime = Duration::from_secs(runtime);
        policy.limits.cost_usd = (budgets & 1 == 1).then_some(1.0);
        policy.limits.tokens = (budgets & 2 == 2).then_some(1000);
        policy.gates = (0..gates).map(|index| super::gate(&index.to_string())).collect();
        policy.timing.wall = wall.then_some(Duration::from_secs(120));
        policy.timing.cooldown = Duration::from_secs(u64::from(cooldown));
        if plain {
            policy.reading = Reading {
                messages: if watched {
                    Messages::Watched
                } else {
                    Messages::Absent
                },
                ending: super::Ending::ExitOnly,
            };
        }
        if retry {
            policy.on_declared_failure = OnDeclaredFailure::Retry;
        }
        if hats {
            policy.hats = some_hats();
        }
        policy
    })
}

fn some_hats() -> Hats {
    let hat = |name: &str, trigger: &str, most| HatRule {
        name: name.into(),
        triggers: vec![trigger.into()],
        max_activations: most,
        default_publishes: Some("build.done".into()),
        ..HatRule::default()
    };
    let rules = vec![
        hat("builder", "plan.ready", Some(1)),
        hat("planner", "task.start", None),
        hat("reviewer", "build.*", Some(2)),
    ];
    Hats::new(rules).expect("a usable set")
}

/// Plays one world; what happened in it, in order.
fn play(policy: &Policy, chances: &[Chance], ending: Ending) -> Vec<String> {
    let mut world = World::new(policy.clone());
    world.tell(Input::Started(Box::new(header())));
    for chance in chances {
        world.chance(*chance);
    }
    world.play_out(ending);
    // Whatever comes too late changes nothing.
    for late in [
        Input::Tick,
        Input::WakeUp,
        exited(0),
        gate_ended(0),
        Input::Interrupted(Interrupt::Int),
        Input::KeyTyped(Key::Kill),
        Input::Answered(Answer::Done),
    ] {
        assert_eq!(world.engine.step(world.at, late), []);
    }
    world.log
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_run_has_one_child_at_a_time_and_an_end(
        policy in any_policy(),
        chances in prop::collection::vec(any::<Chance>(), 0..160),
        stubborn in any::<bool>(),
    ) {
        let ending = if stubborn { Ending::Stubborn } else { Ending::Obliging };
        let first = play(&policy, &chances, ending);
        let second = play(&policy, &chances, ending);
        prop_assert_eq!(first, second, "the same things happened, and something else was done");
    }
}

/// The property above would hold in worlds in which nothing happens, too.
#[test]
fn the_random_worlds_reach_every_kind_of_end() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let worlds = (
        any_policy(),
        prop::collection::vec(any::<Chance>(), 0..160),
        any::<bool>(),
    );
    let mut all = String::new();
    for _ in 0..1500 {
        let tree = worlds.new_tree(&mut runner).expect("a world");
        let (policy, chances, stubborn) = tree.current();
        let ending = if stubborn {
            Ending::Stubborn
        } else {
            Ending::Obliging
        };
        all.push_str(&play(&policy, &chances, ending).join("\n"));
    }
    for part in [
        "Finish(Complete",
        "Finish(Failed { reason: \"the agent gave up",
        "iterations failed in a row",
        "Finish(AuthRequired",
        "Finish(LimitReached { limit: Iterations",
        "Finish(LimitReached { limit: Runtime",
        "Finish(LimitReached { limit: Cost",
        "Finish(LimitReached { limit: Tokens",
        "Finish(Interrupted",
        "outcome: TimedOut",
        "outcome: RateLimited",
        "why: RateLimit",
        "outcome: CouldNotStart",
        "rejected_by: Some",
        "TopicRerouted",
        "MarkerIgnored",
        "> Kill",
        "Finish(Complete { marker: \"(the user's word)\"",
        "killed by Ctrl-",
    ] {
        assert!(all.contains(part), "no world has {part}");
    }
}
