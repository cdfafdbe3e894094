//! Messages and what refers to them: threads, reactions, edits, votes, deletions; agents' owners.
#![allow(missing_docs, clippy::unwrap_used)]

mod kit;

use kit::{contents, ids, passed, Person, Relay};
use serde_json::{json, Value};
use waxlog_nostr::Event;
use waxlog_relay::Via;

fn reply_tags(channel: &str, parent: &Event) -> Value {
    json!([["h", channel], ["e", parent.id, "", "reply"]])
}

fn nested_tags(channel: &str, root: &Event, parent: &Event) -> Value {
    json!([["h", channel], ["e", root.id, "", "root"], ["e", parent.id, "", "reply"]])
}

#[test]
fn a_reply_must_fit_the_stored_thread() {
    let (relay, alice) = (Relay::new(), Person::new());
    let (channel, second) = (relay.channel(&alice, "open"), relay.channel(&alice, "open"));
    let root = relay.say(&alice, &channel, "root");
    let other = relay.say(&alice, &channel, "other root");
    let far = relay.say(&alice, &second, "far");
    let note = relay.send(&alice, 1, "note", json!([]));
    let reply = relay.send(&alice, 9, "reply", reply_tags(&channel, &root));
    let nested = relay.send(&alice, 9, "nested", nested_tags(&channel, &root, &reply));
    let unknown = "0".repeat(64);
    for (tags, text) in [
        (json!([["h", channel], ["e", unknown, "", "reply"]]), "invalid: reply parent not found"),
        (json!([["h", channel], ["e", "bad", "", "reply"]]), "invalid: reply parent not found"),
        (nested_tags(&channel, &other, &reply), "invalid: root tag does not match thread ancestry"),
        (reply_tags(&channel, &reply), "invalid: root tag does not match thread ancestry"),
        (reply_tags(&channel, &far), "invalid: parent event belongs to a different channel"),
        (reply_tags(&channel, &note), "invalid: parent event has no channel association"),
    ] {
        assert_eq!(relay.refuse(&alice, 9, "x", tags), text);
    }
    for tags in [
        json!([["h", channel], ["e", root.id, "", "root"]]),
        json!([["h", channel], ["e", root.id]]),
        json!([["h", channel], ["e", unknown]]),
    ] {
        relay.send(&alice, 9, "not a reply", tags);
    }
    let thread = json!({"kinds": [9], "#h": [channel], "#e": [root.id], "depth_limit": 9});
    assert_eq!(ids(&relay.fetch(&alice, thread)), [reply.id, nested.id]);
}

#[test]
fn a_thread_is_a_hundred_deep_and_read_in_pages_without_gaps() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let root = relay.say(&alice, &channel, "root");
    let mut replies = vec![relay.send(&alice, 9, "1", reply_tags(&channel, &root))];
    for depth in 2..=100 {
        let tags = nested_tags(&channel, &root, &replies[depth - 2]);
        replies.push(relay.send(&alice, 9, &depth.to_string(), tags));
    }
    let tags = nested_tags(&channel, &root, &replies[99]);
    assert_eq!(relay.refuse(&alice, 9, "101", tags), "invalid: thread depth limit exceeded");

    let page = |extra: Value| {
        let mut filter = json!({"kinds": [9], "#h": [channel], "#e": [root.id], "depth_limit": 100});
        filter.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        ids(&relay.fetch(&alice, filter))
    };
    let all = ids(&replies);
    assert_eq!(page(json!({"limit": 500})), all);
    assert_eq!(page(json!({"depth_limit": 3})), all[..3]);
    let at = |index: usize| replies[index].created_at;
    assert_eq!(page(json!({"limit": 7, "thread_cursor": at(9), "thread_cursor_id": all[9]})), all[10..17]);
    assert_eq!(page(json!({"limit": 7, "thread_cursor": at(9), "thread_cursor_id": "bad"})), all[10..17]);
}

