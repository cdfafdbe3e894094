//! Drives one session: inputs in, records to the log, then what the fold says is to be done.
//!
//! One task owns the session's state and takes its inputs from one queue, so the order of inputs is the
//! order of records. Requests, calls and timers run beside it and only send inputs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};
use async_std::task;
use futures_lite::future::or;
use waxlog_core::acp::code;
use waxlog_core::acp::frame::{Frame, Id};
use waxlog_core::acp::lines::{self, Line};
use waxlog_core::record::{CallOutcome, Hook};
use waxlog_core::rope::Rope;
use waxlog_core::session::{Draws, Effect, Input, Session};
use waxlog_store::LogError;

use crate::endpoint::{self, Endpoint};
use crate::journal::Journal;
use crate::mcp;
use crate::mcp::{cancel_pair, CallReport, CallRequest, CancelSignal, CancelSource, Servers};
use crate::mesh::{Found, MeshWatch};
use crate::scrub::Scrubber;
use crate::{hooks, ids, skills};

/// Messages that may wait for a session.
pub const QUEUE_MAX_MESSAGES: usize = 1024;
/// Inputs that share one flush.
const BATCH_MAX_INPUTS: usize = 64;
/// How often a client hears that the model is still being waited for.
const KEEPALIVE_PERIOD: Duration = Duration::from_secs(30);
/// How long a client may take to say whether a call may run: a person may be elsewhere, but not for ever.
const PERMISSION_MAX: Duration = Duration::from_secs(600);
/// How long cancelled calls may take to stop.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// What a session's queue carries.
#[derive(Debug)]
pub enum Message {
    /// A line of the client.
    Line {
        /// The line classified.
        frame: Frame,
        /// The line itself.
        line: Vec<u8>,
    },
    /// What a request, a call or a timer has to say.
    Input(Input),
    /// The client is gone: finish the turn and end.
    Close,
}

/// What a session works with.
pub struct Means {
    /// Its stream of the log.
    pub journal: Journal,
    /// Lines to the client.
    pub out: Sender<Line>,
    /// The model.
    pub endpoint: Endpoint,
    /// The mesh behind the model `auto`.
    pub mesh: MeshWatch,
    /// Its tool servers.
    pub servers: Servers,
    /// Masks the secrets that its servers and the agent know.
    pub scrubber: Scrubber,
    /// Set once an endpoint of the process wants the Responses wire.
    pub upgraded: Arc<AtomicBool>,
    /// How long a call may take.
    pub tool_timeout: Duration,
    /// How long a hook may take.
    pub hook_timeout: Duration,
}

/// One session under way.
pub struct Driver {
    session: Session,
    means: Means,
    queue: Receiver<Message>,
    inputs: Sender<Message>,
    asking: Option<Asking>,
    calls: Option<Calls>,
    /// Dropping it ends the wait for the client's word on a call.
    question: Option<CancelSource>,
    /// The requests that were taken and are not answered yet: each gets an answer, also if the log fails.
    unanswered: Vec<Id>,
    closing: bool,
}

/// A request under way. Dropping it ends the attempt and the keepalive clock.
struct Asking {
    started: Instant,
    attempt: Option<CancelSource>,
    _keepalive: Option<CancelSource>,
}

/// The calls of a round.
struct Calls {
    asked: u64,
    /// Tells the servers that the client took the calls back.
    stop: CancelSource,
    stopped: CancelSignal,
    /// Dropping it forgets the calls.
    _alive: CancelSource,
    alive: CancelSignal,
}

impl Driver {
    /// A driver for `session`, whose first record is appended, with the queue to reach it.
    pub fn new(session: Session, means: Means) -> (Driver, Sender<Message>) {
        let (inputs, queue) = async_channel::bounded(QUEUE_MAX_MESSAGES);
        let sender = inputs.clone();
        let unanswered = vec![session.opened().id.clone()];
        let driver = Driver {
            session,
            means,
            queue,
            inputs,
            asking: None,
            calls: None,
            question: None,
            unanswered,
            closing: false,
        };
        (driver, sender)
    }

