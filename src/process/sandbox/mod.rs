//! What a child may see, change and reach. The supervisor applies a [`Confinement`] before the program starts: the child and
//! everything that it starts live in namespaces of their own, which end with their first process.
//!
//! `first_process` runs inside the namespaces, `mounts` arranges the file system, `start` is the supervisor's part.

#[cfg(target_os = "linux")]
mod first_process;
#[cfg(target_os = "linux")]
mod mounts;
mod seatbelt;
#[cfg(target_os = "linux")]
pub(super) mod start;
mod support;

pub use support::{SandboxSupport, sandbox_support};

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(not(target_os = "linux"))]
pub(super) use seatbelt::wrapped_command;

/// What a child may see, change and reach.
#[derive(Debug, Clone, Default)]
pub struct Confinement {
    rules: Vec<PathRule>,
    pub network: Network,
}

/// The access to a path and everything below it. Rules for paths below it take precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    pub path: PathBuf,
    pub access: Access,
}

/// Access to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Write,
    Read,
    /// An empty file or directory in its place.
    Hidden,
    /// An empty directory in its place, which the child may fill: in memory, or in another directory.
    Private(Option<PathBuf>),
}

/// The network of a child.
#[derive(Debug, Clone, Default)]
pub enum Network {
    /// That of ralph.
    #[default]
    Open,
    /// A loopback interface of its own. Ralph accepts the connections to these ports.
    Own {
        ports: Vec<u16>,
        /// Where the first process sends the listening sockets.
        line: Option<Arc<OwnedFd>>,
    },
}

impl Confinement {
    /// A confinement in which everything is readable, and nothing is writable but what the rules allow. A later rule for the same
    /// path replaces an earlier one.
    pub fn new(rules: impl IntoIterator<Item = PathRule>, network: Network) -> Self {
        let mut sorted: Vec<PathRule> = Vec::new();
        for rule in rules {
            match sorted.iter_mut().find(|known| known.path == rule.path) {
                Some(known) => *known = rule,
                None => sorted.push(rule),
            }
        }
        // A directory before what it contains.
        sorted.sort_by_key(|rule| rule.path.components().count());
        Self {
            rules: sorted,
            network,
        }
    }

    /// The rules, outer paths first.
    pub fn rules(&self) -> &[PathRule] {
        &self.rules
    }

    /// The rule that applies to a path.
    pub fn rule_of(&self, path: &Path) -> Option<&PathRule> {
        self.rules.iter().rev().find(|rule| path.starts_with(&rule.path))
    }

    pub(super) fn line(&self) -> Option<&OwnedFd> {
        match &self.network {
            Network::Own { line: Some(line), .. } => Some(line),
            Network::Own { line: None, .. } | Network::Open => None,
        }
    }

    /// The rules and the ports as text for a spawn request.
    pub(super) fn to_fields(&self) -> Vec<OsString> {
        let mut fields: Vec<OsString> = vec![match &self.network {
            Network::Open => "open".into(),
            Network::Own { ports, .. } => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                format!("own {}", ports.join(" ")).into()
            }
        }];
        for rule in &self.rules {
            let (word, source) = match &rule.access {
                Access::Write => ("write", None),
                Access::Read => ("read", None),
                Access::Hidden => ("hidden", None),
                Access::Private(None) => ("memory", None),
                Access::Private(Some(source)) => ("private", Some(source)),
            };
            fields.extend([word.into(), rule.path.clone().into()]);
            fields.push(source.map(|source| source.clone().into()).unwrap_or_default());
        }
        fields
    }

    pub(super) fn from_fields(fields: &[OsString]) -> Option<Self> {
        let (network, rules) = fields.split_first()?;
        let mut words = network.to_str()?.split(' ');
        let network = match words.next()? {
            "open" => Network::Open,
            "own" => Network::Own {
                ports: words
                    .filter(|word| !word.is_empty())
                    .map(|word| word.parse().ok())
                    .collect::<Option<_>>()?,
                line: None,
            },
            _ => return None,
        };
        let rule = |fields: &[OsString]| {
            let [word, path, source] = fields else { return None };
            Some(PathRule {
                path: path.into(),
                access: access(word, source)?,
            })
        };
        Some(Self {
            rules: rules.chunks(3).map(rule).collect::<Option<_>>()?,
            network,
        })
    }
}

