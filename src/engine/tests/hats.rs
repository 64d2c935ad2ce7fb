//! Hats in a run: who is worn, what is delivered, when the marker counts.

use super::*;
use crate::engine::hats::HatRule;

fn hat(name: &str, triggers: &[&str], publishes: &[&str]) -> HatRule {
    crate::engine::hats::tests::hat(name, triggers, publishes)
}

/// A planner, a builder that always hands on, and a reviewer.
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

impl Talk {
    /// Launches the next iteration; says who wears it.
    fn wears(&mut self, seconds: u64) -> String {
        match &self.say(seconds, Input::Prompt(Ok("task".into())))[..] {
            [Action::Launch { hat: Some(hat), .. }] => hat.clone(),
            other => panic!("expected a launch with a hat: {other:?}"),
        }
    }

    /// A whole iteration of the given hat, after which the run goes on.
    #[track_caller]
    fn turn(&mut self, seconds: u64, hat: &str, says: &str) {
        assert_eq!(self.wears(seconds), hat);
        assert_eq!(self.iteration(seconds, says), [Action::ReadPrompt]);
    }

    fn started(policy: Policy) -> Self {
        let mut talk = Self::with(policy);
        assert_eq!(
            talk.say(0, Input::Started(Box::new(header()))),
            [Action::ReadPrompt]
        );
        talk
    }
}

#[test]
fn hats_are_worn_along_the_topics_until_one_of_them_is_done() {
    let mut talk = Talk::started(team());
    talk.turn(1, "planner", "<event topic=\"plan.ready\">three steps</event>");
    talk.turn(2, "builder", "built the first");
    talk.turn(
        3,
        "reviewer",
        "no.\n<event topic=\"review.rejected\">a test is missing</event>",
    );
    talk.turn(4, "builder", "added it");
    assert_eq!(talk.wears(5), "reviewer");
    assert_eq!(talk.iteration(5, "good\nLOOP_COMPLETE"), complete());
    let worn: Vec<String> = talk
        .told
        .iter()
        .filter_map(|event| match event {
            RunEvent::IterationStarted { hat, .. } => hat.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(worn, ["planner", "builder", "reviewer", "builder", "reviewer"]);
}

#[test]
fn the_prompt_is_the_task_then_the_hat_then_how_to_finish() {
    let mut talk = Talk::started(team());
    talk.turn(1, "planner", "<event topic=\"plan.ready\">three steps</event>");
    let prompt = talk.launch(2, 2, 1);
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
fn the_marker_does_not_count_while_an_event_waits() {
    let mut talk = Talk::started(team());
    talk.turn(
        1,
        "planner",
        "<event topic=\"plan.ready\">do it</event>\nLOOP_COMPLETE",
    );
    assert!(talk.told.iter().any(|event| matches!(
        event,
        RunEvent::MarkerIgnored { reason, .. } if reason == "the event `plan.ready` is still waiting for a hat"
    )));
    assert_eq!(talk.wears(2), "builder");
    assert_eq!(
        talk.iteration(2, "LOOP_COMPLETE"),
        complete(),
        "a claim is no time for a default event"
    );
}

#[test]
fn a_claim_that_a_gate_refuses_stays_with_its_hat() {
    let mut rules = team();
    rules.gates = vec![gate("test")];
    let mut talk = Talk::started(rules);
    talk.turn(1, "planner", "<event topic=\"plan.ready\">p</event>");
    assert_eq!(talk.wears(2), "builder");
    assert_eq!(
        talk.iteration(2, "LOOP_COMPLETE"),
        [Action::RunGate(gate("test"))]
    );
    let failed = Input::GateEnded {
        end: Some(ProcessEnd::Exited { code: 1 }),
        output: "boom".into(),
    };
    assert_eq!(talk.say(3, failed), [Action::ReadPrompt]);
    let prompt = talk.launch(3, 3, 1);
    assert!(prompt.contains("hat `builder`") && prompt.contains("plan.ready: p") && prompt.contains("boom"));
}

#[test]
fn a_failed_iteration_is_tried_again_by_the_same_hat() {
    let mut talk = Talk::started(team());
    talk.turn(1, "planner", "<event topic=\"plan.ready\">p</event>");
    assert_eq!(talk.wears(2), "builder");
    assert_eq!(talk.agent_says(2, "<event topic=\"build.done\">half</event>"), []);
    let end = ProcessEnd::Exited { code: 1 };
    assert_eq!(talk.say(2, Input::Exited { end, swept: 0 }), []);
    assert_eq!(talk.say(60, Input::WakeUp), [Action::ReadPrompt]);
    let prompt = talk.launch(60, 3, 1);
    assert!(
        prompt.contains("hat `builder`") && prompt.contains("plan.ready: p"),
        "{prompt}"
    );
}

#[test]
fn the_default_event_and_detours_are_told() {
    let mut talk = Talk::started(team());
    talk.turn(1, "planner", "<event topic=\"odd\">x</event>");
    assert!(talk.told.iter().any(|event| matches!(
        event,
        RunEvent::TopicRerouted { topic, hat: Some(hat), reason, .. }
            if topic == "odd" && hat == "planner" && reason == "no hat claims it"
    )));
    talk.turn(2, "planner", "<event topic=\"plan.ready\">p</event>");
    talk.turn(3, "builder", "done");
    let topics = talk.told.iter().filter_map(|event| match event {
        RunEvent::Topic { event, .. } => Some(event.topic.as_str()),
        _ => None,
    });
    assert_eq!(topics.collect::<Vec<_>>(), ["odd", "plan.ready", "build.done"]);
}

#[test]
fn a_run_in_which_nobody_may_be_worn_any_more_ends_and_says_why() {
    let mut rules = team();
    let mut lone = hat("lone", &["*"], &[]);
    lone.max_activations = Some(2);
    rules.hats = Hats::new(vec![lone]).expect("a usable set");
    let mut talk = Talk::started(rules);
    talk.turn(1, "lone", "<event topic=\"again\">1</event>");
    talk.turn(2, "lone", "<event topic=\"again\">2</event>");
    let reason =
        "nobody is left to take the event `again`: `lone` has been worn 2 times (hats.lone.max_activations)";
    assert_eq!(
        talk.say(3, Input::Prompt(Ok("task".into()))),
        [Action::Finish(RunOutcome::Failed {
            reason: reason.into()
        })]
    );
}
