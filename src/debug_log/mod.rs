//! The debug log: what ralph does, and the errors after which it continues. `RALPH_LOG` selects how much.
//!
//! Each run writes `debug.log` in its directory. A thread that a run starts logs where its parent does, so the logs of
//! several runs of one process are separate.

mod levels;
mod writer;

pub use levels::{InvalidLevels, LogLevels};

use std::fmt::{self, Debug, Write as _};
use std::fs::File;

use tracing::dispatcher::{self, DefaultGuard, Dispatch};
use tracing::field::DisplayValue;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::Registry;

use writer::{LogFile, LogOutput, LogWriter, print};

/// A log. Clones write to the same place.
#[derive(Clone)]
pub struct DebugLog {
    dispatch: Dispatch,
    writer: LogWriter,
}

impl fmt::Debug for DebugLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebugLog").finish_non_exhaustive()
    }
}

/// Where a log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStart {
    Stderr,
    /// In memory, for a command that may start a run or use the whole terminal.
    Memory,
}

impl DebugLog {
    pub fn new(levels: &LogLevels, start: LogStart) -> Self {
        let output = match start {
            _ if levels.are_off() => LogOutput::Off,
            LogStart::Stderr => LogOutput::Stderr,
            LogStart::Memory => LogOutput::Memory(Vec::new()),
        };
        let writer = LogWriter::new(output);
        let make_writer = {
            let writer = writer.clone();
            move || writer.clone()
        };
        let lines = layer()
            .with_writer(make_writer)
            .with_ansi(false)
            .with_thread_names(true);
        let dispatch = match levels.are_off() {
            true => Dispatch::none(),
            false => Dispatch::new(Registry::default().with(levels.targets.clone()).with(lines)),
        };
        Self { dispatch, writer }
    }

    /// Makes this the log of the current thread, and of threads that it starts, until the guard is dropped.
    pub fn enter(&self) -> DefaultGuard {
        dispatcher::set_default(&self.dispatch)
    }

    /// Passes further lines through `redact`.
    pub fn redact_with(&self, redact: impl Fn(String) -> String + Send + Sync + 'static) {
        self.writer.lock().redact = Box::new(redact);
    }

    /// Writes further lines to the file that `open` returns, and before them the lines that are kept in memory. A log that is
    /// off opens no file. An error leaves the log as it is: a log is never the reason that a run fails.
    pub fn write_to<E>(&self, open: impl FnOnce() -> Result<File, E>) {
        let output = &mut self.writer.lock().output;
        if matches!(output, LogOutput::Off) {
            return;
        }
        let Ok(file) = open() else {
            return;
        };
        let written = file.metadata().map_or(0, |metadata| metadata.len());
        let mut file = LogFile { file, written };
        if let LogOutput::Memory(kept) = output {
            file.write(kept);
        }
        *output = LogOutput::File(file);
    }

    /// Prints the lines that are still in memory to stderr.
    pub fn print_kept(&self) {
        let output = &mut self.writer.lock().output;
        if let LogOutput::Memory(kept) = output {
            print(kept);
            kept.clear();
        }
    }
}

/// The log and the span of a thread, for a thread that it starts.
pub struct ParentLog {
    dispatch: Dispatch,
    span: tracing::Span,
}

impl ParentLog {
    pub fn current() -> Self {
        Self {
            dispatch: dispatcher::get_default(Dispatch::clone),
            span: tracing::Span::current(),
        }
    }

    /// Runs `work` with the log of the parent.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        dispatcher::with_default(&self.dispatch, || self.span.in_scope(work))
    }
}

/// The name of an enum's variant, without its fields: a log must not contain prompts and answers.
pub fn variant_name(value: &impl Debug) -> DisplayValue<String> {
    struct Name(String);
    impl fmt::Write for Name {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let end = text.find(|letter: char| !letter.is_alphanumeric());
            self.0.push_str(&text[..end.unwrap_or(text.len())]);
            // The error ends the formatting.
            end.map_or(Ok(()), |_| Err(fmt::Error))
        }
    }
    let mut name = Name(String::new());
    let _ = write!(name, "{value:?}");
    tracing::field::display(name.0)
}

