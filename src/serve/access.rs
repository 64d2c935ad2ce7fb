//! Decides which requests are answered: a session cookie, the expected host, and no other origin.
//!
//! A page of another origin can make the browser send requests to a local server. It can neither read the cookie nor send it
//! (SameSite=Strict), the host names are a fixed list (DNS rebinding), and a request that changes something needs the page's own
//! origin and a JSON body, which other origins cannot send without asking first.

use std::sync::Mutex;

use axum::http::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use sha2::{Digest, Sha256};

use super::{Listen, ServeError};
use crate::store::StateDirectory;

/// Number of random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// The file in the state directory that contains the session's secret, so that a restarted server recognizes its browsers.
const SESSION_FILE: &str = "serve/session";

/// What a request must show.
pub(super) struct Access {
    session: Token,
    cookie_name: String,
    /// Names under which the server may be addressed, with the port.
    hosts: Vec<String>,
    port: PortRule,
    encryption: Encryption,
    sign_in: Mutex<SignIn>,
}

/// Which ports a host name may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortRule {
    Own,
    /// Any port of this machine may be forwarded to a unix socket.
    Any,
}

/// Whether browsers may send the cookie over connections that are not encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encryption {
    None,
    Tls,
}

/// A host with this port, unless it names one.
pub(super) fn with_port(host: &str, port: u16) -> String {
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match has_port {
        true => host.to_owned(),
        false => format!("{host}:{port}"),
    }
}

/// The token of the sign-in address. It is valid once.
struct SignIn {
    token: Token,
}

struct Token(String);

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("this host name is not served; use the address that `ralph serve` printed")]
    Host,
    #[error("requests from other pages are refused")]
    OtherOrigin,
    #[error("not signed in; open the address that `ralph serve` printed")]
    NotSignedIn,
    #[error("the body must have the content type application/json")]
    ContentType,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::OtherOrigin => StatusCode::FORBIDDEN,
            Self::NotSignedIn => StatusCode::UNAUTHORIZED,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}

impl Access {
    /// `names` are further names under which the server is reached.
    pub(super) fn new(
        state: &StateDirectory,
        listening: &Listen,
        names: &[String],
    ) -> Result<Self, ServeError> {
        let mut hosts: Vec<String> = names.to_vec();
        let port = match listening {
            Listen::Port(port) => Some(*port),
            Listen::Socket(_) => None,
            Listen::Encrypted { address, .. } => {
                hosts.extend(names.iter().map(|name| with_port(name, address.port())));
                hosts.push(address.to_string());
                Some(address.port())
            }
        };
        if let Some(port) = port {
            hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}")));
        }
        Ok(Self {
            session: stored_token(state)?,
            cookie_name: port.map_or_else(|| "ralph".to_owned(), |port| format!("ralph_{port}")),
            hosts,
            port: match listening {
                Listen::Socket(_) => PortRule::Any,
                Listen::Port(_) | Listen::Encrypted { .. } => PortRule::Own,
            },
            encryption: match listening {
                Listen::Encrypted { .. } => Encryption::Tls,
                Listen::Port(_) | Listen::Socket(_) => Encryption::None,
            },
            sign_in: Mutex::new(SignIn {
                token: Token::random()?,
            }),
        })
    }

    /// The token for the next sign-in.
    pub(super) fn sign_in_token(&self) -> String {
        lock(&self.sign_in).token.0.clone()
    }

    /// Uses the token of a sign-in address up. Returns the cookie, or `None` if the token is not the current one.
    pub(super) fn sign_in(&self, token: &str) -> Option<String> {
        let mut sign_in = lock(&self.sign_in);
        if !sign_in.token.matches(token) {
            return None;
        }
        // Without randomness the old token must not stay valid: the session then accepts no further sign-in.
        sign_in.token = Token::random().unwrap_or(Token(String::new()));
        let secure = match self.encryption {
            Encryption::Tls => "; Secure",
            Encryption::None => "",
        };
        Some(format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000{secure}",
            self.cookie_name, self.session.0
        ))
    }

    /// Checks the headers of every request, also those without a cookie.
    pub(super) fn check_host(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else {
            return Err(Refusal::Host);
        };
        match self.is_served(host) {
            true => Ok(()),
            false => Err(Refusal::Host),
        }
    }

    /// Checks a request for anything but the sign-in page.
    pub(super) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
        self.check_host(headers)?;
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return Err(Refusal::OtherOrigin);
        }
        if !self.has_cookie(headers) {
            return Err(Refusal::NotSignedIn);
        }
        if method == Method::GET || method == Method::HEAD {
            return Ok(());
        }
        let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let same_origin = origin
            .and_then(|origin| origin.strip_prefix("http://").or(origin.strip_prefix("https://")))
            .is_some_and(|origin| Some(origin) == host);
        if !same_origin {
            return Err(Refusal::OtherOrigin);
        }
        let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
        match content_type {
            Some(b"application/json" | b"application/json; charset=utf-8") => Ok(()),
            _ => Err(Refusal::ContentType),
        }
    }

    fn is_served(&self, host: &str) -> bool {
        if self.hosts.iter().any(|served| served.eq_ignore_ascii_case(host)) {
            return true;
        }
        // A forwarded unix socket has the port that the user chose.
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        self.port == PortRule::Any && ["localhost", "127.0.0.1", "[::1]"].contains(&name)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split("; "));
        pairs.any(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            name == self.cookie_name && self.session.matches(value)
        })
    }
}

