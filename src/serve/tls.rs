//! Encrypted connections, without which the server listens on this machine only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The files of a certificate, in PEM format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those that sign it.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read a certificate from {}", path.display())]
    Certificate {
        path: PathBuf,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("cannot read a private key from {}", path.display())]
    Key {
        path: PathBuf,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the private key does not belong to the certificate in {}", path.display())]
    Pair {
        path: PathBuf,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Reads the files; the server does not start without a usable certificate.
pub(super) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let certificates = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| TlsError::Key {
        path: files.key.clone(),
        source: error.into(),
    })?;
    let pair = |error: tokio_rustls::rustls::Error| TlsError::Pair {
        path: files.certificate.clone(),
        source: error.into(),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |source| TlsError::Certificate {
        path: path.to_owned(),
        source,
    };
    let parsed = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.into()))?;
    let all: Vec<CertificateDer<'static>> = parsed
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(error.into()))?;
    match all.is_empty() {
        true => Err(unreadable("it contains no certificate".into())),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_certificate_or_key_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.pem");
        let files = TlsFiles {
            certificate: path.clone(),
            key: path.clone(),
        };
        assert!(
            matches!(acceptor(&files), Err(TlsError::Certificate { .. })),
            "missing"
        );
        std::fs::write(&path, "no certificate\n").unwrap();
        assert!(
            matches!(acceptor(&files), Err(TlsError::Certificate { .. })),
            "empty"
        );
    }
}
