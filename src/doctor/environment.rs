//! What a run stands on: the workspace, the terminal, the disk, the clock. Others look; here it is judged, so that every
//! judgement can be tested without a full disk or a wrong clock.

use std::path::PathBuf;

use jiff::Timestamp;

use super::{Finding, State};

/// What was seen.
#[derive(Debug, Clone)]
pub struct Environment {
    pub workspace: Workspace,
    pub terminal: Screen,
    pub disk: Disk,
    pub clock: Clock,
}

#[derive(Debug, Clone)]
pub struct Workspace {
    pub path: PathBuf,
    /// `Err` says why nothing can be written there.
    pub writable: Result<(), String>,
    pub git: Git,
    /// Who drives a loop here, in words.
    pub holder: Option<String>,
    pub runs: GitIgnored,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Git {
    NoRepository,
    /// The program is missing, or cannot read the repository.
    Unreadable(String),
    Repository {
        branch: String,
        changed: usize,
    },
}

/// Whether git sees the directory of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitIgnored {
    Yes,
    No,
}

#[derive(Debug, Clone, Default)]
pub struct Screen {
    /// Columns and rows; absent where the output is no terminal.
    pub size: Option<(u16, u16)>,
    pub term: Option<String>,
    /// What the first of LC_ALL, LC_CTYPE and LANG says.
    pub locale: Option<String>,
    /// NO_COLOR is set.
    pub no_colour: bool,
}

#[derive(Debug, Clone)]
pub struct Disk {
    /// Where the runs go; absent if it cannot be determined.
    pub free: Option<Size>,
    /// In words: `3 runs`.
    pub runs: String,
    pub kept: Size,
}

