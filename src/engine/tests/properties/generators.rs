//! Generates inputs for random simulations; each number selects a variant.

use super::*;

pub(super) fn launched() -> Input {
    Input::AgentStarted {
        identity: AgentIdentity::Process { pid: 1 },
        command: Vec::new(),
    }
}

pub(super) fn key(form: u8) -> Input {
    match form % 16 {
        0 => command(Command::Kill),
        1..=4 => Input::KeyTyped(InteractiveKey::Interrupt),
        _ => Input::KeyTyped(InteractiveKey::Other),
    }
}

pub(super) fn answered(form: u8) -> Input {
    answer(match form % 8 {
        0 => Answer::Quit,
        1 => Answer::ContinueWithoutAsking,
        2..=4 => Answer::Done,
        _ => Answer::Continue,
    })
}

fn process_end(form: u8) -> ProcessEnd {
    match form % 3 {
        0 => ProcessEnd::Exited { code: 0 },
        1 => ProcessEnd::Exited { code: 1 },
        _ => ProcessEnd::Signaled { signal: 9 },
    }
}

pub(super) fn exited(form: u8) -> Input {
    Input::AgentEnded {
        end: process_end(form).into(),
        swept: 0,
    }
}

pub(super) fn gate_ended(form: u8) -> Input {
    Input::GateEnded(GateEnd {
        end: (form != 255).then(|| process_end(form)),
        output: "output".into(),
        ..GateEnd::default()
    })
}

pub(super) fn review_prepared(form: usize) -> Input {
    Input::ReviewPrepared(match form % 7 {
        0 => Err("no space left".into()),
        number => Ok(Box::new(ReviewMaterial {
            tree: number.to_string(),
            changed: vec!["a.rs".into()],
            touched: (number > 3).then(TouchedLines::default),
            ..ReviewMaterial::default()
        })),
    })
}

/// An answer of a reviewer.
pub(super) fn review_answer(form: u8) -> TranscriptEvent {
    message(
        match form % 3 {
            0 => "hm",
            1 => "{\"findings\": []}",
            _ => {
                "{\"findings\": [{\"file\": \"a.rs\", \"category\": \"bug\", \"severity\": \"critical\", \"claim\": \"x\"}]}"
            }
        },
        Flow::Message,
    )
}

fn message(text: &str, flow: Flow) -> TranscriptEvent {
    TranscriptEvent::Text {
        tag: Tag::Ai,
        text: text.into(),
        flow,
        parent: None,
    }
}

fn finished(success: bool) -> TranscriptEvent {
    TranscriptEvent::meta(Meta::Finished {
        success,
        reason: None,
        text: None,
        turns: None,
        duration_ms: None,
    })
}

fn error(class: ErrorClass) -> TranscriptEvent {
    TranscriptEvent::meta(Meta::Error {
        class,
        message: "You've hit your usage limit, resets 8:20pm".into(),
        status: None,
    })
}

fn usage(scope: UsageScope) -> TranscriptEvent {
    TranscriptEvent::usage(Usage {
        total_tokens: Some(600),
        cost_usd: crate::event::Usd::new(0.6),
        scope,
        ..Usage::default()
    })
}

/// A transcript event of the agent.
pub(super) fn agent_event(form: u8) -> TranscriptEvent {
    match form % 20 {
        0..=2 => message("done\nLOOP_COMPLETE", Flow::Message),
        3 => message("LOOP_", Flow::Delta),
        4 => message("COMPLETE", Flow::Delta),
        5 => message("<<<RALPHEX:FAILED>>>", Flow::Message),
        6 => message("<event topic=\"plan.ready\">x</event>", Flow::Message),
        7 => message("<event topic=\"odd\" target=\"missing\">x</event>", Flow::Line),
        8 => TranscriptEvent::ToolStart {
            tool: ToolStart {
                id: "t".into(),
                name: "shell".into(),
                input: None,
                parent: None,
            },
        },
        9 => TranscriptEvent::ToolEnd {
            tool: ToolEnd {
                id: "t".into(),
                status: ToolStatus::Ok,
                duration_ms: None,
            },
        },
        10..=12 => finished(true),
        13 => finished(false),
        14 => error(ErrorClass::Other),
        15 => error(ErrorClass::RateLimit),
        16 => error(ErrorClass::Auth),
        17 => usage(UsageScope::Step),
        18 => usage(UsageScope::Iteration),
        _ => TranscriptEvent::meta(Meta::RateLimit {
            status: RateLimitStatus::Rejected,
            resets_at: Timestamp::from_second(3600).ok(),
            limit: None,
            utilization: None,
        }),
    }
}
