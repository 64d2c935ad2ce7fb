//! What each agent needs of the machine: its own files, its hosts and its keys. Sandboxes grant no more than that.

use super::{AGENTS, Agent, CUSTOM, ResolvedAgent};

/// A column of the agent table.
#[derive(Debug, Clone, Copy)]
pub struct AgentAccess {
    /// Configuration, login and session files below the home directory. The agent writes them.
    pub files: &'static [&'static str],
    /// The hosts of its service.
    pub hosts: &'static [&'static str],
    /// Patterns of the variables with its keys and settings.
    pub variables: &'static [&'static str],
}

impl AgentAccess {
    /// The files of all agents.
    pub fn all_files() -> Vec<&'static str> {
        AGENTS
            .iter()
            .flat_map(|agent| agent.access.files)
            .copied()
            .collect()
    }
}

impl ResolvedAgent {
    /// What the agent may use. A custom command may call any agent, so it gets the files and variables of all of them.
    pub fn access(&self) -> Vec<AgentAccess> {
        let program = self.program.file_name().and_then(|name| name.to_str());
        let starts = |agent: &&Agent| {
            let server = agent.acp.map(|server| server.program);
            agent
                .programs
                .iter()
                .copied()
                .chain(server)
                .any(|known| Some(known) == program)
        };
        let by_driver = self.driver().and_then(|driver| driver.builtin_agent());
        let by_name = AGENTS.iter().find(|agent| agent.name == self.name);
        if let Some(agent) = by_name.or(by_driver).or_else(|| AGENTS.iter().find(starts)) {
            return vec![agent.access];
        }
        let all = AGENTS.iter().map(|agent| AgentAccess {
            hosts: &[],
            ..agent.access
        });
        match self.name == CUSTOM || self.driver().is_some() {
            true => all.collect(),
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_names_its_files_below_the_home_directory_and_its_hosts() {
        for agent in AGENTS {
            let access = agent.access;
            assert!(!access.files.is_empty(), "{}", agent.name);
            assert!(!access.hosts.is_empty(), "{}", agent.name);
            let is_relative = |path: &&str| !path.starts_with(['/', '~']) && !path.contains("..");
            assert!(access.files.iter().all(is_relative), "{}", agent.name);
        }
    }
}
