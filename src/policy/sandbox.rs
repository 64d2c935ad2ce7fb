//! The sandbox: what agents and gates may see, change and reach, as configured.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::section::section;

section! {
    /// What agents and gates may see, change and reach ([sandbox](sandbox.md)).
    Sandbox, PartialSandbox, "sandbox" {
        /// `off`, `workspace` (everything is readable except credentials, little is writable) or `strict` (little is
        /// readable either). Default: `off`, or `workspace` with a limited `net`.
        #[environment("RALPH_SANDBOX")]
        mode: SandboxMode,
        /// Paths that are writable: relative to this file, absolute, or below `~`. Default: the project root.
        #[check(inner(length(min = 1)))]
        write: Vec<String> = Vec::new(),
        /// Paths that are readable although the mode hides them, such as `~/.aws` or a socket in `/run`.
        #[check(inner(length(min = 1)))]
        read: Vec<String> = Vec::new(),
        /// `open`, `none`, or a list of hosts: `api.example.com`, `*.example.com`, `git.example.com:22`, `localhost:5432`.
        #[environment("RALPH_NET")]
        net: NetworkAccess = NetworkAccess::Open,
    }
}

section! {
    /// Which variables of ralph's environment agents and gates receive.
    EnvironmentRules, PartialEnvironmentRules, "env" {
        /// Names or patterns of variables that are passed on, even if `drop` matches or the sandbox is `strict`.
        #[check(inner(length(min = 1)))]
        pass: Vec<String> = Vec::new(),
        /// Names or patterns of variables that are not passed on, such as `*_TOKEN`.
        #[check(inner(length(min = 1)))]
        drop: Vec<String> = Vec::new(),
    }
}

impl Eq for PartialSandbox {}

/// How much the sandbox restricts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    Off,
    Workspace,
    Strict,
}

impl SandboxMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::Strict => "strict",
        }
    }
}

impl FromStr for SandboxMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Off, Self::Workspace, Self::Strict]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| "expected `off`, `workspace` or `strict`".to_owned())
    }
}

/// The hosts that can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkAccess {
    Open,
    None,
    Hosts(Vec<HostRule>),
}

/// One allowed host: `name`, `*.name` or `name:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    /// In lower case. With `*.` in front, it stands for all names below.
    name: String,
    /// Without it, the ports of HTTP and HTTPS are allowed.
    port: Option<u16>,
}

/// The ports of a rule that names none.
const WEB_PORTS: [u16; 2] = [443, 80];

impl HostRule {
    pub fn allows(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_named = match self.name.strip_prefix('*') {
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            None => host == self.name,
        };
        let is_port = match self.port {
            Some(own) => own == port,
            None => WEB_PORTS.contains(&port),
        };
        is_named && is_port
    }

    /// The port of a service of this machine, which the sandbox offers under the same port.
    pub fn loopback_port(&self) -> Option<u16> {
        self.port
            .filter(|_| ["localhost", "127.0.0.1", "::1"].contains(&&*self.name))
    }
}

impl FromStr for HostRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || format!("expected a host name, `*.name` or `name:port`, found `{text}`");
        let (name, port) = match text.rsplit_once(':') {
            // Without brackets, the colons are those of an IPv6 address.
            Some((name, _)) if name.contains(':') && !name.ends_with(']') => (text, None),
            Some((name, port)) => {
                let port: u16 = port.parse().map_err(|_| invalid())?;
                (name, Some(port).filter(|port| *port != 0))
            }
            None => (text, None),
        };
        let name = name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_ascii_lowercase();
        let plain = name.strip_prefix("*.").unwrap_or(&name);
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
        if plain.is_empty() || plain.starts_with('.') || !plain.chars().all(is_letter) {
            return Err(invalid());
        }
        Ok(Self { name, port })
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_v6 = self.name.contains(':');
        match (is_v6, self.port) {
            (false, None) => f.write_str(&self.name),
            (true, None) => write!(f, "[{}]", self.name),
            (false, Some(port)) => write!(f, "{}:{port}", self.name),
            (true, Some(port)) => write!(f, "[{}]:{port}", self.name),
        }
    }
}

impl NetworkAccess {
    fn of_words<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        words.map(str::parse).collect::<Result<_, _>>().map(Self::Hosts)
    }
}

/// `open`, `none`, or hosts separated by commas.
impl FromStr for NetworkAccess {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "open" => Ok(Self::Open),
            "none" => Ok(Self::None),
            hosts => Self::of_words(hosts.split(',').map(str::trim)),
        }
    }
}

impl Serialize for NetworkAccess {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Open => to.serialize_str("open"),
            Self::None => to.serialize_str("none"),
            Self::Hosts(hosts) => to.collect_seq(hosts.iter().map(ToString::to_string)),
        }
    }
}

impl<'de> Deserialize<'de> for NetworkAccess {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WordOrHosts;

        impl<'de> Visitor<'de> for WordOrHosts {
            type Value = NetworkAccess;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`open`, `none` or a list of hosts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut hosts = Vec::new();
                while let Some(text) = items.next_element::<String>()? {
                    hosts.push(text.parse().map_err(de::Error::custom)?);
                }
                Ok(NetworkAccess::Hosts(hosts))
            }
        }

        from.deserialize_any(WordOrHosts)
    }
}

