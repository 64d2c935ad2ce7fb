//! Tests for hat activation and event delivery.

use super::*;
use crate::engine::hats::tests::hat;
use crate::engine::marker::UnclosedFence;
use crate::engine::topic::events_in;
use crate::policy::START_TOPIC;

fn queue(rules: Vec<Hat>) -> HatQueue {
    HatQueue::new(Hats::new(rules).expect("a usable set"))
}

fn team() -> Vec<Hat> {
    let mut builder = hat("builder", &["plan.ready", "review.rejected"], &["build.done"]);
    builder.default_publishes = Some("build.done".into());
    vec![
        builder,
        hat("planner", &[START_TOPIC], &["plan.ready"]),
        hat("reviewer", &["build.*"], &["review.rejected"]),
    ]
}

fn event(topic: &str, payload: &str) -> TopicEvent {
    TopicEvent {
        topic: topic.into(),
        target: None,
        payload: payload.into(),
    }
}

/// Runs one successful iteration; returns the active hat, its events and the rerouted events.
fn turn(queue: &mut HatQueue, publishes: &[TopicEvent]) -> (String, Vec<String>, Vec<String>) {
    let mut rerouted: Vec<String> = queue
        .activate_next()
        .expect("a hat is left")
        .iter()
        .map(describe)
        .collect();
    let activation = queue.active.as_ref().expect("a hat");
    let events = activation
        .events
        .iter()
        .map(|event| event.topic.clone())
        .collect();
    let name = queue.name(activation.hat);
    publishes.iter().for_each(|event| queue.publish(event));
    rerouted.extend(
        queue
            .end_activation(ActivationEnd::Done)
            .rerouted
            .iter()
            .map(describe),
    );
    (name, events, rerouted)
}

fn describe(rerouted: &ReroutedEvent) -> String {
    let ReroutedEvent { topic, hat, reason } = rerouted;
    format!("{topic} → {}: {reason}", hat.as_deref().unwrap_or("none"))
}

#[track_caller]
fn assert_turn(
    queue: &mut HatQueue,
    publishes: &[TopicEvent],
    name: &str,
    events: &[&str],
    rerouted: &[&str],
) {
    let (hat, delivered, reported) = turn(queue, publishes);
    assert_eq!(
        (hat.as_str(), delivered, reported),
        (
            name,
            events.iter().map(ToString::to_string).collect::<Vec<_>>(),
            rerouted.iter().map(ToString::to_string).collect::<Vec<_>>(),
        )
    );
}

#[test]
fn events_activate_hats_in_turn() {
    let mut queue = queue(team());
    assert_turn(
        &mut queue,
        &[event("plan.ready", "")],
        "planner",
        &[START_TOPIC],
        &[],
    );
    assert_turn(&mut queue, &[], "builder", &["plan.ready"], &[]);
    assert_turn(
        &mut queue,
        &[event("review.rejected", "")],
        "reviewer",
        &["build.done"],
        &[],
    );
    assert_turn(
        &mut queue,
        &[event("build.done", "")],
        "builder",
        &["review.rejected"],
        &[],
    );
}

#[test]
fn events_for_one_hat_are_delivered_together_in_queue_order() {
    let mut queue = queue(team());
    let published = [
        event("plan.ready", "1"),
        event("build.x", ""),
        event("plan.ready", "2"),
    ];
    assert_turn(&mut queue, &published, "planner", &[START_TOPIC], &[]);
    assert_turn(&mut queue, &[], "builder", &["plan.ready", "plan.ready"], &[]);
    assert_turn(&mut queue, &[], "reviewer", &["build.x", "build.done"], &[]);
}

#[test]
fn target_selects_the_hat_and_unknown_targets_are_reported() {
    let mut queue = queue(team());
    let to = |target: &str, topic: &str| TopicEvent {
        target: Some(target.into()),
        ..event(topic, "")
    };
    let published = [
        to("reviewer", "plan.ready"),
        to("missing", "plan.ready"),
        to("missing", "odd"),
    ];
    assert_turn(
        &mut queue,
        &published,
        "planner",
        &[START_TOPIC],
        &[
            "plan.ready → builder: there is no hat `missing`",
            "odd → planner: there is no hat `missing`, and no hat claims it",
        ],
    );
    assert_turn(&mut queue, &[], "reviewer", &["plan.ready"], &[]);
}

#[test]
fn unclaimed_event_goes_to_the_default_hat_and_is_reported() {
    let mut queue = queue(team());
    assert_turn(
        &mut queue,
        &[event("odd", "")],
        "planner",
        &[START_TOPIC],
        &["odd → planner: no hat claims it"],
    );
    assert_turn(&mut queue, &[], "planner", &["odd"], &[]);
}

