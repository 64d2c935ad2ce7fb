//! What the doctor says about trust: what would run here, and whether it may.

use crate::config::Loaded;
use crate::doctor::{Finding, State};

use super::super::context::Context;
use super::ledger::Ledger;
use super::{Consent, Scope, Standing, Subject, executes, judged};

const AREA: &str = "trust";

pub(in crate::cli) fn findings(context: &Context, loaded: &Loaded, consent: Consent) -> Vec<Finding> {
    let ledger = match Ledger::open() {
        Ok(ledger) => ledger,
        Err(error) => return vec![unknowable(&error.to_string())],
    };
    match judged(context, executes(context, loaded, Scope::Call), &ledger) {
        Ok(subjects) if subjects.is_empty() => vec![Finding {
            area: AREA,
            subject: "commands".to_owned(),
            state: State::Good,
            detail: "nothing here has ralph run anything but the agent".to_owned(),
            remedy: None,
        }],
        Ok(subjects) => subjects
            .iter()
            .map(|subject| about(context, subject, consent))
            .collect(),
        Err(error) => vec![unknowable(&error.to_string())],
    }
}

fn about(context: &Context, subject: &Subject, consent: Consent) -> Finding {
    let path = subject.path.strip_prefix(&context.cwd).unwrap_or(&subject.path);
    let would = subject.commands.join("; ").replace('\n', " ");
    let (state, standing) = match (subject.standing, consent) {
        (Standing::Own, _) => (State::Good, "yours"),
        (Standing::Allowed, _) => (State::Good, "allowed"),
        (Standing::Unknown, Consent::Given) => (State::Good, "allowed for this call"),
        (Standing::Unknown, Consent::Asked) => (State::Warning, "not allowed yet"),
    };
    Finding {
        area: AREA,
        subject: path.display().to_string(),
        state,
        detail: format!("{standing} ({}); would run: {would}", subject.why),
        remedy: match state {
            State::Good | State::Absent => None,
            State::Warning | State::Broken => {
                Some("look at it with ralph trust --show, then allow it with ralph trust".to_owned())
            }
        },
    }
}

fn unknowable(why: &str) -> Finding {
    Finding {
        area: AREA,
        subject: "commands".to_owned(),
        state: State::Warning,
        detail: format!("what is allowed cannot be read: {why}"),
        remedy: Some(
            "mend or remove ralph/trust.json in ~/.local/state; what was allowed is asked about again"
                .to_owned(),
        ),
    }
}
