//! The way out of a network of its own: a proxy for the hosts that the configuration names, and ports of this machine.
//!
//! The job's first process opens the listening sockets inside its network and sends them here. Names are resolved here too, so the
//! job needs no DNS. Everything ends when the job's namespaces end.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::policy::HostRule;
use crate::process::{Confinement, Network, ProcessSpec, Supervisors};

use super::{RunnerEvent, RunnerEvents};

/// Names of this machine.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Maximum size of the head of a request.
const MAX_HEAD: usize = 64 * 1024;
/// Time for a client to send the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Further connections are closed. Each needs four descriptors, which ralph itself must not lack.
const MAX_CONNECTIONS: usize = 128;
/// Time without new connections if one cannot be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// More sockets than a job may have.
const MAX_SOCKETS: usize = 32;

/// The sandbox of a job.
#[derive(Debug)]
pub struct JobSandbox {
    pub confinement: Confinement,
    /// The hosts that the proxy allows. The first port of the network is the proxy's; the others are services of this machine.
    pub hosts: Vec<HostRule>,
}

/// Confines the process of a job, and starts its proxy if it has a network of its own.
pub(super) fn confine(
    spec: &mut ProcessSpec,
    sandbox: JobSandbox,
    supervisors: &Supervisors,
    events: &RunnerEvents,
) -> io::Result<()> {
    let JobSandbox {
        mut confinement,
        hosts,
    } = sandbox;
    if let Network::Own { ports, line } = &mut confinement.network
        && !ports.is_empty()
    {
        let (here, there) = UnixStream::pair()?;
        *line = Some(Arc::new(there.into()));
        let proxy = Proxy {
            hosts,
            ports: ports.clone(),
            events: Arc::clone(events),
            connections: AtomicUsize::new(0),
        };
        let proxy = Arc::new(proxy);
        supervisors.panics().spawn("proxy", move || proxy.run(&here))?;
    }
    spec.confinement = Some(Arc::new(confinement));
    Ok(())
}

struct Proxy {
    hosts: Vec<HostRule>,
    ports: Vec<u16>,
    events: RunnerEvents,
    connections: AtomicUsize,
}

/// What a client of the proxy asks for.
#[derive(Debug, PartialEq, Eq)]
struct ProxyRequest {
    host: String,
    port: u16,
    /// What the server receives first; `None` for a tunnel.
    forwarded: Option<Vec<u8>>,
    /// What the client has sent after the head.
    rest: Vec<u8>,
}

impl Proxy {
    fn run(self: &Arc<Self>, line: &UnixStream) {
        let Ok(listeners) = receive_sockets(line) else {
            return;
        };
        loop {
            let mut waiting: Vec<PollFd<'_>> = vec![PollFd::new(line, PollFlags::IN)];
            waiting.extend(
                listeners
                    .iter()
                    .map(|listener| PollFd::new(listener, PollFlags::IN)),
            );
            match poll(&mut waiting, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                // The namespaces have ended.
                return;
            }
            for ((listener, port), _) in listeners
                .iter()
                .zip(&self.ports)
                .zip(&ready[1..])
                .filter(|(_, ready)| **ready)
            {
                match listener.accept() {
                    Ok((client, _)) => self.start(client, *port),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => std::thread::sleep(ACCEPT_PAUSE),
                }
            }
        }
    }

    fn start(self: &Arc<Self>, client: TcpStream, port: u16) {
        if self.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let proxy = Arc::clone(self);
        let serve = move || {
            let is_proxy = proxy.ports.first() == Some(&port);
            // An error ends the connection, which the client notices.
            let _ = match is_proxy {
                true => proxy.serve(client),
                false => forward(client, port),
            };
            proxy.connections.fetch_sub(1, Ordering::Relaxed);
        };
        let named = std::thread::Builder::new().name("proxy connection".to_owned());
        if named.spawn(serve).is_err() {
            self.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_nonblocking(false)?;
        client.set_read_timeout(Some(HEAD_TIMEOUT))?;
        let Some(request) = read_request(&mut client)? else {
            return answer(&mut client, "400 Bad Request", "not a request to a proxy");
        };
        let ProxyRequest {
            host,
            port,
            forwarded,
            rest,
        } = request;
        let name = shown(&host, port);
        if !self.hosts.iter().any(|rule| rule.allows(&host, port)) {
            let text = format!("the sandbox does not allow {name}; sandbox.net lists the allowed hosts");
            (self.events)(RunnerEvent::Denied { host: name });
            return answer(&mut client, "403 Forbidden", &text);
        }
        let mut server = match connect(&host, port) {
            Ok(server) => server,
            Err(error) => return answer(&mut client, "502 Bad Gateway", &format!("{name}: {error}")),
        };
        match forwarded {
            Some(head) => server.write_all(&head)?,
            None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
        }
        server.write_all(&rest)?;
        relay(client, server)
    }
}

/// The host as a rule in the configuration names it.
fn shown(host: &str, port: u16) -> String {
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    match port {
        443 | 80 => host,
        _ => format!("{host}:{port}"),
    }
}

fn receive_sockets(line: &UnixStream) -> io::Result<Vec<TcpListener>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        line.as_fd(),
        &mut [IoSliceMut::new(&mut byte)],
        &mut rights,
        RecvFlags::empty(),
    )?;
    let received = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let sockets: Vec<OwnedFd> = received.flatten().collect();
    for socket in &sockets {
        rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::CLOEXEC)?;
    }
    match sockets.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(sockets.into_iter().map(TcpListener::from).collect()),
    }
}