    /// Runs until the client is gone and the last turn is over; leaves no server behind.
    pub async fn run(mut self) {
        let ended = self.serve().await;
        if let Err(error) = ended {
            log::error!("session {}: {error}", self.session.id());
            self.forget_work();
            self.refuse_all(&error).await;
        }
        self.forget_work();
        self.means.servers.close().await;
    }

    /// Ends what runs beside the session.
    fn forget_work(&mut self) {
        self.asking = None;
        self.calls = None;
        self.question = None;
    }

    async fn serve(&mut self) -> Result<(), LogError> {
        self.act().await?;
        while !self.closing || self.session.is_busy() {
            let Ok(message) = self.queue.recv().await else { break };
            self.take(message)?;
            for _ in 1..BATCH_MAX_INPUTS {
                let Ok(next) = self.queue.try_recv() else { break };
                self.take(next)?;
            }
            self.act().await?;
        }
        Ok(())
    }

    /// Records what a message means, and every decision that follows from it.
    fn take(&mut self, message: Message) -> Result<(), LogError> {
        let input = match message {
            Message::Input(input) => input,
            Message::Line { frame, line } => {
                if let Frame::Request { id, .. } = &frame {
                    self.unanswered.push(id.clone());
                }
                Input::Line { frame, line, draws: draws() }
            }
            Message::Close => {
                self.closing = true;
                cancel_notice()
            }
        };
        let mut next = self.session.admit(input);
        while let Some(record) = next {
            self.means.journal.append(&record)?;
            self.session.fold(&record);
            next = self.session.decide();
        }
        Ok(())
    }

    /// Makes the records durable, then does what they call for.
    async fn act(&mut self) -> Result<(), LogError> {
        let outbox = self.session.take_outbox();
        if outbox.is_empty() {
            return Ok(());
        }
        self.means.journal.flush().await?;
        for effect in outbox {
            self.perform(effect).await?;
        }
        Ok(())
    }

