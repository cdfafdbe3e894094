//! Channels: who opens, changes, enters and leaves them, and what the relay says of it.
#![allow(missing_docs, clippy::unwrap_used)]

mod kit;

use kit::{kinds_passed, Person, Relay};
use serde_json::json;
use waxlog_relay::{Live, Via, Whom};

#[test]
fn a_new_channel_is_described_and_belongs_to_its_author() {
    let (relay, alice) = (Relay::new(), Person::new());
    let id = "01234567-89ab-4def-8123-456789abcdef";
    let tags = json!([["h", id], ["name", "##  fresh "], ["about", "x"]]);
    let (_, submission) = relay.try_send(&alice, 9007, "", tags);
    assert_eq!(kinds_passed(&submission), [9007, 39000, 39001, 39002, 40099, 44100]);
    assert_eq!(relay.roles(&alice, id), [(alice.hex(), "owner".to_owned())]);
    let metadata = &relay.get(&alice, json!({"kinds": [39000], "#d": [id]}))[0];
    let mut tags = metadata.tags.clone();
    tags.sort();
    assert_eq!(
        json!(tags),
        json!([["about", "x"], ["closed"], ["d", id], ["name", "fresh"], ["public"], ["t", "stream"]])
    );
    assert_eq!(metadata.pubkey, relay.keys.public_key());
    assert_eq!(metadata.verify(), Ok(()));
    assert_eq!(relay.told(&alice, id), [json!({"type": "channel_created", "actor": alice.hex()})]);
    let (_, again) = relay.try_send(&alice, 9007, "", json!([["h", id], ["name", "again"]]));
    assert_eq!(kit::accepted(&again.reply), (false, "duplicate: channel already exists"));
    assert_eq!(again.reply.status, 200);
}

#[test]
fn a_channel_needs_a_name_and_known_words() {
    let (relay, alice) = (Relay::new(), Person::new());
    for name in ["", "  ", "# #"] {
        assert_eq!(
            relay.refuse(&alice, 9007, "", json!([["name", name]])),
            "invalid: channel name is required"
        );
    }
    let text = relay.refuse(&alice, 9007, "", json!([["name", "x"], ["visibility", "secret"]]));
    assert_eq!(text, "invalid visibility: secret");
    let text = relay.refuse(&alice, 9007, "", json!([["name", "x"], ["channel_type", "chat"]]));
    assert_eq!(text, "invalid channel_type: chat");
    relay.send(&alice, 9007, "", json!([["name", "x"]]));
}

#[test]
fn policies_say_who_adds_whom() {
    let (relay, alice, owner) = (Relay::new(), Person::new(), Person::new());
    let mut agent = Person::new();
    relay.attest(&mut agent, &owner);
    let channel = relay.channel(&alice, "open");
    let add =
        |who: &Person| relay.try_send(who, 9000, "", json!([["h", channel], ["p", agent.hex()]])).1.reply;
    let policy =
        |word: &str| relay.send(&agent, 10100, &json!({"channel_add_policy": word}).to_string(), json!([]));
    policy("nobody");
    assert!(add(&owner).message.contains("policy:nobody"));
    policy("owner_only");
    assert!(add(&alice).message.contains("policy:owner_only"));
    assert!(add(&agent).accepted);
    relay.send(&agent, 9022, "", json!([["h", channel]]));
    assert!(add(&owner).accepted);
    assert_eq!(relay.roles(&alice, &channel).len(), 2);
    // What says nothing of the policy does not change it.
    relay.send(&agent, 10100, "{}", json!([]));
    relay.send(&alice, 9001, "", json!([["h", channel], ["p", agent.hex()]]));
    assert!(!add(&alice).accepted);
}