/// Returns the value of a result. An error is logged with what failed, and dropped.
#[macro_export]
macro_rules! ok_or_log {
    ($result:expr, $($what:tt)+) => {
        match $result {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::warn!(%error, $($what)+);
                None
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that are logged at these levels.
    fn logged(levels: &str, write: impl FnOnce()) -> String {
        let levels = LogLevels::parse(levels).unwrap();
        let log = DebugLog::new(&levels, LogStart::Memory);
        log.redact_with(|line| line.replace("secret", "[redacted]"));
        {
            let _log = log.enter();
            write();
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        log.write_to(|| file.reopen());
        std::fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn levels_apply_to_all_modules_or_to_one() {
        let write = || {
            tracing::debug!(target: "ralph::engine::limits", "first");
            tracing::debug!(target: "ralph::store", "second");
            tracing::info!(target: "ralph::store", "third");
        };
        let messages = |levels: &str| {
            let log = logged(levels, write);
            ["first", "second", "third"].map(|message| log.contains(message))
        };
        assert_eq!(messages(""), [false, false, true]);
        assert_eq!(messages("debug"), [true, true, true]);
        assert_eq!(messages("engine=debug"), [true, false, true]);
        assert_eq!(messages(" WARN , ralph::engine=trace"), [true, false, false]);
        assert_eq!(messages("off"), [false, false, false]);
        assert_eq!(messages("off,store=debug"), [false, true, true]);
    }

    #[test]
    fn a_line_has_no_secrets_and_no_control_characters() {
        let log = logged("", || {
            let error = "first\nsecond \u{1b}]0;title\u{7}\u{202e} secret";
            tracing::warn!(%error, "cannot do it");
        });
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(
            log.contains("cannot do it error=first\\nsecond \\u{1b}]0;title\\u{7}\\u{202e} [redacted]"),
            "{log}"
        );
    }

    #[test]
    fn a_thread_logs_in_the_span_of_its_parent() {
        let log = logged("", || {
            let span = tracing::info_span!("run", id = "a-run");
            let parent = span.in_scope(ParentLog::current);
            let work = move || parent.run(|| tracing::info!("a message"));
            let thread = std::thread::Builder::new().name("helper".into()).spawn(work);
            thread.unwrap().join().unwrap();
        });
        assert!(log.contains("helper run{id=\"a-run\"}:"), "{log}");
    }

    #[test]
    fn ok_or_log_logs_the_error_where_it_is_dropped() {
        let log = logged("", || {
            let failed: Result<(), &str> = Err("no space");
            assert_eq!(crate::ok_or_log!(failed, "cannot link the journal"), None);
            assert_eq!(crate::ok_or_log!(Ok::<u8, &str>(7), "cannot count"), Some(7));
        });
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(
            log.contains("ralph::debug_log::tests: cannot link the journal error=no space"),
            "{log}"
        );
    }

    #[test]
    fn the_file_has_a_maximum_size() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(writer::MAX_FILE_BYTES - 1).unwrap();
        let log = DebugLog::new(&LogLevels::default(), LogStart::Memory);
        let open = || std::fs::OpenOptions::new().append(true).open(file.path());
        log.write_to(open);
        let _log = log.enter();
        tracing::info!("one");
        tracing::info!("two");
        let length = file.as_file().metadata().unwrap().len();
        assert_eq!(
            length,
            writer::MAX_FILE_BYTES - 1 + writer::LIMIT_NOTICE.len() as u64
        );
    }

    #[test]
    fn variant_names_have_no_fields() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "only their names are printed")]
        enum Example {
            Unit,
            Tuple(String),
            Struct { prompt: String },
        }
        let text = || "the prompt".to_owned();
        assert_eq!(variant_name(&Example::Unit).to_string(), "Unit");
        assert_eq!(variant_name(&Example::Tuple(text())).to_string(), "Tuple");
        assert_eq!(
            variant_name(&Example::Struct { prompt: text() }).to_string(),
            "Struct"
        );
    }
}
