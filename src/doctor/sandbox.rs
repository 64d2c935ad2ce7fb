//! Checks what this machine can enforce of a sandbox. The caller tries it out and reads the system's switches.

use crate::process::SandboxSupport;

use super::{Finding, FindingState};

/// The first version of Landlock that keeps a job away from abstract sockets.
const SCOPES_SINCE: u32 = 6;

/// The facts to check.
#[derive(Debug)]
pub struct SandboxFacts {
    /// With a network of its own.
    pub support: SandboxSupport,
    /// Switches of the system that forbid user namespaces to ordinary users: their names and values.
    pub switches: Vec<(&'static str, String)>,
    /// The system is a container.
    pub in_container: bool,
}

/// Switches of the system, the value with which each forbids user namespaces, and the command that allows them.
pub const SWITCHES: [(&str, &str, &str); 3] = [
    (
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with `userns,` for ralph",
    ),
    (
        "kernel.unprivileged_userns_clone",
        "0",
        "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "user.max_user_namespaces",
        "0",
        "sudo sysctl -w user.max_user_namespaces=10000",
    ),
];

pub fn check_sandbox(facts: &SandboxFacts) -> Vec<Finding> {
    let finding = |subject: &str, state, detail: String, remedy: Option<String>| Finding {
        area: "sandbox",
        subject: subject.to_owned(),
        state,
        detail,
        remedy,
    };
    let namespaces = match &facts.support.confinement {
        Ok(()) => finding(
            "namespaces",
            FindingState::Good,
            "files, processes and network of agents can be confined".to_owned(),
            None,
        ),
        Err(error) => finding(
            "namespaces",
            FindingState::Warning,
            format!("agents cannot be confined: {error}"),
            Some(remedy(facts)),
        ),
    };
    let landlock = match facts.support.landlock {
        Some(version) if version >= SCOPES_SINCE => finding(
            "landlock",
            FindingState::Good,
            format!("version {version}: abstract sockets of other programs are out of reach"),
            None,
        ),
        version => finding(
            "landlock",
            FindingState::Absent,
            version.map_or("not available".to_owned(), |version| format!("version {version}")),
            Some(format!(
                "use a kernel with Landlock {SCOPES_SINCE} (Linux 6.12), or a network list: with `net: open`, agents reach abstract sockets"
            )),
        ),
    };
    vec![namespaces, landlock]
}

fn remedy(facts: &SandboxFacts) -> String {
    let forbids = |(name, value): &(&'static str, String)| {
        let switch = SWITCHES
            .iter()
            .find(|(known, forbidden, _)| known == name && forbidden == value);
        switch.map(|(_, _, command)| *command)
    };
    match (facts.switches.iter().find_map(forbids), facts.in_container) {
        (Some(command), _) => command.to_owned(),
        (None, true) => {
            "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or rely on the \
             container and set `sandbox: {mode: off}`"
                .to_owned()
        }
        (None, false) => "enable user namespaces in the kernel (CONFIG_USER_NS); on WSL 1, change to WSL 2".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{ConfinementStep, ProcessError};

    fn facts(switches: Vec<(&'static str, String)>, in_container: bool) -> SandboxFacts {
        let error = ProcessError::Confinement {
            program: "".into(),
            step: ConfinementStep::Users,
            rule: None,
            source: std::io::Error::from_raw_os_error(1),
        };
        SandboxFacts {
            support: SandboxSupport {
                confinement: Err(error),
                landlock: Some(4),
            },
            switches,
            in_container,
        }
    }

    #[test]
    fn the_remedy_names_the_switch_that_forbids_namespaces() {
        let ubuntu = "kernel.apparmor_restrict_unprivileged_userns";
        let findings = check_sandbox(&facts(vec![(ubuntu, "1".to_owned())], false));
        assert!(
            findings[0]
                .remedy
                .as_ref()
                .is_some_and(|text| text.contains(ubuntu))
        );
        let findings = check_sandbox(&facts(vec![(ubuntu, "0".to_owned())], true));
        assert!(
            findings[0]
                .remedy
                .as_ref()
                .is_some_and(|text| text.contains("seccomp=unconfined"))
        );
        assert_eq!(findings[1].state, FindingState::Absent);
    }

    #[test]
    fn a_machine_that_can_enforce_everything_needs_no_remedy() {
        let able = SandboxFacts {
            support: SandboxSupport {
                confinement: Ok(()),
                landlock: Some(7),
            },
            ..facts(Vec::new(), false)
        };
        assert!(
            check_sandbox(&able)
                .iter()
                .all(|finding| finding.state == FindingState::Good)
        );
    }
}
