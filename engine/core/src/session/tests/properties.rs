//! What holds whatever comes in, and in whatever order.

use proptest::prelude::*;
use serde_json::{json, Value};

use super::rig::*;
use crate::dialect::Encoder;
use crate::mcp::ServerEvent;
use crate::record::{CallOutcome, Failure, Head, Hook, HookOutcome, SessionOpened};
use crate::replay::Replay;
use crate::session::state::{Phase, Progress, Slot};
use crate::session::{Effect, Input, Session};

/// What the session is like.
#[derive(Clone, Debug)]
struct World {
    anthropic: bool,
    small_window: bool,
    small_history: bool,
    hooks: bool,
    guard: bool,
    max_rounds: u32,
    max_handoffs: u64,
    rejections: u32,
    parallel: usize,
}

/// Something that happens to it.
#[derive(Clone, Debug)]
enum Act {
    /// Whatever the session waits for comes.
    Go {
        calls: Vec<usize>,
        words: usize,
        input: Option<u16>,
    },
    Prompt(usize),
    BadPrompt,
    Steer {
        right: bool,
        kind: usize,
    },
    Cancel,
    SetModel,
    Answer {
        late: bool,
        calls: Vec<usize>,
        stop: usize,
        input: Option<u16>,
        text: usize,
    },
    OddAnswer(usize),
    Fail(usize),
    Finish {
        index: usize,
        how: usize,
        late: bool,
    },
    Drain,
    Tick,
    Hooks(Vec<usize>),
    Server {
        server: usize,
        how: usize,
    },
}

