//! Which events are taken, in which order of checks, with which words.
#![allow(missing_docs, clippy::unwrap_used)]

mod kit;

use kit::{accepted, contents, ids, Person, Relay, NOW};
use serde_json::json;
use waxlog_nostr::{Event, Signature};
use waxlog_relay::{Desk, Via};

#[test]
fn kinds_that_only_the_relay_signs_are_refused_with_their_words() {
    let (relay, alice) = (Relay::new(), Person::new());
    for (kind, text) in [
        (22242, "invalid: AUTH events cannot be submitted via EVENT"),
        (44100, "invalid: membership notifications are relay-signed only"),
        (44101, "invalid: membership notifications are relay-signed only"),
        (13534, "restricted: relay-only kind"),
        (30622, "restricted: relay-only kind"),
        (39005, "restricted: relay-only kind"),
        (39006, "restricted: relay-only kind"),
        (40901, "restricted: relay-only kind"),
        (40902, "restricted: relay-only kind"),
        (6, "restricted: unknown event kind"),
        (39000, "restricted: unknown event kind"),
        (40099, "restricted: unknown event kind"),
        (41001, "restricted: unknown event kind"),
        (9999, "restricted: unknown event kind"),
        (1984, "restricted: unknown event kind"),
    ] {
        assert_eq!(relay.refuse(&alice, kind, "", json!([])), text, "kind {kind}");
    }
}

#[test]
fn socket_kinds_are_not_taken_over_http() {
    let alice = Person::new();
    for kind in [1059, 20001] {
        let event = alice.sign(kind, "", json!([]), NOW);
        let reply = Desk::check(event, &alice.on(Via::Http), NOW).unwrap_err();
        assert_eq!(reply.message, format!("invalid: kind {kind} is only accepted via WebSocket"));
        assert_eq!(reply.status, 400);
    }
    let reply = Desk::check(alice.sign(20002, "", json!([]), NOW), &alice.on(Via::Http), NOW).unwrap_err();
    assert_eq!(reply.message, "restricted: unknown event kind");
}

#[test]
fn a_wrong_id_and_a_wrong_signature_are_refused() {
    let (relay, alice) = (Relay::new(), Person::new());
    let event = alice.sign(1, "fine", json!([]), NOW);
    let changed = Event { content: "changed".into(), ..event.clone() };
    let unsigned = Event { sig: Signature::from_bytes([0; 64]), ..event.clone() };
    for broken in [changed, unsigned] {
        let reply = relay.submit(&alice, &broken).reply;
        assert!(!reply.accepted && reply.message.starts_with("invalid: "), "{reply:?}");
    }
    assert_eq!(accepted(&relay.submit(&alice, &event).reply), (true, ""));
}

#[test]
fn time_and_size_are_taken_up_to_their_limits() {
    let (relay, alice) = (Relay::new(), Person::new());
    let reply = |at, content: &str| relay.submit(&alice, &alice.sign(1, content, json!([]), at)).reply;
    for at in [NOW - 900, NOW + 900] {
        assert!(reply(at, "").accepted);
    }
    for at in [NOW - 901, NOW + 901] {
        assert_eq!(reply(at, "").message, "invalid: event timestamp too far from server time");
    }
    assert!(reply(NOW, &"x".repeat(262_144)).accepted);
    let text = "invalid: content exceeds maximum size of 262144 bytes (got 262145)";
    assert_eq!(reply(NOW, &"x".repeat(262_145)).message, text);
}

#[test]
fn another_keys_event_is_forbidden_but_a_gift_wrap() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let reply = relay.submit(&alice, &bob.sign(1, "", json!([]), NOW)).reply;
    assert_eq!(reply.message, "invalid: event pubkey does not match authenticated identity");
    assert_eq!(reply.status, 403);
    let wrap = bob.sign(1059, "sealed", json!([["p", alice.hex()]]), NOW);
    assert!(relay.submit(&alice, &wrap).reply.accepted);
    assert_eq!(ids(&relay.get(&alice, json!({"kinds": [1059], "#p": [alice.hex()]}))), [wrap.id]);
}

#[test]
fn a_message_needs_its_channel_and_others_do_not() {
    let (relay, alice) = (Relay::new(), Person::new());
    let text = "invalid: channel-scoped events must include an h tag";
    for kind in
        [9, 40002, 40003, 40008, 40100, 45001, 45003, 9000, 9001, 9002, 9005, 9008, 9022, 48100, 48106]
    {
        assert_eq!(relay.refuse(&alice, kind, "", json!([["h", "nonsense"]])), text, "kind {kind}");
    }
    relay.send(&alice, 30023, "", json!([["d", "x"]]));
    relay.send(&alice, 9007, "", json!([["name", "x"]]));
    let unknown = "99999999-9999-4999-8999-999999999999";
    assert_eq!(relay.refuse(&alice, 9, "", json!([["h", unknown]])), "restricted: not a channel member");
}