#[test]
fn replies_of_one_second_are_not_lost_between_pages() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let root = relay.say(&alice, &channel, "root");
    let mut replies: Vec<_> =
        (0..9).map(|n| alice.sign(9, &n.to_string(), reply_tags(&channel, &root), relay.now())).collect();
    for reply in &replies {
        assert!(relay.submit(&alice, reply).reply.accepted);
    }
    replies.sort_by_key(|reply| reply.id);
    let (mut found, mut cursor) = (Vec::new(), json!({}));
    loop {
        let mut filter = json!({"kinds": [9], "#e": [root.id], "depth_limit": 1, "limit": 2});
        filter.as_object_mut().unwrap().extend(cursor.as_object().unwrap().clone());
        let page = relay.fetch(&alice, filter);
        let Some(last) = page.last() else { break };
        cursor = json!({"thread_cursor": last.created_at, "thread_cursor_id": last.id});
        found.extend(ids(&page));
    }
    assert_eq!(found, ids(&replies));
}

#[test]
fn a_broadcast_reply_is_in_its_thread_and_at_the_top() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let root = relay.say(&alice, &channel, "root");
    let quiet = relay.send(&alice, 9, "quiet", reply_tags(&channel, &root));
    let tags = json!([["h", channel], ["e", root.id, "", "reply"], ["broadcast", "1"]]);
    let loud = relay.send(&alice, 9, "loud", tags);
    let thread =
        relay.fetch(&alice, json!({"kinds": [9], "#h": [channel], "#e": [root.id], "depth_limit": 1}));
    assert_eq!(ids(&thread), [quiet.id, loud.id]);
    let window = relay.fetch(&alice, json!({"kinds": [9], "#h": [channel], "top_level": true}));
    assert_eq!(ids(&window[..2]), [loud.id, root.id]);
    assert_eq!(window[2].kind, 39006);
}

#[test]
fn a_window_says_whether_there_is_more_and_brings_what_belongs_to_its_rows() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "private");
    let rows: Vec<_> = (0..4).map(|n| relay.say(&alice, &channel, &n.to_string())).collect();
    let reaction = relay.send(&alice, 7, "+", json!([["e", rows[3].id]]));
    let undone = relay.send(&alice, 7, "-", json!([["e", rows[3].id]]));
    relay.send(&alice, 5, "", json!([["e", undone.id]]));
    relay.send(&alice, 9, "reply", reply_tags(&channel, &rows[3]));
    let bounds = |events: &[Event]| -> (String, Value) {
        let last = events.last().unwrap();
        assert_eq!(last.kind, 39006);
        (last.tag_value("d").unwrap().to_owned(), serde_json::from_str(&last.content).unwrap())
    };
    let ask = |extra: Value| {
        let mut filter = json!({"kinds": [9], "#h": [channel], "top_level": true, "limit": 2});
        filter.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        relay.ask(&alice, Via::Http, json!([filter]))
    };
    let first = ask(json!({"include_aux": true, "include_summaries": true})).unwrap();
    assert_eq!(ids(&first[..2]), [rows[3].id, rows[2].id]);
    assert!(ids(&first).contains(&reaction.id) && !ids(&first).contains(&undone.id));
    let summary = first.iter().find(|event| event.kind == 39005).unwrap();
    let content: Value = serde_json::from_str(&summary.content).unwrap();
    assert_eq!((&content["reply_count"], &content["descendant_count"]), (&json!(1), &json!(1)));
    let next = json!({"created_at": rows[2].created_at, "id": rows[2].id});
    assert_eq!(bounds(&first), (format!("{channel}:head"), json!({"has_more": true, "next_cursor": next})));
    let second = ask(json!({"until": rows[2].created_at, "before_id": rows[2].id})).unwrap();
    assert_eq!(ids(&second[..2]), [rows[1].id, rows[0].id]);
    assert_eq!(bounds(&second).1, json!({"has_more": false, "next_cursor": null}));
    assert_eq!(ask(json!({"until": 5})).unwrap_err().status, 400);
    let stranger = Person::new();
    assert_eq!(relay.fetch(&stranger, json!({"kinds": [9], "#h": [channel], "top_level": true})), []);
}