impl Token {
    fn random() -> Result<Self, ServeError> {
        let mut bytes = [0; TOKEN_BYTES];
        let count = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| ServeError::Random(error.into()))?;
        match count == TOKEN_BYTES {
            true => Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())),
            false => Err(ServeError::Random(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Compares digests, so that the time does not depend on the common prefix.
    fn matches(&self, given: &str) -> bool {
        !self.0.is_empty() && Sha256::digest(&self.0) == Sha256::digest(given)
    }

    fn is_valid(&self) -> bool {
        self.0.len() == 2 * TOKEN_BYTES && self.0.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

/// Reads the session's secret from the state directory, or creates it.
fn stored_token(state: &StateDirectory) -> Result<Token, ServeError> {
    let file = state.file(SESSION_FILE);
    if let Some(text) = file.read()? {
        let token = Token(text.trim().to_owned());
        if token.is_valid() {
            return Ok(token);
        }
    }
    let token = Token::random()?;
    file.write(&token.0)?;
    Ok(token)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic while a token is replaced leaves a complete token.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(listen: &Listen) -> (Access, tempfile::TempDir) {
        let base = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(base.path().join("state"));
        let access = Access::new(&state, listen, &["ralph.example".to_owned()]).unwrap();
        (access, base)
    }

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(
                axum::http::HeaderName::try_from(*name).unwrap(),
                value.parse().unwrap(),
            );
        }
        headers
    }

    #[test]
    fn sign_in_token_is_valid_once_and_the_session_survives_a_restart() {
        let (access, base) = access(&Listen::Port(7000));
        let token = access.sign_in_token();
        assert_eq!(access.sign_in("guess"), None);
        assert_eq!(access.sign_in(""), None);
        let cookie = access.sign_in(&token).unwrap();
        assert_eq!(access.sign_in(&token), None, "used");
        let pair = cookie.split(';').next().unwrap();
        let request = headers(&[("host", "localhost:7000"), ("cookie", &format!("a=b; {pair}"))]);
        assert_eq!(access.check(&Method::GET, &request), Ok(()));
        let restarted = Access::new(
            &StateDirectory::at(base.path().join("state")),
            &Listen::Port(7000),
            &[],
        )
        .unwrap();
        assert_eq!(restarted.check(&Method::GET, &request), Ok(()));
        let without = headers(&[("host", "localhost:7000")]);
        assert_eq!(access.check(&Method::GET, &without), Err(Refusal::NotSignedIn));
    }

    #[test]
    fn only_listed_hosts_are_served() {
        let (access, _base) = access(&Listen::Port(7000));
        let check = |host: &str| access.check_host(&headers(&[("host", host)]));
        for host in [
            "localhost:7000",
            "127.0.0.1:7000",
            "[::1]:7000",
            "LOCALHOST:7000",
            "ralph.example",
        ] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
        for host in [
            "localhost",
            "localhost:7001",
            "evil.example",
            "127.0.0.1.evil.example:7000",
            "evil.example:7000",
            "",
        ] {
            assert_eq!(check(host), Err(Refusal::Host), "{host}");
        }
        assert_eq!(access.check_host(&HeaderMap::new()), Err(Refusal::Host));
        let two = headers(&[("host", "localhost:7000"), ("host", "evil.example")]);
        assert_eq!(access.check_host(&two), Err(Refusal::Host));
    }

    #[test]
    fn forwarded_socket_accepts_any_port_of_this_machine() {
        let (access, _base) = access(&Listen::Socket("s".into()));
        let check = |host: &str| access.check_host(&headers(&[("host", host)]));
        assert_eq!(check("localhost:8080"), Ok(()));
        assert_eq!(check("localhost"), Ok(()));
        assert_eq!(check("evil.example:8080"), Err(Refusal::Host));
    }

    #[test]
    fn changes_need_the_own_origin_and_json() {
        let (access, _base) = access(&Listen::Port(7000));
        let cookie = access.sign_in(&access.sign_in_token()).unwrap();
        let cookie = cookie.split(';').next().unwrap();
        let post = |extra: &[(&str, &str)]| {
            let mut pairs = vec![("host", "localhost:7000"), ("cookie", cookie)];
            pairs.extend_from_slice(extra);
            access.check(&Method::POST, &headers(&pairs))
        };
        let (origin, json) = (
            ("origin", "http://localhost:7000"),
            ("content-type", "application/json"),
        );
        assert_eq!(post(&[origin, json]), Ok(()));
        assert_eq!(post(&[json]), Err(Refusal::OtherOrigin), "without an origin");
        assert_eq!(post(&[("origin", "null"), json]), Err(Refusal::OtherOrigin));
        assert_eq!(
            post(&[("origin", "http://localhost:7001"), json]),
            Err(Refusal::OtherOrigin)
        );
        assert_eq!(post(&[origin]), Err(Refusal::ContentType));
        assert_eq!(
            post(&[origin, ("content-type", "text/plain")]),
            Err(Refusal::ContentType)
        );
        assert_eq!(
            post(&[origin, json, ("sec-fetch-site", "cross-site")]),
            Err(Refusal::OtherOrigin)
        );
    }

    #[test]
    fn encrypted_server_has_its_names_with_the_port_and_a_secure_cookie() {
        let tls = crate::serve::TlsFiles {
            certificate: "c".into(),
            key: "k".into(),
        };
        let address = "10.0.0.7:7411".parse().unwrap();
        let (access, _base) = access(&Listen::Encrypted { address, tls });
        for (host, served) in [
            ("ralph.example:7411", true),
            ("ralph.example", true),
            ("10.0.0.7:7411", true),
            ("ralph.example:80", false),
            ("10.0.0.8:7411", false),
            ("evil.example:7411", false),
        ] {
            assert_eq!(
                access.check_host(&headers(&[("host", host)])).is_ok(),
                served,
                "{host}"
            );
        }
        assert!(
            access
                .sign_in(&access.sign_in_token())
                .unwrap()
                .ends_with("; Secure")
        );
    }
}