fn world() -> impl Strategy<Value = World> {
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (switches, prop_oneof![Just(0u32), 1..4u32], 0..3u64, 0..4u32, 0..4usize).prop_map(
        |(
            (anthropic, small_window, small_history, hooks, guard),
            max_rounds,
            max_handoffs,
            rejections,
            parallel,
        )| {
            World {
                anthropic,
                small_window,
                small_history,
                hooks,
                guard,
                max_rounds,
                max_handoffs,
                rejections,
                parallel,
            }
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    let answer = (
        prop::bool::weighted(0.1),
        prop::collection::vec(0..7usize, 0..4),
        0..5usize,
        prop::option::of(any::<u16>()),
        0..4usize,
    );
    let go = (prop::collection::vec(0..7usize, 0..3), 0..4usize, prop::option::of(0..1000u16));
    prop_oneof![
        30 => go.prop_map(|(calls, words, input)| Act::Go { calls, words, input }),
        3 => (0..120usize).prop_map(Act::Prompt),
        1 => Just(Act::BadPrompt),
        2 => (prop::bool::weighted(0.8), 0..4usize).prop_map(|(right, kind)| Act::Steer { right, kind }),
        1 => Just(Act::Cancel),
        1 => Just(Act::SetModel),
        4 => answer.prop_map(|(late, calls, stop, input, text)| Act::Answer { late, calls, stop, input, text }),
        1 => (0..8usize).prop_map(Act::OddAnswer),
        1 => (0..7usize).prop_map(Act::Fail),
        8 => (0..4usize, 0..8usize, prop::bool::weighted(0.1))
            .prop_map(|(index, how, late)| Act::Finish { index, how, late }),
        1 => Just(Act::Drain),
        1 => Just(Act::Tick),
        3 => prop::collection::vec(0..5usize, 0..3).prop_map(Act::Hooks),
        1 => (0..3usize, 0..4usize).prop_map(|(server, how)| Act::Server { server, how }),
    ]
}

fn open(world: &World) -> Rig {
    Rig::with(|o: &mut SessionOpened| {
        if world.anthropic {
            anthropic(o);
        }
        o.catalogue =
            catalogue(&[("t", &["say", "shell", "_Stop", "_PostCompact"]), ("u", &["say", "_Stop"])]);
        o.hook_servers = if world.hooks { vec![0, 1] } else { vec![] };
        let settings = &mut o.settings;
        if world.small_window {
            (settings.max_context_tokens, settings.max_output_tokens) = (600, 100);
        }
        if world.small_history {
            settings.max_history_bytes = 400;
        }
        settings.require_reply = world.guard;
        settings.max_rounds = world.max_rounds;
        settings.max_handoffs = world.max_handoffs;
        settings.stop_max_rejections = world.rejections;
        settings.max_parallel_tools = world.parallel;
    })
}

const WORDS: [&str; 4] = ["", "hm", "a longer text with an \u{e9} and a \" in it", " "];

/// An answer on the session's wire.
fn answer(anthropic: bool, calls: &[usize], stop: usize, input: Option<u16>, words: &str) -> Value {
    const IDS: [&str; 7] = ["a", "b", "", "same", "same", "c", "d"];
    const NAMES: [&str; 7] = ["t__say", "u__say", "t__say", "t__say", "t__shell", "t__nope", "t___Stop"];
    let command = json!({"command": "buzz messages send hi"});
    if anthropic {
        let block =
            |n: &usize| json!({"type": "tool_use", "id": IDS[*n], "name": NAMES[*n], "input": command});
        let text = [json!({"type": "text", "text": words}), json!({"type": "thinking", "thinking": "hm"})];
        let content: Vec<Value> = text.into_iter().chain(calls.iter().map(block)).collect();
        let stop = ["end_turn", "tool_use", "max_tokens", "refusal", "odd"][stop];
        let usage = json!({"input_tokens": input, "output_tokens": 1, "cache_read_input_tokens": input});
        return json!({"stop_reason": stop, "content": content, "usage": usage});
    }
    let mut calls =
        calls_of(&calls.iter().map(|n| (IDS[*n], NAMES[*n], command.clone())).collect::<Vec<_>>());
    calls["choices"][0]["message"]["content"] = json!(words);
    calls["choices"][0]["finish_reason"] =
        json!(["stop", "tool_calls", "length", "content_filter", "odd"][stop]);
    calls["usage"] = json!({"prompt_tokens": input, "total_tokens": input});
    calls
}

fn play(rig: &mut Rig, world: &World, act: &Act) {
    match act {
        Act::Go { calls, words, input } => go(rig, world, calls, *words, *input),
        Act::Prompt(size) => drop(rig.prompt(&"p".repeat(*size))),
        Act::BadPrompt => drop(rig.prompt_blocks(json!([{"type": "image"}]))),
        Act::Steer { right, kind } => {
            let run = rig.lines.iter().rev().find_map(|l| {
                l["params"]["update"]["_meta"]["goose"]["activeRunId"].as_str().map(str::to_owned)
            });
            let run = run.filter(|_| *right).unwrap_or("run_none".into());
            let blocks = [
                json!([{"type": "text", "text": "steer"}]),
                json!([{"type": "text", "text": " "}]),
                json!([{"type": "image"}]),
                json!([{"type": "resource_link", "uri": "u"}]),
            ];
            rig.steer_blocks(&run, blocks[*kind].clone());
        }
        Act::Cancel => drop(rig.cancel()),
        Act::SetModel => drop(rig.set_model("other")),
        Act::Answer { late, calls, stop, input, text } => {
            let asked = rig.session.asked() - u64::from(*late && rig.session.asked() > 0);
            rig.answer_to(asked, &answer(world.anthropic, calls, *stop, *input, WORDS[*text]));
        }
        Act::OddAnswer(kind) => {
            let bodies: [&[u8]; 8] = [
                b"", b"{}", b"\xff", br#"{"error":{"code":429,"message":"slow"}}"#, br#"{"choices":[]}"#,
                br#"{"error":{"type":"overloaded_error"}}"#, br#"{"choices":[{"message":{"tool_calls":[{}]}}]}"#,
                br#"{"content":[7,{"type":"tool_use"}],"choices":[{"message":{"tool_calls":[{"function":{"name":"t__say","arguments":"{"}}]}}]}"#,
            ];
            rig.answer_bytes(rig.session.asked(), bodies[*kind].to_vec());
        }
        Act::Fail(kind) => {
            let failure = match kind {
                0 => Failure::Transport { text: "reset".into() },
                1 => Failure::BodyRead { text: "cut".into() },
                n => status([500, 429, 401, 404, 400][n - 2], "R"),
            };
            rig.fail(failure, "why");
        }
        Act::Finish { index, how, late } => {
            let asked = rig.session.asked().saturating_sub(u64::from(*late));
            let line =
                |result: Value| json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string().into_bytes();
            let image = json!({"content": [{"type": "image", "data": "QUJD", "mimeType": "image/png"}]});
            let (outcome, line) = match how {
                0 => (CallOutcome::TransportFailed { text: "gone".into() }, vec![]),
                1 => (CallOutcome::TimedOut { after_secs: 3 }, vec![]),
                2 => (CallOutcome::Cancelled, vec![]),
                3 => (CallOutcome::Unavailable { text: "no".into() }, vec![]),
                4 => (CallOutcome::Returned, line(error_result("bad"))),
                5 => (CallOutcome::Returned, line(image)),
                6 => (CallOutcome::Returned, b"junk".to_vec()),
                _ => (CallOutcome::Returned, line(text_result(&"r".repeat(90)))),
            };
            rig.input(Input::CallFinished { asked, index: *index, outcome, line, elapsed_ms: 1 });
        }
        Act::Drain => drop(rig.drain()),
        Act::Tick => drop(rig.tick()),
        Act::Hooks(kinds) => hooks(rig, kinds),
        Act::Server { server, how } => {
            let change = match how {
                0 => ServerEvent::Died { reason: "x".into(), attempt: 1, retry_in_ms: 1 },
                1 => ServerEvent::Restarted { tools: vec!["say".into()] },
                2 => ServerEvent::RestartFailed { reason: "x".into(), attempt: 2, retry_in_ms: 1 },
                _ => ServerEvent::Exhausted,
            };
            rig.server(*server, change);
        }
    }
}

fn go(rig: &mut Rig, world: &World, calls: &[usize], words: usize, input: Option<u16>) {
    let phase = rig.session.turn.as_ref().map(|turn| turn.phase.clone());
    match phase {
        None => drop(rig.prompt(WORDS[words])),
        Some(Phase::Asking { .. }) => {
            let answer = answer(world.anthropic, calls, usize::from(!calls.is_empty()), input, WORDS[words]);
            assert!(rig.answer(&answer));
        }
        Some(Phase::Calling(slots)) => {
            let running = |slot: &Slot| matches!(slot.progress, Progress::Started);
            let index = slots.iter().rposition(running).expect("a call that runs");
            assert!(rig.finish(index, text_result(WORDS[words])));
        }
        Some(Phase::Gate(..) | Phase::Compacting(_)) => hooks(rig, &[words % 2, calls.len() % 2]),
        Some(other) => panic!("a turn rests in {other:?}"),
    }
}

/// The hooks that run come back; or, if none run, an outcome of hooks that nobody asked.
fn hooks(rig: &mut Rig, kinds: &[usize]) {
    let (mut outcomes, mut lines) = (Vec::new(), Vec::new());
    for kind in kinds {
        let words = ["", "not yet", "\u{e9}"].get(*kind);
        outcomes.push(match words {
            Some(words) => {
                let Heard::Line(line) = says(words) else { continue };
                lines.extend_from_slice(&line);
                HookOutcome::Returned { bytes: line.len() }
            }
            None if *kind == 3 => HookOutcome::TimedOut,
            None => HookOutcome::Failed { text: "no".into() },
        });
    }
    let asked = rig.effects.iter().rev().find_map(|effect| match effect {
        Effect::RunHooks { hook, servers, .. } => Some((*hook, servers.clone())),
        _ => None,
    });
    let (hook, servers) = asked.unwrap_or((Hook::Stop, vec![0]));
    rig.input(Input::HooksFinished { asked: rig.session.asked(), hook, servers, outcomes, lines });
}

/// A session whose process was killed now goes on, and nothing is run again.
fn survives_a_kill(session: &Session) {
    let mut session = session.clone();
    session.take_outbox();
    let recovery = session.recovery();
    recovery.iter().for_each(|record| session.fold(record));
    assert!(!session.is_busy());
    assert_eq!(session.history().unpaired_call(), None);
    assert!(session.recovery().is_empty());
    let acts = |e: &Effect| !matches!(e, Effect::Warn(_));
    assert!(!session.take_outbox().iter().any(acts), "a recovery acts");
    let once = state(&session);
    recovery.iter().for_each(|record| session.fold(record));
    assert!(state(&session) == once, "a second recovery changes something");
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt",
        "params": {"sessionId": "ses_1", "prompt": [{"type": "text", "text": "next"}]}});
    let line = line.to_string().into_bytes();
    let draws = crate::session::Draws { turn: "turn_n".into(), run: "run_n".into(), message: String::new() };
    let mut next = session.admit(Input::Line { frame: crate::acp::frame::classify(&line), line, draws });
    while let Some(record) = next {
        session.fold(&record);
        next = session.decide();
    }
    let asks = session.take_outbox().into_iter().filter_map(|effect| match effect {
        Effect::Ask { body, .. } => Some(body.to_vec()),
        _ => None,
    });
    let asks: Vec<Vec<u8>> = asks.collect();
    assert_eq!(asks.len(), 1, "the next prompt is asked");
    let body: Value = serde_json::from_slice(&asks[0]).expect("a request is JSON");
    assert_eq!(unanswered(&body), None);
}