#[test]
fn strangers_add_members_to_an_open_channel_but_no_managers() {
    let (relay, alice, bob, stranger) = (Relay::new(), Person::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    relay.add(&stranger, &channel, &bob, "member");
    relay.add(&stranger, &channel, &stranger, "admin");
    assert_eq!(relay.roles(&alice, &channel).len(), 2, "the stranger became no admin");
    assert!(relay
        .refuse(&alice, 9000, "", json!([["h", channel], ["p", bob.hex()], ["role", "king"]]))
        .starts_with("invalid: invalid role: king"));
    assert!(relay.refuse(&alice, 9000, "", json!([["h", channel]])).starts_with("invalid:"));
}

#[test]
fn members_of_a_private_channel_invite_and_outsiders_do_not() {
    let (relay, alice, bob, carol, dave) =
        (Relay::new(), Person::new(), Person::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "private");
    let tags = json!([["h", channel], ["p", carol.hex()]]);
    assert_eq!(relay.refuse(&bob, 9000, "", tags), "restricted: not a channel member");
    relay.add(&alice, &channel, &bob, "member");
    relay.add(&bob, &channel, &carol, "guest");
    let text = relay.refuse(&bob, 9000, "", json!([["h", channel], ["p", dave.hex()], ["role", "admin"]]));
    assert_eq!(text, "invalid: only owners/admins may grant elevated roles");
    assert_eq!(relay.refuse(&dave, 9021, "", json!([["h", channel]])), "restricted: channel is private");
    relay.send(&bob, 9021, "", json!([["h", channel]]));
}

#[test]
fn roles_are_kept_changed_by_managers_and_never_without_an_owner() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let role_of = |who: &Person| {
        relay.roles(&alice, &channel).into_iter().find(|(key, _)| *key == who.hex()).map(|(_, role)| role)
    };
    relay.add(&alice, &channel, &bob, "admin");
    relay.send(&alice, 9000, "", json!([["h", channel], ["p", bob.hex()]]));
    assert_eq!(role_of(&bob).as_deref(), Some("admin"));
    let stranger = Person::new();
    let text =
        relay.refuse(&stranger, 9000, "", json!([["h", channel], ["p", bob.hex()], ["role", "guest"]]));
    assert_eq!(text, "invalid: only owners/admins may change an active member's role");
    for actor in [&alice, &bob] {
        let text =
            relay.refuse(actor, 9000, "", json!([["h", channel], ["p", alice.hex()], ["role", "member"]]));
        assert!(text.starts_with("invalid: cannot demote the last owner"), "{text}");
    }
    for kind in [9001, 9022] {
        let text = relay.refuse(&alice, kind, "", json!([["h", channel], ["p", alice.hex()]]));
        assert!(text.starts_with("invalid: cannot remove the last owner"), "{text}");
    }
    relay.send(&bob, 9001, "", json!([["h", channel], ["p", alice.hex()]]));
    assert_eq!(role_of(&alice).as_deref(), Some("owner"), "an admin's attempt is taken without effect");
    relay.add(&alice, &channel, &bob, "owner");
    relay.add(&bob, &channel, &alice, "member");
    relay.add(&bob, &channel, &alice, "owner");
    assert_eq!(role_of(&alice).as_deref(), Some("owner"));
    relay.send(&alice, 9001, "", json!([["h", channel], ["p", bob.hex()]]));
    relay.add(&alice, &channel, &bob, "member");
    assert_eq!(role_of(&bob).as_deref(), Some("member"), "the old role does not come back");
}

#[test]
fn those_who_come_and_go_are_told_and_their_subscriptions_end() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "private");
    let (_, added) = relay.try_send(&alice, 9000, "", json!([["h", channel], ["p", bob.hex()]]));
    assert_eq!(kinds_passed(&added), [9000, 39000, 39001, 39002, 40099, 44100]);
    let notice = &kit::passed(&added)[5];
    assert_eq!(notice.channel, None);
    assert_eq!(notice.event.tag_value("p"), Some(&*bob.hex()));
    assert_eq!(notice.event.tag_value("h"), Some(&*channel));
    let content = json!({"type": "member_added", "channel_id": channel, "actor": alice.hex()});
    assert_eq!(serde_json::from_str::<serde_json::Value>(&notice.event.content).unwrap(), content);
    let (_, removed) = relay.try_send(&alice, 9001, "", json!([["h", channel], ["p", bob.hex()]]));
    let revoked = Live::Revoked { channel: channel.parse().unwrap(), whom: Whom::One(bob.key()) };
    assert_eq!(removed.live.last(), Some(&revoked));
    assert_eq!(kinds_passed(&removed), [9001, 39000, 39001, 39002, 40099, 44101]);
    let refusal = relay.ask(&bob, Via::Socket, json!([{"kinds": [9], "#h": [channel]}])).unwrap_err();
    assert_eq!(refusal.message, "restricted: not a channel member");
    let last = relay.told(&alice, &channel).pop().unwrap();
    assert_eq!(last, json!({"type": "member_removed", "actor": alice.hex(), "target": bob.hex()}));
}

