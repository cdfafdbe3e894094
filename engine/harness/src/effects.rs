//! The hands of the driver: each effect is begun here, and what comes of it is an occurrence.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use async_std::future::timeout;
use async_std::task;
use waxlog_harness_core::acp::SECRET_PLACEHOLDER;
use waxlog_harness_core::effect::{Effect, Level, Unsigned};
use waxlog_harness_core::record::{Happened, HttpOutcome};
use waxlog_nostr::frame::ClientFrame;
use waxlog_nostr::turn_metric::{self, Payload};
use waxlog_nostr::{auth, observer, Draft, Event, PublicKey};

use crate::agents::Agent;
use crate::config::Config;
use crate::driver::{Occurrence, RunError};
use crate::http::RelayHttp;
use crate::journal::now_ms;
use crate::relay::Connection;
use crate::{memory, usage_log};

/// How long what was begun may take to end when the process ends.
const FINISH: Duration = Duration::from_secs(5);

/// What the driver holds of the world.
pub(crate) struct Hands {
    shared: Arc<Shared>,
    /// The newest connection, and its number.
    link: Option<(u64, Connection)>,
    agents: BTreeMap<u64, Agent>,
    /// Held by each task that the process's end waits for.
    guard: Sender<()>,
    /// Ends when no guard is held any more.
    unguarded: Receiver<()>,
}

/// What tasks need.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) http: RelayHttp,
    queue: Sender<Occurrence>,
}

impl Shared {
    /// Tells the loop. It is gone only when the process ends, and then nobody needs to know.
    pub(crate) async fn tell(&self, happened: Happened, raw: Vec<u8>) {
        let _ = self.queue.send(Occurrence { happened, raw }).await;
    }

    pub(crate) fn sign(&self, draft: Unsigned) -> Event {
        self.config.secrets.keys.sign(Draft::from(draft))
    }
}

impl Hands {
    pub(crate) fn new(config: Config, queue: Sender<Occurrence>) -> Result<Self, RunError> {
        let http = RelayHttp::new(&config)?;
        let shared = Arc::new(Shared { config, http, queue });
        let (guard, unguarded) = async_channel::bounded(1);
        Ok(Self { shared, link: None, agents: BTreeMap::new(), guard, unguarded })
    }

