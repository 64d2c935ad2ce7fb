//! The connection to the engine: its address, TLS and keys, and the encryption of payloads.

use std::time::Duration;

use temporalio_client::envconfig::LoadClientConfigProfileOptions;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions};

/// Where the engine is: `temporal://host:7233/namespace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineUrl {
    pub(crate) address: String,
    pub(crate) namespace: String,
}

impl std::str::FromStr for EngineUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "expected temporal://HOST:PORT/NAMESPACE, such as temporal://127.0.0.1:7233/default";
        let rest = text.strip_prefix("temporal://").ok_or(example)?;
        let (address, namespace) = rest.split_once('/').unwrap_or((rest, "default"));
        if address.is_empty() || address.contains('@') {
            return Err(example.to_owned());
        }
        let namespace = match namespace.trim_end_matches('/') {
            "" => "default",
            name => name,
        };
        let port = if address.contains(':') { "" } else { ":7233" };
        Ok(Self {
            address: format!("{address}{port}"),
            namespace: namespace.to_owned(),
        })
    }
}

impl std::fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "temporal://{}/{}", self.address, self.namespace)
    }
}

/// Connects. TLS and the API key come from the engine's own variables and file (`TEMPORAL_*`).
pub(crate) async fn connect(url: &EngineUrl) -> Result<Client, String> {
    let failed = |why: String| format!("cannot reach the engine at {url}: {why}");
    let (profile, _) = ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())
        .map_err(|error| failed(error.to_string()))?;
    let scheme = match profile.tls_options.is_some() || profile.api_key.is_some() {
        true => "https",
        false => "http",
    };
    let target = format!("{scheme}://{}", url.address)
        .parse::<temporalio_client::Url>()
        .map_err(|_| failed("the address is not valid".to_owned()))?;
    let mut options = ConnectionOptions::new(target).build();
    options.tls_options = profile.tls_options;
    options.api_key = profile.api_key;
    options.identity = format!("ralph-fleet {} {}", std::process::id(), host_name());
    options.connect_timeout = Some(Duration::from_secs(10));
    let connection = Connection::connect(options)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let options = ClientOptions::new(url.namespace.clone()).build();
    Client::new(connection, options).map_err(|error| failed(error.to_string()))
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_has_a_default_port_and_namespace() {
        let url: EngineUrl = "temporal://127.0.0.1".parse().unwrap();
        assert_eq!(url.to_string(), "temporal://127.0.0.1:7233/default");
        let url: EngineUrl = "temporal://host:1/team/".parse().unwrap();
        assert_eq!((url.address.as_str(), url.namespace.as_str()), ("host:1", "team"));
        for wrong in ["http://host", "temporal://", "temporal://user:secret@host"] {
            assert!(wrong.parse::<EngineUrl>().is_err(), "{wrong}");
        }
    }
}
