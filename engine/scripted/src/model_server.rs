//! A scripted model endpoint on loopback.
//!
//! Each request gets the next answer of the script, whatever it asks; all further requests get the last. Or it
//! gets what a [`Recording`] has for it. Requests are kept whole, for assertions on exactly what was sent.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::recording::Recording;

/// How many requests a server with a recording keeps, the newest ones: it may serve for days.
pub const RECORDED_REQUESTS_MAX: usize = 1_000;

/// One answer of the script.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
    chunked: bool,
    ending: Ending,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// As it should; the connection stays open for the next request.
    Whole,
    /// The connection is dropped instead of the answer.
    Drop,
    /// The connection is dropped after this many bytes of the body.
    Truncate(usize),
    /// Nothing comes after this many bytes of the body; without a number, nothing comes at all.
    Hang(Option<usize>),
}

impl Answer {
    /// Status 200 with a JSON body.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200, body).header("content-type", "application/json")
    }

    /// Any status with any body.
    pub fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            delay: Duration::ZERO,
            chunked: false,
            ending: Ending::Whole,
        }
    }

    /// No answer: the connection is dropped once the request is there.
    pub fn drop_connection() -> Self {
        Self { ending: Ending::Drop, ..Self::status(200, "") }
    }

    /// No answer: the connection stays open and silent.
    pub fn hang() -> Self {
        Self { ending: Ending::Hang(None), ..Self::status(200, "") }
    }

    /// Adds a header. A `content-length` replaces the true one.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before anything is sent.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sends the body in chunks, without its length.
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// Drops the connection after `bytes` of the body.
    pub fn truncate(mut self, bytes: usize) -> Self {
        self.ending = Ending::Truncate(bytes);
        self
    }

    /// Falls silent after `bytes` of the body.
    pub fn hang_after(mut self, bytes: usize) -> Self {
        self.ending = Ending::Hang(Some(bytes));
        self
    }

    fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let has_length = self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if self.chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        } else if !has_length && self.status != 204 {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        head
    }
}

/// One request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
    /// Whether the client went away while the answer hung.
    pub abandoned: bool,
}

impl Request {
    /// The value of the header `name` (lower case), if it was sent.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The endpoint. Dropping it closes the port and every connection.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Holds the port.
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// What is answered.
#[derive(Debug)]
enum Script {
    /// In this order, whatever is asked.
    InOrder(Vec<Answer>),
    /// What fits the request.
    Recorded(Recording),
}

#[derive(Debug)]
struct State {
    script: Script,
    requests: Vec<Request>,
    /// Handles on all connections, to close them with.
    connections: Vec<TcpStream>,
    stopped: bool,
}

impl ModelServer {
    /// Opens a free port on 127.0.0.1 and serves `answers`; without any, each request gets status 500.
    pub fn start(answers: Vec<Answer>) -> io::Result<Self> {
        Self::start_with(|_| answers)
    }

    /// As [`ModelServer::start`], for answers that name the server's own address.
    pub fn start_with(answers: impl FnOnce(&str) -> Vec<Answer>) -> io::Result<Self> {
        Self::serve(|url| Script::InOrder(answers(url)))
    }

    /// Opens a free port on 127.0.0.1 and answers each request from a recording; one that it has no answer
    /// for gets status 400 and the reason.
    pub fn start_recorded(recording: Recording) -> io::Result<Self> {
        Self::serve(|_| Script::Recorded(recording))
    }

    fn serve(script: impl FnOnce(&str) -> Script) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let script = script(&format!("http://{address}"));
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                script,
                requests: Vec::new(),
                connections: Vec::new(),
                stopped: false,
            }),
            changed: Condvar::new(),
        });
        let served = Arc::clone(&shared);
        let acceptor = Some(thread::spawn(move || served.accept(listener)));
        Ok(Self { address, shared, acceptor })
    }

    /// The base address, without a path or a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far; of a server with a recording the newest [`RECORDED_REQUESTS_MAX`].
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Request number `index` (from 0), once it is there; nothing after `patience`.
    pub fn wait_for(&self, index: usize, patience: Duration) -> Option<Request> {
        self.shared.wait(patience, |state| state.requests.get(index).cloned())
    }

    /// Whether the client went away from request number `index` while its answer hung, within `patience`.
    pub fn wait_abandoned(&self, index: usize, patience: Duration) -> bool {
        let abandoned = |state: &State| state.requests.get(index)?.abandoned.then_some(());
        self.shared.wait(patience, abandoned).is_some()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stopped = true;
        for connection in state.connections.drain(..) {
            // A connection that is closed already is as good.
            let _ = connection.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the thread that accepts, and waits until it has let go of the port; if nothing wakes it, it
        // is gone already, or not to be waited for.
        let woken = TcpStream::connect(self.address).is_ok();
        if let (true, Some(acceptor)) = (woken, self.acceptor.take()) {
            let _ = acceptor.join();
        }
    }
}

