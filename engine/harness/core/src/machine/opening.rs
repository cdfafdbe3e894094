//! The way from a batch to a prompt: an agent is claimed, its session made ready, context fetched.

use serde_json::{json, Value};
use waxlog_nostr::{kind, Event, EventId, PublicKey};

use super::agents::REQUEST_MS;
use super::outcome::Outcome;
use super::pool::{Ask, OwnMethod, Session};
use super::queries::Purpose;
use super::turn::{Clock, Phase, Turn};
use super::Machine;
use crate::acp::{self, AgentError, ModelPath};
use crate::command;
use crate::effect::Level;
use crate::prompt::{self, context, Asked, ChannelKind, Legacy, SystemParts};
use crate::queue::Batch;
use crate::record::MemoryFound;
use crate::step::Step;

/// How long setting a session's model or mode may take.
const OPTION_MS: u64 = 5_000;
const OWN_METHOD: &str = "_goose/unstable/session/system-prompt/set";
const METHOD_NOT_FOUND: i64 = -32601;

impl Machine {
    /// Begins turns while there is work and a free agent.
    pub(super) fn dispatch(&mut self, step: &mut Step) {
        if self.stopping.is_some() || !self.beats.is_ready {
            return;
        }
        if self.set().lazy_pool && self.queue.has_work(step.now_ms) {
            self.refill(step);
        }
        while self.pool.has_idle() {
            let Some(batch) = self.queue.flush(step.now_ms) else { return };
            match self.pool.claim(&batch.channel) {
                Some(at) => self.begin_turn(step, at, Some(batch)),
                None => return self.queue.requeue_unasked(batch),
            }
        }
    }

    /// Begins a turn in a claimed slot: for a batch, or a heartbeat.
    pub(super) fn begin_turn(&mut self, step: &mut Step, at: usize, batch: Option<Batch>) {
        let mut turn = Turn::new(step.uuid(), batch.as_ref().map(|batch| batch.channel.clone()), step.now_ms);
        turn.last = batch.as_ref().and_then(|batch| batch.last()).map(|queued| queued.event.clone());
        turn.marked = batch.iter().flat_map(Batch::all).map(|queued| queued.event.id).collect();
        self.start_signs(step, &mut turn);
        let triggers: Vec<EventId> =
            batch.iter().flat_map(|batch| &batch.events).map(|one| one.event.id).collect();
        let key = turn.session_key();
        self.turns.insert(at, turn);
        let source = if batch.is_some() { "channel" } else { "heartbeat" };
        self.show_of_slot(
            step,
            at,
            "turn_started",
            json!({"source": source, "triggeringEventIds": triggers}),
        );
        let slot = &self.pool.slots[at];
        let (child, can_load) = slot.child().map_or((0, false), |child| (child.number, child.can_load));
        match slot.sessions.get(&key).cloned() {
            Some(session) if session.child == child => self.session_ready(step, at, &session.id),
            Some(session) if can_load => self.load_session(step, at, &session),
            _ => self.gather(step, at),
        }
    }

    fn load_session(&mut self, step: &mut Step, at: usize, session: &Session) {
        let params = acp::session_load(self.set(), &session.id);
        if let Some(turn) = self.turns.get_mut(&at) {
            (turn.phase, turn.session) = (Phase::Opening, Some(session.id.clone()));
        }
        self.ask(step, at, Ask::LoadSession, "session/load", &params, REQUEST_MS);
    }

    /// Fetches what a new session's system prompt needs.
    fn gather(&mut self, step: &mut Step, at: usize) {
        let Some(turn) = self.turns.get_mut(&at) else { return };
        turn.phase = Phase::Gathering;
        turn.waiting = 0;
        let Some(channel) = turn.channel.clone() else { return self.open_session(step, at) };
        let kind = self.channels.kind(&channel);
        let owner = self.set().owner.filter(|_| self.set().memory);
        let wants_canvas = matches!(kind, Some(ChannelKind::Stream | ChannelKind::Private));
        if let Some(turn) = self.turns.get_mut(&at) {
            turn.waiting = u32::from(owner.is_some()) + u32::from(wants_canvas);
        }
        if let Some(owner) = owner {
            self.query_memory(step, at, owner);
        }
        if wants_canvas {
            let filter = json!({"kinds": [kind::CANVAS], "#h": [channel], "limit": 1});
            self.query(step, Purpose::Canvas(at), vec![filter]);
        }
        if owner.is_none() && !wants_canvas {
            self.open_session(step, at);
        }
    }