#[test]
fn empty_queue_activates_the_default_hat() {
    let mut queue = queue(team());
    assert_turn(&mut queue, &[], "planner", &[START_TOPIC], &[]);
    assert_turn(
        &mut queue,
        &[],
        "planner",
        &[START_TOPIC],
        &["task.start → planner: no event is queued"],
    );
}

#[test]
fn failed_hat_runs_again_with_the_same_events_and_its_published_events_are_dropped() {
    let mut queue = queue(team());
    queue.activate_next().expect("a hat is left");
    queue.publish(&event("plan.ready", "half a plan"));
    assert_eq!(
        queue.end_activation(ActivationEnd::Failed),
        ActivationResult::default()
    );
    assert_eq!(queue.first_pending_topic(), None);
    assert_turn(
        &mut queue,
        &[event("plan.ready", "")],
        "planner",
        &[START_TOPIC],
        &[],
    );
    assert_eq!(queue.activations, [0, 1, 0], "a retry is not a second activation");
}

#[test]
fn rejected_hat_runs_again_with_the_same_events() {
    let mut queue = queue(team());
    assert_turn(
        &mut queue,
        &[event("plan.ready", "p")],
        "planner",
        &[START_TOPIC],
        &[],
    );
    queue.activate_next().expect("a hat is left");
    assert_eq!(
        queue.end_activation(ActivationEnd::Rejected),
        ActivationResult::default()
    );
    assert_turn(&mut queue, &[], "builder", &["plan.ready"], &[]);
}

#[test]
fn events_of_an_exhausted_hat_go_to_the_default_hat() {
    let mut rules = team();
    rules[0].max_activations = Some(1);
    let mut queue = queue(rules);
    let plan = [event("plan.ready", "")];
    assert_turn(&mut queue, &plan, "planner", &[START_TOPIC], &[]);
    assert_turn(&mut queue, &plan, "builder", &["plan.ready"], &[]);
    assert_turn(
        &mut queue,
        &[],
        "planner",
        &["plan.ready"],
        &["plan.ready → planner: `builder` has been activated once (hats.builder.max_activations)"],
    );
}

#[test]
fn exhausted_default_hat_is_an_error() {
    let mut rules = team();
    rules[1].max_activations = Some(2);
    let mut queue = queue(rules);
    let odd = [event("odd", "")];
    turn(&mut queue, &odd);
    turn(&mut queue, &odd);
    let reason = queue.activate_next().expect_err("no hat is left");
    assert_eq!(
        reason,
        "no hat can take the event `odd`: `planner` has been activated 2 times (hats.planner.max_activations)"
    );
}

#[test]
fn queue_length_is_bounded() {
    let mut queue = queue(team());
    let flood: Vec<TopicEvent> = (0..1000).map(|_| event("plan.ready", "")).collect();
    let (_, _, rerouted) = turn(&mut queue, &flood);
    assert_eq!(rerouted.len(), 1, "reported once, not a thousand times");
    assert_eq!(queue.queued.len(), MAX_QUEUED_EVENTS);
    assert_eq!(
        rerouted[0],
        "plan.ready → none: not delivered: 256 events are already queued"
    );
}

#[test]
fn queue_without_hats_stays_empty() {
    let mut queue = HatQueue::new(Hats::default());
    assert_eq!(queue.activate_next(), Ok(Vec::new()));
    queue.publish(&event("a", ""));
    assert_eq!(
        (queue.first_pending_topic(), queue.prompt_section()),
        (None, None)
    );
    assert_eq!(
        queue.end_activation(ActivationEnd::Done),
        ActivationResult::default()
    );
}

#[test]
fn prompt_section_shows_hat_events_and_how_to_publish() {
    let mut rules = team();
    rules[0].description = "writes the code.".into();
    rules[0].instructions = "Change one thing at a time.\n".into();
    let mut queue = queue(rules);
    turn(
        &mut queue,
        &[event("plan.ready", "first\nsecond"), event("review.rejected", "")],
    );
    queue.activate_next().expect("a hat is left");
    insta::assert_snapshot!(queue.prompt_section().expect("a section"), @r#"
    (From ralph: in this iteration your role is the hat `builder`: writes the code.)

    Change one thing at a time.

    Events for `builder`:

    - plan.ready: first
      second
    - review.rejected

    To hand over, publish events in your answer, each as <event topic="TOPIC">PAYLOAD</event>, where TOPIC is one of build.done and PAYLOAD is what the next hat needs to know. If you publish none, build.done is published for you.
    "#);
}

#[test]
fn example_in_the_prompt_is_not_an_event() {
    let mut queue = queue(team());
    queue.activate_next().expect("a hat is left");
    assert_eq!(
        events_in(
            &queue.prompt_section().expect("a section"),
            UnclosedFence::ExtendsToEnd
        ),
        []
    );
}
