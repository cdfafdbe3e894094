//! The agent's life: ACP on stdio from the first line to the last.
//!
//! One task takes the client's lines. Those of a running session go to its driver; the rest are the
//! connection's own, recorded in a stream of their own and answered here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use async_channel::{Receiver, Sender};
use async_std::task::{self, JoinHandle};
use waxlog_core::acp::code;
use waxlog_core::acp::frame::{classify, Frame, Id};
use waxlog_core::acp::lines::Line;
use waxlog_core::acp::params::{env_of, NewSession};
use waxlog_core::connection::{self, kept_line, prompt_too_long, Connection, Route, SYSTEM_PROMPT_MAX_BYTES};
use waxlog_core::record::{Head, SessionOpened};
use waxlog_core::settings::Settings;
use waxlog_store::{Log, LogError};

use crate::config::{Config, Environment, PromptSource};
use crate::driver::{self, Driver, Means, Message};
use crate::endpoint::{self, Endpoint};
use crate::http::ModelClient;
use crate::journal::Journal;
use crate::mcp::{ServerSettings, ServerSpec, Servers};
use crate::scrub::Scrubber;
use crate::secret::Secret;
use crate::stdio::{self, Incoming};
use crate::{ids, recovery, slot};

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
}

/// A session on its way.
struct Opening {
    id: Id,
    new: NewSession,
    scrubber: Scrubber,
    servers: Result<Servers, String>,
}

/// A session that runs.
struct Running {
    queue: Sender<Message>,
    task: JoinHandle<()>,
}