#[test]
fn the_counts_of_a_thread_are_told_and_fall_with_a_deletion() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let root = relay.say(&alice, &channel, "root");
    let counts = |submission: &waxlog_relay::Submission| -> (Value, Value) {
        let live = passed(submission).into_iter().find(|live| live.event.kind == 39005).unwrap();
        assert_eq!(live.channel.map(|id| id.to_string()), Some(channel.clone()));
        let content: Value = serde_json::from_str(&live.event.content).unwrap();
        (content["reply_count"].clone(), content["descendant_count"].clone())
    };
    let (reply, first) = relay.try_send(&bob, 9, "1", reply_tags(&channel, &root));
    assert_eq!(counts(&first), (json!(1), json!(1)));
    let (_, second) = relay.try_send(&alice, 9, "2", nested_tags(&channel, &root, &reply));
    assert_eq!(counts(&second), (json!(1), json!(2)));
    let (_, gone) = relay.try_send(&bob, 9005, "", json!([["h", channel], ["e", reply.id]]));
    assert_eq!(counts(&gone), (json!(0), json!(1)));
}

#[test]
fn a_reaction_finds_its_channel_by_its_target_and_is_one_of_a_kind() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let (open, private) = (relay.channel(&alice, "open"), relay.channel(&alice, "private"));
    let (message, secret) = (relay.say(&alice, &open, "x"), relay.say(&alice, &private, "y"));
    let (reaction, submission) = relay.try_send(&bob, 7, "+", json!([["e", message.id]]));
    assert_eq!(passed(&submission)[0].channel.map(|id| id.to_string()), Some(open.clone()));
    for content in ["+", ""] {
        let text = relay.refuse(&bob, 7, content, json!([["e", message.id]]));
        assert_eq!(text, "duplicate: reaction already exists");
    }
    relay.send(&bob, 7, "-", json!([["e", message.id]]));
    let text = "invalid: reaction must reference a target event via e tag";
    assert_eq!(relay.refuse(&bob, 7, "+", json!([])), text);
    let unknown = relay.refuse(&bob, 7, "+", json!([["e", "0".repeat(64)]]));
    assert_eq!(unknown, "invalid: reaction target event not found");
    let text = relay.refuse(&bob, 7, "+", json!([["e", secret.id]]));
    assert_eq!(text, "restricted: not a channel member");
    assert!(relay.refuse(&bob, 7, &"x".repeat(65), json!([["e", message.id]])).starts_with("invalid:"));
    relay.send(&bob, 7, &"é".repeat(64), json!([["e", message.id]]));
    assert_eq!(relay.get(&alice, json!({"kinds": [7], "#h": [open]})).len(), 3);
    assert_eq!(relay.get(&alice, json!({"kinds": [7], "#h": [private]})), []);
    relay.send(&bob, 5, "", json!([["e", reaction.id]]));
    let again = relay.send(&bob, 7, "+", json!([["e", message.id]]));
    assert!(ids(&relay.get(&alice, json!({"kinds": [7], "#e": [message.id]}))).contains(&again.id));
}

