//! `ralph trust`, and the question before a run: may what this repository's configuration says be executed? A file that
//! is tracked in a repository with a remote can come from somebody else; it is asked about once per content.

mod findings;
mod git;
mod ledger;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::agent::driver::Script;
use crate::agent::{self, DRIVER};
use crate::config::{FileCommands, Loaded};
use crate::ui::{Confirmed, Terminal, clean};

use super::args::TrustArguments;
use super::bench;
use super::context::{Context, user_directory};
use super::error::CliError;
use super::exit::Exit;
pub(super) use findings::findings;
use git::{Git, Owner};
use ledger::{Entry, Ledger};

/// One file that would have something executed.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Subject {
    pub(super) path: PathBuf,
    pub(super) commands: Vec<String>,
    /// Nobody asks for the content of what is the user's own.
    content: Option<String>,
    /// Whose it is, and how that is known.
    standing: Standing,
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    /// The user's own.
    Own,
    Allowed,
    /// Must be allowed before anything of it runs.
    Unknown,
}

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// What this call would execute.
    Call,
    /// Every driver of the project, too: whoever allows what is here means all of it.
    Project,
}

/// What was said on the command line, or in the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    Asked,
}

impl Consent {
    pub(super) fn of(flag: bool) -> Self {
        let given = std::env::var("RALPH_TRUST").is_ok_and(|value| value == "1" || value == "true");
        if flag || given { Self::Given } else { Self::Asked }
    }
}

/// Lets pass what may run here; asks where somebody can answer, and refuses where nobody can.
pub(super) fn require(
    context: &Context,
    loaded: &Loaded,
    consent: Consent,
    terminal: &Terminal,
) -> Result<(), CliError> {
    if consent == Consent::Given {
        return Ok(());
    }
    let asked = Asked {
        executes: executes(context, loaded, Scope::Call),
        allow: "ralph trust".to_owned(),
    };
    require_all(context, asked, consent, terminal)
}

/// What is to be executed, and the command that allows it.
pub(super) struct Asked {
    pub(super) executes: Vec<FileCommands>,
    pub(super) allow: String,
}

/// As `require`, for whatever is to be executed.
pub(super) fn require_all(
    context: &Context,
    asked: Asked,
    consent: Consent,
    terminal: &Terminal,
) -> Result<(), CliError> {
    if consent == Consent::Given {
        return Ok(());
    }
    let mut ledger = Ledger::open().map_err(CliError::Ledger)?;
    let subjects = judged(context, asked.executes, &ledger)?;
    let unknown: Vec<Subject> = subjects.into_iter().filter(Subject::is_unknown).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    if terminal.can_ask() {
        let question = format!("{}\nRun this?", described(&unknown));
        let answer = terminal
            .confirm(&format!("{question} [y/N] "))
            .map_err(CliError::Output)?;
        if answer == Confirmed::Yes {
            return remember(&mut ledger, &unknown);
        }
    }
    Err(CliError::Untrusted {
        subjects: unknown,
        allow: asked.allow,
    })
}

/// Whether all that would run here may run without a question.
pub(super) fn is_settled(context: &Context, loaded: &Loaded, consent: Consent) -> Result<bool, CliError> {
    if consent == Consent::Given {
        return Ok(true);
    }
    let ledger = Ledger::open().map_err(CliError::Ledger)?;
    let subjects = judged(context, executes(context, loaded, Scope::Call), &ledger)?;
    Ok(!subjects.iter().any(Subject::is_unknown))
}

pub(super) fn trust(arguments: &TrustArguments, terminal: &Terminal) -> Result<Exit, CliError> {
    let context = Context::here()?;
    let found = match &arguments.tasks {
        Some(tasks) => bench::executes(tasks, &context.cwd)?,
        None => {
            let loaded = context.load(arguments.choice.overrides()?, arguments.choice.config.as_ref())?;
            executes(&context, &loaded, Scope::Project)
        }
    };
    let mut ledger = Ledger::open().map_err(CliError::Ledger)?;
    let subjects = judged(&context, found, &ledger)?;
    let text = if arguments.show {
        show(&subjects, &ledger, arguments.json)
    } else if arguments.revoke {
        subjects
            .iter()
            .for_each(|subject| ledger.revoke(subject.content.as_deref(), &subject.path));
        ledger.save().map_err(CliError::Ledger)?;
        format!("forgot {}\n", counted(subjects.len()))
    } else {
        let unknown: Vec<Subject> = subjects.into_iter().filter(Subject::is_unknown).collect();
        remember(&mut ledger, &unknown)?;
        match unknown.len() {
            0 => "nothing here needs to be allowed\n".to_owned(),
            count => format!(
                "{}\nallowed {}, in {}\n",
                described(&unknown),
                counted(count),
                ledger.path().display()
            ),
        }
    };
    terminal.print(&clean::clean(&text)).map_err(CliError::Output)?;
    Ok(Exit::Success)
}

impl Subject {
    fn is_unknown(&self) -> bool {
        self.standing == Standing::Unknown
    }
}

fn counted(files: usize) -> String {
    if files == 1 {
        "1 file".to_owned()
    } else {
        format!("{files} files")
    }
}

fn remember(ledger: &mut Ledger, subjects: &[Subject]) -> Result<(), CliError> {
    for subject in subjects {
        ledger.allow(Entry {
            content: subject.content.clone().unwrap_or_default(),
            path: subject.path.clone(),
            commands: subject.commands.clone(),
            at: Timestamp::now(),
        });
    }
    if subjects.is_empty() {
        return Ok(());
    }
    ledger.save().map_err(CliError::Ledger)
}

