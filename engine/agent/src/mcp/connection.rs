//! One connection to a running server: requests out, answers back to whoever waits for them.
//!
//! A task reads and a task writes. The reader never waits for the writer: a server that reads nothing while
//! it writes much would hold up both. When the connection ends, in whatever way, all who wait are told, and
//! whether their request had reached the server's pipe.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use async_process::{ChildStdin, ChildStdout};
use async_std::future::timeout;
use async_std::task;
use futures_lite::future::or;
use futures_lite::io::BufReader;
use futures_lite::AsyncWriteExt;
use waxlog_core::mcp::{decode, encode, Inbound};

use super::cancel::{cancel_pair, CancelSignal, CancelSource};
use super::child::ChildGroup;
use super::lines::{read_line, MCP_LINE_MAX_BYTES};
use super::lock;

/// Lines that may wait for the server to read them. Calls wait for room, answers to the server are dropped.
const OUTBOX_MAX_LINES: usize = 64;

/// How long a server has to end by itself once its stdin is closed.
const CLOSE_GRACE: Duration = Duration::from_millis(100);

/// The connection ended before there was an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// How.
    pub(super) reason: String,
    /// Whether the request may have reached the server. If not, it can be sent again elsewhere.
    pub(super) sent: bool,
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// What happened.
    pub(super) reason: String,
    /// Whether a request that the server may have seen was still without its answer.
    pub(super) in_flight: bool,
}

/// A connection and the process at its other end. Dropping it kills the process group.
#[derive(Debug)]
pub(super) struct Connection {
    link: Arc<Link>,
    group: Mutex<Option<ChildGroup>>,
}

/// What the two tasks and the callers share.
#[derive(Debug)]
struct Link {
    outbox: Sender<Outgoing>,
    calls: Mutex<Calls>,
    end: CancelSource,
    ended: CancelSignal,
}

#[derive(Debug)]
struct Calls {
    next_id: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Until `initialize` is answered, an answer to anything else ends the connection.
    handshaking: bool,
    end: Option<End>,
}

#[derive(Debug)]
struct Waiting {
    answer: Sender<Result<Vec<u8>, Ended>>,
    progress: Progress,
}

/// How far a request is on its way to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Not begun.
    Queued,
    /// The writer is at it, and will know whether the line went out whole.
    Writing,
    /// In the pipe: the server may have seen it.
    Sent,
}

/// A line for the server, with its id if it is a request.
#[derive(Debug)]
struct Outgoing {
    request: Option<u64>,
    line: Vec<u8>,
}

/// A request that has a number. Dropping it means that its answer is no longer wanted.
pub(super) struct Request {
    id: u64,
    answer: Receiver<Result<Vec<u8>, Ended>>,
    link: Arc<Link>,
}

impl Connection {
    /// Starts reading and writing; `group` is the process behind the pipes.
    pub(super) fn new(group: ChildGroup, stdin: ChildStdin, stdout: ChildStdout) -> Self {
        let (outbox, lines) = async_channel::bounded(OUTBOX_MAX_LINES);
        let (end, ended) = cancel_pair();
        let link = Arc::new(Link {
            outbox,
            calls: Mutex::new(Calls {
                next_id: encode::INITIALIZE_ID,
                waiting: BTreeMap::new(),
                handshaking: true,
                end: None,
            }),
            end,
            ended,
        });
        task::spawn(Arc::clone(&link).write(stdin, lines));
        task::spawn(Arc::clone(&link).read(stdout));
        Self { link, group: Mutex::new(Some(group)) }
    }

    /// Takes the next number for a request, and a place in the queue of those who wait.
    pub(super) fn open(&self) -> Result<Request, Ended> {
        let mut calls = lock(&self.link.calls);
        if let Some(end) = &calls.end {
            return Err(Ended { reason: end.reason.clone(), sent: false });
        }
        let id = calls.next_id;
        calls.next_id += 1;
        let (sender, answer) = async_channel::bounded(1);
        let waiting = Waiting { answer: sender, progress: Progress::Queued };
        calls.waiting.insert(id, waiting);
        let link = Arc::clone(&self.link);
        Ok(Request { id, answer, link })
    }

    /// Sends a line that has no answer, behind those that wait.
    pub(super) async fn notify(&self, line: Vec<u8>) {
        // If it fails, the connection has ended, and the next request says so.
        let request = None;
        let _ = self.link.outbox.send(Outgoing { request, line }).await;
    }

    /// From now on, answers that nobody waits for are late, and dropped.
    pub(super) fn handshake_done(&self) {
        lock(&self.link.calls).handshaking = false;
    }

    /// How the connection ended, if it has.
    pub(super) fn end(&self) -> Option<End> {
        lock(&self.link.calls).end.clone()
    }

    /// Ends the connection and kills the process group at once.
    pub(super) fn kill(&self, reason: &str) {
        self.link.end(reason);
        drop(lock(&self.group).take());
    }

