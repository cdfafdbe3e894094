//! Kinds of their own form: metrics, observer frames, memory, personas, reminders, projects, diffs, presence.
#![allow(missing_docs, clippy::unwrap_used)]

mod kit;

use std::sync::Arc;

use kit::{accepted, ids, passed, Person, Relay, NOW};
use serde_json::{json, Value};
use waxlog_relay::{Blobs, Settings, Via};

fn agent_and_owner(relay: &Relay) -> (Person, Person) {
    let (mut agent, owner) = (Person::new(), Person::new());
    relay.attest(&mut agent, &owner);
    (agent, owner)
}

#[test]
fn a_turn_metric_is_for_the_registered_owner_alone() {
    let relay = Relay::new();
    let (agent, owner) = agent_and_owner(&relay);
    let stranger = Person::new();
    let sealed = agent.seal(&owner.key(), "{}");
    let tags = json!([["p", owner.hex()], ["agent", agent.hex()]]);
    let (metric, submission) = relay.try_send(&agent, 44200, &sealed, tags.clone());
    let live = passed(&submission)[0];
    assert_eq!(live.channel, None);
    assert!(relay.desk().may_see(live, &owner.key()));
    assert!(!relay.desk().may_see(live, &agent.key()) && !relay.desk().may_see(live, &stranger.key()));
    for (content, tags) in [
        ("plain", tags.clone()),
        (&*sealed, json!([["agent", agent.hex()]])),
        (&*sealed, json!([["p", owner.hex()]])),
        (&*sealed, json!([["p", owner.hex()], ["agent", stranger.hex()]])),
        (&*sealed, json!([["p", owner.hex()], ["agent", agent.hex()], ["h", "x"]])),
    ] {
        assert!(relay.refuse(&agent, 44200, content, tags).starts_with("invalid:"));
    }
    let foreign = json!([["p", stranger.hex()], ["agent", agent.hex()]]);
    let (_, refused) = relay.try_send(&agent, 44200, &sealed, foreign);
    let text = "restricted: agent-turn-metric `p` tag must be the registered owner of this agent";
    assert_eq!((accepted(&refused.reply), refused.reply.status), ((false, text), 403));

    assert_eq!(ids(&relay.get(&owner, json!({"kinds": [44200], "#p": [owner.hex()]}))), [metric.id]);
    for who in [&agent, &stranger] {
        for via in [Via::Socket, Via::Http] {
            assert_eq!(relay.ask(who, via, json!([{"ids": [metric.id]}])), Ok(Vec::new()));
            let by_kind = json!([{"kinds": [44200], "#p": [owner.hex()], "ids": [metric.id]}]);
            assert_eq!(relay.ask(who, via, by_kind).unwrap_err().status, 403);
        }
        assert_eq!(relay.count(who, json!({"ids": [metric.id]})), Ok(0));
    }
}

#[test]
fn observer_frames_pass_between_agent_and_owner_and_are_never_kept() {
    let relay = Relay::new();
    let (agent, owner) = agent_and_owner(&relay);
    let stranger = Person::new();
    let pad = "x".repeat(64);
    let tags = |to: &Person, frame: &str| json!([["p", to.hex()], ["agent", agent.hex()], ["frame", frame]]);
    let sealed = agent.seal(&owner.key(), &pad);
    let (frame, telemetry) = relay.try_send(&agent, 24200, &sealed, tags(&owner, "telemetry"));
    assert_eq!(passed(&telemetry).len(), 1);
    assert_eq!(telemetry.ticket, None);
    let (_, control) = relay.try_send(&owner, 24200, &sealed, tags(&agent, "control"));
    assert_eq!(passed(&control).len(), 1);
    let (_, gossip) = relay.try_send(&agent, 24200, &sealed, tags(&owner, "gossip"));
    assert_eq!((accepted(&gossip.reply), gossip.live.len()), ((true, ""), 0));
    let text = "restricted: observer frame is not authorized for this agent owner";
    assert_eq!(relay.refuse(&stranger, 24200, &sealed, tags(&agent, "control")), text);
    assert!(relay.refuse(&agent, 24200, "plain", tags(&owner, "telemetry")).starts_with("invalid:"));
    let old = agent.sign(24200, &sealed, tags(&owner, "telemetry"), relay.now() - 301);
    assert!(relay.submit(&agent, &old).reply.message.starts_with("invalid:"));
    assert_eq!(relay.get(&owner, json!({"ids": [frame.id]})), []);
    assert_eq!(relay.get(&owner, json!({"kinds": [24200], "#p": [owner.hex()]})), []);
}