    /// Begins one effect.
    pub(crate) fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Connect { link } => {
                self.link = Some((link, Connection::open(link, self.shared.clone())));
            }
            Effect::Authenticate { link, challenge } => self.authenticate(link, &challenge),
            Effect::Send { link, frame } => self.send(link, frame),
            Effect::Ping { link } => {
                if let Some(connection) = self.connection(link) {
                    connection.ping();
                }
            }
            Effect::Disconnect { link, clean } => self.disconnect(link, clean),
            Effect::PublishFrame { link, draft } => {
                let event = self.shared.sign(draft);
                self.send(link, ClientFrame::Event(event).to_json());
            }
            Effect::Observe { link, frame } => self.observe(link, &frame),
            Effect::Spawn { child, slot } => {
                let agent = Agent::start(child, slot, self.shared.clone());
                self.agents.insert(child, agent);
            }
            Effect::Write { child, line } => self.write(child, line),
            Effect::Kill { child } => {
                if let Some(agent) = self.agents.remove(&child) {
                    self.finishing(agent.end());
                }
            }
            Effect::Tell { level, text } => tell(level, &text),
            // The driver ends before it comes here.
            Effect::Exit { .. } => {}
            effect => self.begin(effect),
        }
    }

    /// Begins what is a task of its own.
    fn begin(&mut self, effect: Effect) {
        let shared = self.shared.clone();
        match effect {
            Effect::Submit { draft, budget_ms } => self.finishing(async move {
                let event = shared.sign(draft);
                let outcome = shared.http.submit(&event, budget_ms).await.0;
                if !matches!(outcome, HttpOutcome::Answered { status: 200 }) {
                    log::debug!("an event of kind {} was not taken: {outcome:?}", event.kind);
                }
            }),
            Effect::Unreact { event, content, budget_ms } => self.finishing(async move {
                shared.http.unreact(&shared, &event, &content, budget_ms).await;
            }),
            Effect::Query { query, path, filters, timeout_ms, retries, wait_ms } => {
                task::spawn(async move {
                    let asked = shared.http.ask(path, &filters, timeout_ms, retries, wait_ms).await;
                    let (outcome, raw, forged) = asked;
                    shared.tell(Happened::QueryAnswered { query, outcome, forged }, raw).await;
                });
            }
            Effect::ReadMemory { query, owner, timeout_ms } => {
                task::spawn(async move {
                    let (found, text) = memory::read(&shared, &owner, timeout_ms).await;
                    shared.tell(Happened::MemoryRead { query, found }, text.into_bytes()).await;
                });
            }
            Effect::FindUsage { turn, session, slot } => {
                task::spawn(async move {
                    let found = usage_log::find(&shared.config, slot, &session).await;
                    let is_known = found.is_some();
                    let raw = found.map(String::into_bytes).unwrap_or_default();
                    shared.tell(Happened::UsageFound { turn, is_known }, raw).await;
                });
            }
            Effect::SealMetric { turn, payload, owner, created_at } => {
                task::spawn(async move {
                    match seal(&shared, &payload, &owner, created_at) {
                        Ok(event) => {
                            let raw = event.to_json().into_bytes();
                            shared.tell(Happened::MetricSealed { turn }, raw).await;
                        }
                        Err(error) => log::error!("the usage of turn {turn} cannot be sealed: {error}"),
                    }
                });
            }
            Effect::SendMetric { turn, event, budget_ms } => self.finishing(async move {
                let (outcome, raw) = shared.http.submit_raw(event.into_bytes(), budget_ms).await;
                shared.tell(Happened::MetricSent { turn, outcome }, raw).await;
            }),
            Effect::OpenControl { event } => {
                task::spawn(open_control(shared, event));
            }
            _ => {}
        }
    }

    /// Runs a task that the process's end waits for.
    fn finishing(&self, work: impl Future<Output = ()> + Send + 'static) {
        let guard = self.guard.clone();
        task::spawn(async move {
            work.await;
            drop(guard);
        });
    }

    fn connection(&self, link: u64) -> Option<&Connection> {
        self.link.as_ref().filter(|(number, _)| *number == link).map(|(_, connection)| connection)
    }

    fn send(&self, link: u64, frame: String) {
        if let Some(connection) = self.connection(link) {
            connection.send(frame);
        }
    }

    fn authenticate(&self, link: u64, challenge: &str) {
        let config = &self.shared.config;
        let owner = config.secrets.owner_tag.as_ref();
        let answer =
            auth::answer_challenge(&config.secrets.keys, &config.auth_url, challenge, owner, now_ms() / 1000);
        self.send(link, ClientFrame::Auth(answer).to_json());
    }

    fn observe(&self, link: u64, frame: &str) {
        let config = &self.shared.config;
        let Some(owner) = config.settings.owner else { return };
        let sealed = observer::TelemetryFrame::parse(frame).and_then(|frame| {
            observer::build_telemetry(&config.secrets.keys, &owner, &frame, now_ms() / 1000)
        });
        match sealed {
            Ok(event) => self.send(link, ClientFrame::Event(event).to_json()),
            Err(error) => log::warn!("an observer frame cannot be sealed: {error}"),
        }
    }

    fn disconnect(&mut self, link: u64, clean: bool) {
        if let Some((_, connection)) = self.link.take_if(|(number, _)| *number == link) {
            self.finishing(connection.close(clean));
        }
    }

    fn write(&self, child: u64, line: String) {
        if let Some(agent) = self.agents.get(&child) {
            agent.write(line.replace(SECRET_PLACEHOLDER, self.shared.config.secrets.nsec.expose()));
        }
    }

    /// Waits for what was begun, for as long as that is sensible.
    pub(crate) async fn finish(mut self) {
        for (_, agent) in std::mem::take(&mut self.agents) {
            self.finishing(agent.end());
        }
        if let Some((_, connection)) = self.link.take() {
            self.finishing(connection.close(true));
        }
        let Self { guard, unguarded, .. } = self;
        drop(guard);
        // Nobody sends: this ends when the last guard is dropped.
        if timeout(FINISH, unguarded.recv()).await.is_err() {
            log::warn!("not everything ended within {} s", FINISH.as_secs());
        }
    }
}

fn seal(
    shared: &Shared,
    payload: &str,
    owner: &PublicKey,
    created_at: u64,
) -> Result<Event, turn_metric::MetricError> {
    let payload = Payload::parse(payload)?;
    turn_metric::build(&shared.config.secrets.keys, owner, &payload, created_at)
}

async fn open_control(shared: Arc<Shared>, event: String) {
    let Some(owner) = shared.config.settings.owner else { return };
    let Ok(event) = serde_json::from_str::<Event>(&event) else { return };
    match observer::open_control(&shared.config.secrets.keys, &owner, &event, now_ms() / 1000) {
        Ok(control) => shared.tell(Happened::ControlOpened, control.to_json().into_bytes()).await,
        Err(error) => log::warn!("an order of the observer is not followed: {error}"),
    }
}

fn tell(level: Level, text: &str) {
    let level = match level {
        Level::Error => log::Level::Error,
        Level::Warn => log::Level::Warn,
        Level::Info => log::Level::Info,
        Level::Debug => log::Level::Debug,
    };
    log::log!(level, "{text}");
}
