//! Configuration with which each program uses the model server on loopback: files and variables. The keys are not
//! valid anywhere.

use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Copilot,
    Qwen,
    Pi,
    Kimi,
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
            Self::Qwen => "qwen",
            Self::Pi => "pi",
            Self::Kimi => "kimi",
        }
    }

    /// Writes the program's configuration into its home and returns its environment variables.
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
            Self::Qwen | Self::Pi | Self::Kimi => self.prepare_chat_program(home, v1),
        }
    }

    /// The same for programs that use OpenAI's chat completions.
    fn prepare_chat_program(self, home: &Path, v1: String) -> Vec<(&'static str, String)> {
        match self {
            Self::Qwen => {
                let settings = r#"{ "security": { "auth": { "selectedType": "openai" } },
                                    "general": { "disableAutoUpdate": true },
                                    "privacy": { "usageStatisticsEnabled": false } }"#;
                write(&home.join(".qwen/settings.json"), settings);
                vec![
                    ("OPENAI_BASE_URL", v1),
                    ("OPENAI_API_KEY", KEY.to_owned()),
                    ("OPENAI_MODEL", "loopback".to_owned()),
                ]
            }
            Self::Pi => {
                let models = format!(
                    r#"{{ "providers": {{ "loopback": {{ "baseUrl": "{v1}", "api": "openai-completions",
                         "apiKey": "{KEY}", "models": [{{ "id": "loopback", "contextWindow": 4000000 }}] }} }} }}"#
                );
                write(&home.join(".pi/agent/models.json"), &models);
                let settings = r#"{ "defaultProvider": "loopback", "defaultModel": "loopback" }"#;
                write(&home.join(".pi/agent/settings.json"), settings);
                vec![("PI_OFFLINE", "1".to_owned())]
            }
            Self::Kimi => {
                let config = format!(
                    "default_model = \"loopback\"\n\n[providers.loopback]\ntype = \"openai\"\n\
                     base_url = \"{v1}\"\napi_key = \"{KEY}\"\n\n[models.loopback]\n\
                     provider = \"loopback\"\nmodel = \"loopback\"\nmax_context_size = 1000000\n"
                );
                write(&home.join(".kimi-code/config.toml"), &config);
                Vec::new()
            }
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode | Self::Copilot => Vec::new(),
        }
    }
}

fn write(path: &Path, text: &str) {
    let directory = path.parent().expect("a directory");
    fs::create_dir_all(directory).expect("a directory in the home");
    fs::write(path, text).expect("a file in the home");
}
