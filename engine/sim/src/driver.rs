//! The agent's driver, step for step, over a simulated world: [`Driver::take`] appends, folds and decides,
//! [`Driver::act`] flushes and then performs. What the agent does beside the session (requests, calls,
//! timers) is an entry of the schedule here.

use waxlog_core::acp::code;
use waxlog_core::acp::frame::{Frame, Id};
use waxlog_core::acp::lines;
use waxlog_core::record::{Head, Hook, Record};
use waxlog_core::session::{Draws, Effect, Input, Session};

use crate::log::Stored;
use crate::model::Request;
use crate::schedule::{Happening, Token};
use crate::servers::Called;
use crate::violation::{Invariant, Violation};
use crate::world::{Sabotage, Stop, World};

/// How often a client hears that the model is still being waited for, in milliseconds.
pub const KEEPALIVE_MS: u64 = 30_000;
/// How long the client may take to say whether a call may run, in seconds.
const PERMISSION_MAX_SECS: u64 = 600;
/// How long cancelled calls may take to stop, in milliseconds.
const DRAIN_MAX_MS: u64 = 5_000;
/// How long the search for the mesh may take, in milliseconds.
const MESH_MAX_MS: u64 = 2_000;
/// How long a skill may take to be read, in milliseconds.
const SKILL_MAX_MS: u64 = 500;
/// Decisions that may follow from one input.
const DECISIONS_MAX: u32 = 200;
/// Of the calls that are told to stop, how many do, in thousandths.
const STOPS_PERMILLE: u32 = 700;

/// A session under way.
#[derive(Debug)]
pub struct Driver {
    session: Session,
    attempt: Option<Token>,
    keepalive: Option<Token>,
    calls: Option<(u64, Token)>,
    question: Option<Token>,
    /// The requests that were taken and are not answered yet.
    unanswered: Vec<Id>,
    closing: bool,
}

