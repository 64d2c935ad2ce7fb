//! Confinement on macOS: the rules as a profile for `sandbox-exec`. It has no process namespaces, so other processes of the user
//! stay visible, and a network list can only close the network.

use std::path::Path;

use super::{Access, Confinement, Network};

/// The program that applies a profile.
#[cfg(target_os = "macos")]
const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// The request with a program in front of it that applies the rules; `None` where there is none.
#[cfg(not(target_os = "linux"))]
pub(in crate::process) fn wrapped_command(
    confinement: &Confinement,
    request: &crate::process::spawn_request::SpawnRequest,
) -> Option<(std::ffi::OsString, Vec<std::ffi::OsString>)> {
    #[cfg(target_os = "macos")]
    {
        let program = match request.program.is_empty() {
            true => "/usr/bin/true".into(),
            false => request.program.clone(),
        };
        let mut args = vec!["-p".into(), profile(confinement).into(), program];
        args.extend(request.args.iter().cloned());
        Some((PROGRAM.into(), args))
    }
    #[cfg(not(target_os = "macos"))]
    {
        let _ = (confinement, request);
        None
    }
}

/// The profile. The last rule that matches an operation applies, so inner paths come last.
#[cfg_attr(
    not(any(test, target_os = "macos")),
    expect(dead_code, reason = "only macOS has sandbox-exec")
)]
fn profile(confinement: &Confinement) -> String {
    let mut text = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    for device in ["/dev/null", "/dev/zero", "/dev/tty"] {
        text.push_str(&format!(
            "(allow file-write* (literal {}))\n",
            quoted(Path::new(device))
        ));
    }
    text.push_str("(allow file-write* (regex #\"^/dev/ttys\"))\n");
    for rule in confinement.rules() {
        let path = quoted(&rule.path);
        text.push_str(&match &rule.access {
            Access::Write => format!("(allow file-read* file-write* (subpath {path}))\n"),
            Access::Read => {
                format!("(allow file-read* (subpath {path}))\n(deny file-write* (subpath {path}))\n")
            }
            Access::Hidden => format!("(deny file-read* file-write* (subpath {path}))\n"),
            Access::Private(other) => {
                let other = other.as_deref().unwrap_or(&rule.path);
                format!("(allow file-read* file-write* (subpath {}))\n", quoted(other))
            }
        });
    }
    if let Network::Own { .. } = &confinement.network {
        text.push_str("(deny network*)\n(allow network* (local ip \"localhost:*\"))\n");
    }
    text.push_str("(deny signal)\n(allow signal (target same-sandbox))\n");
    text
}

/// A path as a string of the profile language.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::PathRule;

    #[test]
    fn inner_rules_follow_outer_ones_and_paths_are_quoted() {
        let rule = |path: &str, access| PathRule {
            path: path.into(),
            access,
        };
        let rules = [
            rule("/w/.git/config", Access::Read),
            rule("/w\"x", Access::Write),
            rule("/Users/me/.ssh", Access::Hidden),
        ];
        let text = profile(&Confinement::new(rules, Network::Open));
        let position = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(
            position("(deny file-write*)\n")
                < position("(allow file-read* file-write* (subpath \"/w\\\"x\"))")
        );
        assert!(
            position("(subpath \"/w\\\"x\")") < position("(deny file-write* (subpath \"/w/.git/config\"))")
        );
        assert!(text.contains("(deny file-read* file-write* (subpath \"/Users/me/.ssh\"))"));
        assert!(!text.contains("(deny network*)"));
    }
}
