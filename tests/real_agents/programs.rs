//! What each of the five programs needs to talk to the model on loopback: files in its home, and variables.
//! The keys are words that open nothing.

use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Copilot,
}

const KEY: &str = "not-a-key";

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
        }
    }

    /// Writes the program's configuration into its home; returns what its environment needs beside that.
    pub(crate) fn prepare(self, home: &Path, url: &str) -> Vec<(&'static str, String)> {
        let v1 = format!("{url}/v1");
        match self {
            Self::Claude => vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("ANTHROPIC_API_KEY", KEY.to_owned()),
            ],
            Self::Codex => {
                let retries = "request_max_retries = 1\nstream_max_retries = 1\n";
                let config = format!(
                    "model = \"gpt-5.5\"\nmodel_provider = \"loopback\"\n\n[model_providers.loopback]\n\
                     name = \"loopback\"\nbase_url = \"{v1}\"\nenv_key = \"LOOPBACK_KEY\"\n\
                     wire_api = \"responses\"\n{retries}\n[analytics]\nenabled = false\n\n[features]\n\
                     plugins = false\napps = false\n"
                );
                write(&home.join(".codex/config.toml"), &config);
                vec![("LOOPBACK_KEY", KEY.to_owned())]
            }
            Self::Gemini => {
                let settings = r#"{ "security": { "auth": { "selectedType": "gemini-api-key" } } }"#;
                write(&home.join(".gemini/settings.json"), settings);
                vec![
                    ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
                    ("GEMINI_API_KEY", KEY.to_owned()),
                ]
            }
            Self::Opencode => {
                let model = r#"{ "name": "Loopback", "tool_call": true, "reasoning": true,
                                 "limit": { "context": 4000000, "output": 32000 } }"#;
                let config = format!(
                    r#"{{ "autoupdate": false, "model": "loopback/loopback", "provider": {{ "loopback": {{
                         "npm": "@ai-sdk/openai-compatible", "name": "Loopback",
                         "options": {{ "baseURL": "{v1}", "apiKey": "{KEY}" }},
                         "models": {{ "loopback": {model} }} }} }} }}"#
                );
                write(&home.join(".config/opencode/opencode.json"), &config);
                Vec::new()
            }
            Self::Copilot => vec![
                ("COPILOT_PROVIDER_BASE_URL", v1),
                ("COPILOT_PROVIDER_API_KEY", KEY.to_owned()),
                ("COPILOT_MODEL", "loopback".to_owned()),
                ("COPILOT_PROVIDER_MAX_PROMPT_TOKENS", "4000000".to_owned()),
                ("COPILOT_OFFLINE", "true".to_owned()),
                ("COPILOT_AUTO_UPDATE", "false".to_owned()),
            ],
        }
    }
}

fn write(path: &Path, text: &str) {
    let directory = path.parent().expect("a directory");
    fs::create_dir_all(directory).expect("a directory in the home");
    fs::write(path, text).expect("a file in the home");
}