#[test]
fn an_edit_has_a_target_in_its_channel_and_its_authors_hand() {
    let (relay, alice, bob, owner) = (Relay::new(), Person::new(), Person::new(), Person::new());
    let mut agent = Person::new();
    relay.attest(&mut agent, &owner);
    let (channel, second) = (relay.channel(&alice, "open"), relay.channel(&alice, "open"));
    let message = relay.say(&alice, &channel, "old");
    let said = relay.say(&agent, &channel, "by the agent");
    relay.send(&alice, 40003, "new", json!([["h", channel], ["e", message.id]]));
    relay.send(&owner, 40003, "new", json!([["h", channel], ["e", said.id]]));
    let text = "invalid: must be event author to edit";
    assert_eq!(relay.refuse(&bob, 40003, "his", json!([["h", channel], ["e", message.id]])), text);
    assert_eq!(relay.refuse(&bob, 40003, "his", json!([["h", channel], ["e", said.id]])), text);
    let unknown = json!([["h", channel], ["e", "0".repeat(64)]]);
    assert_eq!(relay.refuse(&alice, 40003, "", unknown), "invalid: edit target event not found");
    for tags in
        [json!([["h", second], ["e", message.id]]), json!([["h", channel]]), json!([["e", message.id]])]
    {
        assert!(relay.refuse(&alice, 40003, "", tags).starts_with("invalid:"));
    }
}

#[test]
fn whoever_is_out_of_a_private_channel_neither_edits_nor_deletes_there() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "private");
    relay.add(&alice, &channel, &bob, "member");
    let message = relay.say(&bob, &channel, "mine");
    relay.send(&alice, 9001, "", json!([["h", channel], ["p", bob.hex()]]));
    relay.refuse(&bob, 40003, "new", json!([["h", channel], ["e", message.id]]));
    relay.refuse(&bob, 5, "", json!([["e", message.id]]));
    relay.refuse(&bob, 9005, "", json!([["h", channel], ["e", message.id]]));
    assert_eq!(ids(&relay.get(&alice, json!({"kinds": [9], "#h": [channel]}))), [message.id]);
}

#[test]
fn a_vote_is_on_a_post_or_comment_of_its_channel() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let message = relay.say(&alice, &channel, "chat");
    let post = relay.send(&alice, 45001, "post", json!([["h", channel]]));
    let comment = relay.send(&alice, 45003, "comment", reply_tags(&channel, &post));
    for target in [&post, &comment] {
        relay.send(&alice, 45002, "+", json!([["h", channel], ["e", target.id]]));
    }
    assert!(relay
        .refuse(&alice, 45002, "+", json!([["h", channel], ["e", message.id]]))
        .starts_with("invalid:"));
}

#[test]
fn a_deletion_has_one_target_and_its_authors_hand() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let (mine, his) = (relay.say(&alice, &channel, "mine"), relay.say(&bob, &channel, "his"));
    let count = |e, a| {
        format!(
            "invalid: deletion events must reference exactly one target via e or a tag (got e={e}, a={a})"
        )
    };
    let address = format!("30023:{}:x", alice.hex());
    assert_eq!(relay.refuse(&alice, 5, "", json!([])), count(0, 0));
    assert_eq!(relay.refuse(&alice, 5, "", json!([["e", mine.id], ["e", mine.id]])), count(2, 0));
    assert_eq!(relay.refuse(&alice, 5, "", json!([["e", mine.id], ["a", address]])), count(1, 1));
    assert_eq!(relay.refuse(&alice, 9005, "", json!([["h", channel]])), count(0, 0));
    assert_eq!(relay.refuse(&alice, 5, "", json!([["e", his.id]])), "invalid: must be event author");
    let unknown = relay.refuse(&alice, 5, "", json!([["e", "0".repeat(64)]]));
    assert_eq!(unknown, "invalid: target event not found");
    relay.send(&alice, 5, "", json!([["e", "bad"]]));
    let (deletion, submission) = relay.try_send(&alice, 5, "gone", json!([["e", mine.id]]));
    assert_eq!(passed(&submission)[0].channel.map(|id| id.to_string()), Some(channel.clone()));
    assert_eq!(relay.get(&alice, json!({"ids": [mine.id]})), []);
    assert_eq!(contents(&relay.get(&alice, json!({"kinds": [9], "#h": [channel]}))), ["his"]);
    assert_eq!(ids(&relay.get(&alice, json!({"kinds": [5], "#h": [channel]}))), [deletion.id]);
    assert!(relay.submit(&alice, &mine).reply.message.starts_with("duplicate:"));
    assert_eq!(relay.get(&alice, json!({"ids": [mine.id]})), []);
    relay.send(&alice, 5, "again", json!([["e", mine.id]]));
}