impl JsonSchema for NetworkAccess {
    fn schema_name() -> Cow<'static, str> {
        "NetworkAccess".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "minLength": 1 },
                { "type": "array", "items": { "type": "string", "minLength": 1 } },
            ]
        })
    }
}

impl Sandbox {
    /// The mode that applies. A network can only be limited in a sandbox.
    pub fn effective_mode(&self) -> SandboxMode {
        let default = match self.net {
            NetworkAccess::Open => SandboxMode::Off,
            NetworkAccess::None | NetworkAccess::Hosts(_) => SandboxMode::Workspace,
        };
        self.mode.unwrap_or(default)
    }

    /// The settings for a job: those of the run, with what an agent, a hat or a gate changes.
    #[must_use]
    pub fn with(&self, changes: &PartialSandbox) -> Self {
        let mut own = self.clone();
        changes.clone().apply_to(&mut own);
        own
    }
}

/// Variables that every program may need, in `strict` too.
const BASIC_VARIABLES: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_*_HOME",
    "CI",
    "EDITOR",
    "HOSTNAME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "JAVA_HOME",
    "NVM_DIR",
    "SSL_CERT_*",
    "RALPH_*",
];

impl EnvironmentRules {
    /// Whether agents and gates receive a variable of ralph's environment. `own` are the agent's own keys.
    pub fn passes(&self, name: &str, mode: SandboxMode, own: &[&str]) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        if any(&self.pass) {
            return true;
        }
        if any(&self.drop) {
            return false;
        }
        match mode {
            SandboxMode::Off | SandboxMode::Workspace => true,
            SandboxMode::Strict => BASIC_VARIABLES
                .iter()
                .chain(own)
                .any(|pattern| matches(pattern, name)),
        }
    }
}

/// Whether a name matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    (0..=name.len())
        .filter(|end| name.is_char_boundary(*end))
        .any(|end| matches(rest, &name[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rule: &str, host: &str, port: u16) -> bool {
        let rule: HostRule = rule.parse().expect("a rule");
        rule.allows(host, port)
    }

    #[test]
    fn a_host_is_allowed_by_its_name_and_port() {
        assert!(allows("api.example.com", "API.example.com.", 443));
        assert!(!allows("api.example.com", "api.example.com", 22));
        assert!(!allows("api.example.com", "api.example.com.evil.com", 443));
        assert!(allows("git.example.com:22", "git.example.com", 22));
        assert!(!allows("git.example.com:22", "git.example.com", 443));
        assert!(allows("*.example.com", "a.b.example.com", 443));
        assert!(!allows("*.example.com", "example.com", 443));
        assert!(!allows("*.example.com", "evilexample.com", 443));
        assert!(allows("[::1]:8080", "::1", 8080));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in ["", "*", "*.", "http://example.com", "a b", "host:99999", "*.*"] {
            assert!(text.parse::<HostRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn services_of_this_machine_are_named_with_their_port() {
        let port = |text: &str| text.parse::<HostRule>().expect("a rule").loopback_port();
        assert_eq!(port("localhost:5432"), Some(5432));
        assert_eq!(port("127.0.0.1:80"), Some(80));
        assert_eq!(port("localhost"), None);
        assert_eq!(port("example.com:80"), None);
    }

    #[test]
    fn network_access_is_a_word_or_a_list() {
        assert_eq!("none".parse(), Ok(NetworkAccess::None));
        let hosts: NetworkAccess = "a.example, b.example:8080".parse().expect("hosts");
        let text = serde_json::to_string(&hosts).expect("JSON");
        assert_eq!(text, r#"["a.example","b.example:8080"]"#);
        assert_eq!(
            serde_json::from_str::<NetworkAccess>(&text).expect("hosts"),
            hosts
        );
        assert!(serde_json::from_str::<NetworkAccess>(r#"["a b"]"#).is_err());
    }

    #[test]
    fn strict_passes_only_basic_variables_and_the_keys_of_the_agent() {
        let rules = EnvironmentRules {
            pass: vec!["MY_*".to_owned()],
            drop: vec!["*_TOKEN".to_owned()],
        };
        let passes = |name: &str, mode| rules.passes(name, mode, &["ANTHROPIC_*"]);
        for (name, workspace, strict) in [
            ("PATH", true, true),
            ("LC_ALL", true, true),
            ("ANTHROPIC_API_KEY", true, true),
            ("OPENAI_API_KEY", true, false),
            ("NPM_TOKEN", false, false),
            ("MY_TOKEN", true, true),
            ("SOMETHING", true, false),
        ] {
            assert_eq!(passes(name, SandboxMode::Workspace), workspace, "{name}");
            assert_eq!(passes(name, SandboxMode::Strict), strict, "{name}");
        }
    }

    #[test]
    fn a_gate_changes_only_what_it_names() {
        let run = Sandbox {
            mode: Some(SandboxMode::Strict),
            read: vec!["/srv".to_owned()],
            ..Sandbox::default()
        };
        let gate = PartialSandbox {
            net: Some(NetworkAccess::None),
            ..PartialSandbox::default()
        };
        let own = run.with(&gate);
        assert_eq!(
            (own.mode, own.net),
            (Some(SandboxMode::Strict), NetworkAccess::None)
        );
        assert_eq!(own.read, ["/srv"]);
    }
}