#[test]
fn the_relays_lists_are_newer_each_time_even_within_a_second() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let time = || relay.get(&alice, json!({"kinds": [39002], "#d": [channel]}))[0].created_at;
    let mut last = time();
    for _ in 0..3 {
        let member = Person::new();
        let event = alice.sign(9000, "", json!([["h", channel], ["p", member.hex()]]), relay.now());
        assert!(relay.submit(&alice, &event).reply.accepted);
        assert!(time() > last);
        last = time();
    }
    assert_eq!(relay.roles(&alice, &channel).len(), 4);
}

#[test]
fn an_archived_channel_is_read_only_until_it_comes_back_and_its_members_hear_of_that() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    relay.add(&alice, &channel, &bob, "member");
    let message = relay.say(&bob, &channel, "before");
    assert_eq!(
        relay.refuse(&bob, 9002, "", json!([["h", channel], ["archived", "true"]])),
        "invalid: actor not authorized"
    );
    let (_, archived) = relay.try_send(&alice, 9002, "", json!([["h", channel], ["archived", "true"]]));
    assert!(
        archived.live.iter().all(|live| matches!(live, Live::Event(_))),
        "archiving ends no subscription"
    );
    let text = "invalid: channel is archived";
    assert_eq!(relay.refuse(&bob, 9, "x", json!([["h", channel]])), text);
    assert_eq!(relay.refuse(&bob, 7, "+", json!([["e", message.id]])), text);
    assert_eq!(relay.refuse(&Person::new(), 9021, "", json!([["h", channel]])), text);
    assert_eq!(relay.refuse(&alice, 9002, "", json!([["h", channel], ["topic", "x"]])), text);
    assert_eq!(relay.refuse(&alice, 9008, "", json!([["h", channel]])), text);
    assert_eq!(kit::contents(&relay.get(&bob, json!({"kinds": [9], "#h": [channel]}))), ["before"]);
    let (_, back) = relay.try_send(&alice, 9002, "", json!([["h", channel], ["archived", "false"]]));
    assert_eq!(kinds_passed(&back).iter().filter(|kind| **kind == 44100).count(), 2);
    relay.say(&bob, &channel, "after");
}

#[test]
fn managers_change_what_a_channel_is_and_members_what_it_is_about() {
    let (relay, alice, bob, stranger) = (Relay::new(), Person::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    relay.add(&alice, &channel, &bob, "member");
    for tag in [["name", "x"], ["about", "x"], ["ttl", "5"], ["visibility", "private"]] {
        assert_eq!(
            relay.refuse(&bob, 9002, "", json!([["h", channel], tag])),
            "invalid: actor not authorized"
        );
    }
    relay.send(&bob, 9002, "", json!([["h", channel], ["topic", "today"]]));
    relay.send(&bob, 9002, "", json!([["h", channel], ["purpose", "always"], ["model", "m"]]));
    assert_eq!(
        relay.refuse(&stranger, 9002, "", json!([["h", channel], ["topic", "x"]])),
        "invalid: not a member"
    );
    for tags in [
        json!([["h", channel]]),
        json!([["h", channel], ["ttl", "0"]]),
        json!([["h", channel], ["archived", "x"]]),
    ] {
        assert!(relay.refuse(&alice, 9002, "", tags).starts_with("invalid:"));
    }
    let unknown = "99999999-9999-4999-8999-999999999999";
    for kind in [9002, 9021, 9008] {
        let text = relay.refuse(&alice, kind, "", json!([["h", unknown], ["topic", "x"]]));
        assert_eq!(text, "invalid: channel not found");
    }
    let metadata = &relay.get(&alice, json!({"kinds": [39000], "#d": [channel]}))[0];
    assert_eq!(metadata.tag_value("topic"), Some("today"));
    assert_eq!(metadata.tag_value("model"), Some("m"));
}

#[test]
fn a_channel_that_turns_private_shuts_out_those_who_are_not_in_it() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    let (_, closed) = relay.try_send(&alice, 9002, "", json!([["h", channel], ["visibility", "private"]]));
    let revoked = Live::Revoked { channel: channel.parse().unwrap(), whom: Whom::NonMembers };
    assert!(closed.live.contains(&revoked));
    let (_, same) = relay.try_send(&alice, 9002, "", json!([["h", channel], ["visibility", "private"]]));
    assert!(!same.live.contains(&revoked));
    assert_eq!(relay.told(&alice, &channel)[1]["type"], "visibility_changed");
}