#[test]
fn an_agent_may_send_a_hundred_frames_of_telemetry_a_second_and_control_is_free() {
    let relay = Relay::new();
    let (agent, owner) = agent_and_owner(&relay);
    let sealed = agent.seal(&owner.key(), &"x".repeat(64));
    let tags = |to: &Person, frame: &str| json!([["p", to.hex()], ["agent", agent.hex()], ["frame", frame]]);
    let frame = agent.sign(24200, &sealed, tags(&owner, "telemetry"), NOW);
    for _ in 0..100 {
        assert!(relay.submit(&agent, &frame).reply.accepted);
    }
    let text = "rate-limited: observer frame rate exceeded (100/sec per agent)";
    assert_eq!(relay.submit(&agent, &frame).reply.message, text);
    let control = owner.sign(24200, &sealed, tags(&agent, "control"), NOW);
    assert!(relay.submit(&owner, &control).reply.accepted);
    relay.tick();
    assert!(relay.submit(&agent, &frame).reply.accepted);
}

#[test]
fn memory_has_an_envelope_and_two_readers() {
    let (relay, agent, owner, stranger) = (Relay::new(), Person::new(), Person::new(), Person::new());
    let (d, sealed) = ("ab".repeat(32), agent.seal(&owner.key(), "secret"));
    let p = owner.hex();
    let memory = relay.send(&agent, 30174, &sealed, json!([["d", d], ["p", p]]));
    for (content, tags) in [
        ("plain", json!([["d", d], ["p", p]])),
        ("", json!([["d", d], ["p", p]])),
        (&*sealed, json!([["d", "short"], ["p", p]])),
        (&*sealed, json!([["d", d.to_uppercase()], ["p", p]])),
        (&*sealed, json!([["d", d], ["d", d], ["p", p]])),
        (&*sealed, json!([["d", d]])),
        (&*sealed, json!([["d", d], ["p", p], ["p", stranger.hex()]])),
    ] {
        assert!(relay.refuse(&agent, 30174, content, tags).starts_with("invalid:"));
    }
    let ask = |who: &Person, filter: Value| relay.ask(who, Via::Socket, json!([filter]));
    for (who, filter) in [
        (&agent, json!({"kinds": [30174], "authors": [agent.hex()]})),
        (&owner, json!({"kinds": [30174], "#p": [p]})),
        (&owner, json!({"kinds": [30174], "authors": [agent.hex()], "#p": [p]})),
        (&stranger, json!({"ids": [memory.id]})),
    ] {
        assert_eq!(ids(&ask(who, filter).unwrap()), [memory.id]);
    }
    for (who, filter) in [
        (&owner, json!({"kinds": [30174], "authors": [agent.hex()]})),
        (&stranger, json!({"kinds": [30174]})),
        (&stranger, json!({"kinds": [30174], "authors": [agent.hex(), stranger.hex()]})),
        (&stranger, json!({"kinds": [30174], "#p": [p]})),
    ] {
        let text = "restricted: agent-engram reads require authors=[self] or #p=[self]";
        assert_eq!(ask(who, filter).unwrap_err().message, text);
    }
}

#[test]
fn an_unshared_persona_is_its_authors_alone_on_every_path() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let mine = json!({"kinds": [30175], "authors": [alice.hex()]});
    let (private, submission) = relay.try_send(&alice, 30175, "{}", json!([["d", "helper"]]));
    assert!(!relay.desk().may_see(passed(&submission)[0], &bob.key()));
    for via in [Via::Socket, Via::Http] {
        assert_eq!(relay.ask(&bob, via, json!([mine])), Ok(Vec::new()));
        assert_eq!(relay.ask(&bob, via, json!([{"ids": [private.id]}])), Ok(Vec::new()));
    }
    assert_eq!(relay.count(&bob, mine.clone()), Ok(0));
    assert_eq!(relay.get(&alice, mine.clone()).len(), 1);
    let (shared, submission) =
        relay.try_send(&alice, 30175, "{}", json!([["d", "helper"], ["shared", "true"]]));
    assert!(relay.desk().may_see(passed(&submission)[0], &bob.key()));
    relay.send(&alice, 30175, "{}", json!([["d", "newer"]]));
    let limited = json!({"kinds": [30175], "authors": [alice.hex()], "limit": 1});
    assert_eq!(ids(&relay.get(&bob, limited)), [shared.id]);
    relay.send(&alice, 30175, "{}", json!([["d", "helper"]]));
    assert_eq!(relay.get(&bob, mine), []);
}