impl Driver {
    /// A driver for `session`, whose records so far are in the log; request `id` asked for it.
    pub fn new(session: Session, id: Id) -> Driver {
        Driver {
            session,
            attempt: None,
            keepalive: None,
            calls: None,
            question: None,
            unanswered: vec![id],
            closing: false,
        }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether there is nothing left to do for a client that is gone.
    pub fn is_done(&self) -> bool {
        self.closing && !self.session.is_busy()
    }

    /// Takes a line of the client.
    pub fn take_line(&mut self, frame: Frame, line: Vec<u8>, world: &mut World) -> Result<(), Stop> {
        if let Frame::Request { id, .. } = &frame {
            self.unanswered.push(id.clone());
        }
        let draws = draws(world);
        self.take(Input::Line { frame, line, draws }, world)
    }

    /// The client is gone: to a turn that is as if it had been cancelled.
    pub fn close(&mut self, world: &mut World) -> Result<(), Stop> {
        self.closing = true;
        let params = serde_json::Value::Null;
        let frame = Frame::Notification { method: "session/cancel".to_owned(), params };
        let draws = draws(world);
        self.take(Input::Line { frame, line: Vec::new(), draws }, world)
    }

    /// Records what an input means, and every decision that follows from it.
    pub fn take(&mut self, input: Input, world: &mut World) -> Result<(), Stop> {
        let mut next = self.session.admit(input);
        for _ in 0..DECISIONS_MAX {
            let Some(record) = next else { return Ok(()) };
            let record = sabotaged(record, world.sabotage);
            let forgotten =
                world.sabotage == Sabotage::ForgetTick && matches!(record.head, Head::KeepaliveTicked { .. });
            if !forgotten {
                world.append(Stored::of_session(&record))?;
            }
            self.session.fold(&record);
            next = self.session.decide();
        }
        let detail =
            format!("over {DECISIONS_MAX} decisions follow from one input, the last is {next:.200?}");
        Err(Violation::new(Invariant::Ends, detail).into())
    }

    /// Makes the records durable, then does what they call for.
    pub fn act(&mut self, world: &mut World) -> Result<(), Stop> {
        let outbox = self.session.take_outbox();
        if outbox.is_empty() {
            return Ok(());
        }
        if world.sabotage != Sabotage::ActEarly {
            world.flush()?;
        }
        for effect in outbox {
            world.may_die()?;
            world.checks.acts(&effect)?;
            self.perform(effect, world)?;
        }
        match world.sabotage {
            Sabotage::ActEarly => world.flush(),
            _ => Ok(()),
        }
    }

    fn perform(&mut self, effect: Effect, world: &mut World) -> Result<(), Stop> {
        match effect {
            Effect::Say(line) => {
                self.unanswered.retain(|id| !lines::answers(&line, id));
                world.say(&line)?;
            }
            Effect::Ask { asked, first, keepalive, after_ms, path, .. } => {
                if first {
                    self.stop_asking(world);
                    self.keepalive = keepalive.then(|| self.keep_alive(asked, world));
                }
                self.ask(asked, after_ms, &path, world);
            }
            Effect::SeekMesh { asked } => seek_mesh(asked, world),
            Effect::StopAsking => self.stop_asking(world),
            Effect::Call { asked, index, server, bare, .. } => self.call(asked, index, server, &bare, world),
            Effect::AwaitPermission { asked, index } => self.await_permission(asked, index, world),
            Effect::PermissionSettled => self.stop_waiting(world),
            Effect::StopCalls { asked } => self.stop_calls(asked, world),
            Effect::AbortCalls => self.abort_calls(world),
            Effect::RunHooks { asked, hook, servers } => run_hooks(asked, hook, servers, world),
            Effect::KillServer { server, reason } => {
                for change in world.kill_server(server, &reason) {
                    world.schedule.after(0, None, Happening::Input(Input::ServerChanged { server, change }));
                }
            }
            Effect::LoadSkill { asked, index, name } => load_skill(asked, index, name.as_deref(), world),
            Effect::Upgraded | Effect::MeshFailed | Effect::Inform(_) | Effect::Warn(_) => {}
            Effect::Close => self.closing = true,
            Effect::Settle => {
                self.stop_asking(world);
                self.stop_waiting(world);
                self.abort_calls(world);
                world.flush()?;
            }
        }
        Ok(())
    }

    fn stop_asking(&mut self, world: &mut World) {
        for token in self.attempt.take().into_iter().chain(self.keepalive.take()) {
            world.schedule.take_back(token, &mut world.dice);
        }
    }

    fn keep_alive(&self, asked: u64, world: &mut World) -> Token {
        let token = world.schedule.token();
        world.schedule.after(KEEPALIVE_MS, Some(token), Happening::Tick { asked });
        token
    }

    fn ask(&mut self, asked: u64, after_ms: u64, path: &str, world: &mut World) {
        if let Some(before) = self.attempt.take() {
            world.schedule.take_back(before, &mut world.dice);
        }
        let token = world.schedule.token();
        self.attempt = Some(token);
        let quiet = world.client.is_quiet();
        let request = Request { asked, dialect: world.setup.dialect(path), setup: &world.setup, quiet };
        let (wait_ms, input) = world.model.attempt(request, &mut world.dice);
        world.plan(after_ms.saturating_add(wait_ms), Some(token), input);
    }

    fn call(&mut self, asked: u64, index: usize, server: usize, bare: &str, world: &mut World) {
        let token = match self.calls {
            Some((of, token)) if of == asked => token,
            _ => {
                self.abort_calls(world);
                let token = world.schedule.token();
                self.calls = Some((asked, token));
                token
            }
        };
        let now_ms = world.schedule.now_ms();
        let Called { wait_ms, changes, outcome, line } =
            world.servers.call(server, bare, now_ms, &mut world.dice);
        for change in changes {
            world.plan(wait_ms, Some(token), Input::ServerChanged { server, change });
        }
        world.plan(
            wait_ms,
            Some(token),
            Input::CallFinished { asked, index, outcome, line, elapsed_ms: wait_ms },
        );
    }

    /// Most calls stop at once when they are told to; others go on, and some are not done in time.
    fn stop_calls(&mut self, asked: u64, world: &mut World) {
        let Some((_, token)) = self.calls else { return };
        for (wait_ms, what) in world.schedule.take(token) {
            let stops = world.dice.chance(STOPS_PERMILLE);
            let (wait_ms, what) = match what {
                Happening::Input(Input::CallFinished { asked, index, elapsed_ms, .. }) if stops => {
                    let outcome = waxlog_core::record::CallOutcome::Cancelled;
                    let line = Vec::new();
                    (0, Happening::Input(Input::CallFinished { asked, index, outcome, line, elapsed_ms }))
                }
                other => (wait_ms, other),
            };
            world.schedule.after(wait_ms, Some(token), what);
        }
        world.plan(DRAIN_MAX_MS, Some(token), Input::DrainExpired { asked });
    }

    fn await_permission(&mut self, asked: u64, index: usize, world: &mut World) {
        self.stop_waiting(world);
        let token = world.schedule.token();
        self.question = Some(token);
        let after_secs = PERMISSION_MAX_SECS;
        world.plan(after_secs * 1000, Some(token), Input::PermissionExpired { asked, index, after_secs });
    }

    fn stop_waiting(&mut self, world: &mut World) {
        if let Some(token) = self.question.take() {
            world.schedule.take_back(token, &mut world.dice);
        }
    }

    fn abort_calls(&mut self, world: &mut World) {
        if let Some((_, token)) = self.calls.take() {
            world.schedule.take_back(token, &mut world.dice);
        }
    }

    /// The log cannot be written: whoever waits for an answer is told, and so is whoever asks later.
    pub fn refuse_all(&mut self, world: &mut World) -> Result<(), Stop> {
        self.stop_asking(world);
        self.stop_waiting(world);
        self.abort_calls(world);
        let profile = self.session.opened().profile;
        if world.sabotage == Sabotage::TellNobody {
            return Ok(());
        }
        for id in std::mem::take(&mut self.unanswered) {
            world.say(&lines::error(&id, profile.code(code::FAILED), "log: it cannot be written"))?;
        }
        Ok(())
    }

    /// A line that comes after that.
    pub fn refuse(&mut self, frame: &Frame, world: &mut World) -> Result<(), Stop> {
        if let Frame::Request { id, .. } = frame {
            self.unanswered.push(id.clone());
        }
        self.refuse_all(world)
    }
}

/// The mesh is looked for beside the session; nothing takes that back.
fn seek_mesh(asked: u64, world: &mut World) {
    let available = world.dice.chance(500);
    let wait_ms = world.dice.wait_ms(MESH_MAX_MS);
    world.plan(wait_ms, None, Input::MeshAnswered { asked, available, list: b"{}".to_vec() });
}

/// A skill is read beside the session; nothing takes that back.
fn load_skill(asked: u64, index: usize, name: Option<&str>, world: &mut World) {
    let is_error = name != Some("bees");
    let text = if is_error { "no such skill" } else { "Bees dance." }.to_owned();
    let wait_ms = world.dice.wait_ms(SKILL_MAX_MS);
    world.plan(wait_ms, None, Input::SkillLoaded { asked, index, text, is_error });
}

/// Hooks run side by side; together they take as long as the slowest.
fn run_hooks(asked: u64, hook: Hook, servers: Vec<usize>, world: &mut World) {
    let hooked: Vec<_> = servers.iter().map(|_| world.servers.hook(&mut world.dice)).collect();
    let wait_ms = hooked.iter().map(|hooked| hooked.wait_ms).max().unwrap_or(0);
    let lines = hooked.iter().flat_map(|hooked| hooked.line.clone()).collect();
    let outcomes = hooked.into_iter().map(|hooked| hooked.outcome).collect();
    world.plan(wait_ms, None, Input::HooksFinished { asked, hook, servers, outcomes, lines });
}

fn draws(world: &mut World) -> Draws {
    let dice = &mut world.dice;
    Draws { turn: dice.id("turn"), run: dice.id("run"), message: dice.id("steer") }
}

/// Breaks a record on purpose, where that is asked for.
fn sabotaged(mut record: Record, sabotage: Sabotage) -> Record {
    if sabotage == Sabotage::LoseSteer && matches!(record.head, Head::SteerAccepted { .. }) {
        record.raw = b"{}".to_vec();
    }
    record
}
