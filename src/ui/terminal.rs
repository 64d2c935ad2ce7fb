//! The user's terminal: colors, size, prompts and front ends. Output goes to stdout, warnings and errors to stderr.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::stdout::StdoutWriter;
use super::tui::{ListScreen, OpenRunFiles, ScreenOptions, TerminalGuard, ThemeChoice, Tui, TuiOptions};
use super::{
    FrontEnd, JsonLines, LiveLines, LiveLinesOptions, Plain, PlainOptions, Table, Tone, UiHost, Verbosity,
    clean,
};

/// When to use color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
    Auto,
    Always,
    Never,
}

/// The answer to a yes-or-no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Confirmed {
    Yes,
    No,
    /// There is no terminal to ask on.
    NoTerminal,
}

#[derive(Clone)]
pub struct Terminal {
    color: ColorChoice,
    host: UiHost,
}

/// The size if the terminal does not report it, or if there is none.
const DEFAULT_WIDTH: u16 = 80;
const DEFAULT_HEIGHT: u16 = 24;

/// Buffer size for output of many small lines.
const OUTPUT_BUFFER: usize = 64 * 1024;

impl Terminal {
    pub fn new(color: ColorChoice, host: UiHost) -> Self {
        Self { color, host }
    }

    /// A front end that prints plain text to stdout.
    pub fn plain_front_end(&self, verbosity: Verbosity) -> Box<dyn FrontEnd> {
        let stdout = io::stdout();
        let live = stdout.is_terminal() && !is_dumb();
        let options = PlainOptions {
            color: self.colors(&stdout),
            live,
            width: width(&stdout),
            verbosity,
        };
        Box::new(Plain::new(StdoutWriter::new(self.host.stdout.clone()), options))
    }

    /// A front end that prints JSON lines to stdout.
    pub fn json_front_end(&self) -> Box<dyn FrontEnd> {
        Box::new(JsonLines::new(StdoutWriter::new(self.host.stdout.clone())))
    }

    /// A front end that writes JSON lines to a file.
    pub fn record_file(&self, file: File) -> Box<dyn FrontEnd> {
        Box::new(JsonLines::new(io::BufWriter::with_capacity(OUTPUT_BUFFER, file)))
    }

    /// Progress lines on stderr.
    pub fn live_lines(&self) -> LiveLines<io::Stderr> {
        let stderr = io::stderr();
        let size = rustix::termios::tcgetwinsize(&stderr).ok();
        let known = |cells: Option<u16>, default| cells.filter(|cells| *cells > 0).unwrap_or(default);
        let options = LiveLinesOptions {
            color: self.colors(&stderr),
            live: stderr.is_terminal() && !is_dumb(),
            columns: known(size.map(|size| size.ws_col), DEFAULT_WIDTH),
            rows: known(size.map(|size| size.ws_row), DEFAULT_HEIGHT),
        };
        LiveLines::new(stderr, options)
    }

    /// Whether the TUI can run: stdin and stdout are a terminal that supports escape sequences, and ralph is in its
    /// foreground process group.
    pub fn supports_tui(&self) -> bool {
        let in_foreground =
            rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
        io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb() && in_foreground
    }

    /// A full-screen front end.
    pub fn tui(
        &self,
        screen: ScreenOptions,
        open_run_files: OpenRunFiles,
        guard: Option<TerminalGuard>,
    ) -> io::Result<Tui> {
        let stdout = io::stdout();
        Tui::open(TuiOptions {
            color: self.colors(&stdout),
            screen,
            width: width(&stdout),
            open_run_files,
            guard,
            host: self.host.clone(),
        })
    }

    /// A full-screen list to choose from.
    pub fn list_screen(&self, theme: ThemeChoice, guard: Option<TerminalGuard>) -> io::Result<ListScreen> {
        ListScreen::open(self.colors(&io::stdout()), theme, guard, &self.host)
    }

    /// A buffered writer of JSON lines to stdout. The caller must flush it.
    pub fn json_lines(&self) -> JsonLines<impl Write + use<>> {
        JsonLines::new(io::BufWriter::with_capacity(OUTPUT_BUFFER, io::stdout()))
    }

    pub fn print(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Whether stdout is a terminal.
    pub fn is_interactive(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Prints a long text, on a terminal with the user's pager if the text does not fit.
    pub fn page(&self, text: &str) -> io::Result<()> {
        let height = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_row));
        let fits = text.lines().count() < height;
        if !io::stdout().is_terminal() || fits || self.page_with_program(text).is_err() {
            return self.print(text);
        }
        Ok(())
    }