/// Whose each of them is.
fn judged(context: &Context, found: Vec<FileCommands>, ledger: &Ledger) -> Result<Vec<Subject>, CliError> {
    let git = git(context);
    found
        .into_iter()
        .map(|executes| judge(executes, &git, ledger))
        .collect()
}

/// How git is asked here: with nothing that a repository could have it run.
pub(super) fn git(context: &Context) -> Git {
    Git {
        program: context.probe().find("git"),
        supervisors: context.supervisors.clone(),
    }
}

/// Every file that would have something executed: configuration, the driver's script, and a program of the project's
/// own that the configuration names.
fn executes(context: &Context, loaded: &Loaded, scope: Scope) -> Vec<FileCommands> {
    let mut found = loaded.executes();
    let settings = &loaded.settings;
    let places = agent::driver_places(settings, &context.cwd);
    let chosen = settings
        .cli
        .backend
        .strip_prefix(DRIVER)
        .map(|name| places.find(name));
    let scripts = match scope {
        Scope::Call => chosen.into_iter().collect(),
        Scope::Project => places
            .all()
            .into_iter()
            .map(|(_, script)| script)
            .collect::<Vec<_>>(),
    };
    found.extend(scripts.into_iter().filter_map(|script| match script {
        Ok(Script::File(file)) => Some(FileCommands {
            file,
            commands: vec!["itself, in bash".to_owned()],
        }),
        Ok(Script::Embedded { .. }) | Err(_) => None,
    }));
    // A bare name is looked up in PATH, which is the user's; a path leads into the project.
    let named = [&settings.cli.command, &settings.cli.claude_command];
    let programs = named
        .into_iter()
        .flatten()
        .filter(|command| command.contains('/'));
    let programs = programs
        .map(|command| context.cwd.join(command))
        .filter(|path| path.is_file());
    found.extend(programs.map(|file| FileCommands {
        file,
        commands: vec!["itself, as the agent".to_owned()],
    }));
    found
}

fn judge(executes: FileCommands, git: &Git, ledger: &Ledger) -> Result<Subject, CliError> {
    let FileCommands { file, commands } = executes;
    let own_directory = user_directory().and_then(|ours| ours.parent().map(Path::to_owned));
    let is_users = own_directory.is_some_and(|base| {
        ["ralph", "ralphex"]
            .iter()
            .any(|name| file.starts_with(base.join(name)))
    });
    let owner = if is_users {
        Owner::User("in your own configuration directory")
    } else {
        git.owner(&file)
    };
    let (standing, why, content) = match owner {
        Owner::User(why) => (Standing::Own, why.to_owned(), None),
        Owner::Others(why) => {
            let content = digest(&file).map_err(|source| CliError::Unreadable {
                path: file.clone(),
                source,
            })?;
            let standing = if ledger.allows(&content) {
                Standing::Allowed
            } else {
                Standing::Unknown
            };
            (standing, why, Some(content))
        }
    };
    Ok(Subject {
        path: file,
        commands,
        content,
        standing,
        why,
    })
}

/// Of the file; of a driver also what lies beside it, since a driver may call that.
fn digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash_file(path, &mut hash)?;
    if path.extension().is_some_and(|extension| extension == "sh")
        && path.parent().is_some_and(|parent| parent.ends_with("drivers"))
    {
        let directory = path.parent().unwrap_or(path);
        let mut beside: Vec<PathBuf> = fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        beside.retain(|other| other != path && other.is_file());
        beside.sort();
        for other in beside {
            hash_file(&other, &mut hash)?;
        }
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{digest}"))
}

/// The name and the length go in too, so that no two sets of files look alike.
fn hash_file(path: &Path, hash: &mut Sha256) -> io::Result<()> {
    let mut file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    hash.update(path.file_name().unwrap_or_default().as_encoded_bytes());
    hash.update([0]);
    hash.update(length.to_le_bytes());
    // Piece by piece: an agent's program may have hundreds of megabytes.
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(()),
            count => hash.update(&piece[..count]),
        }
    }
}

pub(super) fn described(subjects: &[Subject]) -> String {
    let mut text = String::from("This repository's files would have ralph run:\n");
    for subject in subjects {
        text.push_str(&format!("  {} ({})\n", subject.path.display(), subject.why));
        for command in &subject.commands {
            text.push_str(&format!("    {}\n", command.replace('\n', "\n      ")));
        }
    }
    text.pop();
    text
}

fn show(subjects: &[Subject], ledger: &Ledger, json: bool) -> String {
    if json {
        let all = serde_json::json!({ "here": subjects, "allowed": ledger.entries });
        return serde_json::to_string_pretty(&all).unwrap_or_default() + "\n";
    }
    let mut text = String::from("Here:\n");
    for subject in subjects {
        let standing = match subject.standing {
            Standing::Own => "yours",
            Standing::Allowed => "allowed",
            Standing::Unknown => "NOT allowed",
        };
        text.push_str(&format!(
            "  {standing:<12} {} ({})\n",
            subject.path.display(),
            subject.why
        ));
        for command in &subject.commands {
            text.push_str(&format!(
                "               {}\n",
                command.replace('\n', "\n                 ")
            ));
        }
    }
    if subjects.is_empty() {
        text.push_str("  nothing that would be executed\n");
    }
    text.push_str(&format!("\nAllowed ({}):\n", ledger.path().display()));
    for entry in &ledger.entries {
        let content: String = entry.content.chars().take(19).collect();
        text.push_str(&format!(
            "  {content}  {}  {}\n",
            entry.at.strftime("%Y-%m-%d"),
            entry.path.display()
        ));
    }
    if ledger.entries.is_empty() {
        text.push_str("  nothing yet\n");
    }
    text
}
