//! The post between hats: which events wait for whom, who is worn now, and how often each was. What a topic means
//! is in `hats`.

use std::collections::VecDeque;

use crate::event::TopicEvent;

use super::{HatRule, Hats, START};
use crate::engine::prompt::{OUTPUT_BUDGET, trim_middle};
use crate::engine::topic;

/// More events than this do not wait; who publishes so many does not mean them.
const MOST_WAITING: usize = 256;

/// The state of the post. Without hats nothing ever waits.
#[derive(Debug)]
pub(crate) struct HatQueue {
    hats: Hats,
    waiting: VecDeque<Letter>,
    activations: Vec<u64>,
    /// The hat that is worn, and what was delivered to it. Kept over failures: the same hat tries again.
    in_hand: Option<Delivery>,
    /// What the running iteration has published so far.
    published: Vec<TopicEvent>,
}

#[derive(Debug, Clone)]
struct Letter {
    hat: usize,
    event: TopicEvent,
}

#[derive(Debug)]
struct Delivery {
    hat: usize,
    events: Vec<TopicEvent>,
}

/// An event that did not go where its topic says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rerouted {
    pub(crate) topic: String,
    /// `None` if it was not delivered at all.
    pub(crate) hat: Option<String>,
    pub(crate) reason: String,
}

/// How the iteration of a hat ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It did its part: what it published goes out.
    Done,
    /// It claimed to have finished everything, and was not believed: it goes on with what it has.
    Refused,
    /// It will try again, and publish again: what it published so far goes nowhere.
    Failed,
}

/// What the end of a hat's iteration brings about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// What was published in its name.
    pub(crate) default: Option<TopicEvent>,
    pub(crate) rerouted: Vec<Rerouted>,
}

impl HatQueue {
    pub(crate) fn new(hats: Hats) -> Self {
        let activations = vec![0; hats.len()];
        let waiting = if hats.is_empty() {
            VecDeque::new()
        } else {
            VecDeque::from([start(&hats)])
        };
        Self {
            hats,
            waiting,
            activations,
            in_hand: None,
            published: Vec::new(),
        }
    }

    /// Decides who is worn next. The error is why nobody can be.
    pub(crate) fn deliver(&mut self) -> Result<Vec<Rerouted>, String> {
        let mut rerouted = Vec::new();
        if self.hats.is_empty() || self.in_hand.is_some() {
            return Ok(rerouted);
        }
        if self.waiting.is_empty() {
            let letter = start(&self.hats);
            rerouted.push(Rerouted {
                topic: START.to_owned(),
                hat: Some(self.name(letter.hat)),
                reason: "no event is waiting".to_owned(),
            });
            self.waiting.push_back(Letter {
                hat: self.hats.default_index(),
                ..letter
            });
        }
        let hat = match self.waiting.front() {
            Some(letter) if self.is_exhausted(letter.hat) => self.pass_on(letter.hat, &mut rerouted)?,
            Some(letter) => letter.hat,
            None => return Ok(rerouted),
        };
        let (mine, others) = self.waiting.drain(..).partition(|letter| letter.hat == hat);
        self.waiting = others;
        let mine: VecDeque<Letter> = mine;
        self.activations[hat] += 1;
        self.in_hand = Some(Delivery {
            hat,
            events: mine.into_iter().map(|letter| letter.event).collect(),
        });
        Ok(rerouted)
    }

