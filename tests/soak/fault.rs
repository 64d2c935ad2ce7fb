//! The faults: scripts of a misbehaving agent, and signals to ralph, the supervisor or the agent.

use rustix::process::Signal;

use crate::sandbox::claude;

/// One iteration of a misbehaving agent.
pub(super) struct AgentFault {
    pub(super) name: &'static str,
    pub(super) script: fn() -> String,
}

/// Where possible, the fault is followed by a session that ends normally without completing.
pub(super) const AGENT_FAULTS: &[AgentFault] = &[
    fault("agent: does not complete", || session("")),
    fault("agent: exits with an error", || "err no\nexit 3\n".to_owned()),
    fault("agent: prints nothing", || "exit 0\n".to_owned()),
    fault("agent: is killed by SIGKILL", || claude::init() + "die KILL\n"),
    fault("agent: is killed by SIGSEGV", || claude::init() + "die SEGV\n"),
    fault("agent: ends without its result", || {
        claude::init() + &claude::message("m", "half")
    }),
    fault("agent: half a line, then nothing", || {
        claude::init() + "print {\"type\":\"assistant\",\"mess\nexit 0\n"
    }),
    fault("agent: leaves a child holding stdout", || {
        session("fork-and-hold-stdout 1000\n")
    }),
    fault("agent: leaves a child in its own session", || {
        session("fork-setsid 1000\n")
    }),
    fault("agent: leaves an orphan", || session("double-fork 1000\n")),
    fault("agent: leaves all three, ignoring SIGTERM", || {
        session("ignore TERM\nfork-and-hold-stdout 1000\nfork-setsid 1000\ndouble-fork 1000\n")
    }),
    fault("agent: ignores SIGTERM and hangs", || {
        claude::init() + "ignore TERM\nhang\n"
    }),
    fault("agent: stops itself", || claude::init() + "stop-self\nhang\n"),
    fault("agent: stops its supervisor and hangs", || {
        claude::init() + STOP_SUPERVISOR + "hang\n"
    }),
    fault("agent: stops its supervisor and ends", || {
        session(STOP_SUPERVISOR)
    }),
    fault("agent: kills its supervisor", || {
        claude::init() + "run read -r _ _ _ p _ < /proc/$PPID/stat; kill -KILL $p\nhang\n"
    }),
    fault("agent: sends signals to its supervisor", || {
        session("run read -r _ _ _ p _ < /proc/$PPID/stat; for s in USR1 ALRM PIPE; do kill -$s $p; done\n")
    }),
    fault("agent: FIFOs and links in the workspace", || {
        session(
            "run /bin/rm -rf .agent; /usr/bin/mkfifo PROMPT.md .gitignore; /bin/ln -s /dev/zero .agent; /bin/rm -f PROMPT.md .agent .gitignore\n",
        )
    }),
    fault("agent: a negative and an infinite cost", || {
        session("say {\"type\":\"result\",\"subtype\":\"success\",\"total_cost_usd\":-5}\n")
    }),
    fault("agent: tries to change trust", || {
        session("run \"$RALPH_BIN\" trust >/dev/null 2>&1; true\n")
    }),
    fault("agent: closes stdout and hangs", || {
        claude::init() + "close-stdout\nhang\n"
    }),
    fault("agent: lingers after its result", || session("") + "hang\n"),
    fault("agent: garbage and invalid UTF-8", || {
        session("print \\xff\\xfe\\x00{\\x00\\n\\xf0\\x9f\nsay [[[[{{{{\n")
    }),
    fault("agent: escape sequences", || {
        session("print \\x1b]0;t\\x07\\x1b[2J\\x1b]52;c;aGk=\\x07\\x9b31m\\n\n")
    }),
    fault("agent: 20,000 lines at once", || {
        session(&format!("repeat 20000 {}\n", "x".repeat(80)))
    }),
    fault("agent: 1 MB on stderr", || {
        session(&format!("run yes {} | head -n 10000 >&2\n", "e".repeat(99)))
    }),
    fault("agent: one line of 4 MB", || {
        session("run head -c 4000000 /dev/zero | tr '\\\\0' y; echo\n")
    }),
];

/// Stops the parent of the fake agent.
const STOP_SUPERVISOR: &str = "run read -r _ _ _ p _ < /proc/$PPID/stat; kill -STOP $p\n";

const fn fault(name: &'static str, script: fn() -> String) -> AgentFault {
    AgentFault { name, script }
}

fn session(before: &str) -> String {
    claude::init() + before + &claude::message("m", "not done yet") + &claude::result("not done yet")
}

/// Signals to one process.
pub(super) struct Interference {
    pub(super) name: &'static str,
    pub(super) victim: Victim,
    pub(super) signals: &'static [Signal],
}

#[derive(Clone, Copy)]
pub(super) enum Victim {
    None,
    Ralph,
    Supervisor,
    Agent,
}

pub(super) const INTERFERENCES: &[Interference] = &[
    interference("outside: nothing", Victim::None, &[]),
    interference("outside: ralph is killed", Victim::Ralph, &[Signal::KILL]),
    interference("outside: ralph gets SIGTERM", Victim::Ralph, &[Signal::TERM]),
    interference("outside: ralph gets Ctrl-C", Victim::Ralph, &[Signal::INT]),
    interference(
        "outside: ralph gets Ctrl-C three times",
        Victim::Ralph,
        &[Signal::INT, Signal::INT, Signal::INT],
    ),
    interference("outside: ralph gets SIGHUP", Victim::Ralph, &[Signal::HUP]),
    interference(
        "outside: ralph is stopped and continued",
        Victim::Ralph,
        &[Signal::STOP, Signal::CONT],
    ),
    interference(
        "outside: the supervisor is killed",
        Victim::Supervisor,
        &[Signal::KILL],
    ),
    interference(
        "outside: the supervisor is stopped and continued",
        Victim::Supervisor,
        &[Signal::STOP, Signal::CONT],
    ),
    interference("outside: the agent is killed", Victim::Agent, &[Signal::KILL]),
    interference("outside: the agent is stopped", Victim::Agent, &[Signal::STOP]),
];

const fn interference(name: &'static str, victim: Victim, signals: &'static [Signal]) -> Interference {
    Interference {
        name,
        victim,
        signals,
    }
}