    /// Shows a manual page in the troff format with `man`. Returns false if stdout is no terminal or `man` cannot do that.
    pub fn page_manual(&self, roff: &str) -> io::Result<bool> {
        if !io::stdout().is_terminal() {
            return Ok(false);
        }
        let started = Command::new("man")
            .args(["-l", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut program = match started {
            Ok(program) => program,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        if let Some(mut stdin) = program.stdin.take() {
            // The user may quit the pager before it has read everything.
            let _ = stdin.write_all(roff.as_bytes());
        }
        Ok(program.wait()?.success())
    }

    fn page_with_program(&self, text: &str) -> io::Result<()> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let pager = set("RALPH_PAGER").or_else(|| set("PAGER"));
        let mut pager = Command::new("sh")
            .arg("-c")
            .arg(pager.as_deref().unwrap_or("less"))
            .env("LESS", set("LESS").unwrap_or_else(|| "FRX".to_owned()))
            .stdin(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = pager.stdin.take() {
            // The user may quit the pager before it has read everything.
            let _ = stdin.write_all(text.as_bytes());
        }
        match pager.wait()?.code() {
            // The program does not exist or cannot be run, so nothing was shown.
            Some(126 | 127) => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(()),
        }
    }

    /// A writer to stdout, for long texts.
    pub fn writer(&self) -> impl Write + use<> {
        io::stdout().lock()
    }

    /// Copies bytes to stdout; on a terminal, removes everything that it would interpret.
    pub fn print_raw(&self, input: &mut dyn Read) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if !stdout.is_terminal() {
            io::copy(input, &mut stdout)?;
            return stdout.flush();
        }
        let mut reader = BufReader::new(input);
        let mut line = Vec::new();
        while reader
            .by_ref()
            .take(OUTPUT_BUFFER as u64)
            .read_until(b'\n', &mut line)?
            > 0
        {
            stdout.write_all(clean::clean(&String::from_utf8_lossy(&line)).as_bytes())?;
            line.clear();
        }
        stdout.flush()
    }

    /// False once the reading end of a stdout pipe is closed.
    pub fn stdout_is_open(&self) -> bool {
        let stdout = io::stdout();
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        let polled = poll(&mut fds, Some(&Timespec::default()));
        let closed = PollFlags::ERR | PollFlags::HUP;
        polled.is_err() || !fds[0].revents().intersects(closed)
    }

    /// A table as text, with colors if stdout supports them.
    pub fn render(&self, table: &Table) -> String {
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = table.write_to(&mut text, self.colors(&io::stdout()));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Text for stdout, in the style of a tone.
    pub fn styled(&self, text: &str, tone: Tone) -> String {
        let style = tone.style(self.colors(&io::stdout()));
        format!("{style}{text}{style:#}")
    }

    /// Whether the user can see a question and answer it.
    pub fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && (io::stdout().is_terminal() || io::stderr().is_terminal())
    }

    /// Asks a yes-or-no question; every answer other than yes counts as no.
    pub fn confirm(&self, question: &str) -> io::Result<Confirmed> {
        if !self.can_ask() {
            return Ok(Confirmed::NoTerminal);
        }
        let mut stderr = io::stderr().lock();
        stderr.write_all(clean::clean(question).as_bytes())?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Confirmed::Yes,
            _ => Confirmed::No,
        })
    }

    pub fn warn(&self, text: &str) -> io::Result<()> {
        self.print_diagnostic("warning", Tone::Warning, text)
    }

    /// Prints an error with its causes, then the hints. An indented line continues the line before it.
    pub fn print_error(&self, error: &dyn Error, hints: &[String]) -> io::Result<()> {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            let message = source.to_string();
            if !text.contains(&message) {
                text = format!("{text}: {message}");
            }
            cause = source.source();
        }
        for hint in hints {
            let prefix = if hint.starts_with(' ') { "" } else { "hint: " };
            text.push_str(&format!("\n{prefix}{hint}"));
        }
        self.print_diagnostic("error", Tone::Bad, &text)
    }

    fn print_diagnostic(&self, severity: &str, tone: Tone, text: &str) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        let style = tone.style(self.colors(&stderr));
        writeln!(stderr, "{style}{severity}{style:#}: {}", clean::clean(text))
    }

    fn colors(&self, stream: &impl IsTerminal) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                stream.is_terminal() && !no_color && !is_dumb()
            }
        }
    }
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

fn width(stdout: &io::Stdout) -> u16 {
    let size = rustix::termios::tcgetwinsize(stdout).ok();
    size.map(|size| size.ws_col)
        .filter(|columns| *columns > 0)
        .unwrap_or(DEFAULT_WIDTH)
}
