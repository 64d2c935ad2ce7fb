//! The user's terminal, as commands use it: where text goes, in which colours, how wide. What a command prints goes
//! to stdout; warnings and failures go to stderr.

use std::error::Error;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::stdout::StdoutWriter;
use super::tui::{Guard, OnEnd, OpenRunFiles, Role, Tui, TuiOptions};
use super::{
    FrontEnd, JsonLines, LiveLines, LiveLinesOptions, Plain, PlainOptions, Table, Tone, Verbosity, clean,
};

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourChoice {
    /// On a terminal, unless `NO_COLOR` or `TERM=dumb` says otherwise.
    Auto,
    Always,
    Never,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Confirmed {
    Yes,
    No,
    NobodyToAsk,
}

#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    colour: ColourChoice,
}

/// Where there is no terminal to ask.
const USUAL_WIDTH: u16 = 80;
const USUAL_HEIGHT: u16 = 24;

/// Many small lines go out together.
const OUTPUT_BUFFER: usize = 64 * 1024;

impl Terminal {
    pub fn new(colour: ColourChoice) -> Self {
        Self { colour }
    }

    /// A face that tells the run to a person, on stdout.
    pub fn plain_face(&self, verbosity: Verbosity) -> Box<dyn FrontEnd> {
        let stdout = io::stdout();
        let live = stdout.is_terminal() && !is_dumb();
        let options = PlainOptions {
            colour: self.colours(&stdout),
            live,
            width: width(&stdout),
            verbosity,
        };
        Box::new(Plain::new(StdoutWriter::stdout(), options))
    }

    /// A face that tells the run to a program, on stdout.
    pub fn json_face(&self) -> Box<dyn FrontEnd> {
        Box::new(JsonLines::new(StdoutWriter::stdout()))
    }

    /// What goes on beside what a command prints, on stderr.
    pub fn board(&self) -> LiveLines<io::Stderr> {
        let stderr = io::stderr();
        let size = rustix::termios::tcgetwinsize(&stderr).ok();
        let of = |figure: Option<u16>, usual| figure.filter(|figure| *figure > 0).unwrap_or(usual);
        let options = LiveLinesOptions {
            colour: self.colours(&stderr),
            live: stderr.is_terminal() && !is_dumb(),
            columns: of(size.map(|size| size.ws_col), USUAL_WIDTH),
            rows: of(size.map(|size| size.ws_row), USUAL_HEIGHT),
        };
        LiveLines::new(stderr, options)
    }

    /// Whether the whole terminal can be used: it is one, in both directions, knows its sequences, and is ours.
    pub fn can_be_taken(&self) -> bool {
        let is_ours =
            rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
        io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb() && is_ours
    }

    /// A face on the whole terminal.
    pub fn tui(
        &self,
        role: Role,
        on_end: OnEnd,
        open_shelf: OpenRunFiles,
        guard: Option<Guard>,
    ) -> io::Result<Tui> {
        let stdout = io::stdout();
        Tui::open(TuiOptions {
            colour: self.colours(&stdout),
            role,
            on_end,
            width: width(&stdout),
            open_shelf,
            guard,
        })
    }

    /// Values for a program, one JSON line each, on stdout. What was written is seen when it is flushed.
    pub fn json_lines(&self) -> JsonLines<impl Write + use<>> {
        JsonLines::new(io::BufWriter::with_capacity(OUTPUT_BUFFER, io::stdout()))
    }

    pub fn print(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Where a long text goes that is written piece by piece.
    pub fn writer(&self) -> impl Write + use<> {
        io::stdout().lock()
    }

    /// Bytes as they are. What a terminal would obey does not reach one.
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

    /// Whether anybody can still read what goes to stdout: a pipe may have lost its other end.
    pub fn is_read(&self) -> bool {
        let stdout = io::stdout();
        let mut ends = [PollFd::new(&stdout, PollFlags::empty())];
        let polled = poll(&mut ends, Some(&Timespec::default()));
        let lost = PollFlags::ERR | PollFlags::HUP;
        polled.is_err() || !ends[0].revents().intersects(lost)
    }

    /// A table as text, in this terminal's colours.
    pub fn render(&self, table: &Table) -> String {
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = table.write_to(&mut text, self.colours(&io::stdout()));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// A piece of text for stdout, in a tone.
    pub fn tinted(&self, text: &str, tone: Tone) -> String {
        let style = tone.style(self.colours(&io::stdout()));
        format!("{style}{text}{style:#}")
    }

    /// Whether there is somebody who sees a question and can answer it.
    pub fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && (io::stdout().is_terminal() || io::stderr().is_terminal())
    }

    /// Asks a question that is answered with y or n; everything but a yes is a no.
    pub fn confirm(&self, question: &str) -> io::Result<Confirmed> {
        if !self.can_ask() {
            return Ok(Confirmed::NobodyToAsk);
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
        self.complain("warning", Tone::Warning, text)
    }

    /// Says what went wrong, why, and what helps.
    pub fn fail(&self, error: &dyn Error, hints: &[String]) -> io::Result<()> {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            let more = source.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = source.source();
        }
        for hint in hints {
            text.push_str(&format!("\n  {hint}"));
        }
        self.complain("error", Tone::Bad, &text)
    }

    fn complain(&self, word: &str, tone: Tone, text: &str) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        let style = tone.style(self.colours(&stderr));
        writeln!(stderr, "{style}{word}{style:#}: {}", clean::clean(text))
    }

    fn colours(&self, stream: &impl IsTerminal) -> bool {
        match self.colour {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                stream.is_terminal() && !refused && !is_dumb()
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
        .unwrap_or(USUAL_WIDTH)
}
