//! SIGKILL at every point of a turn: what was paid for is known, and the session can go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use waxlog_core::record::{Head, Record};
use waxlog_core::session::Session;
use waxlog_store::{Log, Options, Reader};

use crate::agent::PATIENCE;
use crate::answers::{slow_and_fast, Cost, Dialect};
use crate::stage::{renewed, Stage};
use crate::wire::expect_paired;

/// Rounds with two parallel calls each, before the plain answer.
const ROUNDS: u64 = 4;
const RANDOM_KILLS: u64 = 16;
/// Turns that are killed side by side.
const WORKERS: u64 = 4;
/// How often a live log is asked how far it is: it cannot be waited for.
const POLL: Duration = Duration::from_micros(200);

/// When the agent is killed.
#[derive(Clone, Copy, Debug)]
enum When {
    /// Once a reader of the live log sees so many records.
    Records(usize),
    /// After so long.
    After(Duration),
    /// Not at all: the turn ends.
    Never,
}

#[test]
fn a_chat_turn_killed_at_every_record_keeps_its_tokens_and_its_session() {
    killed_at_every_record(Dialect::Chat);
}

#[test]
fn an_anthropic_turn_killed_at_every_record_keeps_its_tokens_and_its_session() {
    killed_at_every_record(Dialect::Anthropic);
}

#[test]
fn a_turn_killed_at_any_time_keeps_its_tokens_and_its_session() {
    let begun = Instant::now();
    run_and_kill(Dialect::Chat, When::Never);
    let whole = begun.elapsed();
    let mut random = fastrand::Rng::with_seed(7);
    let moments: Vec<When> = (0..RANDOM_KILLS).map(|_| When::After(whole.mul_f64(random.f64()))).collect();
    side_by_side(&moments, Dialect::Chat);
}

/// Records that are flushed together are never apart after a kill of this build, but another may flush
/// otherwise: logs that end after any record, also there.
#[test]
fn a_log_that_ends_after_any_record_is_counted_and_recovered() {
    for dialect in [Dialect::Chat, Dialect::Anthropic] {
        let (answers, costs) = dialect.parallel_turn(ROUNDS);
        let stage = Stage::new(dialect, answers);
        let session = turn_until_killed(&stage, When::Never);
        let whole: Vec<_> = Reader::open(&stage.log()).expect("opens").all(1).expect("reads").collect();
        for cut in 1..=whole.len() {
            let ending = Stage::new(dialect, Vec::new());
            let log = Log::open(&ending.log(), Options::default()).expect("a new log");
            let stored = whole[..cut].iter().map(|stored| renewed(stored.clone().expect("sound"))).collect();
            log.append(stored).expect("appended");
            log.flush_blocking().expect("flushed");
            drop(log);
            let records = ending.records(&session);
            if !records.is_empty() {
                expect_counted(&ending, &session, &records, &costs);
                expect_recovered_once(&ending, &session, &records);
            }
        }
    }
}

fn killed_at_every_record(dialect: Dialect) {
    let records = run_and_kill(dialect, When::Never);
    // The session's opening, the prompt, 5 records a round, a plain round and the end.
    assert_eq!(records, 2 + 5 * ROUNDS as usize + 3);
    // From the prompt on: before it there is no turn.
    let moments: Vec<When> = (2..=records).map(When::Records).collect();
    side_by_side(&moments, dialect);
}

fn side_by_side(moments: &[When], dialect: Dialect) {
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(when) = moments.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    run_and_kill(dialect, *when);
                }
            });
        }
    });
}

/// Runs the turn, kills the agent in it, and checks everything that must hold afterwards. Gives the number
/// of records that the session had then.
fn run_and_kill(dialect: Dialect, when: When) -> usize {
    let (answers, costs) = dialect.parallel_turn(ROUNDS);
    let stage = Stage::new(dialect, answers);
    let session = turn_until_killed(&stage, when);
    let killed = stage.records(&session);
    let (answered, given) = (answered(&killed), stage.model.requests().len());
    assert!(answered == given || answered + 1 == given, "{when:?}: {answered} recorded, {given} given");
    expect_counted(&stage, &session, &killed, &costs);
    expect_recovered_once(&stage, &session, &killed);
    killed.len()
}