#[test]
fn a_deleted_channel_is_gone() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    relay.add(&alice, &channel, &bob, "admin");
    let message = relay.say(&bob, &channel, "before");
    assert_eq!(relay.refuse(&bob, 9008, "", json!([["h", channel]])), "invalid: only owner can delete group");
    relay.send(&alice, 9008, "", json!([["h", channel]]));
    assert_eq!(relay.get(&alice, json!({"ids": [message.id]})), []);
    assert_eq!(relay.get(&alice, json!({"kinds": [39000], "#d": [channel]})), []);
    assert_eq!(relay.refuse(&alice, 9, "x", json!([["h", channel]])), "restricted: not a channel member");
    assert_eq!(relay.refuse(&alice, 9008, "", json!([["h", channel]])), "invalid: channel not found");
    let (_, again) = relay.try_send(&alice, 9007, "", json!([["h", channel], ["name", "x"]]));
    assert!(!again.reply.accepted);
}

#[test]
fn an_agents_owner_rules_the_agents_channel_without_being_in_it() {
    let (relay, owner, stranger) = (Relay::new(), Person::new(), Person::new());
    let mut agent = Person::new();
    relay.attest(&mut agent, &owner);
    let channel = relay.channel(&agent, "private");
    let rename = json!([["h", channel], ["name", "renamed"]]);
    assert_eq!(relay.refuse(&stranger, 9002, "", rename.clone()), "invalid: actor not authorized");
    relay.send(&owner, 9002, "", rename);
    relay.send(&owner, 9002, "", json!([["h", channel], ["archived", "true"]]));
    relay.send(&owner, 9002, "", json!([["h", channel], ["archived", "false"]]));
    relay.send(&owner, 9008, "", json!([["h", channel]]));
}

#[test]
fn an_owner_who_is_a_member_removes_its_own_agent() {
    let (relay, alice, owner, bob) = (Relay::new(), Person::new(), Person::new(), Person::new());
    let mut agent = Person::new();
    relay.attest(&mut agent, &owner);
    let channel = relay.channel(&alice, "open");
    relay.add(&alice, &channel, &agent, "bot");
    let tags = json!([["h", channel], ["p", agent.hex()]]);
    assert_eq!(relay.refuse(&owner, 9001, "", tags.clone()), "invalid: actor not authorized");
    relay.add(&alice, &channel, &owner, "member");
    relay.add(&alice, &channel, &bob, "member");
    assert_eq!(relay.refuse(&bob, 9001, "", tags.clone()), "invalid: actor not authorized");
    relay.send(&owner, 9001, "", tags);
}