fn access(word: &OsStr, source: &OsStr) -> Option<Access> {
    Some(match word.to_str()? {
        "write" => Access::Write,
        "read" => Access::Read,
        "hidden" => Access::Hidden,
        "memory" => Access::Private(None),
        "private" => Access::Private(Some(source.into())),
        _ => return None,
    })
}

/// The step at which a confinement could not be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfinementStep {
    /// This system has none of the mechanisms.
    System,
    Namespaces,
    Users,
    /// The rule with this number.
    Rule(u16),
    Mounts,
    Processes,
    Devices,
    Network,
    Privileges,
}

impl ConfinementStep {
    const RULES: u32 = 100;
    const FIXED: [Self; 8] = [
        Self::System,
        Self::Namespaces,
        Self::Users,
        Self::Mounts,
        Self::Processes,
        Self::Devices,
        Self::Network,
        Self::Privileges,
    ];

    pub(super) fn number(self) -> u32 {
        match self {
            Self::Rule(index) => Self::RULES + u32::from(index),
            fixed => {
                let position = Self::FIXED.iter().position(|step| *step == fixed);
                position.map_or(0, |position| u32::try_from(position).unwrap_or(0))
            }
        }
    }

    pub(super) fn from_number(number: u32) -> Self {
        match number.checked_sub(Self::RULES) {
            Some(index) => Self::Rule(u16::try_from(index).unwrap_or(u16::MAX)),
            None => {
                let index = usize::try_from(number).unwrap_or(0);
                Self::FIXED.get(index).copied().unwrap_or(Self::System)
            }
        }
    }

    /// What could not be done, as the rest of "cannot …".
    pub fn purpose(self) -> &'static str {
        match self {
            Self::System => "find a mechanism for it on this system",
            Self::Namespaces => "create namespaces",
            Self::Users => "map the user into its namespace",
            Self::Rule(_) => "set the access to a path",
            Self::Mounts => "make the file system read-only",
            Self::Processes => "hide other processes",
            Self::Devices => "replace the devices",
            Self::Network => "set up its network",
            Self::Privileges => "drop privileges",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &str, access: Access) -> PathRule {
        PathRule {
            path: path.into(),
            access,
        }
    }

    #[test]
    fn the_innermost_rule_applies_and_a_later_one_replaces_an_earlier_one() {
        let confinement = Confinement::new(
            [
                rule("/w/.git/config", Access::Read),
                rule("/w", Access::Read),
                rule("/tmp", Access::Private(None)),
                rule("/w", Access::Write),
            ],
            Network::Open,
        );
        let access = |path: &str| confinement.rule_of(Path::new(path)).map(|rule| &rule.access);
        assert_eq!(access("/w/src/main.rs"), Some(&Access::Write));
        assert_eq!(access("/w/.git/config"), Some(&Access::Read));
        assert_eq!(access("/w/.git/index"), Some(&Access::Write));
        assert_eq!(access("/www"), None);
    }

    #[test]
    fn a_confinement_can_be_sent() {
        let rules = [
            rule("/tmp", Access::Private(Some("/s".into()))),
            rule("/w", Access::Write),
            rule("/h/.ssh", Access::Hidden),
        ];
        let network = Network::Own {
            ports: vec![3128, 80],
            line: None,
        };
        let sent = Confinement::new(rules, network).to_fields();
        let received = Confinement::from_fields(&sent).unwrap();
        assert_eq!(received.to_fields(), sent);
        assert!(Confinement::from_fields(&sent[..3]).is_none());
        assert!(Confinement::from_fields(&["else".into()]).is_none());
    }

    #[test]
    fn every_step_has_a_number() {
        let steps = ConfinementStep::FIXED.into_iter();
        for step in steps.chain([ConfinementStep::Rule(0), ConfinementStep::Rule(300)]) {
            assert_eq!(ConfinementStep::from_number(step.number()), step);
        }
    }
}
