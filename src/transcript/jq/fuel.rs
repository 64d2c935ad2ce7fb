//! Limits the steps and the stack of a filter. jaq cannot stop an endless loop, so every definition of the filter and of the
//! library is rewritten to start with `ralph_tick as $ralph | …`. `ralph_tick` fails when the fuel for a line is used up or
//! the stack is too deep. All loops go through a definition, except `range`, which `bounds.jq` wraps in the same way.

use std::cell::Cell;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path::{Part, Path};

pub(super) const TICK: &str = "ralph_tick";

/// Far below the 2 MiB of the smallest thread.
const MAX_STACK_BYTES: usize = 512 * 1024;

thread_local! {
    static REMAINING: Cell<u64> = const { Cell::new(0) };
    static STACK_START: Cell<usize> = const { Cell::new(0) };
}

/// Sets the fuel of the current thread.
pub(super) fn fill(fuel: u64) {
    REMAINING.set(fuel);
    STACK_START.set(stack_position());
}

/// Uses one unit of fuel. The error is the reason why the filter is stopped.
pub(super) fn burn() -> Result<(), &'static str> {
    if STACK_START.get().abs_diff(stack_position()) > MAX_STACK_BYTES {
        return Err("the filter recurses too deeply");
    }
    match REMAINING.get().checked_sub(1) {
        Some(left) => {
            REMAINING.set(left);
            Ok(())
        }
        None => Err("the filter takes too many steps and may loop forever"),
    }
}

/// The approximate stack position: the address of a local variable.
#[inline(never)]
fn stack_position() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// Adds a tick before the body of the definition and of each nested definition.
pub(super) fn meter(definition: Def<&str>) -> Def<&str> {
    let body = meter_term(definition.body);
    let tick = Box::new(Term::Call(TICK, Vec::new()));
    let unused = BinaryOp::Pipe(Some(Pattern::Var("$ralph")));
    Def {
        body: Term::BinOp(tick, unused, Box::new(body)),
        ..definition
    }
}

fn meter_term(term: Term<&str>) -> Term<&str> {
    let inner = |term: Box<Term<_>>| Box::new(meter_term(*term));
    let all = |terms: Vec<Term<_>>| terms.into_iter().map(meter_term).collect();
    match term {
        Term::Id | Term::Recurse | Term::Num(_) | Term::Break(_) | Term::Var(_) => term,
        Term::Str(format, parts) => Term::Str(format, parts.into_iter().map(meter_part).collect()),
        Term::Arr(items) => Term::Arr(items.map(inner)),
        Term::Obj(members) => Term::Obj(
            members
                .into_iter()
                .map(|(key, value)| (meter_term(key), value.map(meter_term)))
                .collect(),
        ),
        Term::Neg(of) => Term::Neg(inner(of)),
        Term::BinOp(left, operation, right) => {
            let operation = match operation {
                BinaryOp::Pipe(Some(pattern)) => BinaryOp::Pipe(Some(meter_pattern(pattern))),
                other => other,
            };
            Term::BinOp(inner(left), operation, inner(right))
        }
        Term::Label(name, of) => Term::Label(name, inner(of)),
        Term::Fold(name, of, pattern, steps) => {
            Term::Fold(name, inner(of), meter_pattern(pattern), all(steps))
        }
        Term::TryCatch(attempt, catch) => Term::TryCatch(inner(attempt), catch.map(inner)),
        Term::IfThenElse(cases, otherwise) => Term::IfThenElse(
            cases
                .into_iter()
                .map(|(case, then)| (meter_term(case), meter_term(then)))
                .collect(),
            otherwise.map(inner),
        ),
        Term::Def(definitions, of) => Term::Def(definitions.into_iter().map(meter).collect(), inner(of)),
        Term::Call(name, arguments) => Term::Call(name, all(arguments)),
        Term::Path(of, Path(parts)) => {
            Term::Path(inner(of), Path(parts.into_iter().map(meter_step).collect()))
        }
    }
}

fn meter_part<'a>(part: StrPart<&'a str, Term<&'a str>>) -> StrPart<&'a str, Term<&'a str>> {
    match part {
        StrPart::Term(term) => StrPart::Term(meter_term(term)),
        other @ (StrPart::Str(_) | StrPart::Char(_)) => other,
    }
}

fn meter_pattern(pattern: Pattern<&str>) -> Pattern<&str> {
    match pattern {
        Pattern::Var(_) => pattern,
        Pattern::Arr(items) => Pattern::Arr(items.into_iter().map(meter_pattern).collect()),
        Pattern::Obj(members) => Pattern::Obj(
            members
                .into_iter()
                .map(|(key, value)| (meter_term(key), meter_pattern(value)))
                .collect(),
        ),
    }
}

fn meter_step<O>((part, optional): (Part<Term<&str>>, O)) -> (Part<Term<&str>>, O) {
    let part = match part {
        Part::Index(index) => Part::Index(meter_term(index)),
        Part::Range(from, upto) => Part::Range(from.map(meter_term), upto.map(meter_term)),
    };
    (part, optional)
}