    pub(super) fn memory_found(&mut self, step: &mut Step, at: usize, found: Option<(MemoryFound, &str)>) {
        // An outage must not look like an empty memory: only what is known to be nothing is told so.
        let section = match found {
            Some((MemoryFound::Text, text)) => Some(format!("{}\n{text}", prompt::MEMORY_HEADING)),
            Some((MemoryFound::Nothing, _)) => Some(prompt::memory_nudge()),
            Some((MemoryFound::Unreadable, _)) | None => None,
        };
        self.gathered(step, at, |turn| turn.core = section);
    }

    pub(super) fn canvas_found(&mut self, step: &mut Step, at: usize, events: &[Event]) {
        let channel = self.turns.get(&at).and_then(|turn| turn.channel.clone()).unwrap_or_default();
        let section = prompt::canvas_section(events, &channel);
        self.gathered(step, at, |turn| turn.canvas = section);
    }

    fn gathered(&mut self, step: &mut Step, at: usize, keep: impl FnOnce(&mut Turn)) {
        let Some(turn) = self.turns.get_mut(&at) else { return };
        keep(turn);
        turn.waiting = turn.waiting.saturating_sub(1);
        if turn.phase == Phase::Gathering && turn.waiting == 0 {
            self.open_session(step, at);
        }
    }

    fn open_session(&mut self, step: &mut Step, at: usize) {
        let Some(child) = self.pool.slots[at].child() else { return };
        let takes_system = child.own_method == OwnMethod::No && !child.is_legacy();
        let system = takes_system.then(|| self.system_prompt(at)).flatten();
        let title = self.title(at);
        let params = acp::session_new(self.set(), system.as_deref(), title.as_deref());
        if let Some(turn) = self.turns.get_mut(&at) {
            (turn.phase, turn.is_new_session) = (Phase::Opening, true);
        }
        self.ask(step, at, Ask::NewSession, "session/new", &params, REQUEST_MS);
    }

    fn system_prompt(&self, at: usize) -> Option<String> {
        let turn = self.turns.get(&at)?;
        prompt::system_prompt(&SystemParts {
            cwd: &self.set().cwd,
            prompts: &self.set().prompts,
            core: turn.core.as_deref(),
            canvas: turn.canvas.as_deref(),
        })
    }

    fn title(&self, at: usize) -> Option<String> {
        let agent = self.set().session_title.as_deref()?;
        let channel = self.turns.get(&at)?.channel.as_deref();
        let is_named =
            channel.and_then(|id| self.channels.kind(id)).is_some_and(|kind| kind != ChannelKind::Dm);
        let name = channel.filter(|_| is_named).and_then(|id| self.channels.name(id));
        Some(command::session_title(agent, name))
    }

    /// The agent has answered what was asked to make the session ready, or the prompt.
    pub(super) fn answered(
        &mut self,
        step: &mut Step,
        at: usize,
        what: Ask,
        result: Result<Value, AgentError>,
    ) {
        if !self.turns.contains_key(&at) {
            return;
        }
        match (what, result) {
            (Ask::Prompt | Ask::InitialPrompt, result) => self.prompt_answered(step, at, what, result),
            (Ask::NewSession, Ok(session)) => self.session_opened(step, at, session),
            (Ask::LoadSession, Ok(_)) => self.session_loaded(step, at),
            (Ask::LoadSession, Err(error)) => {
                step.tell(
                    Level::Warn,
                    format!("agent {at} cannot load its session, a new one is made: {error}"),
                );
                self.gather(step, at);
            }
            (Ask::SystemPrompt, result) => self.own_method_answered(step, at, result),
            (Ask::Model, result) => {
                self.warn_refused(step, at, "model", result);
                self.set_mode(step, at);
            }
            (Ask::Mode, result) => {
                self.warn_refused(step, at, "permission mode", result);
                self.session_set(step, at);
            }
            (_, Err(error)) => self.end_turn(step, at, Outcome::Refused(error)),
            (Ask::Initialize, Ok(_)) => {}
        }
    }

