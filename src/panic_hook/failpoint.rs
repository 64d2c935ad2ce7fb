//! Failpoints: places where a test of a debug build makes ralph panic.

/// The places. `PANIC_IN_RALPH=Name` arms one for the whole process.
#[cfg(debug_assertions)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failpoint {
    /// The loop's thread, before it parses output.
    Adapter,
    /// The thread that reads answers from stdin.
    Answers,
    /// The thread that waits for the end of a child.
    Child,
    /// The main thread, before a subcommand runs.
    Cli,
    /// A thread that probes an agent's version.
    Detection,
    /// The TUI's render thread.
    Draw,
    /// The thread that carries out actions which may block.
    Effects,
    Engine,
    FrontEnd,
    Hooks,
    Journal,
    /// The TUI's input thread.
    Keyboard,
    /// The loop's thread, before it passes output to the engine.
    Output,
    /// A thread that reads an agent's stream, before it passes the bytes on.
    Reader,
    /// The thread that copies an interactive agent's output to the terminal.
    Passthrough,
    /// The thread that forwards signals.
    Signals,
    Stderr,
    Stdin,
    Stdout,
    /// The supervisor process of an agent.
    Supervisor,
    /// The loop's thread, while it updates the TUI's state.
    TuiState,
    /// The thread that reads the keys typed for an interactive agent.
    Typing,
}

#[cfg(debug_assertions)]
impl Failpoint {
    /// The failpoint that the environment names.
    pub(super) fn from_environment() -> Option<Self> {
        let name = std::env::var("PANIC_IN_RALPH").ok()?;
        Self::ALL.into_iter().find(|point| format!("{point:?}") == name)
    }

    /// Whether the place is also passed before a run starts, when no agent can be affected.
    pub(super) fn requires_run(self) -> bool {
        match self {
            Self::Child | Self::Signals | Self::Stderr | Self::Stdin | Self::Stdout => true,
            Self::Adapter
            | Self::Answers
            | Self::Cli
            | Self::Detection
            | Self::Draw
            | Self::Effects
            | Self::Engine
            | Self::FrontEnd
            | Self::Hooks
            | Self::Journal
            | Self::Keyboard
            | Self::Output
            | Self::Passthrough
            | Self::Reader
            | Self::Supervisor
            | Self::TuiState
            | Self::Typing => false,
        }
    }

    const ALL: [Self; 22] = [
        Self::Adapter,
        Self::Answers,
        Self::Child,
        Self::Cli,
        Self::Detection,
        Self::Draw,
        Self::Effects,
        Self::Engine,
        Self::FrontEnd,
        Self::Hooks,
        Self::Journal,
        Self::Keyboard,
        Self::Output,
        Self::Passthrough,
        Self::Reader,
        Self::Signals,
        Self::Stderr,
        Self::Stdin,
        Self::Stdout,
        Self::Supervisor,
        Self::TuiState,
        Self::Typing,
    ];
}

/// Panics, once, if the scope has this failpoint armed. Release builds contain no trace of it.
#[macro_export]
macro_rules! failpoint {
    ($scope:expr, $name:ident) => {{
        #[cfg(debug_assertions)]
        {
            let name = $crate::panic_hook::Failpoint::$name;
            assert!(!$scope.take_failpoint(name), "failpoint {name:?}");
        }
        #[cfg(not(debug_assertions))]
        let _ = &$scope;
    }};
}
