//! A server that listens on a network: every connection is encrypted.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::{Response, Server};
use super::completed_run;

fn certificate() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/localhost.pem");
    path.display().to_string()
}

/// Sends a request over an encrypted connection, on which the server proves that it is `localhost`.
fn send_encrypted(server: &Server, request: &str) -> Response {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(certificate()).expect("a certificate");
    roots.add(certificate).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let mut stream = StreamOwned::new(connection, server.connect());
    let request = format!("{request}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    // A server may close without the message that ends encryption.
    let _ = stream.read_to_end(&mut answer);
    Response::parse(&String::from_utf8_lossy(&answer))
}

#[test]
fn a_server_on_a_network_answers_encrypted_requests_only() {
    let sandbox = completed_run();
    let certificate = certificate();
    let arguments = ["--listen", "127.0.0.1:0", "--tls-cert", &certificate];
    let server = Server::encrypted(&sandbox, &arguments);
    let token = server.sign_in.split_once('/').expect("a path").1;
    let signed_in = send_encrypted(&server, &format!("GET /{token} HTTP/1.1\r\n{}", server.host()));
    assert_eq!(signed_in.status, 200, "{signed_in:?}");
    assert!(signed_in.head.contains("; Secure"), "{}", signed_in.head);
    let cookie = signed_in.cookie().expect("a cookie");
    let list = |host: &str| {
        let request = format!("GET /api/v1/runs HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n");
        send_encrypted(&server, &request)
    };
    assert!(
        list(&format!("localhost:{}", server.port))
            .body
            .contains(&sandbox.run_id())
    );
    assert_eq!(list("evil.example").status, 421);
    let plain = server.send(&format!(
        "GET /api/v1/runs HTTP/1.1\r\n{}Cookie: {cookie}\r\n",
        server.host()
    ));
    assert_eq!(plain.status, 0, "{plain:?}");
    // A client that never starts to encrypt occupies nothing that others need.
    let _silent: Vec<TcpStream> = std::iter::repeat_with(|| server.connect()).take(20).collect();
    assert_eq!(list(&format!("127.0.0.1:{}", server.port)).status, 200);
}

#[test]
fn a_network_without_a_certificate_is_refused() {
    let sandbox = completed_run();
    let plain = sandbox.ralph(&["serve", "--listen", "0.0.0.0:0"]).exits_with(2);
    assert!(plain.stderr.contains("--tls-cert"), "{plain:?}");
    let missing = sandbox.ralph(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", "missing.pem"]);
    assert!(
        missing.exit() != 0 && missing.stderr.contains("missing.pem"),
        "{missing:?}"
    );
}
