//! What can happen in a random world, by a number each.

use super::*;

pub(super) fn launched() -> Input {
    Input::Launched {
        pid: 1,
        command: Vec::new(),
    }
}

pub(super) fn key(form: u8) -> Key {
    match form % 16 {
        0 => Key::Kill,
        1..=4 => Key::Interrupt,
        _ => Key::Any,
    }
}

pub(super) fn answered(form: u8) -> Input {
    Input::Answered(match form % 8 {
        0 => Answer::Quit,
        1 => Answer::GoOnWithoutAsking,
        2..=4 => Answer::Done,
        _ => Answer::GoOn,
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
    Input::Exited {
        end: process_end(form),
        swept: 0,
    }
}

pub(super) fn gate_ended(form: u8) -> Input {
    Input::GateEnded {
        end: (form != 255).then(|| process_end(form)),
        output: "output".into(),
    }
}

fn said(text: &str, flow: Flow) -> TranscriptEvent {
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

fn used(scope: UsageScope) -> TranscriptEvent {
    TranscriptEvent::usage(Usage {
        total_tokens: Some(600),
        cost_usd: Some(0.6),
        scope,
        ..Usage::default()
    })
}

/// One of the things that an agent may say or do.
pub(super) fn heard(form: u8) -> TranscriptEvent {
    match form % 20 {
        0..=2 => said("done\nLOOP_COMPLETE", Flow::Message),
        3 => said("LOOP_", Flow::Delta),
        4 => said("COMPLETE", Flow::Delta),
        5 => said("<<<RALPHEX:FAILED>>>", Flow::Message),
        6 => said("<event topic=\"plan.ready\">x</event>", Flow::Message),
        7 => said("<event topic=\"odd\" target=\"nobody\">x</event>", Flow::Line),
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
        17 => used(UsageScope::Step),
        18 => used(UsageScope::Iteration),
        _ => TranscriptEvent::meta(Meta::RateLimit {
            status: RateLimitStatus::Rejected,
            resets_at: Timestamp::from_second(3600).ok(),
            limit: None,
        }),
    }
}