    fn warn_refused(&self, step: &mut Step, at: usize, what: &str, result: Result<Value, AgentError>) {
        if let Err(error) = result {
            step.tell(Level::Warn, format!("agent {at} does not take the {what}: {error}"));
        }
    }

    fn session_opened(&mut self, step: &mut Step, at: usize, session: Value) {
        let Some(id) = session["sessionId"].as_str().map(str::to_owned) else {
            let text = "session/new was answered without a sessionId".to_owned();
            return self.end_turn(step, at, Outcome::Broken(text));
        };
        let Some(turn) = self.turns.get_mut(&at) else { return };
        turn.session = Some(id.clone());
        let (key, core, canvas) = (turn.session_key(), turn.core.clone(), turn.canvas.clone());
        let slot = &mut self.pool.slots[at];
        let Some(child) = slot.child_mut() else { return };
        child.catalog = Some(session);
        let (number, own_method, from_zero) = (child.number, child.own_method, child.counts_from_zero());
        slot.sessions.insert(key, Session { id: id.clone(), child: number, turns: 0, core, canvas });
        if from_zero {
            self.tracker.began_at_zero(&id);
        }
        match (own_method, self.system_prompt(at)) {
            (OwnMethod::Untried | OwnMethod::Works, Some(text)) => {
                let params = json!({"sessionId": id, "mode": "append", "key": "buzz", "text": text});
                self.ask(step, at, Ask::SystemPrompt, OWN_METHOD, &params, REQUEST_MS);
            }
            _ => self.set_model(step, at),
        }
    }

    fn own_method_answered(&mut self, step: &mut Step, at: usize, result: Result<Value, AgentError>) {
        let learned = match result {
            Ok(_) => OwnMethod::Works,
            Err(error) if error.code == METHOD_NOT_FOUND => OwnMethod::Missing,
            Err(error) => return self.end_turn(step, at, Outcome::Refused(error)),
        };
        if let Some(child) = self.pool.slots[at].child_mut() {
            child.own_method = learned;
        }
        self.set_model(step, at);
    }

    /// The model that a slot's session of a channel is to have.
    fn wanted_model(&self, at: usize) -> Option<String> {
        let overridden = self.pool.slots[at].overridden.clone();
        let channel = self.turns.get(&at).and_then(|turn| turn.channel.as_deref());
        overridden.or_else(|| self.channels.model(channel?)).or_else(|| self.set().model.clone())
    }

    fn set_model(&mut self, step: &mut Step, at: usize) {
        let Some(model) = self.wanted_model(at) else { return self.set_mode(step, at) };
        let (Some(session), Some(catalog)) = self.session_and_catalog(at) else { return };
        match acp::model_path(&catalog, &model) {
            Some(ModelPath::Option(id)) => {
                let params = json!({"sessionId": session, "configId": id, "value": model});
                self.ask(step, at, Ask::Model, "session/set_config_option", &params, OPTION_MS);
            }
            Some(ModelPath::Method) => {
                let params = json!({"sessionId": session, "modelId": model});
                self.ask(step, at, Ask::Model, "session/set_model", &params, OPTION_MS);
            }
            None => {
                step.tell(
                    Level::Warn,
                    format!("agent {at} does not offer the model {model:?}; its own stays"),
                );
                let result = json!({"type": "switch_model", "status": "unsupported_model", "modelId": model});
                self.show_of_slot(step, at, "control_result", result);
                self.set_mode(step, at);
            }
        }
    }

    fn session_and_catalog(&self, at: usize) -> (Option<String>, Option<Value>) {
        let session = self.turns.get(&at).and_then(|turn| turn.session.clone());
        let catalog = self.pool.slots[at].child().and_then(|child| child.catalog.clone());
        (session, catalog)
    }