#[test]
fn a_stray_h_does_not_put_a_global_event_into_a_channel() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let status = relay.send(&alice, 30315, "busy", json!([["d", "general"], ["h", channel]]));
    assert_eq!(relay.get(&alice, json!({"kinds": [30315], "#h": [channel]})), []);
    assert_eq!(ids(&relay.fetch(&alice, json!({"kinds": [30315], "#h": [channel]}))), [status.id]);
    assert_eq!(ids(&relay.get(&alice, json!({"kinds": [30315], "authors": [alice.hex()]}))), [status.id]);
}

#[test]
fn the_same_event_again_is_known_and_needs_the_same_flush() {
    let (relay, alice) = (Relay::new(), Person::new());
    let event = relay.send(&alice, 1, "once", json!([]));
    let again = relay.submit(&alice, &event);
    assert!(again.reply.accepted && again.reply.message.starts_with("duplicate:"));
    assert!(again.ticket.is_some());
    assert_eq!(again.live, []);
    assert_eq!(relay.count(&alice, json!({"kinds": [1], "authors": [alice.hex()]})), Ok(1));
}

#[test]
fn ephemeral_events_are_passed_on_and_never_stored() {
    let (relay, alice, stranger) = (Relay::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "private");
    let typing = alice.sign(20002, "", json!([["h", channel]]), 1);
    let submission = relay.submit(&alice, &typing);
    assert_eq!(accepted(&submission.reply), (true, ""));
    assert_eq!(submission.ticket, None);
    let [live] = kit::passed(&submission)[..] else { panic!("not passed on") };
    assert_eq!(live.channel.map(|id| id.to_string()), Some(channel.clone()));
    assert_eq!(*live.json, *typing.to_json());
    assert!(relay.desk().may_see(live, &alice.key()) && !relay.desk().may_see(live, &stranger.key()));
    let text = relay.refuse(&stranger, 20002, "", json!([["h", channel]]));
    assert_eq!(text, "restricted: not a channel member");
    let any = relay.send(&alice, 25000, "any", json!([]));
    assert_eq!(relay.get(&alice, json!({"ids": [any.id, typing.id]})), []);
}

#[test]
fn a_d_value_has_a_length_and_a_profile_is_json() {
    let (relay, alice) = (Relay::new(), Person::new());
    assert!(relay
        .refuse(&alice, 30023, "", json!([["d", "x".repeat(1025)]]))
        .starts_with("invalid: d tag too long ("));
    relay.send(&alice, 30023, "", json!([["d", "x".repeat(1024)]]));
    assert_eq!(relay.refuse(&alice, 0, "not json", json!([])), "invalid: kind:0 content must be valid JSON");
}

#[test]
fn the_newest_of_a_key_stands() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let send = |who: &Person, kind, content: &str, tags, at| {
        let event = who.sign(kind, content, tags, NOW + at);
        (event.id, relay.submit(who, &event).reply.message.into_owned())
    };
    assert_eq!(send(&alice, 0, "{\"a\":1}", json!([]), 1).1, "");
    assert_eq!(send(&alice, 0, "{\"a\":3}", json!([]), 3).1, "");
    assert!(send(&alice, 0, "{\"a\":2}", json!([]), 2).1.starts_with("duplicate:"));
    let heads = relay.get(&alice, json!({"kinds": [0], "authors": [alice.hex()]}));
    assert_eq!(contents(&heads), ["{\"a\":3}"]);
    for (who, d) in [(&alice, "a"), (&alice, "b"), (&bob, "a")] {
        assert_eq!(send(who, 30023, d, json!([["d", d]]), 1).1, "");
    }
    assert_eq!(relay.count(&alice, json!({"kinds": [30023]})), Ok(3));
    let (old, _) = send(&alice, 3, "", json!([]), 1);
    send(&alice, 3, "new", json!([]), 2);
    assert_eq!(relay.get(&alice, json!({"ids": [old]})), []);
}

#[test]
fn of_equal_times_the_lower_id_stands_whatever_comes_first() {
    let alice = Person::new();
    let mut events: Vec<_> =
        (0..3).map(|n| alice.sign(10_002, "", json!([["n", n.to_string()]]), NOW)).collect();
    events.sort_by_key(|event| event.id);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]] {
        let relay = Relay::new();
        for index in order {
            let reply = relay.submit(&alice, &events[index]).reply;
            assert!(reply.accepted);
        }
        let heads = relay.get(&alice, json!({"kinds": [10_002], "authors": [alice.hex()]}));
        assert_eq!(ids(&heads), [events[0].id], "order {order:?}");
        let reply = relay.submit(&alice, &events[1]).reply;
        assert!(reply.accepted && reply.message.starts_with("duplicate:"));
    }
}

#[test]
fn an_expired_event_is_still_returned() {
    let (relay, alice) = (Relay::new(), Person::new());
    let event = relay.send(&alice, 1, "", json!([["expiration", "1"]]));
    assert_eq!(ids(&relay.get(&alice, json!({"ids": [event.id]}))), [event.id]);
}