/// So many bytes, and how a person says it.
#[derive(Debug, Clone)]
pub struct Size {
    pub bytes: u64,
    pub text: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Clock {
    pub now: Timestamp,
    pub newest_run: Option<Timestamp>,
}

/// Below this a night's journal does not fit.
const NEEDED: u64 = 50_000_000;
const ADVISABLE: u64 = 1_000_000_000;
/// So much is worth a thought.
const MUCH_KEPT: u64 = 2_000_000_000;
/// The screen needs so much to be of use.
const LEAST_SIZE: (u16, u16) = (60, 15);
/// 2025-01-01: older than this program. A clock that says so was never set.
const BEFORE_RALPH: i64 = 1_735_689_600;
/// Clocks of two machines that share a disk differ a little.
const SLACK: i64 = 120;

pub fn check_environment(seen: &Environment) -> Vec<Finding> {
    let mut findings = workspace(&seen.workspace);
    findings.extend(terminal(&seen.terminal));
    findings.extend(disk(&seen.disk));
    findings.push(clock(&seen.clock));
    findings
}

fn good((area, subject): (&'static str, &str), detail: impl Into<String>) -> Finding {
    Finding {
        area,
        subject: subject.to_owned(),
        state: State::Good,
        detail: detail.into(),
        remedy: None,
    }
}

impl Finding {
    fn with_state(self, state: State, remedy: impl Into<String>) -> Self {
        Self {
            state,
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

fn workspace(seen: &Workspace) -> Vec<Finding> {
    let mut findings = vec![match &seen.writable {
        Ok(()) => good(("workspace", "directory"), seen.path.display().to_string()),
        Err(why) => good(
            ("workspace", "directory"),
            format!("{}: {why}", seen.path.display()),
        )
        .with_state(
            State::Broken,
            "make it writable, or work in another directory: runs are kept in .agent",
        ),
    }];
    findings.push(match &seen.git {
        Git::NoRepository => good(("workspace", "git"), "not a repository").with_state(
            State::Absent,
            "git init: what the agent changes can then be seen and undone",
        ),
        Git::Unreadable(why) => good(("workspace", "git"), why).with_state(
            State::Warning,
            "mend it, or install git: without it ralph compares files by itself, and trusts none of them",
        ),
        Git::Repository { branch, changed: 0 } => good(("workspace", "git"), format!("{branch}, clean")),
        Git::Repository { branch, changed } => {
            let files = match changed {
                1 => "1 changed file".to_owned(),
                many => format!("{many} changed files"),
            };
            good(("workspace", "git"), format!("{branch}, {files}")).with_state(
                State::Warning,
                "commit first, if you want to tell your changes from the agent's",
            )
        }
    });
    findings.push(match &seen.holder {
        None => good(("workspace", "lock"), "free"),
        Some(holder) => good(("workspace", "lock"), format!("held by {holder}")).with_state(
            State::Warning,
            "wait for it, watch it with ralph attach, or work in another directory",
        ),
    });
    if seen.runs == GitIgnored::No {
        findings.push(
            good(("workspace", ".agent"), "git would commit the runs").with_state(
                State::Warning,
                "echo '*' > .agent/.gitignore: raw output can hold secrets",
            ),
        );
    }
    findings
}

fn terminal(seen: &Screen) -> Vec<Finding> {
    let subject = ("terminal", "screen");
    let dumb = seen.term.as_deref().is_none_or(|term| term == "dumb");
    let mut findings = vec![match seen.size {
        None => good(subject, "none: runs are told line by line").with_state(
            State::Absent,
            "on a terminal, ralph run shows a run on the whole screen",
        ),
        Some(_) if dumb => good(subject, "TERM says that it can do nothing").with_state(
            State::Warning,
            "export TERM=xterm-256color, or whatever your terminal is",
        ),
        Some((columns, rows)) if columns < LEAST_SIZE.0 || rows < LEAST_SIZE.1 => {
            let (least_columns, least_rows) = LEAST_SIZE;
            good(subject, format!("{columns}×{rows} is small")).with_state(
                State::Warning,
                format!("make it {least_columns}×{least_rows} or larger, or use --no-tui"),
            )
        }
        Some((columns, rows)) => {
            let colours = if seen.no_colour {
                "no colours (NO_COLOR)"
            } else {
                "colours"
            };
            good(subject, format!("{columns}×{rows}, {colours}"))
        }
    }];
    let utf8 = |locale: &&String| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    };
    findings.push(match &seen.locale {
        Some(locale) if utf8(&locale) => good(("terminal", "locale"), locale),
        other => {
            let text = other.as_deref().unwrap_or("not set");
            let state = if seen.size.is_some() {
                State::Warning
            } else {
                State::Absent
            };
            good(
                ("terminal", "locale"),
                format!("{text}: signs may be shown wrongly"),
            )
            .with_state(state, "export LC_ALL=C.UTF-8")
        }
    });
    findings
}

fn disk(seen: &Disk) -> Vec<Finding> {
    let subject = ("disk", "free space");
    let free = match &seen.free {
        None => good(subject, "cannot be told").with_state(State::Absent, "look at it yourself: df ."),
        Some(free) => {
            let text = good(subject, free.text.as_str());
            match free.bytes {
                ..NEEDED => text.with_state(
                    State::Broken,
                    "make room: ralph clean removes old runs; du -sh .agent shows what they take",
                ),
                NEEDED..ADVISABLE => text.with_state(
                    State::Warning,
                    "make room for a night: ralph clean removes old runs",
                ),
                _ => text,
            }
        }
    };
    let kept = good(
        ("disk", "runs kept"),
        format!("{}, {}", seen.runs, seen.kept.text),
    );
    let kept = match seen.kept.bytes {
        MUCH_KEPT.. => kept.with_state(State::Warning, "remove old ones: ralph clean --keep 20"),
        _ => kept,
    };
    vec![free, kept]
}

fn clock(seen: &Clock) -> Finding {
    let subject = ("clock", "time");
    let now = seen.now.strftime("%Y-%m-%d %H:%M UTC").to_string();
    let remedy = "set it (timedatectl set-ntp true): limits, waits and the names of runs go by it";
    if seen.now.as_second() < BEFORE_RALPH {
        return good(subject, format!("{now} cannot be")).with_state(State::Broken, remedy);
    }
    match seen.newest_run {
        Some(newest) if newest.as_second() > seen.now.as_second() + SLACK => {
            let newest = newest.strftime("%Y-%m-%d %H:%M UTC");
            good(subject, format!("{now}, but the newest run began {newest}"))
                .with_state(State::Warning, remedy)
        }
        Some(_) | None => good(subject, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(bytes: u64) -> Option<Size> {
        let text = format!("{bytes} bytes");
        Some(Size { bytes, text })
    }

    fn fine() -> Environment {
        Environment {
            workspace: Workspace {
                path: "/work".into(),
                writable: Ok(()),
                git: Git::Repository {
                    branch: "main".to_owned(),
                    changed: 0,
                },
                holder: None,
                runs: GitIgnored::Yes,
            },
            terminal: Screen {
                size: Some((120, 40)),
                term: Some("xterm".to_owned()),
                locale: Some("C.UTF-8".to_owned()),
                no_colour: false,
            },
            disk: Disk {
                free: size(50_000_000_000),
                runs: "3 runs".to_owned(),
                kept: Size {
                    bytes: 4_000_000,
                    text: "4 MB".to_owned(),
                },
            },
            clock: Clock {
                now: "2026-11-15T20:45:01Z".parse().unwrap(),
                newest_run: None,
            },
        }
    }

    /// What is found when one thing is different, with its remedy.
    fn found(subject: &str, change: impl Fn(&mut Environment)) -> (State, String) {
        let mut seen = fine();
        change(&mut seen);
        let findings = check_environment(&seen);
        let odd: Vec<&Finding> = findings
            .iter()
            .filter(|finding| finding.state != State::Good)
            .collect();
        let [only] = odd.as_slice() else {
            panic!("{findings:#?}");
        };
        assert_eq!(only.subject, subject);
        assert!(
            only.remedy.as_ref().is_some_and(|remedy| remedy.len() > 5),
            "{only:?}"
        );
        (only.state, only.detail.clone())
    }

    #[test]
    fn where_all_is_well_nothing_is_complained_about() {
        let findings = check_environment(&fine());
        assert!(
            findings.iter().all(|finding| finding.state == State::Good),
            "{findings:#?}"
        );
        assert_eq!(findings.len(), 8);
    }

    #[test]
    fn a_workspace_that_cannot_be_written_is_broken() {
        let (state, detail) = found("directory", |seen| {
            seen.workspace.writable = Err("Permission denied".to_owned());
        });
        assert_eq!(
            (state, detail.as_str()),
            (State::Broken, "/work: Permission denied")
        );
    }

    #[test]
    fn git_is_told_as_it_is() {
        let git = |git: Git| found("git", move |seen| seen.workspace.git = git.clone());
        assert_eq!(git(Git::NoRepository).0, State::Absent);
        assert_eq!(
            git(Git::Unreadable("git is not found".to_owned())).0,
            State::Warning
        );
        let changed = Git::Repository {
            branch: "main".to_owned(),
            changed: 2,
        };
        assert_eq!(git(changed), (State::Warning, "main, 2 changed files".to_owned()));
    }

    #[test]
    fn a_held_lock_and_visible_runs_are_warned_about() {
        let (state, detail) = found("lock", |seen| {
            seen.workspace.holder = Some("process 7".to_owned());
        });
        assert_eq!((state, detail.as_str()), (State::Warning, "held by process 7"));
        assert_eq!(
            found(".agent", |seen| seen.workspace.runs = GitIgnored::No).0,
            State::Warning
        );
    }

    #[test]
    fn terminals_and_locales_are_judged_by_what_they_can_do() {
        assert_eq!(found("screen", |seen| seen.terminal.size = None).0, State::Absent);
        assert_eq!(
            found("screen", |seen| seen.terminal.size = Some((40, 10))).0,
            State::Warning
        );
        assert_eq!(
            found("screen", |seen| seen.terminal.term = None).0,
            State::Warning
        );
        assert_eq!(
            found("locale", |seen| seen.terminal.locale = Some("C".to_owned())).0,
            State::Warning
        );
        assert_eq!(
            found("locale", |seen| seen.terminal.locale = None).1,
            "not set: signs may be shown wrongly"
        );
    }

    #[test]
    fn little_space_is_warned_about_and_none_is_broken() {
        assert_eq!(
            found("free space", |seen| seen.disk.free = size(1000)),
            (State::Broken, "1000 bytes".to_owned())
        );
        assert_eq!(
            found("free space", |seen| seen.disk.free = size(500_000_000)).0,
            State::Warning
        );
        assert_eq!(found("free space", |seen| seen.disk.free = None).0, State::Absent);
        assert_eq!(
            found("runs kept", |seen| seen.disk.kept.bytes = 3_000_000_000),
            (State::Warning, "3 runs, 4 MB".to_owned())
        );
    }

    #[test]
    fn a_clock_that_was_never_set_is_broken_and_one_that_went_back_is_warned_about() {
        assert_eq!(
            found("time", |seen| seen.clock.now = Timestamp::UNIX_EPOCH).0,
            State::Broken
        );
        let (state, detail) = found("time", |seen| {
            seen.clock.newest_run = "2026-11-16T03:00:00Z".parse().ok();
        });
        assert_eq!(state, State::Warning);
        assert_eq!(
            detail,
            "2026-11-15 20:45 UTC, but the newest run began 2026-11-16 03:00 UTC"
        );
    }
}