#[test]
fn the_reaper_archives_a_channel_that_was_left_alone_and_each_event_renews_it() {
    let (mut relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    relay.send(&alice, 9002, "", json!([["h", channel], ["ttl", "100"]]));
    let set_at = relay.now();
    assert_eq!(relay.desk().reap(set_at + 99).unwrap().0, []);
    for _ in 0..50 {
        relay.tick();
    }
    relay.say(&alice, &channel, "still here");
    let renewed_at = relay.now();
    relay.reopen();
    assert_eq!(relay.desk().reap(renewed_at + 99).unwrap().0, []);
    let (live, ticket) = relay.desk().reap(renewed_at + 100).unwrap();
    assert!(ticket.is_some());
    assert_eq!(live.last(), Some(&Live::Revoked { channel: channel.parse().unwrap(), whom: Whom::Everyone }));
    assert_eq!(relay.refuse(&alice, 9, "x", json!([["h", channel]])), "invalid: channel is archived");
    assert_eq!(relay.told(&alice, &channel).pop().unwrap()["type"], "channel_auto_archived");
    assert_eq!(relay.desk().reap(renewed_at + 500).unwrap().0, []);
}

#[test]
fn direct_conversations_are_found_by_their_people() {
    let (relay, alice, bob, carol, stranger) =
        (Relay::new(), Person::new(), Person::new(), Person::new(), Person::new());
    let open = |who: &Person, others: &[&Person]| {
        let tags: Vec<_> = others.iter().map(|other| ["p".to_owned(), other.hex()]).collect();
        relay.try_send(who, 41010, "", json!(tags))
    };
    let response = |submission: &waxlog_relay::Submission| -> serde_json::Value {
        serde_json::from_str(submission.reply.message.strip_prefix("response:").unwrap()).unwrap()
    };
    let (event, opened) = open(&alice, &[&bob, &carol]);
    let first = response(&opened);
    assert_eq!(first["created"], true);
    let channel = first["channel_id"].as_str().unwrap().to_owned();
    assert_eq!(kinds_passed(&opened).iter().filter(|kind| **kind == 44100).count(), 3);
    let again = relay.submit(&alice, &event).reply;
    assert_eq!(kit::accepted(&again), (true, "duplicate: already processed"));
    let (_, other_order) = open(&carol, &[&bob, &alice, &bob]);
    assert_eq!(response(&other_order), json!({"channel_id": channel, "created": false}));
    let metadata = &relay.fetch(&bob, json!({"kinds": [39000], "#d": [channel]}))[0];
    assert_eq!(metadata.tag_value("name"), Some("Group DM (3)"));
    assert_eq!(metadata.tags_named("hidden").count(), 1);
    assert_eq!(metadata.tags_named("p").count(), 3);
    assert_eq!(relay.fetch(&stranger, json!({"kinds": [39000, 40099, 41001], "#d": [channel]})), []);
    let listed = relay.fetch(&bob, json!({"kinds": [41001], "#p": [bob.hex()]}));
    assert_eq!(listed[0].tag_value("d"), Some(&*channel));

    let dave = Person::new();
    let larger = relay.try_send(&alice, 41011, "", json!([["h", channel], ["p", dave.hex()]])).1;
    assert_ne!(response(&larger)["channel_id"], *channel);
    assert_eq!(relay.roles(&alice, &channel).len(), 3);
    let tags = json!([["h", channel], ["p", dave.hex()]]);
    assert_eq!(relay.refuse(&stranger, 41011, "", tags), "forbidden: not a member of this DM");
    let crowd: Vec<_> = (0..9).map(|_| ["p".to_owned(), Person::new().hex()]).collect();
    assert_eq!(relay.refuse(&alice, 41010, "", json!(crowd)), "invalid: DM supports at most 9 participants");
    assert!(relay.refuse(&alice, 41010, "", json!([["p", alice.hex()]])).starts_with("invalid:"));
    assert!(relay.refuse(&alice, 41010, "", json!([])).starts_with("invalid:"));
}

#[test]
fn hiding_a_conversation_is_ones_own_affair_and_opening_it_shows_it_again() {
    let (mut relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let (_, opened) = relay.try_send(&alice, 41010, "", json!([["p", bob.hex()]]));
    let response: serde_json::Value =
        serde_json::from_str(opened.reply.message.strip_prefix("response:").unwrap()).unwrap();
    let channel = response["channel_id"].as_str().unwrap().to_owned();
    let hidden = |relay: &Relay, who: &Person| -> Option<(u64, Vec<String>)> {
        let rows = relay.get(who, json!({"kinds": [30622], "#p": [who.hex()]}));
        rows.first().map(|row| (row.created_at, row.tag_values("h").map(str::to_owned).collect()))
    };
    let (_, hide) = relay.try_send(&alice, 41012, "", json!([["h", channel]]));
    assert_eq!(kit::accepted(&hide.reply), (true, "{}"));
    let (hidden_at, channels) = hidden(&relay, &alice).unwrap();
    assert_eq!(channels, std::slice::from_ref(&channel));
    assert_eq!(hidden(&relay, &bob), None);
    relay.reopen();
    let reopened = alice.sign(41010, "", json!([["p", bob.hex()]]), relay.now());
    assert!(relay.submit(&alice, &reopened).reply.accepted);
    let (shown_at, channels) = hidden(&relay, &alice).unwrap();
    assert!(channels.is_empty() && shown_at > hidden_at);
    let general = relay.channel(&alice, "open");
    assert_eq!(relay.refuse(&alice, 41012, "", json!([["h", general]])), "invalid: channel is not a DM");
}
