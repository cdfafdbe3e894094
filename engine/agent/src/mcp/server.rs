//! A server over its whole life: alive, dead for a while, started again, given up.
//!
//! Nothing watches a server. Death is noticed by the call that waits for an answer, or by the next call if
//! it came in between; and a dead server is started again by the call that needs it. A request that the
//! server may have seen is never sent twice.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_std::task;
use waxlog_core::mcp::{backoff_ms, encode, ServerEvent, ToolSpec, JITTER_MAX_PERMILLE};

use super::call::{guard, stopped, CallOutcome, CallReport, CallRequest, Stop};
use super::child::ServerSpec;
use super::connection::{Connection, Ended};
use super::handshake::{connect, Ready, StartError};
use super::lock;
use crate::config::{Environment, RestartPolicy};

/// How often a request goes out again because a server was gone before it could see it.
const RESENDS_MAX: u32 = 1;

/// Stands for a pause that the clock cannot count.
const PAUSE_BEYOND_CLOCK: Duration = Duration::from_secs(24 * 60 * 60);

/// What servers are started with, besides their own specification.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// What they may inherit variables from.
    pub env: Environment,
    /// How long the handshake may take, and again the listing of tools.
    pub init_timeout: Duration,
    /// How they are started again.
    pub restart: RestartPolicy,
}

/// One server of a session. Dropping it kills its process group.
#[derive(Debug)]
pub struct Server {
    spec: ServerSpec,
    settings: ServerSettings,
    state: Mutex<State>,
    /// Held while the server is started again, so that callers share one restart.
    restarting: async_std::sync::Mutex<()>,
}

#[derive(Debug)]
enum State {
    Healthy(Live),
    Dead(Dead),
}

#[derive(Clone, Debug)]
struct Live {
    connection: Arc<Connection>,
    /// The tools that this process listed.
    tools: Arc<BTreeSet<String>>,
}

#[derive(Debug)]
struct Dead {
    /// Failures in a row.
    attempts: u32,
    retry_at: Instant,
    reason: String,
}

impl Server {
    /// Brings the server up; returns it with the tools it lists.
    pub(super) async fn start(
        spec: ServerSpec,
        settings: ServerSettings,
    ) -> Result<(Self, Vec<ToolSpec>), StartError> {
        let ready = connect(&spec, &settings.env, settings.init_timeout).await?;
        let (live, tools) = Live::of(ready);
        let server = Self {
            spec,
            settings,
            state: Mutex::new(State::Healthy(live)),
            restarting: async_std::sync::Mutex::new(()),
        };
        Ok((server, tools))
    }

    /// Its name in the session.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Makes a call. Calls run side by side, as many as are made.
    pub async fn call(&self, request: CallRequest) -> CallReport {
        let mut events = Vec::new();
        let outcome = self.run(&request, &mut events).await;
        CallReport { outcome, events }
    }

    /// Kills it for `reason`, as after a call that took too long. Nothing happens if it is dead already.
    pub fn kill(&self, reason: &str) -> Vec<ServerEvent> {
        let mut events = Vec::new();
        let connection = match &*lock(&self.state) {
            State::Healthy(live) => Arc::clone(&live.connection),
            State::Dead(_) => return events,
        };
        self.bury(&connection, reason, &mut events);
        events
    }

    /// Closes its stdin, leaves it a moment, kills what is left of its group and reaps it.
    pub async fn close(&self) {
        let connection = match &*lock(&self.state) {
            State::Healthy(live) => Arc::clone(&live.connection),
            State::Dead(_) => return,
        };
        connection.close().await;
    }

    async fn run(&self, request: &CallRequest, events: &mut Vec<ServerEvent>) -> CallOutcome {
        if let Err(error) = encode::check_arguments(&request.arguments) {
            let text = error.to_string();
            return CallOutcome::Unavailable { text };
        }
        let mut timer = pin!(task::sleep(request.timeout));
        let mut resends = 0;
        loop {
            let live = match guard(request, timer.as_mut(), self.live(events)).await {
                Ok(Ok(live)) => live,
                Ok(Err(text)) => return CallOutcome::Unavailable { text },
                Err(stop) => return stopped(stop, request),
            };
            match self.ask(request, timer.as_mut(), &live, events).await {
                Ok(outcome) => return outcome,
                Err(ended) if !ended.sent && resends < RESENDS_MAX => resends += 1,
                Err(ended) => {
                    let reason = ended.reason;
                    self.bury(&live.connection, &reason, events);
                    return CallOutcome::TransportFailed { reason };
                }
            }
        }
    }

    /// Sends the request on `live` and waits for what comes first.
    async fn ask(
        &self,
        request: &CallRequest,
        timer: Pin<&mut impl Future<Output = ()>>,
        live: &Live,
        events: &mut Vec<ServerEvent>,
    ) -> Result<CallOutcome, Ended> {
        let (tool, name) = (&request.tool, self.name());
        if !live.tools.contains(tool) {
            let text = format!("mcp: tool {tool} of server {name} is no longer available");
            return Ok(CallOutcome::Unavailable { text });
        }
        let call = live.connection.open()?;
        let line = encode::tools_call(call.id(), tool, &request.arguments);
        match guard(request, timer, call.exchange(line)).await {
            Ok(answer) => answer.map(|raw_line| CallOutcome::Returned { raw_line }),
            Err(Stop::Cancelled) => {
                call.cancel();
                Ok(CallOutcome::Cancelled)
            }
            Err(Stop::TimedOut) => {
                let after_secs = request.timeout.as_secs();
                let reason = format!("call of {tool}: timeout after {after_secs}s");
                self.bury(&live.connection, &reason, events);
                Ok(CallOutcome::TimedOut { after_secs })
            }
        }
    }

