//! Checks the workspace, terminal, disk and clock. The caller collects the facts, so that the checks can be tested without
//! a full disk or a wrong clock.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{Finding, FindingState};

/// The facts to check.
#[derive(Debug, Clone)]
pub struct EnvironmentFacts {
    pub workspace: WorkspaceFacts,
    pub terminal: TerminalFacts,
    pub disk: DiskFacts,
    pub clock: ClockFacts,
    /// Another program that a shell starts for `ralph`.
    pub shadowed_by: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct WorkspaceFacts {
    pub path: PathBuf,
    /// `Err` has the reason why the directory is not writable.
    pub writable: Result<(), String>,
    pub git: GitStatus,
    /// Description of the process that holds the lock.
    pub holder: Option<String>,
    /// The state directory, or why there is none.
    pub state: Result<PathBuf, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitStatus {
    NoRepository,
    /// The program is missing, or cannot read the repository.
    Unreadable(String),
    Repository {
        branch: String,
        changed: usize,
    },
}

#[derive(Debug, Clone, Default)]
pub struct TerminalFacts {
    /// Columns and rows; absent if stdout is not a terminal.
    pub size: Option<(u16, u16)>,
    pub term: Option<String>,
    /// The first of LC_ALL, LC_CTYPE and LANG that is set.
    pub locale: Option<String>,
    /// NO_COLOR is set.
    pub no_color: bool,
}

#[derive(Debug, Clone)]
pub struct DiskFacts {
    /// Free space for the runs; absent if it cannot be determined.
    pub free: Option<ByteSize>,
    /// As text: `3 runs`.
    pub runs: String,
    pub kept: ByteSize,
}

/// A number of bytes, with its display text.
#[derive(Debug, Clone)]
pub struct ByteSize {
    pub bytes: u64,
    pub text: String,
}

#[derive(Debug, Clone, Copy)]
pub struct ClockFacts {
    pub now: Timestamp,
    pub newest_run: Option<Timestamp>,
}

/// Below this, the journal of a long run does not fit.
const REQUIRED_SPACE: u64 = 50_000_000;
/// Below this, `ralph doctor` warns.
const RECOMMENDED_SPACE: u64 = 1_000_000_000;
/// Above this, `ralph doctor` recommends to remove runs.
const MANY_RUNS_BYTES: u64 = 2_000_000_000;
/// Minimum columns and rows for the TUI.
const MIN_SIZE: (u16, u16) = (60, 15);
/// 2025-01-01, before the first release: an earlier clock was never set.
const EARLIEST_PLAUSIBLE: i64 = 1_735_689_600;
/// Tolerated clock difference between machines that share a disk.
const MAX_SKEW: i64 = 120;

pub fn check_environment(facts: &EnvironmentFacts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = facts.shadowed_by.iter().map(|path| shadowed(path)).collect();
    findings.extend(workspace(&facts.workspace));
    findings.extend(terminal(&facts.terminal));
    findings.extend(disk(&facts.disk));
    findings.push(clock(&facts.clock));
    findings
}

fn good((area, subject): (&'static str, &str), detail: impl Into<String>) -> Finding {
    Finding {
        area,
        subject: subject.to_owned(),
        state: FindingState::Good,
        detail: detail.into(),
        remedy: None,
    }
}

impl Finding {
    fn with_state(self, state: FindingState, remedy: impl Into<String>) -> Self {
        Self {
            state,
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

fn shadowed(other: &Path) -> Finding {
    let detail = format!("`ralph` in a shell is another program: {}", other.display());
    good(("installation", "PATH"), detail).with_state(
        FindingState::Warning,
        "use ralph-run, which starts this program, or put its directory first in PATH",
    )
}

fn workspace(facts: &WorkspaceFacts) -> Vec<Finding> {
    let mut findings = vec![match &facts.writable {
        Ok(()) => good(("workspace", "directory"), facts.path.display().to_string()),
        Err(why) => good(
            ("workspace", "directory"),
            format!("{}: {why}", facts.path.display()),
        )
        .with_state(
            FindingState::Broken,
            "make it writable, or use another directory: agents work in it",
        ),
    }];
    findings.push(match &facts.git {
        GitStatus::NoRepository => good(("workspace", "git"), "not a repository").with_state(
            FindingState::Absent,
            "run git init, so that the agent's changes can be reviewed and undone",
        ),
        GitStatus::Unreadable(why) => good(("workspace", "git"), why).with_state(
            FindingState::Warning,
            "fix or install git; until then ralph compares files itself and trusts none of them",
        ),
        GitStatus::Repository { branch, changed: 0 } => {
            good(("workspace", "git"), format!("{branch}, clean"))
        }
        GitStatus::Repository { branch, changed } => {
            let files = match changed {
                1 => "1 changed file".to_owned(),
                many => format!("{many} changed files"),
            };
            good(("workspace", "git"), format!("{branch}, {files}")).with_state(
                FindingState::Warning,
                "commit first to keep your changes separate from the agent's",
            )
        }
    });
    findings.push(match &facts.holder {
        None => good(("workspace", "lock"), "free"),
        Some(holder) => good(("workspace", "lock"), format!("held by {holder}")).with_state(
            FindingState::Warning,
            "wait for it, watch it with ralph attach, or use another directory",
        ),
    });
    findings.push(match &facts.state {
        Ok(path) => good(("workspace", "state"), path.display().to_string()),
        Err(why) => good(("workspace", "state"), why).with_state(
            FindingState::Broken,
            "make it writable, or set RALPH_STATE_DIR to another directory: runs are stored there",
        ),
    });
    findings
}

fn terminal(facts: &TerminalFacts) -> Vec<Finding> {
    let subject = ("terminal", "screen");
    let dumb = facts.term.as_deref().is_none_or(|term| term == "dumb");
    let mut findings = vec![match facts.size {
        None => good(subject, "no terminal: output will be plain text")
            .with_state(FindingState::Absent, "run ralph in a terminal to use the TUI"),
        Some(_) if dumb => good(subject, "TERM is not set, or is `dumb`").with_state(
            FindingState::Warning,
            "set TERM to your terminal, for example: export TERM=xterm-256color",
        ),
        Some((columns, rows)) if columns < MIN_SIZE.0 || rows < MIN_SIZE.1 => {
            let (min_columns, min_rows) = MIN_SIZE;
            good(subject, format!("{columns}×{rows} is too small for the TUI")).with_state(
                FindingState::Warning,
                format!("enlarge it to {min_columns}×{min_rows} or more, or use --no-tui"),
            )
        }
        Some((columns, rows)) => {
            let color = if facts.no_color {
                "no color (NO_COLOR)"
            } else {
                "color"
            };
            good(subject, format!("{columns}×{rows}, {color}"))
        }
    }];
    let utf8 = |locale: &&String| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    };
    findings.push(match &facts.locale {
        Some(locale) if utf8(&locale) => good(("terminal", "locale"), locale),
        other => {
            let text = other.as_deref().unwrap_or("not set");
            let state = if facts.size.is_some() {
                FindingState::Warning
            } else {
                FindingState::Absent
            };
            good(
                ("terminal", "locale"),
                format!("{text}: some characters may be shown incorrectly"),
            )
            .with_state(state, "export LC_ALL=C.UTF-8")
        }
    });
    findings
}

fn disk(facts: &DiskFacts) -> Vec<Finding> {
    let subject = ("disk", "free space");
    let free = match &facts.free {
        None => good(subject, "unknown").with_state(FindingState::Absent, "to check it: df ."),
        Some(free) => {
            let text = good(subject, free.text.as_str());
            match free.bytes {
                ..REQUIRED_SPACE => text.with_state(
                    FindingState::Broken,
                    "free disk space; to remove old runs: ralph clean",
                ),
                REQUIRED_SPACE..RECOMMENDED_SPACE => text.with_state(
                    FindingState::Warning,
                    "free disk space before a long run; to remove old runs: ralph clean",
                ),
                _ => text,
            }
        }
    };
    let kept = good(
        ("disk", "runs kept"),
        format!("{}, {}", facts.runs, facts.kept.text),
    );
    let kept = match facts.kept.bytes {
        MANY_RUNS_BYTES.. => {
            kept.with_state(FindingState::Warning, "to remove old runs: ralph clean --keep 20")
        }
        _ => kept,
    };
    vec![free, kept]
}

fn clock(facts: &ClockFacts) -> Finding {
    let subject = ("clock", "time");
    let now = facts.now.strftime("%Y-%m-%d %H:%M UTC").to_string();
    let remedy = "set the clock (timedatectl set-ntp true); limits, waits and run ids depend on it";
    if facts.now.as_second() < EARLIEST_PLAUSIBLE {
        return good(subject, format!("{now} is implausible")).with_state(FindingState::Broken, remedy);
    }
    match facts.newest_run {
        Some(newest) if newest.as_second() > facts.now.as_second() + MAX_SKEW => {
            let newest = newest.strftime("%Y-%m-%d %H:%M UTC");
            good(subject, format!("{now}, but the newest run started {newest}"))
                .with_state(FindingState::Warning, remedy)
        }
        Some(_) | None => good(subject, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(bytes: u64) -> Option<ByteSize> {
        let text = format!("{bytes} bytes");
        Some(ByteSize { bytes, text })
    }

    fn healthy() -> EnvironmentFacts {
        EnvironmentFacts {
            workspace: WorkspaceFacts {
                path: "/work".into(),
                writable: Ok(()),
                git: GitStatus::Repository {
                    branch: "main".to_owned(),
                    changed: 0,
                },
                holder: None,
                state: Ok(PathBuf::from("/state")),
            },
            terminal: TerminalFacts {
                size: Some((120, 40)),
                term: Some("xterm".to_owned()),
                locale: Some("C.UTF-8".to_owned()),
                no_color: false,
            },
            disk: DiskFacts {
                free: size(50_000_000_000),
                runs: "3 runs".to_owned(),
                kept: ByteSize {
                    bytes: 4_000_000,
                    text: "4 MB".to_owned(),
                },
            },
            clock: ClockFacts {
                now: "2026-11-15T20:45:01Z".parse().unwrap(),
                newest_run: None,
            },
            shadowed_by: None,
        }
    }

    /// Returns the only finding that is not good after a change; it must have a remedy.
    fn found(subject: &str, change: impl Fn(&mut EnvironmentFacts)) -> (FindingState, String) {
        let mut facts = healthy();
        change(&mut facts);
        let findings = check_environment(&facts);
        let unusual: Vec<&Finding> = findings
            .iter()
            .filter(|finding| finding.state != FindingState::Good)
            .collect();
        let [only] = unusual.as_slice() else {
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
    fn a_healthy_environment_has_only_good_findings() {
        let findings = check_environment(&healthy());
        assert!(
            findings.iter().all(|finding| finding.state == FindingState::Good),
            "{findings:#?}"
        );
        assert_eq!(findings.len(), 9);
    }

    #[test]
    fn an_unwritable_workspace_is_broken() {
        let (state, detail) = found("directory", |facts| {
            facts.workspace.writable = Err("Permission denied".to_owned());
        });
        assert_eq!(
            (state, detail.as_str()),
            (FindingState::Broken, "/work: Permission denied")
        );
    }

    #[test]
    fn another_ralph_that_comes_first_in_path_is_a_warning() {
        let (state, detail) = found("PATH", |facts| {
            facts.shadowed_by = Some("/usr/local/bin/ralph".into());
        });
        assert_eq!(state, FindingState::Warning);
        assert!(detail.contains("/usr/local/bin/ralph"), "{detail}");
    }

    #[test]
    fn git_status_is_reported() {
        let git = |git: GitStatus| found("git", move |facts| facts.workspace.git = git.clone());
        assert_eq!(git(GitStatus::NoRepository).0, FindingState::Absent);
        assert_eq!(
            git(GitStatus::Unreadable("git not found".to_owned())).0,
            FindingState::Warning
        );
        let changed = GitStatus::Repository {
            branch: "main".to_owned(),
            changed: 2,
        };
        assert_eq!(
            git(changed),
            (FindingState::Warning, "main, 2 changed files".to_owned())
        );
    }

    #[test]
    fn a_held_lock_is_a_warning_and_an_unusable_state_directory_is_an_error() {
        let (state, detail) = found("lock", |facts| {
            facts.workspace.holder = Some("process 7".to_owned());
        });
        assert_eq!(
            (state, detail.as_str()),
            (FindingState::Warning, "held by process 7")
        );
        assert_eq!(
            found("state", |facts| facts.workspace.state =
                Err("read-only".to_owned()))
            .0,
            FindingState::Broken
        );
    }

    #[test]
    fn small_or_dumb_terminals_and_other_locales_are_warnings() {
        assert_eq!(
            found("screen", |facts| facts.terminal.size = None).0,
            FindingState::Absent
        );
        assert_eq!(
            found("screen", |facts| facts.terminal.size = Some((40, 10))).0,
            FindingState::Warning
        );
        assert_eq!(
            found("screen", |facts| facts.terminal.term = None).0,
            FindingState::Warning
        );
        assert_eq!(
            found("locale", |facts| facts.terminal.locale = Some("C".to_owned())).0,
            FindingState::Warning
        );
        assert_eq!(
            found("locale", |facts| facts.terminal.locale = None).1,
            "not set: some characters may be shown incorrectly"
        );
    }

    #[test]
    fn low_space_is_a_warning_and_no_space_is_broken() {
        assert_eq!(
            found("free space", |facts| facts.disk.free = size(1000)),
            (FindingState::Broken, "1000 bytes".to_owned())
        );
        assert_eq!(
            found("free space", |facts| facts.disk.free = size(500_000_000)).0,
            FindingState::Warning
        );
        assert_eq!(
            found("free space", |facts| facts.disk.free = None).0,
            FindingState::Absent
        );
        assert_eq!(
            found("runs kept", |facts| facts.disk.kept.bytes = 3_000_000_000),
            (FindingState::Warning, "3 runs, 4 MB".to_owned())
        );
    }

    #[test]
    fn an_unset_clock_is_broken_and_a_clock_set_back_is_a_warning() {
        assert_eq!(
            found("time", |facts| facts.clock.now = Timestamp::UNIX_EPOCH).0,
            FindingState::Broken
        );
        let (state, detail) = found("time", |facts| {
            facts.clock.newest_run = "2026-11-16T03:00:00Z".parse().ok();
        });
        assert_eq!(state, FindingState::Warning);
        assert_eq!(
            detail,
            "2026-11-15 20:45 UTC, but the newest run started 2026-11-16 03:00 UTC"
        );
    }
}
