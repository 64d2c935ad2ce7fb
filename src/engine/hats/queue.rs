//! The queue of events between hats: queued events, the active hat, and the number of activations of each hat.

use std::collections::VecDeque;

use crate::event::TopicEvent;

use super::{Hat, Hats};
use crate::engine::prompt::{OUTPUT_BUDGET, trim_middle};
use crate::engine::topic;
use crate::policy::{FINDING_TOPIC, QUESTION_TOPIC};

/// Further events are dropped; more than this is a sign of runaway output.
const MAX_QUEUED_EVENTS: usize = 256;

/// The event queue and the active hat. Without hats, the queue stays empty.
#[derive(Debug)]
pub(crate) struct HatQueue {
    hats: Hats,
    queued: VecDeque<QueuedEvent>,
    activations: Vec<u64>,
    /// The active hat and the events that were delivered to it. Kept after a failure: the same hat tries again.
    active: Option<Activation>,
    /// Events that the running iteration has published so far.
    published: Vec<TopicEvent>,
}

#[derive(Debug, Clone)]
struct QueuedEvent {
    hat: usize,
    event: TopicEvent,
}

#[derive(Debug)]
struct Activation {
    hat: usize,
    events: Vec<TopicEvent>,
}

/// An event that was not delivered to the hat that its topic or target names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReroutedEvent {
    pub(crate) topic: String,
    /// `None` if it was not delivered at all.
    pub(crate) hat: Option<String>,
    pub(crate) reason: String,
}

/// How the iteration of a hat ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActivationEnd {
    /// The iteration succeeded; its published events are queued.
    Done,
    /// A gate rejected the hat's completion claim; the hat runs again with the same events.
    Rejected,
    /// The iteration failed; it is repeated, so its published events are dropped.
    Failed,
}

/// The result of ending an activation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ActivationResult {
    /// The event that was published on behalf of the hat.
    pub(crate) default_event: Option<TopicEvent>,
    pub(crate) rerouted: Vec<ReroutedEvent>,
}

impl HatQueue {
    pub(crate) fn new(hats: Hats) -> Self {
        let activations = vec![0; hats.len()];
        let queued = if hats.is_empty() {
            VecDeque::new()
        } else {
            VecDeque::from([start_event(&hats)])
        };
        Self {
            hats,
            queued,
            activations,
            active: None,
            published: Vec::new(),
        }
    }

    /// Activates the hat of the first queued event and delivers all events for it. The error is the reason why no hat
    /// can be activated.
    pub(crate) fn activate_next(&mut self) -> Result<Vec<ReroutedEvent>, String> {
        let mut rerouted = Vec::new();
        if self.hats.is_empty() || self.active.is_some() {
            return Ok(rerouted);
        }
        if self.queued.is_empty() {
            let queued = start_event(&self.hats);
            rerouted.push(ReroutedEvent {
                topic: queued.event.topic.clone(),
                hat: Some(self.name(queued.hat)),
                reason: "no event is queued".to_owned(),
            });
            self.queued.push_back(QueuedEvent {
                hat: self.hats.default_index(),
                ..queued
            });
        }
        let hat = match self.queued.front() {
            Some(queued) if self.is_exhausted(queued.hat) => {
                self.reroute_exhausted(queued.hat, &mut rerouted)?
            }
            Some(queued) => queued.hat,
            None => return Ok(rerouted),
        };
        let (delivered, others) = self.queued.drain(..).partition(|queued| queued.hat == hat);
        self.queued = others;
        let delivered: VecDeque<QueuedEvent> = delivered;
        self.activations[hat] += 1;
        self.active = Some(Activation {
            hat,
            events: delivered.into_iter().map(|queued| queued.event).collect(),
        });
        Ok(rerouted)
    }