impl Script {
    fn answer(&self, index: usize, request: &[u8]) -> Answer {
        match self {
            Script::InOrder(answers) => {
                let answer = answers.get(index).or(answers.last()).cloned();
                answer.unwrap_or_else(|| Answer::status(500, "no answer in the script"))
            }
            Script::Recorded(recording) => match recording.answer(request) {
                Ok(answer) => Answer::json(answer),
                Err(why) => {
                    let body = json!({"error": {"type": "invalid_request_error", "message": why}});
                    Answer { status: 400, ..Answer::json(body.to_string()) }
                }
            },
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked left nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` finds something, the server stops, or `patience` ends.
    fn wait<T>(&self, patience: Duration, look: impl Fn(&State) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&state) {
                return Some(found);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            if state.stopped {
                return None;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn accept(self: Arc<Self>, listener: TcpListener) {
        for (index, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { continue };
            let mut state = self.lock();
            if state.stopped {
                return;
            }
            // Head and body are separate writes: without this the second waits for an acknowledgement.
            drop(stream.set_nodelay(true));
            let Ok(handle) = stream.try_clone() else {
                continue;
            };
            state.connections.push(handle);
            let shared = Arc::clone(&self);
            thread::spawn(move || {
                // A connection that breaks is the client's affair. It is shut down, not only dropped: the
                // handle that is kept of it would hold it open.
                let _ = shared.serve(index, &stream);
                let _ = stream.shutdown(Shutdown::Both);
            });
        }
    }

    fn serve(&self, connection: usize, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader, stream, connection)? {
            let (index, answer) = {
                let mut state = self.lock();
                let index = state.requests.len();
                let answer = state.script.answer(index, &request.body);
                if matches!(state.script, Script::Recorded(_)) && index == RECORDED_REQUESTS_MAX {
                    state.requests.remove(0);
                }
                state.requests.push(request);
                (index, answer)
            };
            self.changed.notify_all();
            self.wait(answer.delay, |_| None::<()>);
            if !self.answer(index, &answer, stream)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends the answer; returns whether the connection can be used again.
    fn answer(&self, index: usize, answer: &Answer, mut stream: &TcpStream) -> io::Result<bool> {
        let body_bytes = match answer.ending {
            Ending::Drop => return Ok(false),
            Ending::Hang(None) => {
                self.hang(index, stream);
                return Ok(false);
            }
            Ending::Truncate(bytes) | Ending::Hang(Some(bytes)) => bytes.min(answer.body.len()),
            Ending::Whole => answer.body.len(),
        };
        stream.write_all(answer.head().as_bytes())?;
        let body = &answer.body[..body_bytes];
        if answer.chunked {
            for chunk in body.chunks(1000) {
                write!(stream, "{:x}\r\n", chunk.len())?;
                stream.write_all(chunk)?;
                stream.write_all(b"\r\n")?;
            }
        } else {
            stream.write_all(body)?;
        }
        match answer.ending {
            Ending::Whole if answer.chunked => stream.write_all(b"0\r\n\r\n").map(|()| true),
            Ending::Whole => Ok(true),
            Ending::Hang(_) => {
                self.hang(index, stream);
                Ok(false)
            }
            Ending::Drop | Ending::Truncate(_) => Ok(false),
        }
    }

    /// Waits until the client goes away or the server stops.
    fn hang(&self, index: usize, mut stream: &TcpStream) {
        let mut byte = [0];
        while matches!(stream.read(&mut byte), Ok(1)) {}
        let mut state = self.lock();
        if !state.stopped {
            state.requests[index].abandoned = true;
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// The next request, or nothing when the client has closed the connection.
fn read_request(
    reader: &mut impl BufRead,
    mut stream: &TcpStream,
    connection: usize,
) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request =
        Request { method, path, headers: Vec::new(), body: Vec::new(), connection, abandoned: false };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        let header = (name.to_ascii_lowercase(), value.trim().to_owned());
        request.headers.push(header);
    }
    if request.header("expect") == Some("100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let length = request.header("content-length").and_then(|length| length.parse().ok());
    request.body.resize(length.unwrap_or(0), 0);
    reader.read_exact(&mut request.body)?;
    Ok(Some(request))
}

#[cfg(test)]
mod tests;