fn turn_until_killed(stage: &Stage, when: When) -> String {
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    let reader = Reader::open(&stage.log()).expect("served by the agent");
    let begun = Instant::now();
    let prompt = agent.prompt(&session, "Go.");
    match when {
        When::Records(count) => {
            while reader.stream(&session).expect("reads").count() < count {
                assert!(!agent.has_ended() && begun.elapsed() < PATIENCE, "{when:?} never came");
                thread::sleep(POLL);
            }
        }
        When::After(time) => thread::sleep(time),
        When::Never => drop(agent.answer(prompt)),
    }
    agent.kill();
    session
}

fn answered(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record.head, Head::RoundAnswered { .. })).count()
}

/// The usage is exactly the sum of the answers in the log.
fn expect_counted(stage: &Stage, session: &str, records: &[Record], costs: &[Cost]) {
    let (when, answered) = (format!("{} records", records.len()), answered(records));
    let ended = records.iter().any(|record| matches!(record.head, Head::TurnEnded { .. }));
    let asked = records.iter().filter(|record| matches!(record.head, Head::RoundAsked { .. })).count();
    let turns = stage.run(&["usage", "--json"]).ok().json();
    if records.len() < 2 {
        return assert_eq!(turns, json!([]), "{when}");
    }
    let [turn] = &turns.as_array().expect("an array")[..] else { panic!("{when}: {turns}") };
    let sum = |of: fn(&Cost) -> u64| match answered {
        0 => Value::Null,
        some => json!(costs[..some].iter().map(of).sum::<u64>()),
    };
    assert_eq!(turn["session"], session);
    assert_eq!(turn["stop"], if ended { "end_turn" } else { "interrupted" }, "{when}");
    assert_eq!((&turn["rounds"], &turn["answered"]), (&json!(asked), &json!(answered)), "{when}");
    assert_eq!(turn["input"], sum(|cost| cost.input), "{when}");
    assert_eq!(turn["output"], sum(|cost| cost.output), "{when}");
    assert_eq!(turn["cached"], sum(|cost| cost.cached), "{when}");
    let total = match stage.dialect {
        Dialect::Chat => sum(|cost| cost.input + cost.output),
        Dialect::Anthropic => Value::Null,
    };
    assert_eq!(turn["total"], total, "{when}");
    expect_replays(stage, records);
}

fn expect_replays(stage: &Stage, records: &[Record]) {
    let replayed = stage.run(&["replay"]).ok();
    let turns = records.iter().filter(|record| matches!(record.head, Head::TurnPrompted { .. })).count();
    assert_eq!(replayed.last_line(), format!("{turns} passed, 0 failed"));
}

/// C63, C64: the first start closes the turn by appending, the second finds nothing to do.
fn expect_recovered_once(stage: &Stage, session: &str, killed: &[Record]) {
    let told = stage.agent().close();
    let once = stage.records(session);
    assert_eq!(&once[..killed.len()], killed, "what was recorded stays as it is");
    let ended = killed.iter().any(|record| matches!(record.head, Head::TurnEnded { .. }));
    let was_open = killed.len() > 1 && !ended;
    assert_eq!(matches!(once.last().expect("records").head, Head::TurnInterrupted { .. }), was_open);
    assert_eq!(told.contains("interrupted"), was_open, "{told}");
    stage.agent().close();
    assert_eq!(stage.records(session), once, "the second start adds nothing");
    let folded = fold(&once);
    assert_eq!(folded.history().unpaired_call(), None);
    assert!(!folded.is_busy());
    expect_paired(stage.dialect, &folded.next_request("Go on.").to_vec());
    expect_replays(stage, &once);
}

fn fold(records: &[Record]) -> Session {
    let mut session = Session::open(&records[0]).expect("a session");
    records[1..].iter().for_each(|record| session.fold(record));
    session
}