/// Reads the head of a request; `None` if it is not one for a proxy.
fn read_request(client: &mut TcpStream) -> io::Result<Option<ProxyRequest>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if bytes.len() > MAX_HEAD {
            return Ok(None);
        }
        match client.read(&mut buffer)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    };
    let rest = bytes.split_off(end);
    Ok(parse(&bytes, rest))
}

fn parse(head: &[u8], rest: Vec<u8>) -> Option<ProxyRequest> {
    let text = std::str::from_utf8(head).ok()?;
    let (first, headers) = text.split_once("\r\n")?;
    let mut words = first.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if method == "CONNECT" {
        let (host, port) = host_and_port(target, None)?;
        return Some(ProxyRequest {
            host,
            port,
            forwarded: None,
            rest,
        });
    }
    let address = target.strip_prefix("http://")?;
    let (authority, path) = match address.find('/') {
        Some(slash) => address.split_at(slash),
        None => (address, "/"),
    };
    let (host, port) = host_and_port(authority.rsplit('@').next()?, Some(80))?;
    let is_kept = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        !line.is_empty() && !name.starts_with("proxy-") && name != "connection"
    };
    let kept: Vec<&str> = headers.split("\r\n").filter(is_kept).collect();
    // One request per connection, so that the next one is checked too.
    let forwarded = format!(
        "{method} {path} {version}\r\n{}\r\nConnection: close\r\n\r\n",
        kept.join("\r\n")
    );
    Some(ProxyRequest {
        host,
        port,
        forwarded: Some(forwarded.into_bytes()),
        rest,
    })
}

fn host_and_port(text: &str, default: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
        Some(_) | None => (text, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then_some(())?;
    Some((host.to_owned(), port.or(default)?))
}

/// Connects to a host. A name that resolves to this machine or its link, without being a name of it, is refused: the owner of the name
/// would otherwise reach the user's services.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let is_loopback_name = LOOPBACK_NAMES.contains(&&*host.to_ascii_lowercase());
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address that is allowed");
    for address in (host, port).to_socket_addrs()? {
        if !is_loopback_name && is_own_address(address.ip()) {
            continue;
        }
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(server) => return Ok(server),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether an address belongs to this machine or its link.
fn is_own_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_link_local()
                || address.is_broadcast()
                || address.is_multicast()
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_own_address(IpAddr::V4(mapped)),
            None => {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_unicast_link_local()
                    || address.is_multicast()
            }
        },
    }
}

/// Connects a client to the same port of this machine.
fn forward(client: TcpStream, port: u16) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    relay(client, TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?)
}

/// Copies in both directions until both have ended.
fn relay(client: TcpStream, server: TcpStream) -> io::Result<()> {
    client.set_read_timeout(None)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let up = std::thread::Builder::new().name("proxy upload".to_owned());
    let up = up.spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    })?;
    let (mut client, mut server) = (client, server);
    let copied = io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Write);
    let _ = up.join();
    copied.map(drop)
}

fn answer(client: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    let length = text.len() + 1;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close"
    );
    client.write_all(format!("{head}\r\n\r\n{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> Option<(String, u16, Option<String>)> {
        let request = parse(head.as_bytes(), Vec::new())?;
        let forwarded = request
            .forwarded
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Some((request.host, request.port, forwarded))
    }

    #[test]
    fn tunnels_and_plain_requests_name_their_host() {
        let tunnel = parsed("CONNECT api.example.com:443 HTTP/1.1\r\nHost: other\r\n\r\n");
        assert_eq!(tunnel, Some(("api.example.com".to_owned(), 443, None)));
        let tunnel = parsed("CONNECT [::1]:80 HTTP/1.1\r\n\r\n");
        assert_eq!(tunnel, Some(("::1".to_owned(), 80, None)));
        let (host, port, forwarded) =
            parsed("GET http://a.example:8080/x?y HTTP/1.1\r\nProxy-Authorization: z\r\nHost: a\r\n\r\n")
                .unwrap();
        assert_eq!((&*host, port), ("a.example", 8080));
        assert_eq!(
            forwarded.unwrap(),
            "GET /x?y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(
            parsed("GET http://user@evil.example@a.example/ HTTP/1.1\r\n\r\n")
                .unwrap()
                .0,
            "a.example"
        );
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT example.com HTTP/1.1\r\n\r\n",
            "CONNECT :443 HTTP/1.1\r\n\r\n",
            "CONNECT a:99999 HTTP/1.1\r\n\r\n",
            "nonsense\r\n\r\n",
        ] {
            assert_eq!(parsed(head), None, "{head}");
        }
    }

    #[test]
    fn addresses_of_this_machine_are_recognized_in_every_form() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.169.254",
            "::1",
            "::ffff:127.0.0.1",
            "fe80::1",
        ] {
            assert!(is_own_address(address.parse().unwrap()), "{address}");
        }
        for address in ["10.0.0.1", "1.1.1.1", "2606:4700::1111"] {
            assert!(!is_own_address(address.parse().unwrap()), "{address}");
        }
    }
}