    /// Ends the connection: closes stdin, leaves the server a moment, then kills and reaps what is left.
    pub(super) async fn close(&self) {
        self.link.outbox.close();
        // Either way the group is killed next: a server that has ended may have left children.
        let _ = timeout(CLOSE_GRACE, self.link.ended.cancelled()).await;
        self.link.end("closed");
        let group = lock(&self.group).take();
        if let Some(group) = group {
            group.kill_and_reap().await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.kill("dropped");
    }
}

impl Request {
    /// Its number on this connection.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Sends `line` and waits for the answer: the raw line of the server.
    pub(super) async fn exchange(&self, line: Vec<u8>) -> Result<Vec<u8>, Ended> {
        let request = Some(self.id);
        // If it fails, the connection has ended, and so this request has its answer: that it did.
        let _ = self.link.outbox.send(Outgoing { request, line }).await;
        self.answer
            .recv()
            .await
            .unwrap_or_else(|_| Err(Ended { reason: "connection dropped".to_owned(), sent: true }))
    }

    /// Gives the request up and tells the server, if it has seen it and has time to listen.
    pub(super) fn cancel(self) {
        let waiting = lock(&self.link.calls).waiting.remove(&self.id);
        if waiting.is_some_and(|waiting| waiting.progress != Progress::Queued) {
            self.link.say(encode::cancelled(self.id));
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        lock(&self.link.calls).waiting.remove(&self.id);
    }
}

impl Link {
    async fn write(self: Arc<Self>, mut stdin: ChildStdin, lines: Receiver<Outgoing>) {
        while let Ok(Outgoing { request, line }) = lines.recv().await {
            if request.is_some_and(|id| !self.begin_write(id)) {
                continue;
            }
            let ended = async {
                self.ended.cancelled().await;
                Err(io::Error::other("connection ended"))
            };
            let written = or(stdin.write_all(&line), ended).await;
            if let Some(id) = request {
                self.finish_write(id, written.is_ok());
            }
            if let Err(error) = written {
                return self.end(&format!("write failed: {error}"));
            }
        }
    }

    async fn read(self: Arc<Self>, stdout: ChildStdout) {
        let mut stdout = BufReader::new(stdout);
        loop {
            let ended = async {
                self.ended.cancelled().await;
                Ok(None)
            };
            match or(ended, read_line(&mut stdout, MCP_LINE_MAX_BYTES)).await {
                Ok(Some(line)) => self.take(line),
                Ok(None) => return self.end("stdout closed"),
                Err(error) => return self.end(&format!("read failed: {error}")),
            }
        }
    }

    /// Notes that request `id` is being written; returns whether anybody still waits for it.
    fn begin_write(&self, id: u64) -> bool {
        let mut calls = lock(&self.calls);
        let waiting = calls.waiting.get_mut(&id);
        waiting.is_some_and(|waiting| {
            waiting.progress = Progress::Writing;
            true
        })
    }

    /// Notes whether request `id` went out whole: a line without its end is none. If the connection has
    /// ended meanwhile, whoever waits for it is told now.
    fn finish_write(&self, id: u64, whole: bool) {
        let mut guard = lock(&self.calls);
        let calls = &mut *guard;
        let Some(waiting) = calls.waiting.get_mut(&id) else {
            return;
        };
        waiting.progress = if whole { Progress::Sent } else { Progress::Queued };
        if let Some(end) = &mut calls.end {
            end.in_flight |= whole;
            let reason = end.reason.clone();
            let sent = whole;
            let _ = waiting.answer.try_send(Err(Ended { reason, sent }));
            calls.waiting.remove(&id);
        }
    }

    fn take(&self, line: Vec<u8>) {
        match decode(&line) {
            inbound @ Inbound::Response { .. } => self.route(inbound.answers(), line),
            Inbound::Request { id, method, .. } => self.say(encode::answer(&id, &method)),
            Inbound::Unparsable => self.say(encode::parse_error()),
            Inbound::Notification { .. } | Inbound::Blank => {}
        }
    }

    fn route(&self, id: Option<u64>, line: Vec<u8>) {
        let mut calls = lock(&self.calls);
        if let Some(waiting) = id.and_then(|id| calls.waiting.remove(&id)) {
            // Whoever has stopped waiting does not want it.
            let _ = waiting.answer.try_send(Ok(line));
            return;
        }
        let handshaking = calls.handshaking;
        drop(calls);
        if handshaking {
            self.end("answer with an id that was never asked");
        }
    }

    /// Says something that can be lost.
    fn say(&self, line: Vec<u8>) {
        let request = None;
        if self.outbox.try_send(Outgoing { request, line }).is_err() {
            log::debug!("mcp: line to server dropped, it does not read");
        }
    }

    /// Ends the connection, once, and tells all who wait.
    fn end(&self, reason: &str) {
        let mut calls = lock(&self.calls);
        if calls.end.is_some() {
            return;
        }
        let sent = |waiting: &Waiting| waiting.progress == Progress::Sent;
        calls.end = Some(End { reason: reason.to_owned(), in_flight: calls.waiting.values().any(sent) });
        calls.waiting.retain(|_, waiting| {
            if waiting.progress == Progress::Writing {
                // The writer knows best, and is about to: it stops when the connection ends.
                return true;
            }
            let ended = Ended { reason: reason.to_owned(), sent: sent(waiting) };
            let _ = waiting.answer.try_send(Err(ended));
            false
        });
        drop(calls);
        self.outbox.close();
        self.end.cancel();
    }
}