/// What the encoder grew to is what a fresh one makes of the whole history.
fn same_as_encoded_at_once(session: &Session) {
    let settings = &session.opened.settings;
    let form = settings.route(&settings.model, false).form;
    let mut encoder = Encoder::new(form, settings, session.system_prompt());
    let user = crate::history::Item::User("next".into());
    let items: Vec<_> = session.history().items().iter().cloned().chain([user]).collect();
    encoder.push(&items);
    let tools: Vec<_> =
        session.opened.catalogue.tools.iter().filter(|tool| session.is_offered(tool)).collect();
    let body = encoder.request(&session.model(), encoder.encode_tools(&tools).as_ref());
    assert_eq!(session.next_request("next").to_vec(), body.rope.to_vec());
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(200))]

    /// The rig checks pairs, usage and evidence on the way, and replay and encoding at its end.
    #[test]
    fn any_inputs_in_any_order_leave_a_log_that_replays(
        world in world(),
        acts in prop::collection::vec(act(), 1..60),
    ) {
        let mut rig = open(&world);
        for act in &acts {
            play(&mut rig, &world, act);
        }
        same_as_encoded_at_once(&rig.session);
    }

    #[test]
    fn a_log_cut_anywhere_leaves_a_session_that_goes_on(
        world in world(),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let mut rig = open(&world);
        for act in &acts {
            play(&mut rig, &world, act);
        }
        let mut session = Session::open(&rig.log[0]).expect("a session");
        survives_a_kill(&session);
        for record in &rig.log[1..] {
            session.fold(record);
            survives_a_kill(&session);
        }
    }

    #[test]
    fn a_log_that_was_recovered_replays_and_goes_on(
        world in world(),
        acts in prop::collection::vec(act(), 1..40),
        cut in any::<prop::sample::Index>(),
        later in prop::collection::vec(act(), 1..20),
    ) {
        let mut rig = open(&world);
        for act in &acts {
            play(&mut rig, &world, act);
        }
        let mut resumed = Rig::resume(&rig.log[..=cut.index(rig.log.len())]);
        resumed.recover();
        for act in &later {
            play(&mut resumed, &world, act);
        }
    }

    /// Lost, repeated and reordered records: replay names a difference, and nothing panics.
    #[test]
    fn a_log_out_of_order_is_folded_and_replayed_without_a_panic(
        world in world(),
        acts in prop::collection::vec(act(), 1..40),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
    ) {
        let mut rig = open(&world);
        for act in &acts {
            play(&mut rig, &world, act);
        }
        let first = rig.log[0].clone();
        let jumbled: Vec<_> = order.iter().map(|at| at.get(&rig.log).clone()).collect();
        let mut swapped = rig.log[1..].to_vec();
        for (a, b) in swaps.iter().filter(|_| !rig.log[1..].is_empty()) {
            let (a, b) = (a.index(swapped.len()), b.index(swapped.len()));
            swapped.swap(a, b);
        }
        for records in [jumbled, swapped] {
            let mut replay = Replay::default();
            replay.step(&first);
            records.iter().for_each(|record| replay.step(record));
            let mut session = replay.session().expect("a session").clone();
            session.decide();
            session.recovery().iter().for_each(|record| session.fold(record));
            assert!(!session.is_busy());
        }
    }

    #[test]
    fn any_bytes_of_a_model_are_an_answer_or_an_error(
        body in prop::collection::vec(any::<u8>(), 0..60),
        in_anthropic in any::<bool>(),
    ) {
        let mut rig = Rig::with(|o| if in_anthropic { anthropic(o) });
        rig.prompt("go");
        rig.answer_bytes(1, body);
        rig.cancel();
    }
}