    /// Reroutes the events of an exhausted hat to the default hat.
    fn reroute_exhausted(&mut self, from: usize, rerouted: &mut Vec<ReroutedEvent>) -> Result<usize, String> {
        let to = self.hats.default_index();
        let name = self.name(from);
        let times = match self.activations[from] {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        let why = format!("`{name}` has been activated {times} (hats.{name}.max_activations)");
        if self.is_exhausted(to) {
            let topic = self
                .queued
                .front()
                .map_or(self.hats.start_topic(), |queued| &queued.event.topic);
            return Err(format!("no hat can take the event `{topic}`: {why}"));
        }
        let default = self.name(to);
        for queued in self.queued.iter_mut().filter(|queued| queued.hat == from) {
            queued.hat = to;
            rerouted.push(ReroutedEvent {
                topic: queued.event.topic.clone(),
                hat: Some(default.clone()),
                reason: why.clone(),
            });
        }
        Ok(to)
    }

    fn is_exhausted(&self, hat: usize) -> bool {
        let max = self.hats.rule(hat).max_activations;
        max.is_some_and(|max| self.activations[hat] >= max)
    }

    fn name(&self, hat: usize) -> String {
        self.hats.rule(hat).name.clone()
    }

    pub(crate) fn active_hat(&self) -> Option<&Hat> {
        self.active
            .as_ref()
            .map(|activation| self.hats.rule(activation.hat))
    }

    /// The tools that the active hat must not use.
    pub(crate) fn disallowed_tools(&self) -> &[String] {
        self.active_hat().map_or(&[], |rule| &rule.disallowed_tools)
    }

    /// Notes an event that the running iteration published.
    pub(crate) fn publish(&mut self, event: &TopicEvent) {
        if event.topic == QUESTION_TOPIC || event.topic == FINDING_TOPIC {
            return;
        }
        // One more than the queue can hold, so that the overflow is reported.
        if self.active.is_some() && self.published.len() <= MAX_QUEUED_EVENTS {
            self.published.push(event.clone());
        }
    }

    /// The topic of the first event that is not delivered yet. While there is one, the work is not done.
    pub(crate) fn first_pending_topic(&self) -> Option<&str> {
        let queued = self.queued.iter().map(|queued| &queued.event);
        queued
            .chain(&self.published)
            .next()
            .map(|event| event.topic.as_str())
    }

    /// Ends the activation after its iteration.
    pub(crate) fn end_activation(&mut self, ended: ActivationEnd) -> ActivationResult {
        let mut result = ActivationResult::default();
        let mut published = std::mem::take(&mut self.published);
        match ended {
            ActivationEnd::Failed => {}
            ActivationEnd::Rejected => {
                if let Some(Activation { hat, events }) = self.active.take() {
                    let requeued = events.into_iter().map(|event| QueuedEvent { hat, event });
                    self.queued = requeued.chain(self.queued.drain(..)).collect();
                }
            }
            ActivationEnd::Done => {
                let topic = self.active_hat().and_then(|rule| rule.default_publishes.clone());
                if let (true, Some(topic)) = (published.is_empty(), topic) {
                    let event = TopicEvent {
                        topic,
                        target: None,
                        payload: String::new(),
                    };
                    published.push(event.clone());
                    result.default_event = Some(event);
                }
                self.active = None;
                result.rerouted = published
                    .into_iter()
                    .filter_map(|event| self.enqueue(event))
                    .collect();
            }
        }
        result
    }

    /// Queues an event; returns a report if it is dropped or goes to another hat than its topic or target names.
    fn enqueue(&mut self, event: TopicEvent) -> Option<ReroutedEvent> {
        let topic = event.topic.clone();
        let rerouted = |hat: Option<String>, reason: String| Some(ReroutedEvent { topic, hat, reason });
        if self.queued.len() >= MAX_QUEUED_EVENTS {
            let reason = format!("not delivered: {MAX_QUEUED_EVENTS} events are already queued");
            return rerouted(None, reason);
        }
        let target = event
            .target
            .as_deref()
            .map(|name| (name, self.hats.index_of(name)));
        let claiming_hat = self.hats.claiming_hat(&event.topic);
        let (hat, reason) = match (target, claiming_hat) {
            (Some((_, Some(hat))), _) | (None, Some(hat)) => (hat, None),
            (Some((name, None)), Some(hat)) => (hat, Some(format!("there is no hat `{name}`"))),
            (Some((name, None)), None) => {
                let reason = format!("there is no hat `{name}`, and no hat claims it");
                (self.hats.default_index(), Some(reason))
            }
            (None, None) => (self.hats.default_index(), Some("no hat claims it".to_owned())),
        };
        self.queued.push_back(QueuedEvent { hat, event });
        rerouted(Some(self.name(hat)), reason?)
    }

    /// The section of the prompt about the active hat.
    pub(crate) fn prompt_section(&self) -> Option<String> {
        let activation = self.active.as_ref()?;
        let rule = self.hats.rule(activation.hat);
        let name = rule.shown_name();
        let mut parts = vec![match rule.description.trim() {
            "" => format!("(From ralph: in this iteration your role is the hat `{name}`.)"),
            what => format!("(From ralph: in this iteration your role is the hat `{name}`: {what})"),
        }];
        let instructions = rule.instructions.trim();
        if !instructions.is_empty() {
            parts.push(instructions.to_owned());
        }
        let events: Vec<String> = activation.events.iter().map(list_item).collect();
        parts.push(format!("Events for `{name}`:\n\n{}", events.join("\n")));
        parts.extend(how_to_publish(rule));
        parts.extend(disallowed_tools(rule));
        Some(parts.join("\n\n"))
    }
}

fn start_event(hats: &Hats) -> QueuedEvent {
    QueuedEvent {
        hat: hats
            .claiming_hat(hats.start_topic())
            .unwrap_or(hats.default_index()),
        event: TopicEvent {
            topic: hats.start_topic().to_owned(),
            target: None,
            payload: String::new(),
        },
    }
}

fn list_item(event: &TopicEvent) -> String {
    let topic = &event.topic;
    if event.payload.is_empty() {
        return format!("- {topic}");
    }
    let payload = trim_middle(&event.payload, OUTPUT_BUDGET).replace('\n', "\n  ");
    format!("- {topic}: {payload}")
}

fn disallowed_tools(rule: &Hat) -> Option<String> {
    let tools = &rule.disallowed_tools;
    (!tools.is_empty()).then(|| {
        format!(
            "In this role, do not use these tools: {}. An iteration that uses one does not count.",
            tools.join(", ")
        )
    })
}

fn how_to_publish(rule: &Hat) -> Option<String> {
    let topics: Vec<&str> = rule.topics().collect();
    if topics.is_empty() {
        return None;
    }
    let mut text = format!(
        "To hand over, publish events in your answer, each as {}, where TOPIC is one of {} and PAYLOAD is what the \
         next hat needs to know.",
        topic::EXAMPLE,
        topics.join(", ")
    );
    if let Some(default) = &rule.default_publishes {
        text.push_str(&format!(" If you publish none, {default} is published for you."));
    }
    Some(text)
}

#[cfg(test)]
mod tests;