    fn set_mode(&mut self, step: &mut Step, at: usize) {
        let mode = self.set().permission_mode.clone();
        let (Some(session), Some(catalog)) = self.session_and_catalog(at) else { return };
        match mode.filter(|mode| acp::offers_mode(&catalog, mode)) {
            Some(mode) => {
                let params = json!({"sessionId": session, "configId": "mode", "value": mode});
                self.ask(step, at, Ask::Mode, "session/set_config_option", &params, OPTION_MS);
            }
            None => self.session_set(step, at),
        }
    }

    /// A new session is as it is to be.
    fn session_set(&mut self, step: &mut Step, at: usize) {
        let (Some(session), catalog) = self.session_and_catalog(at) else { return };
        self.show_config(step, at, &catalog.unwrap_or_default());
        match self.set().initial_message.clone() {
            Some(message) => self.initial_prompt(step, at, &session, message),
            None => self.session_ready(step, at, &session),
        }
    }

    fn initial_prompt(&mut self, step: &mut Step, at: usize, session: &str, message: String) {
        let mut parts = Vec::new();
        if self.is_legacy(at) {
            parts.extend(self.turns.get(&at).and_then(|turn| turn.canvas.clone()));
            parts.extend(self.set().prompts.base.as_ref().map(|base| format!("[Base]\n{}", base.trim_end())));
        }
        parts.push(message);
        self.show_resolved(step, at, session);
        self.send_prompt(step, at, session, &[parts.join("\n\n")], Ask::InitialPrompt);
    }

    fn is_legacy(&self, at: usize) -> bool {
        self.pool.slots[at].child().is_some_and(|child| child.is_legacy())
    }

    fn session_loaded(&mut self, step: &mut Step, at: usize) {
        let Some(turn) = self.turns.get_mut(&at) else { return };
        let (key, session) = (turn.session_key(), turn.session.clone().unwrap_or_default());
        let slot = &mut self.pool.slots[at];
        let child = slot.child().map_or(0, |child| child.number);
        if let Some(held) = slot.sessions.get_mut(&key) {
            held.child = child;
            (turn.core, turn.canvas) = (held.core.clone(), held.canvas.clone());
        }
        self.session_ready(step, at, &session);
    }

    /// The session can be asked: fetches what was said before.
    pub(super) fn session_ready(&mut self, step: &mut Step, at: usize, session: &str) {
        let Some(turn) = self.turns.get_mut(&at) else { return };
        let was_shown = turn.phase == Phase::Initial;
        (turn.session, turn.phase) = (Some(session.to_owned()), Phase::Context);
        if let Some(held) = self.pool.slots[at].sessions.get(&turn.session_key()) {
            (turn.core, turn.canvas) = (held.core.clone(), held.canvas.clone());
        }
        if !was_shown {
            self.show_resolved(step, at, session);
        }
        self.fetch_context(step, at);
    }

    fn fetch_context(&mut self, step: &mut Step, at: usize) {
        let limit = self.set().context_messages;
        let turn = self.turns.get(&at);
        let (Some(channel), Some(last)) =
            (turn.and_then(|turn| turn.channel.clone()), turn.and_then(|turn| turn.last.clone()))
        else {
            return self.prompt(step, at);
        };
        match context::wanted(&self.channels.place(&channel), &last).filter(|_| limit > 0) {
            Some(wanted) => {
                let filters = context::filters(&wanted, &channel, self.set().agent, limit);
                self.query(step, Purpose::Context(at), filters);
            }
            None => self.fetch_people(step, at),
        }
    }

    pub(super) fn context_found(&mut self, step: &mut Step, at: usize, found: Vec<Event>) {
        let (agent, limit) = (self.set().agent, self.set().context_messages);
        let Some(turn) = self.turns.get_mut(&at).filter(|turn| turn.phase == Phase::Context) else { return };
        let (Some(channel), Some(last)) = (turn.channel.clone(), turn.last.clone()) else { return };
        let wanted = context::wanted(&self.channels.place(&channel), &last);
        turn.context = wanted.and_then(|wanted| context::assemble(wanted, found, agent, limit));
        match turn.context.as_ref().and_then(|context| context.uncounted().copied()) {
            Some(root) => self.query(step, Purpose::Count(at), vec![context::count_filter(&root, &channel)]),
            None => self.fetch_people(step, at),
        }
    }

