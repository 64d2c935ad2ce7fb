//! An HTTP server on loopback that stands in for a model service, or receives notifications. It counts the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A received request.
#[derive(Debug, Clone)]
pub(super) struct Received {
    /// Counts from 0.
    pub(super) number: usize,
    pub(super) path: String,
    pub(super) headers: Vec<String>,
    pub(super) body: String,
    pub(super) at: jiff::Timestamp,
}

impl Received {
    pub(super) fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|line| line.eq_ignore_ascii_case(header))
    }
}

struct Shared {
    requests: Mutex<Vec<Received>>,
    closing: AtomicBool,
    answer: Box<dyn Fn(&Received) -> String + Send + Sync>,
}

/// The running server; dropping it stops it.
pub(super) struct Server {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Starts a server whose responses have the text that `answer` returns.
    pub(super) fn start(answer: impl Fn(&Received) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("the port's address");
        let shared = Arc::new(Shared {
            requests: Mutex::default(),
            closing: AtomicBool::new(false),
            answer: Box::new(answer),
        });
        let of_listener = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_listener.closing.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&of_listener);
                thread::spawn(move || serve(&shared, stream));
            }
        });
        Self { address, shared }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<Received> {
        locked(&self.shared.requests).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // One more connection wakes the listener.
        let _ = TcpStream::connect(self.address);
    }
}

/// An address on which no server listens.
pub(super) fn unreachable_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    format!("http://{}", listener.local_addr().expect("the port's address"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(shared: &Shared, stream: TcpStream) {
    let Some(request) = read(&stream, shared) else {
        return;
    };
    let text = (shared.answer)(&request);
    let mut stream = stream;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(text.as_bytes());
}

fn read(stream: &TcpStream, shared: &Shared) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let first = line()?;
    let path = first.split_whitespace().nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        match line()? {
            header if header.is_empty() => break,
            header => headers.push(header),
        }
    }
    let length = headers.iter().find_map(|header| {
        let (name, value) = header.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let mut requests = locked(&shared.requests);
    let request = Received {
        number: requests.len(),
        path,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        at: jiff::Timestamp::now(),
    };
    requests.push(request.clone());
    Some(request)
}
