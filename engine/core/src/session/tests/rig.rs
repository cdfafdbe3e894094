//! A driver without a world: inputs go through `admit`, records are kept, decisions drained, and whatever
//! the session wants done is collected. When a rig goes out of scope its whole log is checked: it replays
//! without a difference, every record survives its encoding, and the evidence of every request gives the
//! bytes that were sent.

use serde_json::{json, Value};

use crate::acp::frame::{classify, Id};
use crate::acp::Profile;
use crate::evidence;
use crate::history::Item;
use crate::mcp::{Catalogue, ServerEvent, ToolSpec};
use crate::provider::{ApiMode, Provider};
use crate::record::{CallOutcome, Failure, Head, Hook, HookOutcome, Record, SessionOpened};
use crate::session::{Draws, Effect, Input, Session};
use crate::settings::Settings;

pub(crate) use super::answers::*;
pub(crate) use super::checks::*;

pub(crate) const SYSTEM_PROMPT: &str = "You are a test.";
/// The draw for back-offs unless a test says otherwise.
pub(crate) const JITTER: u16 = 500;

pub(crate) struct Rig {
    pub(crate) session: Session,
    pub(crate) log: Vec<Record>,
    /// Every request, in order.
    pub(crate) asks: Vec<Ask>,
    /// Every call that was started, in order.
    pub(crate) calls: Vec<Started>,
    /// Everything else that was to be done.
    pub(crate) effects: Vec<Effect>,
    /// Every line to the client.
    pub(crate) lines: Vec<Value>,
    told: usize,
    draws: u32,
    /// The bytes of the last request that its evidence gives.
    evident: Vec<u8>,
    /// What the evidence of each fresh request gives, until its effect is seen.
    promised: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) asked: u64,
    pub(crate) first: bool,
    pub(crate) keepalive: bool,
    pub(crate) after_ms: u64,
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) body: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Started {
    pub(crate) asked: u64,
    pub(crate) index: usize,
    pub(crate) server: usize,
    pub(crate) bare: String,
    pub(crate) arguments: Value,
}

/// A server for [`catalogue`]: its name and its tools.
pub(crate) type ServerTools<'a> = (&'a str, &'a [&'a str]);

pub(crate) fn catalogue(servers: &[ServerTools<'_>]) -> Catalogue {
    let spec = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: format!("does {name}"),
        input_schema: json!({"type": "object"}),
    };
    let servers = servers.iter().map(|(name, tools)| ((*name).to_owned(), tools.iter().map(spec).collect()));
    Catalogue::build(servers.collect()).expect("a legal catalogue")
}

pub(crate) fn settings() -> Settings {
    Settings {
        provider: Provider::of_word("openai").expect("a provider"),
        api: ApiMode::Chat,
        base_url: "http://model.test/v1".into(),
        model: "m".into(),
        max_output_tokens: 1000,
        max_context_tokens: 200_000,
        max_rounds: 0,
        max_handoffs: 10,
        stop_max_rejections: 3,
        require_reply: false,
        max_history_bytes: 16 * 1024 * 1024,
        max_parallel_tools: 8,
        max_tool_result_text_bytes: 51_200,
        prompt_caching: true,
        effort: None,
        ask_permission: false,
        prefer_mesh_for_auto: false,
    }
}

pub(crate) fn opened() -> SessionOpened {
    SessionOpened {
        id: id("0"),
        session: "ses_1".into(),
        profile: Profile::Harness,
        cwd: "/work".into(),
        settings: settings(),
        servers: vec![],
        catalogue: catalogue(&[("t", &["say", "shell"])]),
        upgraded: false,
        models: vec!["m".into()],
        sources: vec![],
        skills: vec![],
        hook_servers: vec![],
        prompt_source: "built-in".into(),
    }
}

pub(crate) fn id(json: &str) -> Id {
    serde_json::from_value(json!(json)).expect("an id")
}

