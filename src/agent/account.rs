//! The account that an agent uses: the identity of its login, or else a hash of its key. Runs with the same account share
//! its usage limits.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::ResolvedAgent;
use super::builtin::{AGENTS, LOGINS};
use super::invocation::PromptDelivery;
use crate::files::{self, ReadRule};

/// Some agents keep their history in the same file.
const MAX_LOGIN_BYTES: u64 = 64 << 20;

/// Where the account of an agent is found.
#[derive(Debug)]
pub(super) struct Login {
    pub(super) agent: &'static str,
    /// Variables with keys, which take precedence over a login.
    pub(super) keys: &'static [&'static str],
    /// The variable that selects another server, which has other accounts.
    pub(super) address: Option<&'static str>,
    pub(super) file: Option<LoginFile>,
}

/// The file in which an agent stores who is logged in.
#[derive(Debug)]
pub(super) struct LoginFile {
    pub(super) directory_variable: Option<&'static str>,
    /// The directory in the home directory, if the variable is not set.
    pub(super) directory: &'static str,
    pub(super) file: &'static str,
    /// The JSON pointer of the identity.
    pub(super) pointer: &'static str,
}

/// The account of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAccount {
    /// Nothing is known about the account, as for custom agents.
    Unknown,
    /// The only account of this user.
    Default,
    Named(String),
}

impl ResolvedAgent {
    /// The account that the agent uses with this environment.
    pub fn account(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> AgentAccount {
        match &self.delivery {
            PromptDelivery::Builtin(_) | PromptDelivery::Interactive(_) | PromptDelivery::Acp { .. } => {}
            PromptDelivery::CustomArgument { .. }
            | PromptDelivery::CustomStdin
            | PromptDelivery::Wrapper
            | PromptDelivery::Driver(_) => return AgentAccount::Unknown,
        }
        if !AGENTS.iter().any(|row| row.name == self.name) {
            return AgentAccount::Unknown;
        }
        let Some(login) = LOGINS.iter().find(|login| login.agent == self.name) else {
            return AgentAccount::Default;
        };
        let own = |name: &str| self.environment.iter().find(|(known, _)| known == name);
        let value = |name: &str| {
            let value = own(name)
                .map(|(_, value)| value.into())
                .or_else(|| variable(name));
            value.filter(|value: &OsString| !value.is_empty())
        };
        login
            .account(&value)
            .map_or(AgentAccount::Default, AgentAccount::Named)
    }
}

impl Login {
    fn account(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
        let address = self.address.and_then(variable);
        if let Some(key) = self.keys.iter().find_map(|key| variable(key)) {
            let mut hash = Sha256::new_with_prefix(key.as_encoded_bytes());
            if let Some(address) = &address {
                hash.update(b"\0");
                hash.update(address.as_encoded_bytes());
            }
            let hash = hash.finalize();
            let digits: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            return Some(format!("key-{digits}"));
        }
        self.file.as_ref()?.identity(variable)
    }
}

impl LoginFile {
    fn identity(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
        let directory = self.directory_variable.and_then(variable).map(PathBuf::from);
        let directory = directory.or_else(|| Some(PathBuf::from(variable("HOME")?).join(self.directory)))?;
        let rule = ReadRule {
            max_bytes: MAX_LOGIN_BYTES,
            ..ReadRule::CONFIG
        };
        let bytes = files::read(&directory.join(self.file), rule).ok()?;
        let content: Value = serde_json::from_slice(&bytes).ok()?;
        let identity = content.pointer(self.pointer)?.as_str()?.trim();
        (!identity.is_empty()).then(|| identity.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(agent: &str, variables: &[(&str, &str)]) -> Option<String> {
        let login = LOGINS.iter().find(|login| login.agent == agent).unwrap();
        login.account(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn every_login_belongs_to_an_agent() {
        for login in LOGINS {
            assert!(
                AGENTS.iter().any(|row| row.name == login.agent),
                "{}",
                login.agent
            );
        }
    }

    #[test]
    fn a_key_is_an_account_but_is_not_shown() {
        let login = &LOGINS[0];
        let (key, address) = (login.keys[0], login.address.unwrap());
        let one = account(login.agent, &[(key, "secret-1")]).unwrap();
        assert!(one.starts_with("key-") && one.len() == 12, "{one}");
        assert_ne!(Some(&one), account(login.agent, &[(key, "secret-2")]).as_ref());
        let elsewhere = account(login.agent, &[(key, "secret-1"), (address, "http://localhost")]);
        assert_ne!(Some(one), elsewhere);
    }

    #[test]
    fn a_login_is_named_by_its_identity() {
        let home = tempfile::tempdir().unwrap();
        for login in LOGINS {
            let Some(file) = &login.file else { continue };
            let directory = home.path().join(file.directory);
            std::fs::create_dir_all(&directory).unwrap();
            let mut content = serde_json::json!("me@example.com");
            for key in file.pointer.rsplit('/').filter(|key| !key.is_empty()) {
                content = serde_json::json!({ key: content });
            }
            std::fs::write(directory.join(file.file), content.to_string()).unwrap();
            let found = account(login.agent, &[("HOME", home.path().to_str().unwrap())]);
            assert_eq!(found.as_deref(), Some("me@example.com"), "{}", login.agent);
            std::fs::write(directory.join(file.file), "{").unwrap();
            assert_eq!(
                account(login.agent, &[("HOME", home.path().to_str().unwrap())]),
                None
            );
        }
    }
}
