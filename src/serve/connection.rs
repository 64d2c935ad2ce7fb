//! Accepts connections, each with limits on its headers, its time and its number.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Listener;

/// Connections at the same time, over the number of tabs that a person opens.
const MAX_CONNECTIONS: usize = 256;
/// Headers must be complete within this time, also on an idle connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
const MAX_HEADER_BYTES: usize = 32 * 1024;
const MAX_HEADERS: usize = 64;
/// Delay after an error such as too many open files.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Accepts connections until the runtime ends.
pub(super) async fn accept(listener: Listener, router: Router) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
            return;
        };
        let router = router.clone();
        match &listener {
            Listener::Tcp(listener) => match listener.accept().await {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(serve(stream, router, permit));
                }
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            },
            Listener::Tls(listener, acceptor, _) => match listener.accept().await {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    let handshake = acceptor.accept(stream);
                    tokio::spawn(async move {
                        // A client that does not encrypt has no connection.
                        if let Ok(Ok(stream)) = tokio::time::timeout(HEADER_TIMEOUT, handshake).await {
                            serve(stream, router, permit).await;
                        }
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            },
            Listener::Unix(listener, _) => match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve(stream, router, permit));
                }
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            },
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    _permit: OwnedSemaphorePermit,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // An error concerns only this client, which has gone or does not speak HTTP.
    let _ = connection.await;
}