#[test]
fn a_deletion_by_address_reaches_back_in_time_only() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let head = relay.send(&alice, 30023, "head", json!([["d", "a"]]));
    let address = format!("30023:{}:a", alice.hex());
    let older = alice.sign(5, "", json!([["a", address]]), head.created_at - 1);
    assert!(relay.submit(&alice, &older).reply.accepted);
    assert_eq!(relay.get(&alice, json!({"kinds": [30023]})).len(), 1);
    assert_eq!(relay.refuse(&bob, 5, "", json!([["a", address]])), "invalid: must be event author");
    assert!(relay.refuse(&alice, 5, "", json!([["a", "nonsense"]])).starts_with("invalid:"));
    relay.send(&alice, 5, "", json!([["a", address]]));
    assert_eq!(relay.get(&alice, json!({"kinds": [30023]})), []);
    relay.send(&alice, 30023, "new", json!([["d", "a"]]));
    assert_eq!(contents(&relay.get(&alice, json!({"kinds": [30023]}))), ["new"]);
}

#[test]
fn moderators_delete_with_reasons_and_authors_without() {
    let (relay, alice, bob, carol) = (Relay::new(), Person::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    for who in [&bob, &carol] {
        relay.add(&alice, &channel, who, "member");
    }
    let (one, two) = (relay.say(&bob, &channel, "one"), relay.say(&bob, &channel, "two"));
    let tags = |target: &Event, reason: &str| {
        json!([
            ["h", channel],
            ["e", target.id],
            ["reason_code", reason],
            ["action_id", "12345678-1234-4234-8234-123456789abc"]
        ])
    };
    relay.refuse(&bob, 9005, "", tags(&one, "spam"));
    relay.refuse(&carol, 9005, "", json!([["h", channel], ["e", one.id]]));
    relay.refuse(&alice, 9005, "", json!([["h", channel], ["e", one.id], ["action_id", "nonsense"]]));
    relay.send(&bob, 9005, "", json!([["h", channel], ["e", one.id]]));
    relay.send(&alice, 9005, "", tags(&two, "spam"));
    assert_eq!(relay.get(&alice, json!({"kinds": [9], "#h": [channel]})), []);
    let told = relay.told(&alice, &channel);
    let wanted = json!({"type": "message_deleted", "actor": alice.hex(), "target_event_id": two.id,
        "reason_code": "spam", "action_id": "12345678-1234-4234-8234-123456789abc"});
    assert_eq!(told.last(), Some(&wanted));
}

#[test]
fn an_owner_deletes_what_its_agent_wrote_and_others_do_not() {
    let (relay, alice, owner, bob) = (Relay::new(), Person::new(), Person::new(), Person::new());
    let mut agent = Person::new();
    relay.attest(&mut agent, &owner);
    let channel = relay.channel(&alice, "open");
    let (one, two) = (relay.say(&agent, &channel, "1"), relay.say(&agent, &channel, "2"));
    assert_eq!(relay.refuse(&bob, 5, "", json!([["e", one.id]])), "invalid: must be event author");
    relay.send(&owner, 5, "", json!([["e", one.id]]));
    relay.send(&owner, 9005, "", json!([["h", channel], ["e", two.id]]));
    assert_eq!(relay.get(&alice, json!({"kinds": [9], "#h": [channel]})), []);
}

#[test]
fn the_first_owner_of_an_agent_stays() {
    let (relay, first, second) = (Relay::new(), Person::new(), Person::new());
    let mut agent = Person::new();
    relay.attest(&mut agent, &first);
    relay.attest(&mut agent, &second);
    assert_eq!(relay.desk().owner_of(&agent.key()), Some(first.key()));
}
