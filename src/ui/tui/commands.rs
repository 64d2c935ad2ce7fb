//! What the watcher can ask for. Keys become wishes; what becomes of a wish is not decided here.

/// Something that the watcher wants of the run, or that the run must know of the watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserCommand {
    /// Go on to the end of this iteration, and wait there.
    Pause,
    /// Go on after a pause.
    Resume,
    /// Stop this iteration; the run goes on with the next one.
    StopIteration,
    /// Wait no longer.
    Wake,
    /// Something for the agent to read in the next prompt.
    Tell(String),
    /// The answer to the question between two iterations.
    GoOn,
    GoOnWithoutAsking,
    /// As Ctrl-C: the first stops the run, the second kills.
    Interrupt,
    /// Stop the run, after having been asked.
    Quit,
    /// The watcher has left a screen that is not needed for the run to go on.
    Left,
    /// The terminal is gone.
    Gone,
}

/// A wish without what it says; for asking whether it would be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserCommandKind {
    Pause,
    Resume,
    StopIteration,
    Wake,
    Tell,
    GoOn,
    GoOnWithoutAsking,
}

impl UserCommandKind {
    pub const ALL: [Self; 7] = [
        Self::Pause,
        Self::Resume,
        Self::StopIteration,
        Self::Wake,
        Self::Tell,
        Self::GoOn,
        Self::GoOnWithoutAsking,
    ];
}

/// Where wishes go.
pub trait CommandSender: Send {
    /// Hands a wish over. Never waits for what comes of it; says why if it cannot be handed over.
    fn send(&self, command: UserCommand) -> Result<(), String>;

    /// Whether whoever listens can do anything about such a wish; a key without effect is not offered.
    fn understands(&self, kind: UserCommandKind) -> bool;
}

/// Which wishes make sense now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SupportedCommands(Vec<UserCommandKind>);

impl SupportedCommands {
    pub fn of(door: &dyn CommandSender) -> Self {
        let understood = UserCommandKind::ALL
            .into_iter()
            .filter(|kind| door.understands(*kind));
        Self(understood.collect())
    }

    pub fn has(&self, kind: UserCommandKind) -> bool {
        self.0.contains(&kind)
    }
}
