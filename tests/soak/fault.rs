//! What can go wrong: in the agent's own part, and from outside.

use rustix::process::Signal;

use crate::sandbox::claude;

/// One iteration of a misbehaving agent.
pub(super) struct Act {
    pub(super) name: &'static str,
    pub(super) script: fn() -> String,
}

/// Everything that an agent does wrong is followed, where it can be, by a session that ends well but is not complete.
pub(super) const ACTS: &[Act] = &[
    act("agent: works, and is not done", || session("")),
    act("agent: exits with an error", || "err no\nexit 3\n".to_owned()),
    act("agent: says nothing", || "exit 0\n".to_owned()),
    act("agent: dies of SIGKILL", || claude::init() + "die KILL\n"),
    act("agent: dies of SIGSEGV", || claude::init() + "die SEGV\n"),
    act("agent: ends without its result", || {
        claude::init() + &claude::message("m", "half")
    }),
    act("agent: half a line, then nothing", || {
        claude::init() + "print {\"type\":\"assistant\",\"mess\nexit 0\n"
    }),
    act("agent: leaves a child holding stdout", || {
        session("fork-and-hold-stdout 1000\n")
    }),
    act("agent: leaves a session of its own", || {
        session("fork-setsid 1000\n")
    }),
    act("agent: leaves an orphan", || session("double-fork 1000\n")),
    act("agent: leaves all three, ignoring SIGTERM", || {
        session("ignore TERM\nfork-and-hold-stdout 1000\nfork-setsid 1000\ndouble-fork 1000\n")
    }),
    act("agent: ignores SIGTERM and hangs", || {
        claude::init() + "ignore TERM\nhang\n"
    }),
    act("agent: stops itself", || claude::init() + "stop-self\nhang\n"),
    act("agent: closes stdout and hangs", || {
        claude::init() + "close-stdout\nhang\n"
    }),
    act("agent: lingers after its result", || session("") + "hang\n"),
    act("agent: garbage and invalid UTF-8", || {
        session("print \\xff\\xfe\\x00{\\x00\\n\\xf0\\x9f\nsay [[[[{{{{\n")
    }),
    act("agent: escape sequences", || {
        session("print \\x1b]0;t\\x07\\x1b[2J\\x1b]52;c;aGk=\\x07\\x9b31m\\n\n")
    }),
    act("agent: 20,000 lines at once", || {
        session(&format!("repeat 20000 {}\n", "x".repeat(80)))
    }),
    act("agent: 1 MB on stderr", || {
        session(&format!("run yes {} | head -n 10000 >&2\n", "e".repeat(99)))
    }),
    act("agent: one line of 4 MB", || {
        session("run head -c 4000000 /dev/zero | tr '\\\\0' y; echo\n")
    }),
];

const fn act(name: &'static str, script: fn() -> String) -> Act {
    Act { name, script }
}

fn session(before: &str) -> String {
    claude::init() + before + &claude::message("m", "not done yet") + &claude::result("not done yet")
}

/// Somebody interferes.
pub(super) struct Blow {
    pub(super) name: &'static str,
    pub(super) whom: Whom,
    pub(super) signals: &'static [Signal],
}

#[derive(Clone, Copy)]
pub(super) enum Whom {
    Nobody,
    Ralph,
    Supervisors,
    Agent,
}

pub(super) const BLOWS: &[Blow] = &[
    blow("outside: nothing", Whom::Nobody, &[]),
    blow("outside: ralph is killed", Whom::Ralph, &[Signal::KILL]),
    blow("outside: ralph gets SIGTERM", Whom::Ralph, &[Signal::TERM]),
    blow("outside: ralph gets Ctrl-C", Whom::Ralph, &[Signal::INT]),
    blow(
        "outside: ralph gets Ctrl-C three times",
        Whom::Ralph,
        &[Signal::INT, Signal::INT, Signal::INT],
    ),
    blow("outside: ralph gets SIGHUP", Whom::Ralph, &[Signal::HUP]),
    blow(
        "outside: ralph is stopped and continued",
        Whom::Ralph,
        &[Signal::STOP, Signal::CONT],
    ),
    blow(
        "outside: the keeper is killed",
        Whom::Supervisors,
        &[Signal::KILL],
    ),
    blow(
        "outside: the keeper is stopped and continued",
        Whom::Supervisors,
        &[Signal::STOP, Signal::CONT],
    ),
    blow("outside: the agent is killed", Whom::Agent, &[Signal::KILL]),
    blow("outside: the agent is stopped", Whom::Agent, &[Signal::STOP]),
];

const fn blow(name: &'static str, whom: Whom, signals: &'static [Signal]) -> Blow {
    Blow { name, whom, signals }
}
