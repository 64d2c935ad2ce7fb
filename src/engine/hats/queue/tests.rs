//! Who is worn when, and what is delivered.

use super::super::tests::hat;
use super::*;

fn post(rules: Vec<HatRule>) -> HatQueue {
    HatQueue::new(Hats::new(rules).expect("a usable set"))
}

fn team() -> Vec<HatRule> {
    let mut builder = hat("builder", &["plan.ready", "review.rejected"], &["build.done"]);
    builder.default_publishes = Some("build.done".into());
    vec![
        builder,
        hat("planner", &[START], &["plan.ready"]),
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

/// One good iteration: who wore what with which events, and what was said about it.
fn turn(post: &mut HatQueue, publishes: &[TopicEvent]) -> (String, Vec<String>, Vec<String>) {
    let mut said: Vec<String> = post.deliver().expect("somebody").iter().map(words).collect();
    let delivery = post.in_hand.as_ref().expect("a hat");
    let events = delivery.events.iter().map(|event| event.topic.clone()).collect();
    let name = post.name(delivery.hat);
    publishes.iter().for_each(|event| post.publish(event));
    said.extend(post.settle(Ended::Done).rerouted.iter().map(words));
    (name, events, said)
}

fn words(rerouted: &Rerouted) -> String {
    let Rerouted { topic, hat, reason } = rerouted;
    format!("{topic} → {}: {reason}", hat.as_deref().unwrap_or("nobody"))
}

#[track_caller]
fn assert_turn(post: &mut HatQueue, publishes: &[TopicEvent], name: &str, events: &[&str], said: &[&str]) {
    let (worn, delivered, told) = turn(post, publishes);
    assert_eq!(
        (worn.as_str(), delivered, told),
        (
            name,
            events.iter().map(ToString::to_string).collect::<Vec<_>>(),
            said.iter().map(ToString::to_string).collect::<Vec<_>>(),
        )
    );
}

#[test]
fn events_go_from_hat_to_hat() {
    let mut post = post(team());
    assert_turn(&mut post, &[event("plan.ready", "")], "planner", &[START], &[]);
    assert_turn(&mut post, &[], "builder", &["plan.ready"], &[]);
    assert_turn(
        &mut post,
        &[event("review.rejected", "")],
        "reviewer",
        &["build.done"],
        &[],
    );
    assert_turn(
        &mut post,
        &[event("build.done", "")],
        "builder",
        &["review.rejected"],
        &[],
    );
}

#[test]
fn what_waits_for_one_hat_is_delivered_together_and_first_come_is_first_served() {
    let mut post = post(team());
    let published = [
        event("plan.ready", "1"),
        event("build.x", ""),
        event("plan.ready", "2"),
    ];
    assert_turn(&mut post, &published, "planner", &[START], &[]);
    assert_turn(&mut post, &[], "builder", &["plan.ready", "plan.ready"], &[]);
    assert_turn(&mut post, &[], "reviewer", &["build.x", "build.done"], &[]);
}

#[test]
fn a_target_names_its_hat_and_a_wrong_one_is_told() {
    let mut post = post(team());
    let to = |target: &str, topic: &str| TopicEvent {
        target: Some(target.into()),
        ..event(topic, "")
    };
    let published = [
        to("reviewer", "plan.ready"),
        to("nobody", "plan.ready"),
        to("nobody", "odd"),
    ];
    assert_turn(
        &mut post,
        &published,
        "planner",
        &[START],
        &[
            "plan.ready → builder: there is no hat `nobody`",
            "odd → planner: there is no hat `nobody`, and no other claims it",
        ],
    );
    assert_turn(&mut post, &[], "reviewer", &["plan.ready"], &[]);
}

#[test]
fn an_event_that_nobody_claims_goes_to_the_default_hat_and_is_told() {
    let mut post = post(team());
    assert_turn(
        &mut post,
        &[event("odd", "")],
        "planner",
        &[START],
        &["odd → planner: no hat claims it"],
    );
    assert_turn(&mut post, &[], "planner", &["odd"], &[]);
}

#[test]
fn with_nothing_waiting_the_default_hat_starts_again() {
    let mut post = post(team());
    assert_turn(&mut post, &[], "planner", &[START], &[]);
    assert_turn(
        &mut post,
        &[],
        "planner",
        &[START],
        &["task.start → planner: no event is waiting"],
    );
}

#[test]
fn a_failed_hat_tries_again_with_the_same_events_and_what_it_published_goes_nowhere() {
    let mut post = post(team());
    post.deliver().expect("somebody");
    post.publish(&event("plan.ready", "half a plan"));
    assert_eq!(post.settle(Ended::Failed), Sent::default());
    assert_eq!(post.undelivered(), None);
    assert_turn(&mut post, &[event("plan.ready", "")], "planner", &[START], &[]);
    assert_eq!(
        post.activations,
        [0, 1, 0],
        "a second try is no second activation"
    );
}

#[test]
fn a_refused_hat_goes_on_with_what_it_has() {
    let mut post = post(team());
    assert_turn(&mut post, &[event("plan.ready", "p")], "planner", &[START], &[]);
    post.deliver().expect("somebody");
    assert_eq!(post.settle(Ended::Refused), Sent::default());
    assert_turn(&mut post, &[], "builder", &["plan.ready"], &[]);
}

#[test]
fn a_hat_that_was_worn_often_enough_hands_its_events_to_the_default_hat() {
    let mut rules = team();
    rules[0].max_activations = Some(1);
    let mut post = post(rules);
    let plan = [event("plan.ready", "")];
    assert_turn(&mut post, &plan, "planner", &[START], &[]);
    assert_turn(&mut post, &plan, "builder", &["plan.ready"], &[]);
    assert_turn(
        &mut post,
        &[],
        "planner",
        &["plan.ready"],
        &["plan.ready → planner: `builder` has been worn once (hats.builder.max_activations)"],
    );
}

#[test]
fn when_the_default_hat_is_worn_out_too_nobody_is_left() {
    let mut rules = team();
    rules[1].max_activations = Some(2);
    let mut post = post(rules);
    let odd = [event("odd", "")];
    turn(&mut post, &odd);
    turn(&mut post, &odd);
    let reason = post.deliver().expect_err("nobody");
    assert_eq!(
        reason,
        "nobody is left to take the event `odd`: `planner` has been worn 2 times (hats.planner.max_activations)"
    );
}

#[test]
fn a_flood_of_events_is_bounded() {
    let mut post = post(team());
    let flood: Vec<TopicEvent> = (0..1000).map(|_| event("plan.ready", "")).collect();
    let (_, _, said) = turn(&mut post, &flood);
    assert_eq!(said.len(), 1, "told once, not a thousand times");
    assert_eq!(post.waiting.len(), MOST_WAITING);
    assert_eq!(
        said[0],
        "plan.ready → nobody: not delivered: 256 events are waiting already"
    );
}

#[test]
fn without_hats_there_is_no_post() {
    let mut post = HatQueue::new(Hats::default());
    assert_eq!(post.deliver(), Ok(Vec::new()));
    post.publish(&event("a", ""));
    assert_eq!((post.undelivered(), post.section()), (None, None));
    assert_eq!(post.settle(Ended::Done), Sent::default());
}

#[test]
fn the_prompt_says_who_one_is_what_came_and_how_to_hand_on() {
    let mut rules = team();
    rules[0].description = "writes the code.".into();
    rules[0].instructions = "Change one thing at a time.\n".into();
    let mut post = post(rules);
    turn(
        &mut post,
        &[event("plan.ready", "first\nsecond"), event("review.rejected", "")],
    );
    post.deliver().expect("somebody");
    insta::assert_snapshot!(post.section().expect("a section"), @r#"
    (From ralph: in this iteration you wear the hat `builder`: writes the code.)

    Change one thing at a time.

    Events for `builder`:

    - plan.ready: first
      second
    - review.rejected

    To hand on, publish events in your answer, each as <event topic="TOPIC">PAYLOAD</event>, where TOPIC is one of build.done and PAYLOAD is what the next one needs to know. If you publish none, build.done is published for you.
    "#);
}

#[test]
fn the_prompts_own_example_is_no_event() {
    let mut post = post(team());
    post.deliver().expect("somebody");
    assert_eq!(topic::events_in(&post.section().expect("a section")), []);
}