    async fn perform(&mut self, effect: Effect) -> Result<(), LogError> {
        match effect {
            // A client that no longer reads is no reason to stop: what it asked for goes on.
            Effect::Say(line) => {
                self.unanswered.retain(|id| !lines::answers(&line, id));
                drop(self.means.out.send(line).await);
            }
            Effect::Ask { asked, first, keepalive, after_ms, path, body } => {
                if first {
                    let _keepalive = keepalive.then(|| self.keep_alive(asked));
                    self.asking = Some(Asking { started: Instant::now(), attempt: None, _keepalive });
                }
                self.ask(asked, after_ms, path, body);
            }
            Effect::SeekMesh { asked } => self.seek_mesh(asked),
            Effect::MeshFailed => self.means.mesh.failed().await,
            Effect::StopAsking => self.asking = None,
            Effect::Call { asked, index, server, tool, bare, arguments } => {
                let request = (bare, arguments);
                self.call(asked, index, server, tool, request);
            }
            Effect::LoadSkill { asked, index, name } => self.load_skill(asked, index, name),
            Effect::AwaitPermission { asked, index } => self.await_permission(asked, index),
            Effect::PermissionSettled => self.question = None,
            Effect::StopCalls { asked } => self.stop_calls(asked),
            Effect::AbortCalls => self.calls = None,
            Effect::RunHooks { asked, hook, servers } => self.run_hooks(asked, hook, servers),
            Effect::KillServer { server, reason } => self.kill_server(server, &reason),
            Effect::Upgraded => self.means.upgraded.store(true, Ordering::Relaxed),
            Effect::Inform(text) => log::info!("session {}: {text}", self.session.id()),
            Effect::Warn(text) => log::warn!("session {}: {text}", self.session.id()),
            Effect::Close => self.closing = true,
            Effect::Settle => {
                self.forget_work();
                self.means.journal.sync().await?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, asked: u64, after_ms: u64, path: String, body: Rope) {
        let Some(asking) = self.asking.as_mut() else { return };
        let (source, signal) = cancel_pair();
        asking.attempt = Some(source);
        let started = asking.started;
        let (endpoint, scrubber) = (self.means.endpoint.clone(), self.means.scrubber.clone());
        self.spawn(signal, async move {
            task::sleep(Duration::from_millis(after_ms)).await;
            let outcome = endpoint.post(asked, &path, &body).await;
            endpoint::input(asked, outcome, millis(started), &scrubber)
        });
    }

    /// Looks for the mesh; nothing takes that back, its time-out bounds it.
    fn seek_mesh(&self, asked: u64) {
        let (inputs, scrubber) = (self.inputs.clone(), self.means.scrubber.clone());
        let mesh = self.means.mesh.clone();
        task::spawn(async move {
            let Found { available, list } = mesh.seek().await;
            let input = Input::MeshAnswered { asked, available, list: scrubber.scrub(list) };
            // The driver is gone only when the session is over.
            drop(inputs.send(Message::Input(input)).await);
        });
    }

    /// Ticks until the source is dropped.
    fn keep_alive(&self, asked: u64) -> CancelSource {
        let (source, signal) = cancel_pair();
        let inputs = self.inputs.clone();
        task::spawn(or(async move { signal.cancelled().await }, async move {
            loop {
                task::sleep(KEEPALIVE_PERIOD).await;
                let tick = Message::Input(Input::KeepaliveTick { asked });
                if inputs.send(tick).await.is_err() {
                    return;
                }
            }
        }));
        source
    }

    fn call(
        &mut self,
        asked: u64,
        index: usize,
        server: usize,
        tool: String,
        request: (String, serde_json::Value),
    ) {
        if self.calls.as_ref().is_none_or(|calls| calls.asked != asked) {
            let ((stop, stopped), (_alive, alive)) = (cancel_pair(), cancel_pair());
            self.calls = Some(Calls { asked, stop, stopped, _alive, alive });
        }
        let Some(calls) = &self.calls else { return };
        let (alive, cancel) = (calls.alive.clone(), calls.stopped.clone());
        let Some(handle) = self.means.servers.list.get(server).map(Arc::clone) else { return };
        let (timeout, scrubber) = (self.means.tool_timeout, self.means.scrubber.clone());
        let inputs = self.inputs.clone();
        let (bare, arguments) = request;
        self.spawn(alive, async move {
            let started = Instant::now();
            let report = handle.call(CallRequest { tool: bare, arguments, cancel, timeout }).await;
            let CallReport { outcome, events } = report;
            for change in events {
                let changed = Message::Input(Input::ServerChanged { server, change });
                if inputs.send(changed).await.is_err() {
                    break;
                }
            }
            let (outcome, line) = recorded(outcome, &tool, &scrubber);
            Input::CallFinished { asked, index, outcome, line, elapsed_ms: millis(started) }
        });
    }

    /// Reads a skill on a thread that may wait for a disk.
    fn load_skill(&self, asked: u64, index: usize, name: Option<String>) {
        let skills = self.session.opened().skills.clone();
        let (inputs, scrubber) = (self.inputs.clone(), self.means.scrubber.clone());
        task::spawn(async move {
            let loaded = task::spawn_blocking(move || skills::load(&skills, name.as_deref())).await;
            let (text, is_error) = match loaded {
                Ok(text) => (text, false),
                Err(text) => (text, true),
            };
            let text = scrubber.scrub_text(text);
            let input = Input::SkillLoaded { asked, index, text, is_error };
            // The driver is gone only when the session is over.
            drop(inputs.send(Message::Input(input)).await);
        });
    }

    fn await_permission(&mut self, asked: u64, index: usize) {
        let (source, signal) = cancel_pair();
        self.question = Some(source);
        self.spawn(signal, async move {
            task::sleep(PERMISSION_MAX).await;
            Input::PermissionExpired { asked, index, after_secs: PERMISSION_MAX.as_secs() }
        });
    }

    fn stop_calls(&mut self, asked: u64) {
        let Some(calls) = self.calls.as_ref() else { return };
        calls.stop.cancel();
        self.spawn(calls.alive.clone(), async move {
            task::sleep(DRAIN_MAX).await;
            Input::DrainExpired { asked }
        });
    }

    /// Runs a hook on every server at once. Nothing takes hooks back; their time-out bounds them.
    fn run_hooks(&self, asked: u64, hook: Hook, servers: Vec<usize>) {
        let running: Vec<_> = servers
            .iter()
            .filter_map(|server| self.means.servers.list.get(*server).map(|handle| (*server, handle)))
            .map(|(server, handle)| {
                let run = hooks::run(Arc::clone(handle), hook, self.means.hook_timeout);
                (server, task::spawn(run))
            })
            .collect();
        let (inputs, scrubber) = (self.inputs.clone(), self.means.scrubber.clone());
        task::spawn(async move {
            let (mut outcomes, mut lines) = (Vec::new(), Vec::new());
            for (server, run) in running {
                let mut ran = run.await;
                for change in std::mem::take(&mut ran.events) {
                    // The driver is gone only when the session is over.
                    drop(inputs.send(Message::Input(Input::ServerChanged { server, change })).await);
                }
                outcomes.push(ran.record(&scrubber, &mut lines));
            }
            let finished = Input::HooksFinished { asked, hook, servers, outcomes, lines };
            drop(inputs.send(Message::Input(finished)).await);
        });
    }

    fn kill_server(&self, server: usize, reason: &str) {
        let Some(handle) = self.means.servers.list.get(server) else { return };
        for change in handle.kill(reason) {
            let changed = Message::Input(Input::ServerChanged { server, change });
            // The queue is the session's own and is being emptied: waiting for room in it could be for ever.
            if let Err(e) = self.inputs.try_send(changed) {
                log::error!("session {}: the death of a server is not recorded: {e}", self.session.id());
            }
        }
    }

    /// Runs `work` beside the session and queues what it gives, unless `until` comes first.
    fn spawn(&self, until: CancelSignal, work: impl std::future::Future<Output = Input> + Send + 'static) {
        let inputs = self.inputs.clone();
        task::spawn(or(async move { until.cancelled().await }, async move {
            let input = work.await;
            // The driver is gone only when the session is over.
            drop(inputs.send(Message::Input(input)).await);
        }));
    }

    /// The log cannot be written: nothing may be acted on any more. Whoever asks is told, until they leave.
    async fn refuse_all(&mut self, error: &LogError) {
        let profile = self.session.opened().profile;
        let text = format!("log: {error}");
        let refuse = |id: &Id| lines::error(id, profile.code(code::FAILED), &text);
        for id in std::mem::take(&mut self.unanswered) {
            drop(self.means.out.send(refuse(&id)).await);
        }
        while !self.closing {
            match self.queue.recv().await {
                Ok(Message::Line { frame: Frame::Request { id, .. }, .. }) => {
                    drop(self.means.out.send(refuse(&id)).await);
                }
                Ok(Message::Line { .. } | Message::Input(_)) => {}
                Ok(Message::Close) | Err(_) => self.closing = true,
            }
        }
    }
}

/// What a call gave, as it is recorded.
fn recorded(outcome: mcp::CallOutcome, tool: &str, scrubber: &Scrubber) -> (CallOutcome, Vec<u8>) {
    let bare = |outcome| (outcome, Vec::new());
    match outcome {
        mcp::CallOutcome::Returned { raw_line } => (CallOutcome::Returned, scrubber.scrub(raw_line)),
        mcp::CallOutcome::TransportFailed { reason } => {
            let text = format!("mcp: call {tool}: Transport closed ({reason})");
            bare(CallOutcome::TransportFailed { text: scrubber.scrub_text(text) })
        }
        mcp::CallOutcome::TimedOut { after_secs } => bare(CallOutcome::TimedOut { after_secs }),
        mcp::CallOutcome::Cancelled => bare(CallOutcome::Cancelled),
        mcp::CallOutcome::Unavailable { text } => {
            bare(CallOutcome::Unavailable { text: scrubber.scrub_text(text) })
        }
    }
}

/// What the end of the client's stream means to a turn: as if it had been cancelled.
fn cancel_notice() -> Input {
    let frame = Frame::Notification { method: "session/cancel".to_owned(), params: serde_json::Value::Null };
    Input::Line { frame, line: Vec::new(), draws: draws() }
}

fn draws() -> Draws {
    Draws { turn: ids::draw("turn"), run: ids::draw("run"), message: ids::draw("steer") }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
