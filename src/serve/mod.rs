//! `ralph serve`: a web page and an HTTP API for the runs of all projects. It reads the state directory, as `ralph attach` does, so
//! it can end and start again without any effect on a run.
//!
//! The async runtime stays in this module. Files are read on its blocking threads.

mod access;
mod api;
mod changes;
mod connection;
mod extract;
mod gates;
mod launcher;
mod listing;
mod metrics;
mod openapi;
mod page;
mod plans;
mod response;
mod run_files;
mod steering;
mod stream;
mod tls;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::process::Supervisors;
use crate::run::Host;
use crate::signals::STOP_SIGNALS;
use crate::store::{StateDirectory, StoreError};

use self::access::Access;
use self::launcher::Launcher;
use self::listing::Listing;

pub use self::tls::{TlsError, TlsFiles};

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A port of the loopback interface; 0 is any free port.
    Port(u16),
    Socket(PathBuf),
    /// Any address, with encrypted connections only.
    Encrypted {
        address: SocketAddr,
        tls: TlsFiles,
    },
}

/// Whether the page can send commands to runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    Off,
    On,
}

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    pub listen: Listen,
    pub steering: Steering,
    /// Further names under which the server may be addressed, for example of a reverse proxy on this machine.
    pub hosts: Vec<String>,
}

/// The address of a server that is ready.
#[derive(Debug, Clone)]
pub struct ServeAddress {
    /// The address that signs a browser in. It is valid once.
    pub sign_in: String,
    pub listening: Listen,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}")]
    Listen { address: String, source: io::Error },
    #[error("{} exists and is not a socket", path.display())]
    NotASocket { path: PathBuf },
    #[error("another server listens on {}", path.display())]
    SocketInUse { path: PathBuf },
    #[error("cannot read random bytes")]
    Random(#[source] io::Error),
    #[error("cannot start the server")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What every request handler needs.
struct Server {
    state: StateDirectory,
    access: Access,
    steering: Steering,
    listing: Listing,
    launcher: Launcher,
    /// Starts git, which reads snapshots.
    supervisors: Supervisors,
    /// Reports each used sign-in address, so that the next one can be printed.
    signed_in: watch::Sender<()>,
}

/// Serves until a signal ends the process. `on_address` receives each sign-in address: the first one when the server is ready, the
/// next one when it has been used.
pub fn serve(
    settings: &ServeSettings,
    state: &StateDirectory,
    host: &Host,
    mut on_address: impl FnMut(&ServeAddress),
) -> Result<(), ServeError> {
    let launcher = Launcher::start().map_err(ServeError::Runtime)?;
    // Serving pages must never slow a run down. On Linux this applies to this thread and those that it starts from now on.
    let _ = rustix::process::nice(19);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(32)
        .thread_name("serve")
        .build()
        .map_err(ServeError::Runtime)?;
    let result = runtime.block_on(async {
        let (stop, mut stopped) = watch::channel(());
        let _signals = host
            .signals()
            .subscribe(STOP_SIGNALS, move |_| {
                let _ = stop.send(());
            })
            .map_err(ServeError::Runtime)?;
        let listener = Listener::bind(&settings.listen).await?;
        let listening = listener.address()?;
        let (signed_in, mut sign_ins) = watch::channel(());
        let server = Arc::new(Server {
            access: Access::new(state, &listening, &settings.hosts)?,
            state: state.clone(),
            steering: settings.steering,
            listing: Listing::default(),
            launcher,
            supervisors: host.supervisors().clone(),
            signed_in,
        });
        let router = api::router(Arc::clone(&server));
        tokio::spawn(connection::accept(listener, router));
        loop {
            on_address(&sign_in_address(&server, &listening, &settings.hosts));
            tokio::select! {
                _ = stopped.changed() => break,
                _ = sign_ins.changed() => {}
            }
        }
        if let Listen::Socket(path) = &listening {
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    });
    // A blocking read of a journal ends by itself; nothing waits for it.
    runtime.shutdown_background();
    result
}

fn sign_in_address(server: &Server, listening: &Listen, hosts: &[String]) -> ServeAddress {
    let token = server.access.sign_in_token();
    let sign_in = match listening {
        Listen::Port(port) => format!("http://localhost:{port}/?token={token}"),
        Listen::Socket(_) => format!("http://localhost/?token={token}"),
        Listen::Encrypted { address, .. } => {
            let own = match address.ip().is_unspecified() {
                true => format!("localhost:{}", address.port()),
                false => address.to_string(),
            };
            let host = hosts.first().map(|host| access::with_port(host, address.port()));
            format!("https://{}/?token={token}", host.unwrap_or(own))
        }
    };
    ServeAddress {
        sign_in,
        listening: listening.clone(),
    }
}

/// The socket that accepts connections.
enum Listener {
    Tcp(TcpListener),
    Tls(TcpListener, TlsAcceptor, TlsFiles),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    async fn bind(listen: &Listen) -> Result<Self, ServeError> {
        match listen {
            Listen::Port(port) => {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
                Self::bind_tcp(address).await.map(Self::Tcp)
            }
            Listen::Socket(path) => Self::bind_socket(path),
            Listen::Encrypted { address, tls } => {
                let acceptor = tls::acceptor(tls)?;
                Ok(Self::Tls(Self::bind_tcp(*address).await?, acceptor, tls.clone()))
            }
        }
    }

    async fn bind_tcp(address: SocketAddr) -> Result<TcpListener, ServeError> {
        let listener = TcpListener::bind(address).await;
        listener.map_err(|source| ServeError::Listen {
            address: address.to_string(),
            source,
        })
    }

    /// Only the user can connect: the socket is created in a private directory and moved when its mode is 0600.
    fn bind_socket(path: &std::path::Path) -> Result<Self, ServeError> {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt};

        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            let path = path.to_owned();
            if !metadata.file_type().is_socket() {
                return Err(ServeError::NotASocket { path });
            }
            if std::os::unix::net::UnixStream::connect(&path).is_ok() {
                return Err(ServeError::SocketInUse { path });
            }
        }
        let bind = || -> io::Result<UnixListener> {
            let directory = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
                .unwrap_or(std::path::Path::new("."));
            let private = tempfile::Builder::new()
                .prefix(".ralph-serve-")
                .tempdir_in(directory)?;
            let temporary = private.path().join("s");
            let listener = UnixListener::bind(&temporary)?;
            std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o600))?;
            std::fs::rename(&temporary, path)?;
            Ok(listener)
        };
        bind()
            .map(|listener| Self::Unix(listener, path.to_owned()))
            .map_err(|source| ServeError::Listen {
                address: path.display().to_string(),
                source,
            })
    }

    fn address(&self) -> Result<Listen, ServeError> {
        match self {
            Self::Tcp(listener) => {
                let address = listener.local_addr().map_err(ServeError::Runtime)?;
                Ok(Listen::Port(address.port()))
            }
            Self::Tls(listener, _, tls) => Ok(Listen::Encrypted {
                address: listener.local_addr().map_err(ServeError::Runtime)?,
                tls: tls.clone(),
            }),
            Self::Unix(_, path) => Ok(Listen::Socket(path.clone())),
        }
    }
}