#[test]
fn personas_and_catalogues_have_names_and_marks_of_one_form() {
    let (relay, alice) = (Relay::new(), Person::new());
    let long = "x".repeat(65);
    for tags in [
        json!([]),
        json!([["d"]]),
        json!([["d", ""]]),
        json!([["d", "a"], ["d", "a"]]),
        json!([["d", long]]),
        json!([["d", "Upper"]]),
        json!([["d", "a.b"]]),
        json!([["d", "a b"]]),
        json!([["d", "_a"]]),
        json!([["d", "-a"]]),
    ] {
        assert!(relay.refuse(&alice, 30175, "{}", tags).starts_with("invalid:"));
    }
    for kind in [30175, 30178] {
        for marks in [
            json!([["shared", "false"]]),
            json!([["shared"]]),
            json!([["shared", "true", "x"]]),
            json!([["shared", "true"], ["shared", "true"]]),
        ] {
            let mut tags = marks.as_array().unwrap().clone();
            tags.push(json!(["d", "a"]));
            assert!(relay.refuse(&alice, kind, "{}", json!(tags)).starts_with("invalid:"));
        }
        relay.send(&alice, kind, "{}", json!([["d", "0a_-"], ["shared", "true"]]));
    }
    relay.send(&alice, 30178, "{}", json!([["d", "Team.One"]]));
    for d in ["", "a b", &*long] {
        relay.refuse(&alice, 30178, "{}", json!([["d", d]]));
    }
}

#[test]
fn a_reminder_names_a_time_that_can_come() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let year = 31_536_000;
    for extra in [
        json!([]),
        json!([["not_before", "0"]]),
        json!([["not_before", (NOW + year).to_string()]]),
        json!([["not_before", "5"], ["expiration", "bad"]]),
        json!([["not_before", "5"], ["expiration", "6"]]),
    ] {
        let mut tags = extra.as_array().unwrap().clone();
        tags.push(json!(["d", "x"]));
        relay.send(&alice, 30300, "", json!(tags));
    }
    for extra in [
        json!([["not_before", "05"]]),
        json!([["not_before", "x"]]),
        json!([["not_before", ""]]),
        json!([["not_before", "1"], ["not_before", "1"]]),
        json!([["not_before", "9007199254740992"]]),
        json!([["not_before", (NOW + year + 1000).to_string()]]),
        json!([["not_before", "5"], ["expiration", "5"]]),
    ] {
        let mut tags = extra.as_array().unwrap().clone();
        tags.push(json!(["d", "x"]));
        assert!(relay.refuse(&alice, 30300, "", json!(tags)).starts_with("invalid:"), "{extra}");
    }
    relay.send(&alice, 1, "note", json!([]));
    let mixed = json!({"kinds": [1, 30300], "authors": [alice.hex()]});
    assert_eq!(relay.get(&bob, mixed.clone()).len(), 1);
    assert_eq!(relay.get(&alice, mixed).len(), 2);
    let only = relay.ask(&bob, Via::Socket, json!([{"kinds": [30300]}])).unwrap_err();
    assert_eq!(only.message, "restricted: author-only kinds require authors=[self]");
    assert_eq!(relay.count(&bob, json!({"kinds": [1, 30300], "#d": ["x"]})), Ok(0));
}

#[test]
fn a_project_is_bounded_and_names_each_member_once() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let member = |n: usize| json!(["a", format!("30617:{}:repo-{n}", bob.hex())]);
    let with = |members: Vec<Value>| {
        let mut tags = vec![json!(["d", "p"])];
        tags.extend(members);
        json!(tags)
    };
    relay.send(&alice, 30621, "", with((0..64).map(member).collect()));
    let over = relay.refuse(&alice, 30621, "", with((0..65).map(|n| member(n % 33)).collect()));
    assert!(over.contains("at most 64"), "the cap comes before repetitions: {over}");
    let hex = bob.hex();
    for tags in [
        with(vec![member(1), member(1)]),
        with(vec![
            json!(["a", format!("30617:{hex}:x"), "wss://a"]),
            json!(["a", format!("30617:{hex}:x"), "wss://b"]),
        ]),
        with(vec![json!(["a", format!("30617:{hex}:x"), "wss://a", "more"])]),
        with(vec![json!(["a", format!("30618:{hex}:x")])]),
        with(vec![json!(["a", format!("30617:{}:x", hex.to_uppercase())])]),
        with(vec![json!(["a", format!("30617:{}:x", &hex[1..])])]),
        with(vec![json!(["a", format!("30617:{hex}:")])]),
        with(vec![json!(["a", format!("30617:{hex}")])]),
        with(vec![json!(["name", "a"]), json!(["name", "b"])]),
        with(vec![json!(["name", "x".repeat(257)])]),
        with(vec![json!(["description", "x".repeat(2049)])]),
        with(vec![json!(["buzz-channel", "x".repeat(257)])]),
        json!([["name", "no d"]]),
        json!([["d", ""]]),
        json!([["d", "a"], ["d", "b"]]),
    ] {
        assert!(relay.refuse(&alice, 30621, "", tags).starts_with("invalid:"));
    }
    let hint = json!(["a", format!("30617:{hex}:a:b"), "wss://a"]);
    relay.send(
        &alice,
        30621,
        "text",
        with(vec![hint, json!(["future", "x"]), json!(["buzz-visibility", "odd"])]),
    );
}

