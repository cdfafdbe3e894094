//! The agent's life: ACP on stdio from the first line to the last.
//!
//! One task takes the client's lines. Those of a running session go to its driver; the rest are the
//! connection's own, recorded in a stream of their own and answered here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use async_channel::{Receiver, Sender};
use async_std::task::{self, JoinHandle};
use waxlog_core::acp::frame::{classify, Frame, Id};
use waxlog_core::acp::lines::Line;
use waxlog_core::acp::params::List;
use waxlog_core::acp::{code, Profile};
use waxlog_core::connection::{self, kept_line, Connection, Route, Work};
use waxlog_core::session::Session;
use waxlog_store::LogError;

use crate::auth::TokenSource;
use crate::config::{Config, Environment};
use crate::driver::{Driver, Means, Message};
use crate::endpoint::{self, Endpoint};
use crate::http::ModelClient;
use crate::journal::Journal;
use crate::mesh::MeshWatch;
use crate::models::ModelList;
use crate::opening::{self, Refusal, Site, Up, Wanted};
use crate::scrub::Scrubber;
use crate::stdio::{self, Incoming};
use crate::{ids, leftovers, listing, recovery, slot};

/// Messages that may wait for the connection's task.
const QUEUE_MAX_MESSAGES: usize = 64;

/// Why the agent could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The HTTP client cannot be set up.
    #[error(transparent)]
    Http(#[from] crate::http::SetupError),
    /// No log can be had.
    #[error(transparent)]
    Slot(#[from] slot::SlotError),
    /// The log cannot be read or written.
    #[error("log: {0}")]
    Log(#[from] LogError),
    /// A thread could not be started, or signals cannot be caught.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
}

/// What the connection's queue carries.
enum Arrival {
    /// From the client.
    Client(Incoming),
    /// A session's servers are up, or not.
    Opened(Box<Opening>),
    /// A session at rest was deleted, or could not be.
    Deleted { id: Id, session: String, done: Result<(), LogError> },
}

/// How the opening of a session went.
struct Opening {
    id: Id,
    up: Result<Up, Refusal>,
}

/// A session that runs.
struct Running {
    queue: Sender<Message>,
    task: JoinHandle<()>,
}

/// Everything that all sessions share.
struct Agent {
    site: Site,
    endpoint: Endpoint,
    mesh: MeshWatch,
    journal: Journal,
    out: Sender<Line>,
    queue: Sender<Arrival>,
    connection: Connection,
    sessions: BTreeMap<String, Running>,
    /// Sessions that are closing.
    leaving: Vec<(String, Running)>,
    /// Sessions that are being opened or deleted.
    opening: usize,
    upgraded: Arc<AtomicBool>,
}

/// Serves one client on stdin and stdout until it is gone.
///
/// Everything that can be wrong with the set-up is found before the first line is read.
pub fn serve(env: Environment, version: &str) -> Result<(), StartError> {
    let config = Config::read(&env)?;
    let settings = endpoint::settings(&config);
    let client = ModelClient::new(config.limits.llm_timeout)?;
    let scrubber = Scrubber::of_environment(&env);
    let tokens = TokenSource::of(&config.provider, &env, &client, &scrubber)?;
    let log = slot::open(&config.home, config.slot.as_deref(), config.durability)?;
    let mark = leftovers::sweep(log.dir())?;
    let (out, writer) = stdio::start_writer()?;
    let (queue, events) = async_channel::bounded(QUEUE_MAX_MESSAGES);
    start_reader(config.limits.max_line_bytes, queue.clone())?;
    watch_signals(queue.clone())?;
    let agent = Agent {
        endpoint: Endpoint::new(&config, client.clone(), tokens.clone()),
        mesh: MeshWatch::new(&config, client.clone(), tokens.clone()),
        journal: Journal::new(log.clone(), ids::draw(connection::STREAM_PREFIX.trim_end_matches('_'))),
        connection: Connection::default(),
        sessions: BTreeMap::new(),
        leaving: Vec::new(),
        opening: 0,
        upgraded: Arc::default(),
        site: Site {
            models: ModelList::new(&config, client, tokens),
            scrubber,
            profile: Profile::default(),
            upgraded: false,
            mark,
            env,
            config,
            settings,
            log,
        },
        out,
        queue,
    };
    let served = task::block_on(agent.run(version, &events));
    // The last sender is gone with the agent, so the writer ends once it has written what is queued.
    if writer.join().is_err() {
        log::error!("the thread that writes stdout has panicked");
    }
    Ok(served?)
}

fn start_reader(max_bytes: usize, queue: Sender<Arrival>) -> std::io::Result<()> {
    let reader = move || {
        let stdin = std::io::stdin().lock();
        stdio::read_lines(stdin, max_bytes, |incoming| {
            queue.send_blocking(Arrival::Client(incoming)).is_ok()
        });
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(reader).map(drop)
}

/// SIGTERM and SIGINT end the agent as the end of stdin does: turns are cancelled and recorded, servers
/// are taken down.
fn watch_signals(queue: Sender<Arrival>) -> std::io::Result<()> {
    let mut signals =
        signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT])?;
    let watcher = move || {
        for signal in signals.forever() {
            let end = Incoming::End(Some(format!("signal {signal}")));
            if queue.send_blocking(Arrival::Client(end)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watcher).map(drop)
}

impl Agent {
    async fn run(mut self, version: &str, events: &Receiver<Arrival>) -> Result<(), LogError> {
        for session in recovery::recover(&self.site.log).await?.sessions {
            log::warn!(
                "session {session}: its last turn was cut off by a kill and is recorded as interrupted"
            );
        }
        let max_sessions = self.site.config.limits.max_sessions as u64;
        let opened = connection::Head::ConnectionOpened { version: version.to_owned(), max_sessions };
        self.record(opened, b"").await?;
        let mut client_is_here = true;
        while client_is_here || self.opening > 0 {
            let Ok(event) = events.recv().await else { break };
            match event {
                Arrival::Client(Incoming::Line(line)) if client_is_here => self.line(line).await?,
                Arrival::Client(Incoming::Line(_)) => {}
                Arrival::Client(Incoming::End(why)) => {
                    if let Some(why) = why {
                        log::error!("the client's stream is over: {why}");
                    }
                    client_is_here = false;
                }
                Arrival::Opened(opening) => self.opened(*opening).await?,
                Arrival::Deleted { id, session, done } => {
                    self.opening -= 1;
                    done?;
                    self.record(connection::Head::DeletionDone { id, session }, b"").await?;
                }
            }
        }
        self.close().await;
        Ok(())
    }

    /// Ends every session; their turns answer as cancelled.
    async fn close(&mut self) {
        for running in self.sessions.values() {
            drop(running.queue.send(Message::Close).await);
        }
        let leaving = std::mem::take(&mut self.leaving).into_iter().map(|(_, running)| running);
        for running in std::mem::take(&mut self.sessions).into_values().chain(leaving) {
            running.task.await;
        }
    }

    async fn line(&mut self, line: Vec<u8>) -> Result<(), LogError> {
        let frame = classify(&line);
        let session = match self.connection.route(&frame) {
            Route::Nobody => return Ok(()),
            Route::Session(id) => self.sessions.get(id).map(|running| running.queue.clone()),
            Route::Connection => None,
        };
        let Some(queue) = session else { return self.connection_line(&frame, &line).await };
        const ENDS: [&str; 2] = ["session/close", "session/delete"];
        let closes = matches!(&frame, Frame::Request { method, .. } if ENDS.contains(&method.as_str()));
        let session = closes.then(|| frame.session()).flatten();
        // A driver outlives its queue's senders but for a panic, and then there is nobody to tell.
        drop(queue.send(Message::Line { frame, line }).await);
        if let Some(session) = session {
            self.leave(session).await?;
        }
        Ok(())
    }

    /// A session was told to close: no further line is for it, and the agent waits for its end.
    async fn leave(&mut self, session: String) -> Result<(), LogError> {
        self.record(connection::Head::SessionLeft { session: session.clone() }, b"").await?;
        if let Some(running) = self.sessions.remove(&session) {
            self.leaving.push((session, running));
        }
        Ok(())
    }

    async fn connection_line(&mut self, frame: &Frame, line: &[u8]) -> Result<(), LogError> {
        let kept = kept_line(frame, line);
        let work = self.record(connection::Head::LineReceived {}, &kept).await?;
        let (Some(work), Frame::Request { params, .. }) = (work, frame) else { return Ok(()) };
        let envs = opening::envs_of(params);
        match work {
            Work::Open { id, new } => self.open(Wanted { id, new, envs, again: None }),
            Work::Load { id, session, new, tells_history } => {
                self.open(Wanted { id, new, envs, again: Some((session, tells_history)) });
            }
            Work::Delete { id, session } => self.delete(id, session),
            Work::List { id, list } => self.list(id, &list).await?,
        }
        Ok(())
    }

    /// Records, folds, and says what follows; gives back the work that the record sets going.
    async fn record(&mut self, head: connection::Head, raw: &[u8]) -> Result<Option<Work>, LogError> {
        self.journal.append_connection(&head, raw)?;
        let follows = self.connection.fold(&head, raw);
        self.journal.flush().await?;
        for line in follows.lines {
            drop(self.out.send(line).await);
        }
        Ok(follows.work)
    }

    async fn list(&mut self, id: Id, list: &List) -> Result<(), LogError> {
        let head = match listing::page(&self.site.log, list) {
            Ok((sessions, next_cursor)) => connection::Head::SessionsListed { id, sessions, next_cursor },
            Err(listing::ListError::Log(error)) => return Err(error),
            Err(error) => {
                let message = error.to_string();
                connection::Head::RequestFailed { id, code: code::INVALID_PARAMS, message }
            }
        };
        self.record(head, b"").await.map(drop)
    }

    /// Brings a session up, beside everything else.
    fn open(&mut self, wanted: Wanted) {
        let site = Site {
            profile: self.connection.profile(),
            upgraded: self.upgraded.load(Ordering::Relaxed),
            ..self.site.clone()
        };
        let queue = self.queue.clone();
        let last = wanted.again.as_ref().and_then(|(session, _)| self.last_driver(session));
        self.opening += 1;
        task::spawn(async move {
            let id = wanted.id.clone();
            if let Some(last) = last {
                last.await;
            }
            let up = opening::bring_up(site, wanted).await;
            // Nobody waits for the session only when the agent has ended.
            drop(queue.send(Arrival::Opened(Box::new(Opening { id, up }))).await);
        });
    }

    /// Deletes a session at rest, beside everything else: it may be closing still.
    fn delete(&mut self, id: Id, session: String) {
        let last = self.last_driver(&session);
        let (log, queue) = (self.site.log.clone(), self.queue.clone());
        self.opening += 1;
        task::spawn(async move {
            if let Some(last) = last {
                last.await;
            }
            let done = recovery::delete(&log, &session).await;
            // Nobody waits for it only when the agent has ended.
            drop(queue.send(Arrival::Deleted { id, session, done }).await);
        });
    }

    /// The driver that is still closing the session that is wanted again: one stream has one writer.
    fn last_driver(&mut self, session: &str) -> Option<JoinHandle<()>> {
        let at = self.leaving.iter().position(|(leaving, _)| leaving == session)?;
        Some(self.leaving.swap_remove(at).1.task)
    }

    async fn opened(&mut self, opening: Opening) -> Result<(), LogError> {
        self.opening -= 1;
        let Up { session_id, session, record, servers, scrubber } = match opening.up {
            Ok(up) => up,
            Err((code, message)) => {
                let failed = connection::Head::SessionFailed { id: opening.id, code, message };
                return self.record(failed, b"").await.map(drop);
            }
        };
        let session = match session {
            Some(mut session) => {
                session.fold(&record);
                session
            }
            None => match Session::open(&record) {
                Some(session) => session,
                None => return Ok(()),
            },
        };
        let journal = Journal::new(self.site.log.clone(), session_id.clone());
        journal.append(&record)?;
        self.record(connection::Head::SessionBegun { session: session_id.clone() }, b"").await?;
        let means = Means {
            journal,
            out: self.out.clone(),
            endpoint: self.endpoint.for_session(),
            mesh: self.mesh.clone(),
            servers,
            scrubber,
            upgraded: Arc::clone(&self.upgraded),
            tool_timeout: self.site.config.limits.tool_timeout,
            hook_timeout: self.site.config.limits.hook_timeout,
        };
        let (driver, queue) = Driver::new(session, means);
        self.sessions.insert(session_id, Running { queue, task: task::spawn(driver.run()) });
        Ok(())
    }
}