    /// The running server, started again if need be; or why there is none now.
    async fn live(&self, events: &mut Vec<ServerEvent>) -> Result<Live, String> {
        if let Some(live) = self.look(events)? {
            return Ok(live);
        }
        let _shared = self.restarting.lock().await;
        // Whoever held the lock before may have started it, or failed to.
        match self.look(events)? {
            Some(live) => Ok(live),
            None => self.restart(events).await,
        }
    }

    /// The running server, or nothing if it may be started again now, or why it may not.
    fn look(&self, events: &mut Vec<ServerEvent>) -> Result<Option<Live>, String> {
        let mut state = lock(&self.state);
        if let State::Healthy(live) = &*state {
            let Some(end) = live.connection.end() else {
                return Ok(Some(live.clone()));
            };
            live.connection.kill(&end.reason);
            // With no call in flight none suffered, and the server may simply have had nothing to do: that
            // is no failure, and no pause is due.
            self.note_death(&mut state, &end.reason, u32::from(end.in_flight), events);
        }
        match &*state {
            State::Healthy(live) => Ok(Some(live.clone())),
            State::Dead(dead) => self.may_restart(dead).map(|()| None),
        }
    }

    fn may_restart(&self, dead: &Dead) -> Result<(), String> {
        let (name, reason) = (self.name(), &dead.reason);
        let max = self.settings.restart.max_attempts;
        if dead.attempts >= max {
            return Err(format!(
                "mcp: server {name} has exhausted its {max} attempts ({reason}); its tools are gone for \
                 the rest of the session"
            ));
        }
        let wait = dead.retry_at.saturating_duration_since(Instant::now());
        if wait > Duration::ZERO {
            let wait_ms = wait.as_millis();
            return Err(format!("mcp: server {name} is recovering ({reason}); try again in {wait_ms}ms"));
        }
        Ok(())
    }

    /// Starts the server again. A restart that is dropped on the way counts as none.
    async fn restart(&self, events: &mut Vec<ServerEvent>) -> Result<Live, String> {
        let started = connect(&self.spec, &self.settings.env, self.settings.init_timeout).await;
        let mut state = lock(&self.state);
        match started {
            Ok(ready) => {
                let (live, tools) = Live::of(ready);
                let tools = tools.into_iter().map(|tool| tool.name).collect();
                log::info!("mcp: server {} started again", self.name());
                events.push(ServerEvent::Restarted { tools });
                *state = State::Healthy(live.clone());
                Ok(live)
            }
            Err(error) => {
                let failures = match &*state {
                    State::Dead(dead) => dead.attempts,
                    State::Healthy(_) => 0,
                };
                let reason = error.to_string();
                let attempt = failures.saturating_add(1);
                let retry_in_ms = self.fail(&mut state, attempt, &reason);
                log::warn!("mcp: server {}: restart failed: {reason}", self.name());
                events.push(ServerEvent::RestartFailed { reason: reason.clone(), attempt, retry_in_ms });
                self.note_exhaustion(attempt, events);
                let name = self.name();
                Err(format!("mcp: server {name}: restart failed: {reason}"))
            }
        }
    }

    /// Kills the server at the other end of `connection` and notes its death, unless that is noted: a late
    /// timeout must not hit the process that took its place.
    fn bury(&self, connection: &Arc<Connection>, reason: &str, events: &mut Vec<ServerEvent>) {
        let mut state = lock(&self.state);
        let is_current = match &*state {
            State::Healthy(live) => Arc::ptr_eq(&live.connection, connection),
            State::Dead(_) => false,
        };
        if is_current {
            self.note_death(&mut state, reason, 1, events);
        }
        // Only now, so that the other calls, which this ends, find the death noted with its true reason.
        connection.kill(reason);
    }

    fn note_death(&self, state: &mut State, reason: &str, attempt: u32, events: &mut Vec<ServerEvent>) {
        log::warn!("mcp: server {} died: {reason}", self.name());
        let retry_in_ms = self.fail(state, attempt, reason);
        events.push(ServerEvent::Died { reason: reason.to_owned(), attempt, retry_in_ms });
        self.note_exhaustion(attempt, events);
    }

    /// Notes failure number `attempt` in a row, 0 being none; returns the pause that follows it, in
    /// milliseconds.
    fn fail(&self, state: &mut State, attempt: u32, reason: &str) -> u64 {
        let RestartPolicy { base_ms, max_ms, .. } = self.settings.restart;
        let jitter = fastrand::i32(-JITTER_MAX_PERMILLE..=JITTER_MAX_PERMILLE);
        let retry_in_ms = match attempt {
            0 => 0,
            _ => backoff_ms(attempt, base_ms, max_ms, jitter),
        };
        let now = Instant::now();
        let retry_at = now.checked_add(Duration::from_millis(retry_in_ms));
        *state = State::Dead(Dead {
            attempts: attempt,
            retry_at: retry_at.unwrap_or(now + PAUSE_BEYOND_CLOCK),
            reason: reason.to_owned(),
        });
        retry_in_ms
    }

    fn note_exhaustion(&self, attempt: u32, events: &mut Vec<ServerEvent>) {
        if attempt >= self.settings.restart.max_attempts {
            log::error!("mcp: server {} given up after {attempt} attempts", self.name());
            events.push(ServerEvent::Exhausted);
        }
    }
}

impl Live {
    fn of(ready: Ready) -> (Self, Vec<ToolSpec>) {
        let names = ready.tools.iter().map(|tool| tool.name.clone()).collect();
        let live = Self { connection: Arc::new(ready.connection), tools: Arc::new(names) };
        (live, ready.tools)
    }
}
