//! A model on loopback: speaks the four wire dialects that the agents' programs speak, answers by a script, and keeps
//! every request so that a test can say what arrived. Knows nothing of ralph.

mod api;
mod http;
mod reply;
mod request;

pub(crate) use reply::{Block, Reply, Trouble, call_named, call_shell, call_write, say, think};
pub(crate) use request::{Asked, Role};

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use http::{Connection, Request};
use request::Dialect;

/// What the model does when it is asked.
pub(crate) type Script = Box<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// A listening model; it goes when it is dropped.
pub(crate) struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Script,
    asked: Mutex<Vec<Asked>>,
    closing: AtomicBool,
}

impl Model {
    pub(crate) fn new(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("the port's address");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            asked: Mutex::new(Vec::new()),
            closing: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if theirs.closing.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&theirs);
                thread::spawn(move || serve(&shared, stream));
            }
        });
        Self { address, shared }
    }

    /// Conversations in the order in which they begin, each a list of turns; the last one is repeated.
    pub(crate) fn playing(conversations: Vec<Vec<Vec<Block>>>) -> Self {
        Self::new(move |asked| {
            let conversation = &conversations[asked.conversation.min(conversations.len() - 1)];
            let nothing_more = || vec![say("Nothing more to do.")];
            Reply::Blocks(conversation.get(asked.turn).cloned().unwrap_or_else(nothing_more))
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The questions so far, without titles, routing and the like.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        locked(&self.shared.asked).clone()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // The listener wakes up for one more connection, and sees.
        let _ = TcpStream::connect(self.address);
    }
}

/// An address on which nobody listens.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    format!("http://{}", listener.local_addr().expect("the port's address"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// One connection, request by request, until the other side has had enough.
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
    let Some(dialect) = Dialect::of(request) else {
        return api::answer_other(request, connection);
    };
    let body = request.json();
    let mut asked = Asked::read(dialect, &request.path, &body);
    if asked.is_aside() {
        let text = api::aside(&body);
        return api::speak(&asked, &[Block::Say(text)], connection, || true);
    }
    {
        let mut all = locked(&shared.asked);
        asked.number = all.len();
        let begun = all.iter().filter(|earlier| earlier.turn == 0).count();
        asked.conversation = begun.saturating_sub(usize::from(asked.turn > 0));
        all.push(asked.clone());
    }
    let open = || !shared.closing.load(Ordering::SeqCst);
    match (shared.script)(&asked) {
        Reply::Blocks(blocks) => api::speak(&asked, &blocks, connection, open),
        Reply::Trouble(trouble) => api::refuse(&asked, &trouble, connection),
        Reply::Silence => connection.hang(open),
    }
}

/// How long a hanging model sleeps between two looks at whether it may go.
const NAP: Duration = Duration::from_millis(50);