/// Everything that all sessions share.
struct Agent {
    env: Environment,
    config: Config,
    settings: Settings,
    endpoint: Endpoint,
    scrubber: Scrubber,
    log: Log,
    journal: Journal,
    out: Sender<Line>,
    queue: Sender<Arrival>,
    connection: Connection,
    sessions: BTreeMap<String, Running>,
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
    let log = slot::open_first(&config.home, config.durability)?;
    let (out, writer) = stdio::start_writer()?;
    let (queue, events) = async_channel::bounded(QUEUE_MAX_MESSAGES);
    start_reader(config.limits.max_line_bytes, queue.clone())?;
    watch_signals(queue.clone())?;
    let agent = Agent {
        endpoint: Endpoint::new(&config, client),
        scrubber: Scrubber::of_environment(&env),
        journal: Journal::new(log.clone(), ids::draw(connection::STREAM_PREFIX.trim_end_matches('_'))),
        connection: Connection::default(),
        sessions: BTreeMap::new(),
        opening: 0,
        upgraded: Arc::default(),
        env,
        config,
        settings,
        log,
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
        stdio::read_lines(stdin, max_bytes, |incoming| queue.send_blocking(Arrival::Client(incoming)).is_ok());
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(reader).map(drop)
}

/// SIGTERM and SIGINT end the agent as the end of stdin does: turns are cancelled and recorded, servers
/// are taken down.
fn watch_signals(queue: Sender<Arrival>) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
    ])?;
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
        for session in recovery::recover(&self.log).await?.sessions {
            log::warn!("session {session}: its last turn was cut off by a kill and is recorded as interrupted");
        }
        let max_sessions = self.config.limits.max_sessions as u64;
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
        for (_, running) in std::mem::take(&mut self.sessions) {
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
        match session {
            // A driver outlives its queue's senders but for a panic, and then there is nobody to tell.
            Some(queue) => drop(queue.send(Message::Line { frame, line }).await),
            None => self.connection_line(&frame, &line).await?,
        }
        Ok(())
    }

    async fn connection_line(&mut self, frame: &Frame, line: &[u8]) -> Result<(), LogError> {
        let kept = kept_line(frame, line);
        let follows = self.record(connection::Head::LineReceived {}, &kept).await?;
        let (Some((id, new)), Frame::Request { params, .. }) = (follows, frame) else { return Ok(()) };
        self.open(id, new, params);
        Ok(())
    }

    /// Records, folds, and says what follows; gives back the session to open, if one is asked for.
    async fn record(
        &mut self,
        head: connection::Head,
        raw: &[u8],
    ) -> Result<Option<(Id, NewSession)>, LogError> {
        self.journal.append_connection(&head, raw)?;
        let follows = self.connection.fold(&head, raw);
        self.journal.flush().await?;
        for line in follows.lines {
            drop(self.out.send(line).await);
        }
        Ok(follows.open)
    }

    /// Brings up the servers of a new session, beside everything else.
    fn open(&mut self, id: Id, new: NewSession, params: &serde_json::Value) {
        let given = params.get("mcpServers").and_then(serde_json::Value::as_array);
        let envs: Vec<Vec<(String, String)>> =
            given.into_iter().flatten().map(|server| env_of(server).unwrap_or_default()).collect();
        let pairs = envs.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
        let scrubber = self.scrubber.with_variables(pairs);
        let specs = new.servers.iter().zip(envs).map(|(server, env)| ServerSpec {
            name: server.name.clone(),
            command: server.command.clone(),
            args: server.args.clone(),
            env: env.into_iter().map(|(name, value)| (name, Secret::new(value))).collect(),
            cwd: new.cwd.clone().into(),
        });
        let specs: Vec<ServerSpec> = specs.collect();
        let settings = ServerSettings {
            env: self.env.clone(),
            init_timeout: self.config.limits.mcp_init_timeout,
            restart: self.config.limits.mcp_restart.clone(),
        };
        let queue = self.queue.clone();
        let too_long = self.system_prompt(&new).0.len();
        self.opening += 1;
        task::spawn(async move {
            let servers = if too_long > SYSTEM_PROMPT_MAX_BYTES {
                Err(format!("session/new: {}", prompt_too_long(too_long)))
            } else {
                Servers::start(specs, &settings).await.map_err(|error| error.to_string())
            };
            let opening = Opening { id, new, scrubber, servers };
            // Nobody waits for the session only when the agent has ended.
            drop(queue.send(Arrival::Opened(Box::new(opening))).await);
        });
    }

    fn system_prompt(&self, new: &NewSession) -> (String, String) {
        if let Some(own) = &new.system_prompt {
            return (own.clone(), "client".to_owned());
        }
        let prompt = &self.config.system_prompt;
        let source = match &prompt.source {
            PromptSource::BuiltIn => "built-in".to_owned(),
            PromptSource::Variable => "variable".to_owned(),
            PromptSource::File(path) => format!("file {}", path.display()),
        };
        (prompt.text.clone(), source)
    }

    async fn opened(&mut self, opening: Opening) -> Result<(), LogError> {
        self.opening -= 1;
        let Opening { id, new, scrubber, servers } = opening;
        let servers = match servers {
            Ok(servers) => servers,
            Err(message) => {
                let message = scrubber.scrub_text(message);
                return self.record(connection::Head::SessionFailed { id, code: code::FAILED, message }, b"").await.map(drop);
            }
        };
        let (system_prompt, prompt_source) = self.system_prompt(&new);
        let session_id = ids::draw("ses");
        let head = Head::SessionOpened(Box::new(SessionOpened {
            id,
            session: session_id.clone(),
            profile: self.connection.profile(),
            cwd: new.cwd,
            settings: self.settings.clone(),
            servers: new.servers,
            upgraded: self.upgraded.load(Ordering::Relaxed),
            models: vec![self.settings.model.clone()],
            hook_servers: (0..servers.list.len())
                .filter(|&server| self.config.hook_servers.allows(servers.list[server].name()))
                .collect(),
            catalogue: servers.catalogue.clone(),
            prompt_source,
        }));
        let Some((record, session)) = driver::open(head, &system_prompt) else { return Ok(()) };
        let journal = Journal::new(self.log.clone(), session_id.clone());
        journal.append(&record)?;
        self.record(connection::Head::SessionBegun { session: session_id.clone() }, b"").await?;
        let means = Means {
            journal,
            out: self.out.clone(),
            endpoint: self.endpoint.clone(),
            servers,
            scrubber,
            upgraded: Arc::clone(&self.upgraded),
            tool_timeout: self.config.limits.tool_timeout,
            hook_timeout: self.config.limits.hook_timeout,
        };
        let (driver, queue) = Driver::new(session, means);
        self.sessions.insert(session_id, Running { queue, task: task::spawn(driver.run()) });
        Ok(())
    }
}
