//! A model server on loopback for the real agent programs. It implements their four APIs, answers from a script and stores every
//! request for the test.

mod api;
mod http;
mod reply;
mod request;

pub(crate) use api::{INPUT_TOKENS, OUTPUT_TOKENS};
pub(crate) use reply::{Block, ErrorReply, Reply, call_named, call_shell, call_write, say, think};
pub(crate) use request::{ModelRequest, Role};

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use http::{Connection, Request};
use request::Api;

/// Decides the reply to a request.
pub(crate) type Script = Box<dyn Fn(&ModelRequest) -> Reply + Send + Sync>;

/// A running model server; dropping it stops it.
pub(crate) struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Script,
    requests: Mutex<Vec<ModelRequest>>,
    closing: AtomicBool,
}

impl Model {
    pub(crate) fn new(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("the port's address");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::new(Vec::new()),
            closing: AtomicBool::new(false),
        });
        let for_listener = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if for_listener.closing.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&for_listener);
                thread::spawn(move || serve(&shared, stream));
            }
        });
        Self { address, shared }
    }

    /// Answers from conversations in the order in which they start, each a list of turns; the last conversation is repeated.
    pub(crate) fn with_conversations(conversations: Vec<Vec<Vec<Block>>>) -> Self {
        Self::new(move |request| {
            let conversation = &conversations[request.conversation.min(conversations.len() - 1)];
            let default_turn = || vec![say("Nothing more to do.")];
            Reply::Blocks(
                conversation
                    .get(request.turn)
                    .cloned()
                    .unwrap_or_else(default_turn),
            )
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests so far, except for titles, routing and other side requests.
    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        locked(&self.shared.requests).clone()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // One more connection wakes the listener, which then sees the flag.
        let _ = TcpStream::connect(self.address);
    }
}

/// Returns an address on which no server listens.
pub(crate) fn unreachable_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    format!("http://{}", listener.local_addr().expect("the port's address"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Serves one connection until the client closes it.
fn serve(shared: &Shared, stream: TcpStream) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    while let Ok(Some(request)) = connection.request() {
        if answer(shared, &request, &mut connection).is_err() {
            return;
        }
    }
}

fn answer(shared: &Shared, request: &Request, connection: &mut Connection) -> std::io::Result<()> {
    let Some(api_kind) = Api::of(request) else {
        return api::answer_other(request, connection);
    };
    let body = request.json();
    let mut request = ModelRequest::read(api_kind, &request.path, &body);
    if request.is_side_request() {
        let text = api::side_reply(&body);
        return api::write_reply(&request, &[Block::Say(text)], connection, || true);
    }
    {
        let mut all = locked(&shared.requests);
        request.number = all.len();
        let started = all.iter().filter(|earlier| earlier.turn == 0).count();
        request.conversation = started.saturating_sub(usize::from(request.turn > 0));
        all.push(request.clone());
    }
    let open = || !shared.closing.load(Ordering::SeqCst);
    match (shared.script)(&request) {
        Reply::Blocks(blocks) => api::write_reply(&request, &blocks, connection, open),
        Reply::Error(error) => api::write_error(&request, &error, connection),
        Reply::Silence => connection.hang(open),
    }
}

/// Interval at which a hanging reply checks whether the server is closing.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