    /// What waits for a hat that may not be worn again goes to the default hat.
    fn pass_on(&mut self, from: usize, rerouted: &mut Vec<Rerouted>) -> Result<usize, String> {
        let to = self.hats.default_index();
        let name = self.name(from);
        let times = match self.activations[from] {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        let why = format!("`{name}` has been worn {times} (hats.{name}.max_activations)");
        if self.is_exhausted(to) {
            let topic = self.waiting.front().map_or(START, |letter| &letter.event.topic);
            return Err(format!("nobody is left to take the event `{topic}`: {why}"));
        }
        let default = self.name(to);
        for letter in self.waiting.iter_mut().filter(|letter| letter.hat == from) {
            letter.hat = to;
            rerouted.push(Rerouted {
                topic: letter.event.topic.clone(),
                hat: Some(default.clone()),
                reason: why.clone(),
            });
        }
        Ok(to)
    }

    fn is_exhausted(&self, hat: usize) -> bool {
        let most = self.hats.rule(hat).max_activations;
        most.is_some_and(|most| self.activations[hat] >= most)
    }

    fn name(&self, hat: usize) -> String {
        self.hats.rule(hat).name.clone()
    }

    pub(crate) fn worn(&self) -> Option<&HatRule> {
        self.in_hand.as_ref().map(|delivery| self.hats.rule(delivery.hat))
    }

    /// The running iteration has published this.
    pub(crate) fn publish(&mut self, event: &TopicEvent) {
        // One more than can wait, so that it is told that there were more.
        if self.in_hand.is_some() && self.published.len() <= MOST_WAITING {
            self.published.push(event.clone());
        }
    }

    /// The first event that somebody still has to take: with it, the work is not done.
    pub(crate) fn undelivered(&self) -> Option<&str> {
        let waiting = self.waiting.iter().map(|letter| &letter.event);
        waiting
            .chain(&self.published)
            .next()
            .map(|event| event.topic.as_str())
    }

    /// The hat's iteration has ended.
    pub(crate) fn settle(&mut self, ended: Ended) -> Sent {
        let mut sent = Sent::default();
        let mut published = std::mem::take(&mut self.published);
        match ended {
            Ended::Failed => {}
            Ended::Refused => {
                if let Some(Delivery { hat, events }) = self.in_hand.take() {
                    let again = events.into_iter().map(|event| Letter { hat, event });
                    self.waiting = again.chain(self.waiting.drain(..)).collect();
                }
            }
            Ended::Done => {
                let topic = self.worn().and_then(|rule| rule.default_publishes.clone());
                if let (true, Some(topic)) = (published.is_empty(), topic) {
                    let event = TopicEvent {
                        topic,
                        target: None,
                        payload: String::new(),
                    };
                    published.push(event.clone());
                    sent.default = Some(event);
                }
                self.in_hand = None;
                sent.rerouted = published
                    .into_iter()
                    .filter_map(|event| self.send(event))
                    .collect();
            }
        }
        sent
    }

    /// Puts an event where it belongs; says so if that is not where its topic or target says.
    fn send(&mut self, event: TopicEvent) -> Option<Rerouted> {
        let topic = event.topic.clone();
        let elsewhere = |hat: Option<String>, reason: String| Some(Rerouted { topic, hat, reason });
        if self.waiting.len() >= MOST_WAITING {
            let reason = format!("not delivered: {MOST_WAITING} events are waiting already");
            return elsewhere(None, reason);
        }
        let target = event.target.as_deref().map(|name| (name, self.hats.named(name)));
        let claimant = self.hats.claimant(&event.topic);
        let (hat, reason) = match (target, claimant) {
            (Some((_, Some(hat))), _) | (None, Some(hat)) => (hat, None),
            (Some((name, None)), Some(hat)) => (hat, Some(format!("there is no hat `{name}`"))),
            (Some((name, None)), None) => {
                let reason = format!("there is no hat `{name}`, and no other claims it");
                (self.hats.default_index(), Some(reason))
            }
            (None, None) => (self.hats.default_index(), Some("no hat claims it".to_owned())),
        };
        self.waiting.push_back(Letter { hat, event });
        elsewhere(Some(self.name(hat)), reason?)
    }

    /// What the prompt says about the hat that is worn.
    pub(crate) fn section(&self) -> Option<String> {
        let delivery = self.in_hand.as_ref()?;
        let rule = self.hats.rule(delivery.hat);
        let name = &rule.name;
        let mut parts = vec![match rule.description.trim() {
            "" => format!("(From ralph: in this iteration you wear the hat `{name}`.)"),
            what => format!("(From ralph: in this iteration you wear the hat `{name}`: {what})"),
        }];
        let instructions = rule.instructions.trim();
        if !instructions.is_empty() {
            parts.push(instructions.to_owned());
        }
        let events: Vec<String> = delivery.events.iter().map(listed).collect();
        parts.push(format!("Events for `{name}`:\n\n{}", events.join("\n")));
        parts.extend(how_to_publish(rule));
        Some(parts.join("\n\n"))
    }
}

fn start(hats: &Hats) -> Letter {
    Letter {
        hat: hats.claimant(START).unwrap_or(hats.default_index()),
        event: TopicEvent {
            topic: START.to_owned(),
            target: None,
            payload: String::new(),
        },
    }
}

fn listed(event: &TopicEvent) -> String {
    let topic = &event.topic;
    if event.payload.is_empty() {
        return format!("- {topic}");
    }
    let payload = trim_middle(&event.payload, OUTPUT_BUDGET).replace('\n', "\n  ");
    format!("- {topic}: {payload}")
}

fn how_to_publish(rule: &HatRule) -> Option<String> {
    let topics: Vec<&str> = rule.topics().collect();
    if topics.is_empty() {
        return None;
    }
    let mut text = format!(
        "To hand on, publish events in your answer, each as {}, where TOPIC is one of {} and PAYLOAD is what the \
         next one needs to know.",
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
