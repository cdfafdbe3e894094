//! What an event costs on its way from the socket to the queue, beside what its verification costs alone.

#![allow(missing_docs, reason = "the macros of criterion make public items")]

use criterion::{criterion_group, criterion_main, BatchSize, Criterion, Throughput};
use serde_json::json;
use waxlog_harness_core::record::{Happened, HttpOutcome};
use waxlog_harness_core::settings::{AgentCommand, Handling, Prompts, RespondTo, Settings, Subscribe};
use waxlog_harness_core::Machine;
use waxlog_nostr::frame::RelayFrame;
use waxlog_nostr::{Draft, Event, Keys};

const EVENTS: usize = 400;
const GENERAL: &str = "11111111-1111-4111-8111-111111111111";

fn settings(agent: &Keys) -> Settings {
    Settings {
        version: "0".into(),
        agent: agent.public_key(),
        owner: None,
        has_owner_tag: false,
        relay_url: "ws://127.0.0.1:1".into(),
        cwd: "/work".into(),
        agent_command: AgentCommand { program: "agent".into(), args: vec![], identity: "agent".into() },
        mcp: None,
        agents: 1,
        lazy_pool: true,
        model: None,
        session_title: None,
        idle_timeout_ms: 900_000,
        max_turn_ms: 7_200_000,
        max_turns_per_session: 0,
        prompts: Prompts { base: None, system: None, team: None },
        initial_message: None,
        memory: false,
        heartbeat_ms: 0,
        heartbeat_prompt: None,
        liveness_ms: 0,
        subscribe: Subscribe::Mentions { kinds: vec![9], by_mention: true, channels: None },
        handling: Handling::Queue,
        drop_busy: false,
        answer_self: false,
        context_messages: 12,
        presence: false,
        typing: false,
        observer: false,
        permission_mode: None,
        respond_to: RespondTo::Anyone,
        allowlist: vec![],
        display_name: None,
        catch_up_secs: 0,
        start_nonce: None,
    }
}

/// A machine that listens to one channel and has no agent yet.
fn listening(agent: &Keys) -> Machine {
    let mut machine = Machine::new();
    let relay = Keys::generate();
    let frame = |value: serde_json::Value| value.to_string().into_bytes();
    let members =
        relay.sign(Draft::new(39002, "", 1).tag(["d", GENERAL]).tag(["p", &agent.public_key().to_hex()]));
    let metadata =
        relay.sign(Draft::new(39000, "", 1).tag(["d", GENERAL]).tag(["name", "general"]).tag(["public"]));
    let answered = |query| Happened::QueryAnswered {
        query,
        outcome: HttpOutcome::Answered { status: 200 },
        forged: vec![],
    };
    let started = Happened::ProcessStarted { settings: Box::new(settings(agent)), pid: 1 };
    for (happened, raw) in [
        (started, vec![]),
        (Happened::RelayOpened, vec![]),
        (Happened::RelayFrame { link: 1, forged: None }, frame(json!(["AUTH", "c"]))),
        (Happened::RelayFrame { link: 1, forged: None }, frame(json!(["OK", "00".repeat(32), true, ""]))),
        (answered(1), frame(json!([members]))),
        (answered(2), frame(json!([metadata]))),
    ] {
        take(&mut machine, happened, raw);
    }
    machine
}

fn take(machine: &mut Machine, happened: Happened, raw: Vec<u8>) {
    let record = machine.admit(happened, raw, 1_700_000_000_000, 7).expect("it means something");
    machine.fold(&record);
    machine.take_effects();
}

fn mentions(agent: &Keys) -> Vec<String> {
    let person = Keys::generate();
    let mention = |number: usize| {
        let draft = Draft::new(9, format!("mention {number}: what do you think of it?"), 1_700_000_000)
            .tag(["h", GENERAL])
            .tag(["p", &agent.public_key().to_hex()]);
        RelayFrame::Event(format!("ch-{GENERAL}"), person.sign(draft)).to_json()
    };
    (0..EVENTS).map(mention).collect()
}

fn verified(text: &str) -> Event {
    match RelayFrame::parse(text) {
        Ok(RelayFrame::Event(_, event)) if event.verify().is_ok() => event,
        other => panic!("no sound event: {other:?}"),
    }
}

fn events(criterion: &mut Criterion) {
    let agent = Keys::generate();
    let texts = mentions(&agent);
    let mut group = criterion.benchmark_group("events");
    group.throughput(Throughput::Elements(EVENTS as u64));
    group.sample_size(20);
    group.bench_function("verified", |bench| {
        bench.iter(|| texts.iter().map(|text| verified(text)).collect::<Vec<_>>());
    });
    group.bench_function("verified, recorded, gated and queued", |bench| {
        bench.iter_batched(
            || listening(&agent),
            |mut machine| {
                for text in &texts {
                    verified(text);
                    let raw = text.clone().into_bytes();
                    take(&mut machine, Happened::RelayFrame { link: 1, forged: None }, raw);
                }
                assert_eq!(machine.pending(), EVENTS);
                machine
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, events);
criterion_main!(benches);
