//! The store: the index answers as a walk over all events does, and a kill loses nothing that was settled.
#![allow(missing_docs)]

mod kit;

use std::process::{Command, Stdio};

use kit::{ids, Person, Relay, NOW};
use proptest::prelude::*;
use serde_json::json;
use waxlog_nostr::{Draft, Event, Filter, Keys};
use waxlog_relay::{Asker, Desk, Settings, Via};

const CHILD: &str = "WAXLOG_RELAY_TEST_CHILD";

fn keys(number: usize) -> Keys {
    Keys::parse(&format!("{:064x}", number + 1)).unwrap()
}

/// Kinds that are regular and global and pass no gate.
const KINDS: [u16; 4] = [1, 1617, 1621, 1630];

fn event() -> impl Strategy<Value = Event> {
    let tag = (prop::sample::select(vec!["t", "p", "x"]), 0..3_u8);
    (
        0..3_usize,
        prop::sample::select(KINDS.to_vec()),
        0..6_u64,
        prop::collection::vec(tag, 0..3),
        any::<u16>(),
    )
        .prop_map(|(author, kind, at, tags, salt)| {
            let draft = Draft::new(kind, salt.to_string(), NOW + at);
            let draft =
                tags.into_iter().fold(draft, |draft, (name, value)| draft.tag([name, &value.to_string()]));
            keys(author).sign(draft)
        })
}

fn filter() -> impl Strategy<Value = Filter> {
    let some = |max: u8| prop::option::of(prop::collection::vec(0..max, 0..3));
    let tags = prop::collection::btree_map(
        prop::sample::select(vec!['t', 'p', 'x']),
        prop::collection::vec(0..3_u8, 0..3),
        0..3,
    );
    let times = (prop::option::of(0..6_u64), prop::option::of(0..6_u64), prop::option::of(0..9_usize));
    (some(3), prop::collection::vec(prop::sample::select(KINDS.to_vec()), 0..4), tags, times).prop_map(
        |(authors, kinds, tags, (since, until, limit))| {
            let mut filter = Filter::new().kinds(kinds);
            filter.authors =
                authors.map(|list| list.into_iter().map(|author| keys(author.into()).public_key()).collect());
            for (letter, values) in tags {
                filter = filter.tag(letter, values.iter().map(u8::to_string));
            }
            (filter.since, filter.until, filter.limit) =
                (since.map(|at| NOW + at), until.map(|at| NOW + at), limit);
            filter
        },
    )
}

/// What a walk over all events gives.
fn naive(events: &[Event], filter: &Filter) -> Vec<Event> {
    let mut found: Vec<_> = events.iter().filter(|event| filter.matches(event, None)).cloned().collect();
    found.sort_by_key(|event| (std::cmp::Reverse(event.created_at), event.id));
    found.dedup_by_key(|event| event.id);
    found.truncate(filter.limit.unwrap_or(usize::MAX));
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_index_answers_as_a_walk_over_all_events(
        events in prop::collection::vec(event(), 0..40),
        filters in prop::collection::vec(filter(), 1..12),
        deleted in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        reopens in any::<bool>(),
    ) {
        let mut relay = Relay::new();
        for event in &events {
            let asker = Asker::socket(event.pubkey);
            prop_assert!(relay.desk().submit(event.clone(), &asker, NOW).reply.accepted);
        }
        let mut left = events.clone();
        for index in deleted.iter().filter(|_| !events.is_empty()) {
            let target = index.get(&events);
            let author = (0..3).map(keys).find(|keys| keys.public_key() == target.pubkey).unwrap();
            let deletion = author.sign(Draft::new(5, "", NOW).tag(["e", &target.id.to_hex()]));
            prop_assert!(relay.desk().submit(deletion, &Asker::socket(target.pubkey), NOW).reply.accepted);
            left.retain(|event| event.id != target.id);
        }
        if reopens {
            relay.reopen();
        }
        let asker = Asker::socket(Keys::generate().public_key());
        for filter in &filters {
            let rows = relay.desk().query(std::slice::from_ref(filter), &asker, NOW).unwrap();
            let found: Vec<_> = rows.into_iter().map(|row| row.event).collect();
            let wanted = naive(&left, filter);
            prop_assert_eq!(ids(&found), ids(&wanted), "{:?}", filter);
            let unlimited = Filter { limit: None, ..filter.clone() };
            let count = relay.desk().count(std::slice::from_ref(filter), &asker).unwrap();
            prop_assert_eq!(count, naive(&left, &unlimited).len() as u64);
        }
    }
}

