//! Tests for hats in a run: activation, event delivery and completion.

use super::*;
use crate::event::{ToolStart, TopicEvent};
use crate::policy::Hat;

fn hat(name: &str, triggers: &[&str], publishes: &[&str]) -> Hat {
    crate::engine::hats::tests::hat(name, triggers, publishes)
}

/// A planner, a builder with a default topic, and a reviewer.
fn team() -> Policy {
    let mut builder = hat("builder", &["plan.ready", "review.rejected"], &["build.done"]);
    builder.default_publishes = Some("build.done".into());
    let rules = vec![
        builder,
        hat("planner", &["task.start"], &["plan.ready"]),
        hat("reviewer", &["build.*"], &["review.rejected"]),
    ];
    let mut policy = policy();
    policy.hats = Hats::new(rules).expect("a usable set");
    policy
}

impl TestRun {
    /// Launches the next iteration; returns its hat.
    fn launch_hat(&mut self, seconds: u64) -> String {
        match &self.step(seconds, Input::Prompt(Ok("task".into())))[..] {
            [Action::Launch { hat: Some(hat), .. }] => hat.clone(),
            other => panic!("expected a launch with a hat: {other:?}"),
        }
    }

    /// Runs a whole iteration of the given hat, after which the run continues.
    #[track_caller]
    fn turn(&mut self, seconds: u64, hat: &str, message: &str) {
        assert_eq!(self.launch_hat(seconds), hat);
        assert_eq!(self.iteration(seconds, message), [Action::ReadPrompt]);
    }

    fn started(policy: Policy) -> Self {
        let mut run = Self::with(policy);
        assert_eq!(
            run.step(0, Input::Started(Box::new(header()))),
            [Action::ReadPrompt]
        );
        run
    }
}