pub(crate) fn anthropic(opened: &mut SessionOpened) {
    opened.settings.provider = Provider::of_word("anthropic").expect("a provider");
    opened.settings.base_url = "http://claude.test".into();
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut SessionOpened)) -> Rig {
        let mut opened = opened();
        change(&mut opened);
        let head = Head::SessionOpened(Box::new(opened));
        Rig::open(Record { head, raw: SYSTEM_PROMPT.as_bytes().to_vec() })
    }

    pub(crate) fn open(first: Record) -> Rig {
        let session = Session::open(&first).expect("a session");
        let mut rig = Rig {
            session,
            log: vec![first],
            asks: vec![],
            calls: vec![],
            effects: vec![],
            lines: vec![],
            told: 0,
            draws: 0,
            evident: vec![],
            promised: vec![],
        };
        rig.perform();
        rig.told = rig.lines.len();
        rig
    }

    /// A session brought back from what lies in its log.
    pub(crate) fn resume(records: &[Record]) -> Rig {
        let records = reread(records);
        let mut rig = Rig::open(records[0].clone());
        rig.take(records[1..].to_vec());
        (rig.told, rig.draws) = (rig.lines.len(), 1000);
        rig
    }

    /// Closes what a kill left open, as a new process does.
    pub(crate) fn recover(&mut self) {
        let records = self.session.recovery();
        self.take(records);
    }

    /// Gives an input to the session; false if it was refused as late or meaningless.
    pub(crate) fn input(&mut self, input: Input) -> bool {
        assert!(self.session.decide().is_none(), "an input came while a decision was pending");
        let mut next = self.session.admit(input);
        let admitted = next.is_some();
        while let Some(record) = next {
            self.append(record);
            next = self.session.decide();
        }
        self.perform();
        admitted
    }

    fn append(&mut self, record: Record) {
        match &record.head {
            Head::RoundAsked { evidence, .. } => {
                self.evident =
                    evidence::rebuild(&self.evident, evidence, &record.raw).expect("whole evidence");
                self.promised.push(self.evident.clone());
                assert_eq!(self.session.history().unpaired_call(), None, "a request with an unpaired call");
            }
            Head::SummaryAsked { evidence, .. } => {
                self.promised.push(evidence::rebuild(b"", evidence, &record.raw).expect("whole evidence"));
            }
            _ => {}
        }
        let before = self.session.tally();
        self.session.fold(&record);
        let after = self.session.tally();
        assert!(
            after.input >= before.input && after.output >= before.output && after.cached >= before.cached
        );
        self.log.push(record);
    }

    /// Appends and folds records as they come from elsewhere.
    pub(crate) fn take(&mut self, records: Vec<Record>) {
        records.into_iter().for_each(|record| self.append(record));
        self.perform();
    }

    fn perform(&mut self) {
        for effect in self.session.take_outbox() {
            match effect {
                Effect::Say(line) => self.lines.push(serde_json::from_slice(&line).expect("a line is JSON")),
                Effect::Ask { asked, first, keepalive, after_ms, path, body } => {
                    let bytes = body.to_vec();
                    if first {
                        assert_eq!(self.promised.remove(0), bytes, "evidence and request differ");
                    } else {
                        assert_eq!(self.asks.last().expect("a first attempt").bytes, bytes);
                    }
                    let body = serde_json::from_slice(&bytes).expect("a request is JSON");
                    self.asks.push(Ask { asked, first, keepalive, after_ms, path, bytes, body });
                }
                Effect::Call { asked, index, server, tool, bare, arguments } => {
                    assert!(tool.ends_with(&format!("__{bare}")));
                    self.calls.push(Started { asked, index, server, bare, arguments });
                }
                other => self.effects.push(other),
            }
        }
    }

    fn draws(&mut self) -> Draws {
        self.draws += 1;
        let n = self.draws;
        Draws { turn: format!("turn_{n}"), run: format!("run_{n}"), message: format!("steer_{n}") }
    }

    pub(crate) fn send_line(&mut self, line: &[u8]) -> bool {
        let draws = self.draws();
        self.input(Input::Line { frame: classify(line), line: line.to_vec(), draws })
    }

    /// A request of the client. The id counts up from 1 with each line.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> bool {
        let id = self.draws + 1;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(line.to_string().as_bytes())
    }

    pub(crate) fn prompt(&mut self, text: &str) -> bool {
        self.prompt_blocks(json!([{"type": "text", "text": text}]))
    }

    pub(crate) fn prompt_blocks(&mut self, blocks: Value) -> bool {
        self.request("session/prompt", json!({"sessionId": "ses_1", "prompt": blocks}))
    }

    /// A steer for the running turn, which is the one with `run`.
    pub(crate) fn steer(&mut self, run: &str, text: &str) -> bool {
        self.steer_blocks(run, json!([{"type": "text", "text": text}]))
    }

    pub(crate) fn steer_blocks(&mut self, run: &str, blocks: Value) -> bool {
        let params = json!({"sessionId": "ses_1", "expectedRunId": run, "prompt": blocks});
        self.request("_goose/unstable/session/steer", params)
    }

    pub(crate) fn cancel(&mut self) -> bool {
        let line = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "ses_1"}});
        self.send_line(line.to_string().as_bytes())
    }

    pub(crate) fn set_model(&mut self, model: &str) -> bool {
        self.request("session/set_model", json!({"sessionId": "ses_1", "modelId": model}))
    }

    /// The model answers the last request.
    pub(crate) fn answer(&mut self, body: &Value) -> bool {
        self.answer_to(self.session.asked(), body)
    }

    pub(crate) fn answer_to(&mut self, asked: u64, body: &Value) -> bool {
        self.answer_bytes(asked, body.to_string().into_bytes())
    }

    pub(crate) fn answer_bytes(&mut self, asked: u64, body: Vec<u8>) -> bool {
        let headers = vec![("request-id".to_owned(), "r".to_owned())];
        self.input(Input::Answered {
            asked,
            status: 200,
            headers,
            body,
            elapsed_ms: 2000,
            jitter_permille: JITTER,
        })
    }

    /// The last request fails.
    pub(crate) fn fail(&mut self, failure: Failure, body: &str) -> bool {
        self.fail_drawing(failure, body, JITTER)
    }

    pub(crate) fn fail_drawing(&mut self, failure: Failure, body: &str, jitter_permille: u16) -> bool {
        self.input(Input::AttemptFailed {
            asked: self.session.asked(),
            failure,
            headers: vec![],
            body: body.as_bytes().to_vec(),
            retry_after_ms: None,
            elapsed_ms: 2000,
            jitter_permille,
        })
    }

    /// A call of the last round returns `result`.
    pub(crate) fn finish(&mut self, index: usize, result: Value) -> bool {
        let line = json!({"jsonrpc": "2.0", "id": 9, "result": result}).to_string().into_bytes();
        self.finish_line(index, &line)
    }

    pub(crate) fn finish_line(&mut self, index: usize, line: &[u8]) -> bool {
        self.finish_as(index, CallOutcome::Returned, line)
    }

    pub(crate) fn finish_as(&mut self, index: usize, outcome: CallOutcome, line: &[u8]) -> bool {
        let asked = self.session.asked();
        self.input(Input::CallFinished { asked, index, outcome, line: line.to_vec(), elapsed_ms: 5 })
    }

    pub(crate) fn drain(&mut self) -> bool {
        self.input(Input::DrainExpired { asked: self.session.asked() })
    }

    pub(crate) fn tick(&mut self) -> bool {
        self.input(Input::KeepaliveTick { asked: self.session.asked() })
    }

    pub(crate) fn server(&mut self, server: usize, change: ServerEvent) -> bool {
        self.input(Input::ServerChanged { server, change })
    }

    /// The hooks that were asked last come back, an outcome each.
    pub(crate) fn hooks(&mut self, outcomes: Vec<Heard>) -> bool {
        let (hook, servers) = self.asked_hooks();
        let mut lines = Vec::new();
        let outcomes = outcomes.into_iter().map(|heard| match heard {
            Heard::Line(line) => {
                lines.extend_from_slice(&line);
                HookOutcome::Returned { bytes: line.len() }
            }
            Heard::TimedOut => HookOutcome::TimedOut,
            Heard::Failed => HookOutcome::Failed { text: "gone".into() },
        });
        let outcomes: Vec<HookOutcome> = outcomes.collect();
        assert_eq!(outcomes.len(), servers.len(), "an outcome for each server that was asked");
        let asked = self.session.asked();
        self.input(Input::HooksFinished { asked, hook, servers, outcomes, lines })
    }

    /// Which hook was asked last, and of whom.
    pub(crate) fn asked_hooks(&self) -> (Hook, Vec<usize>) {
        let last = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::RunHooks { hook, servers, .. } => Some((*hook, servers.clone())),
            _ => None,
        });
        last.expect("hooks were asked")
    }

    pub(crate) fn count_effects(&self, is: impl Fn(&Effect) -> bool) -> usize {
        self.effects.iter().filter(|e| is(e)).count()
    }

    pub(crate) fn count_records(&self, is: impl Fn(&Head) -> bool) -> usize {
        self.log.iter().filter(|r| is(&r.head)).count()
    }

    /// The lines since the last look, in short.
    pub(crate) fn told(&mut self) -> Vec<String> {
        let lines = self.lines[self.told..].iter().map(short).collect();
        self.told = self.lines.len();
        lines
    }

    pub(crate) fn last_line(&self) -> &Value {
        self.lines.last().expect("a line")
    }

    pub(crate) fn last_ask(&self) -> &Ask {
        self.asks.last().expect("a request")
    }

    /// The messages of the last request without the system prompt.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let all = self.last_ask().body["messages"].as_array().expect("messages");
        all.iter().filter(|m| m["role"] != "system").cloned().collect()
    }

    /// The history in short, an item each.
    pub(crate) fn history(&self) -> Vec<String> {
        let short = |item: &Item| match item {
            Item::User(_) | Item::UserParts(_) => format!("user {}", item.user_text()),
            Item::Assistant(a) => {
                let calls: String = a.calls.iter().map(|c| format!(" {}", c.id)).collect();
                format!("assistant {}{calls}", a.text)
            }
            Item::ToolResult(r) => {
                let kind = if r.is_error { "error" } else { "result" };
                format!("{kind} {} {}", r.id, crate::content::text_form(&r.parts))
            }
        };
        self.session.history().items().iter().map(short).collect()
    }

    /// Prompts once and answers with calls of `t__say`, ids a, b, c ...
    pub(crate) fn calling(count: usize, change: impl FnOnce(&mut SessionOpened)) -> Rig {
        let mut rig = Rig::with(change);
        rig.prompt("go");
        let ids = ["a", "b", "c", "d"];
        let calls: Vec<_> = ids[..count].iter().map(|id| (*id, "t__say", json!("{}"))).collect();
        rig.answer(&calls_of(&calls));
        rig.told();
        rig
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            check_log(&self.log, &self.session);
        }
    }
}