    pub(super) fn count_found(&mut self, step: &mut Step, at: usize, count: Option<u64>) {
        let context = self.turns.get_mut(&at).and_then(|turn| turn.context.as_mut());
        if let (Some(context), Some(count)) = (context, count) {
            context.counted(count);
        }
        self.fetch_people(step, at);
    }

    fn fetch_people(&mut self, step: &mut Step, at: usize) {
        let Some(turn) = self.turns.get(&at) else { return };
        let batch = turn.channel.as_deref().and_then(|channel| self.queue.in_flight(channel));
        let mut keys: Vec<PublicKey> = Vec::new();
        for queued in batch.iter().flat_map(|batch| &batch.events) {
            keys.push(queued.event.pubkey);
            keys.extend(queued.event.tag_values("p").filter_map(|hex| hex.parse::<PublicKey>().ok()));
        }
        keys.extend(turn.context.iter().flat_map(|context| context.authors()));
        keys.sort();
        keys.dedup();
        if keys.is_empty() {
            return self.prompt(step, at);
        }
        let filter = json!({"kinds": [kind::PROFILE], "authors": keys});
        self.query(step, Purpose::People(at), vec![filter]);
    }

    pub(super) fn people_found(&mut self, step: &mut Step, at: usize, events: &[Event]) {
        let Some(turn) = self.turns.get_mut(&at).filter(|turn| turn.phase == Phase::Context) else { return };
        turn.people = prompt::people_of(events);
        self.prompt(step, at);
    }

    /// All is there: asks the agent.
    fn prompt(&mut self, step: &mut Step, at: usize) {
        let Some(session) = self.turns.get(&at).and_then(|turn| turn.session.clone()) else { return };
        let blocks = self.blocks(at, step.now_secs());
        self.mark_working(step, at);
        self.send_prompt(step, at, &session, &blocks, Ask::Prompt);
    }

    fn blocks(&self, at: usize, now_secs: u64) -> Vec<String> {
        let Some(turn) = self.turns.get(&at) else { return Vec::new() };
        let is_legacy = self.is_legacy(at);
        let Some(batch) = turn.channel.as_deref().and_then(|channel| self.queue.in_flight(channel)) else {
            let text = prompt::heartbeat(self.set().heartbeat_prompt.as_deref(), now_secs);
            let base = self.set().prompts.base.as_ref().filter(|_| is_legacy);
            let base = base.map(|base| format!("[Base]\n{}", base.trim_end()));
            return vec![base.into_iter().chain([text]).collect::<Vec<_>>().join("\n\n")];
        };
        let legacy = is_legacy.then(|| Legacy {
            prompts: &self.set().prompts,
            core: turn.core.as_deref(),
            canvas: turn.canvas.as_deref(),
        });
        prompt::blocks(&Asked {
            agent: self.set().agent,
            batch,
            place: self.channels.place(&batch.channel),
            people: &turn.people,
            context: turn.context.as_ref(),
            legacy,
        })
    }

    fn send_prompt(&mut self, step: &mut Step, at: usize, session: &str, blocks: &[String], what: Ask) {
        let max_turn_ms = self.set().max_turn_ms;
        let child = self.pool.slots[at].child().map_or(0, |child| child.number);
        self.tracker.begin(child, session);
        if let Some(turn) = self.turns.get_mut(&at) {
            turn.phase = if what == Ask::Prompt { Phase::Prompting } else { Phase::Initial };
            turn.clock = Some(Clock::new(step.now_ms, max_turn_ms));
        }
        let params = acp::prompt(session, blocks);
        self.ask(step, at, what, "session/prompt", &params, u64::MAX);
        self.cancel_if_signalled(step, at);
    }
}