#[test]
fn a_diff_says_where_it_belongs() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let tags = |repo: &str, commit: &str, more: &[&[&str]]| {
        let mut tags = vec![json!(["h", channel]), json!(["repo", repo]), json!(["commit", commit])];
        tags.extend(more.iter().map(|tag| json!(tag)));
        json!(tags)
    };
    relay.send(
        &alice,
        40008,
        "d",
        tags("https://example.org/r", "0123456", &[&["branch", "a", "b"], &["pr", "1"]]),
    );
    for (content, tags) in [
        ("d".to_owned(), tags("ftp://example.org", "0123456", &[])),
        ("d".to_owned(), tags("https://example.org", "012345", &[])),
        ("d".to_owned(), tags("https://example.org", "012345z", &[])),
        ("d".to_owned(), tags("https://example.org", "0123456", &[&["branch", "a"]])),
        ("d".to_owned(), tags("https://example.org", "0123456", &[&["pr", "0"]])),
        ("d".repeat(61_441), tags("https://example.org", "0123456", &[])),
    ] {
        assert!(relay.refuse(&alice, 40008, &content, tags).starts_with("invalid:"));
    }
}

struct OneBlob;

impl Blobs for OneBlob {
    fn holds(&self, url: &str, sha256: &str) -> bool {
        url == "http://127.0.0.1/media/a.png" && sha256 == "a"
    }
}

#[test]
fn a_message_shows_only_blobs_that_the_relay_holds() {
    let relay = Relay::with(Settings { blobs: Some(Arc::new(OneBlob)), ..Settings::default() });
    let alice = Person::new();
    let channel = relay.channel(&alice, "open");
    let fields = ["url http://127.0.0.1/media/a.png", "m image/png", "x a", "size 1"];
    let imeta = |fields: &[&str]| {
        let tag: Vec<_> = std::iter::once("imeta").chain(fields.iter().copied()).collect();
        json!([["h", channel], tag])
    };
    relay.send(&alice, 9, "look", imeta(&fields));
    relay.refuse(&alice, 9, "look", imeta(&fields[..3]));
    relay.refuse(&alice, 9, "look", imeta(&["url http://elsewhere/a.png", fields[1], fields[2], fields[3]]));
    relay.refuse(&alice, 9, "look", imeta(&[fields[0], fields[1], fields[2], fields[3], "color red"]));
}

#[test]
fn presence_lives_as_long_as_a_connection_of_its_owner() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let desk = relay.desk();
    let status = || {
        let filter = json!({"kinds": [20001], "authors": [alice.hex(), Person::new().hex()]});
        let rows = relay.fetch(&bob, filter);
        rows.first().map(|row| (row.tag_value("p").unwrap().to_owned(), row.content.clone()))
    };
    desk.connected(&alice.key());
    desk.connected(&alice.key());
    assert_eq!(status(), None);
    let (_, submission) = relay.try_send(&alice, 20001, "online", json!([]));
    assert_eq!(passed(&submission)[0].channel, None);
    assert_eq!(status(), Some((alice.hex(), "online".to_owned())));
    desk.disconnected(&alice.key());
    assert!(status().is_some());
    relay.send(&alice, 20001, "offline", json!([]));
    assert_eq!(status(), None);
    relay.send(&alice, 20001, "{\"status\":\"away\"}", json!([]));
    assert_eq!(status(), Some((alice.hex(), "away".to_owned())));
    desk.disconnected(&alice.key());
    assert_eq!(status(), None);
}

#[test]
fn a_workflow_is_stored_answered_with_its_id_and_survives_its_deletion() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let flow = "12345678-1234-4234-8234-123456789abc";
    let (definition, submission) =
        relay.try_send(&alice, 30620, "name: x", json!([["d", flow], ["h", channel]]));
    assert_eq!(accepted(&submission.reply), (true, &*format!("response:{{\"workflow_id\":\"{flow}\"}}")));
    relay.send(&alice, 5, "", json!([["a", format!("30620:{}:{flow}", alice.hex())]]));
    assert_eq!(ids(&relay.fetch(&alice, json!({"kinds": [30620], "#h": [channel]}))), [definition.id]);
    assert!(relay.refuse(&alice, 30620, "x", json!([["d", "nonsense"]])).starts_with("invalid:"));
    let stranger = Person::new();
    let private = relay.channel(&alice, "private");
    let tags = json!([["d", flow], ["h", private]]);
    assert_eq!(relay.refuse(&stranger, 30620, "x", tags), "restricted: not a channel member");
}