#[test]
fn topics_activate_hats_until_the_work_is_done() {
    let mut run = TestRun::started(team());
    run.turn(1, "planner", "<event topic=\"plan.ready\">three steps</event>");
    run.turn(2, "builder", "built the first");
    run.turn(
        3,
        "reviewer",
        "no.\n<event topic=\"review.rejected\">a test is missing</event>",
    );
    run.turn(4, "builder", "added it");
    assert_eq!(run.launch_hat(5), "reviewer");
    assert_eq!(run.iteration(5, "good\nLOOP_COMPLETE"), complete());
    let activated: Vec<String> = run
        .emitted
        .iter()
        .filter_map(|event| match event {
            RunEvent::IterationStarted { hat, .. } => hat.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(
        activated,
        ["planner", "builder", "reviewer", "builder", "reviewer"]
    );
}

#[test]
fn prompt_has_task_then_hat_then_completion_instructions() {
    let mut run = TestRun::started(team());
    run.turn(1, "planner", "<event topic=\"plan.ready\">three steps</event>");
    let prompt = run.launch(2, 2, 1);
    let order = [
        "task\n\n(From ralph: in this iteration",
        "- plan.ready: three steps",
        "is one of build.done",
        "LOOP_COMPLETE",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|part| prompt.find(part).unwrap_or_else(|| panic!("{part} in {prompt}")))
        .collect();
    assert!(places.is_sorted(), "{prompt}");
    assert_eq!(places[0], 0);
}

#[test]
fn marker_is_ignored_while_an_event_is_queued() {
    let mut run = TestRun::started(team());
    run.turn(
        1,
        "planner",
        "<event topic=\"plan.ready\">do it</event>\nLOOP_COMPLETE",
    );
    assert!(run.emitted.iter().any(|event| matches!(
        event,
        RunEvent::MarkerIgnored { reason, .. } if reason == "the event `plan.ready` is still queued for a hat"
    )));
    assert_eq!(run.launch_hat(2), "builder");
    assert_eq!(
        run.iteration(2, "LOOP_COMPLETE"),
        complete(),
        "a completion claim publishes no default event"
    );
}

#[test]
fn hat_stays_active_after_a_gate_rejects_its_claim() {
    let mut rules = team();
    rules.gates = vec![gate("test")];
    let mut run = TestRun::started(rules);
    run.turn(1, "planner", "<event topic=\"plan.ready\">p</event>");
    assert_eq!(run.launch_hat(2), "builder");
    assert_eq!(run.iteration(2, "LOOP_COMPLETE"), [Action::RunGate(gate("test"))]);
    let failed = Input::GateEnded(GateEnd {
        end: Some(ProcessEnd::Exited { code: 1 }),
        output: "boom".into(),
        ..GateEnd::default()
    });
    assert_eq!(run.step(3, failed), [Action::ReadPrompt]);
    let prompt = run.launch(3, 3, 1);
    assert!(prompt.contains("hat `builder`") && prompt.contains("plan.ready: p") && prompt.contains("boom"));
}

#[test]
fn failed_iteration_is_repeated_with_the_same_hat() {
    let mut run = TestRun::started(team());
    run.turn(1, "planner", "<event topic=\"plan.ready\">p</event>");
    assert_eq!(run.launch_hat(2), "builder");
    assert_eq!(
        run.agent_message(2, "<event topic=\"build.done\">half</event>"),
        []
    );
    let end = ProcessEnd::Exited { code: 1 };
    assert_eq!(
        run.step(
            2,
            Input::AgentEnded {
                end: end.into(),
                swept: 0
            }
        ),
        []
    );
    assert_eq!(run.step(60, wake()), [Action::ReadPrompt]);
    let prompt = run.launch(60, 3, 1);
    assert!(
        prompt.contains("hat `builder`") && prompt.contains("plan.ready: p"),
        "{prompt}"
    );
}

#[test]
fn default_events_and_rerouted_events_are_emitted() {
    let mut run = TestRun::started(team());
    run.turn(1, "planner", "<event topic=\"odd\">x</event>");
    assert!(run.emitted.iter().any(|event| matches!(
        event,
        RunEvent::TopicRerouted { topic, hat: Some(hat), reason, .. }
            if topic == "odd" && hat == "planner" && reason == "no hat claims it"
    )));
    run.turn(2, "planner", "<event topic=\"plan.ready\">p</event>");
    run.turn(3, "builder", "done");
    let topics = run.emitted.iter().filter_map(|event| match event {
        RunEvent::Topic { event, .. } => Some(event.topic.as_str()),
        _ => None,
    });
    assert_eq!(topics.collect::<Vec<_>>(), ["odd", "plan.ready", "build.done"]);
}

#[test]
fn run_ends_with_a_reason_when_all_hats_are_exhausted() {
    let mut rules = team();
    let mut lone = hat("lone", &["*"], &[]);
    lone.max_activations = Some(2);
    rules.hats = Hats::new(vec![lone]).expect("a usable set");
    let mut run = TestRun::started(rules);
    run.turn(1, "lone", "<event topic=\"again\">1</event>");
    run.turn(2, "lone", "<event topic=\"again\">2</event>");
    let reason =
        "no hat can take the event `again`: `lone` has been activated 2 times (hats.lone.max_activations)";
    assert_eq!(
        run.step(3, Input::Prompt(Ok("task".into()))),
        [Action::Finish(RunOutcome::Failed {
            reason: reason.into()
        })]
    );
}

fn emitted_event(topic: &str) -> TopicEvent {
    TopicEvent {
        topic: topic.into(),
        target: None,
        payload: "from a tool".into(),
    }
}

fn publish(id: &str, topic: &str, iteration: u64) -> Input {
    Input::Command(CommandRequest {
        id: id.into(),
        command: Command::Publish {
            event: emitted_event(topic),
            iteration: Some(iteration),
        },
    })
}

impl TestRun {
    fn notices(&self) -> Vec<&str> {
        let texts = self.emitted.iter().filter_map(|event| match event {
            RunEvent::Notice { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

#[test]
fn event_that_a_command_publishes_is_delivered_once() {
    let mut run = TestRun::started(team());
    assert_eq!(run.launch_hat(1), "planner");
    assert_eq!(run.step(2, publish("a", "plan.ready", 1)), []);
    assert_eq!(run.step(2, publish("a", "plan.ready", 1)), []);
    assert_eq!(run.iteration(3, "planned"), [Action::ReadPrompt]);
    let topic = RunEvent::Topic {
        iteration: 1,
        event: emitted_event("plan.ready"),
    };
    assert_eq!(run.emitted.iter().filter(|event| **event == topic).count(), 1);
    let prompt = run.launch(4, 2, 1);
    assert_eq!(prompt.matches("- plan.ready: from a tool").count(), 1, "{prompt}");
}

#[test]
fn event_of_an_ended_iteration_is_not_delivered() {
    let mut run = TestRun::started(team());
    run.turn(1, "planner", "<event topic=\"plan.ready\">p</event>");
    assert_eq!(run.step(2, publish("a", "review.rejected", 1)), []);
    assert_eq!(run.launch_hat(3), "builder");
    assert_eq!(run.step(4, publish("b", "review.rejected", 1)), []);
    let text = "the event `review.rejected` was not delivered: the iteration that published it has ended";
    assert_eq!(run.notices(), [text, text]);
}

#[test]
fn completion_marker_as_a_topic_claims_completion() {
    for (text, command) in [
        ("done", Some("LOOP_COMPLETE")),
        ("<event topic=\"LOOP_COMPLETE\">all built</event>\nBye.", None),
    ] {
        let mut run = TestRun::started(team());
        assert_eq!(run.launch_hat(1), "planner");
        if let Some(topic) = command {
            assert_eq!(run.step(2, publish("a", topic, 1)), []);
        }
        let marker = "LOOP_COMPLETE".to_owned();
        assert_eq!(
            run.iteration(3, text),
            [Action::Finish(RunOutcome::Complete { marker })],
            "{text}"
        );
    }
}

#[test]
fn claim_before_a_required_event_is_rejected_with_the_reason() {
    let mut rules = team();
    rules.required_events = vec!["build.done".into()];
    let mut run = TestRun::started(rules);
    assert_eq!(run.launch_hat(1), "planner");
    assert_eq!(run.iteration(2, "LOOP_COMPLETE"), [Action::ReadPrompt]);
    let prompt = run.launch(3, 2, 1);
    let reason =
        "the event `build.done`, which event_loop.required_events requires, has not been published yet";
    assert!(prompt.contains(reason), "{prompt}");
    let published = "<event topic=\"build.done\">b</event>";
    assert_eq!(run.iteration(4, published), [Action::ReadPrompt]);
    assert_eq!(run.launch_hat(5), "reviewer");
    let marker = "LOOP_COMPLETE".to_owned();
    assert_eq!(
        run.iteration(6, "LOOP_COMPLETE"),
        [Action::Finish(RunOutcome::Complete { marker })]
    );
}

#[test]
fn hat_that_uses_a_disallowed_tool_fails() {
    let mut rules = policy();
    let mut lone = hat("lone", &["*"], &[]);
    lone.disallowed_tools = vec!["Edit".into()];
    rules.hats = Hats::new(vec![lone]).expect("a usable set");
    let mut run = TestRun::started(rules);
    let prompt = run.launch(1, 1, 1);
    assert!(prompt.contains("do not use these tools: Edit."), "{prompt}");
    for name in ["Read", "Edit"] {
        let tool = ToolStart {
            id: name.into(),
            name: name.into(),
            input: None,
            parent: None,
        };
        run.step(2, Input::Transcript(TranscriptEvent::ToolStart { tool }));
    }
    run.iteration(3, "LOOP_COMPLETE");
    let failure = IterationFailure::DisallowedTool { tool: "Edit".into() };
    assert_eq!(*run.last_outcome(), IterationOutcome::Failed { failure });
}