#[test]
fn the_index_answers_the_same_over_many_runs_and_merges() {
    let mut relay = Relay::new();
    let author = Person::new();
    let count = 6_000_u64;
    let mut events: Vec<_> = (0..count)
        .map(|n| {
            let tags: Vec<_> = (0..25).map(|k| ["t".to_owned(), format!("{}", (n * 7 + k) % 400)]).collect();
            author.sign(1, &n.to_string(), json!(tags), NOW - 800 + n % 800)
        })
        .collect();
    for event in &events {
        assert!(relay.desk().submit(event.clone(), &author.on(Via::Socket), NOW).reply.accepted);
    }
    for event in events.split_off(5_900) {
        let deletion = author.sign(5, "", json!([["e", event.id]]), NOW);
        assert!(relay.submit(&author, &deletion).reply.accepted);
    }
    for _ in 0..2 {
        for (value, limit) in [("7", 1000), ("399", 10), ("0", 100)] {
            let filter = Filter::new().kinds([1]).tag('t', [value]).limit(limit);
            let rows =
                relay.desk().query(std::slice::from_ref(&filter), &author.on(Via::Socket), NOW).unwrap();
            let found: Vec<_> = rows.into_iter().map(|row| row.event).collect();
            assert_eq!(ids(&found), ids(&naive(&events, &filter)), "value {value}");
        }
        assert_eq!(relay.count(&author, json!({"kinds": [1]})), Ok(5_900));
        relay.reopen();
    }
}

#[test]
fn what_a_desk_knows_is_there_after_it_was_opened_again() {
    let (mut relay, alice, owner) = (Relay::new(), Person::new(), Person::new());
    let mut agent = Person::new();
    relay.attest(&mut agent, &owner);
    let channel = relay.channel(&alice, "private");
    relay.add(&alice, &channel, &agent, "bot");
    let message = relay.say(&agent, &channel, "words to find");
    relay.send(&alice, 7, "+", json!([["e", message.id]]));
    let roles = relay.roles(&alice, &channel);
    relay.reopen();
    assert_eq!(relay.roles(&alice, &channel), roles);
    assert_eq!(relay.desk().owner_of(&agent.key()), Some(owner.key()));
    assert_eq!(
        relay.refuse(&alice, 7, "+", json!([["e", message.id]])),
        "duplicate: reaction already exists"
    );
    assert_eq!(ids(&relay.get(&alice, json!({"kinds": [9], "search": "find"}))), [message.id]);
    assert!(relay.submit(&agent, &message).reply.message.starts_with("duplicate:"));
    relay.say(&agent, &channel, "more");
}

#[test]
fn a_store_that_is_no_store_is_refused_with_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("db"), "nonsense that is no store at all").unwrap();
    let error = Desk::open(folder.path(), Settings::default(), Keys::generate()).map(drop).unwrap_err();
    assert!(error.to_string().contains(&folder.path().display().to_string()), "{error}");
}

/// The process that is killed: it takes events in, settles them and prints what is settled.
#[test]
fn child_of_the_kill_test() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let desk = Desk::open(folder.as_ref(), Settings::default(), keys(9)).unwrap();
    let author = keys(1);
    for n in 0.. {
        let event = author.sign(Draft::new(1, format!("{n} {}", std::process::id()), NOW).tag(["t", "kill"]));
        let id = event.id;
        let submission = desk.submit(event, &Asker::socket(author.public_key()), NOW);
        assert!(submission.reply.accepted);
        desk.settle(submission.ticket.unwrap()).unwrap();
        println!("settled {id}");
    }
}

#[test]
fn a_kill_loses_nothing_that_was_settled() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let mut settled = Vec::new();
    for round in 0..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child_of_the_kill_test", "--exact", "--nocapture"])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut settle = |line: String| {
            if let Some((_, id)) = line.split_once("settled ") {
                settled.push(id.parse::<waxlog_nostr::EventId>().unwrap());
            }
        };
        for _ in 0..50 + round * 37 {
            settle(lines.next().unwrap().unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // A last line may be cut by the kill; whole ones count.
        lines.map_while(Result::ok).filter(|line| line.len() >= 64 + "settled ".len()).for_each(settle);
    }
    let desk = Desk::open(folder.path(), Settings::default(), keys(9)).unwrap();
    let asker = Asker::socket(keys(1).public_key());
    for id in &settled {
        let found = desk.query(&[Filter::new().ids([*id])], &asker, NOW).unwrap();
        assert_eq!(found.len(), 1, "{id} was settled and is gone");
    }
    let count = desk.count(&[Filter::new().kinds([1]).tag('t', ["kill"])], &asker).unwrap();
    assert!(count >= settled.len() as u64);
}