/// The properties above would hold of nothing at all; this run has everything in it.
#[test]
fn evidence_gives_every_request_over_truncations_handoffs_and_kills() {
    for in_anthropic in [false, true] {
        let world = World {
            anthropic: in_anthropic,
            small_window: true,
            small_history: true,
            hooks: true,
            guard: true,
            max_rounds: 0,
            max_handoffs: 2,
            rejections: 1,
            parallel: 2,
        };
        let mut rig = open(&world);
        let answer = |calls: &[usize], text: usize| Act::Answer {
            late: false,
            calls: calls.to_vec(),
            stop: 0,
            input: Some(100),
            text,
        };
        for _ in 0..8 {
            let finish = |index| Act::Finish { index, how: 7, late: false };
            for act in [
                Act::Prompt(110),
                answer(&[0, 1], 1),
                finish(1),
                finish(0),
                Act::Hooks(vec![0, 1]),
                answer(&[], 2),
                Act::Hooks(vec![1, 1]),
                answer(&[], 2),
                Act::Hooks(vec![1, 0]),
                answer(&[], 2),
                Act::Hooks(vec![0, 0]),
                answer(&[], 2),
            ] {
                play(&mut rig, &world, &act);
            }
            let resumed = Rig::resume(&rig.log);
            assert!(state(&resumed.session) == state(&rig.session));
            rig.recover();
        }
        for needed in [
            |h: &Head| matches!(h, Head::HistoryTruncated { .. }),
            |h: &Head| matches!(h, Head::HandoffDone { .. }),
            |h: &Head| matches!(h, Head::HooksAsked { hook: Hook::PostCompact, .. }),
            |h: &Head| matches!(h, Head::EndObjected { .. }),
            |h: &Head| matches!(h, Head::CallsStarted { .. }),
        ] {
            assert!(rig.count_records(needed) > 0);
        }
        assert!(rig.asks.len() > 15, "{}", rig.asks.len());
    }
}
