//! What is answered to whom: gates, scopes, limits, pages, search, feeds, counts.
#![allow(missing_docs)]

mod kit;

use kit::{contents, filters_of, ids, Person, Relay};
use serde_json::{json, Value};
use waxlog_relay::{Scope, Via};

#[test]
fn notices_are_for_the_one_they_name() {
    let (relay, alice, bob, stranger) = (Relay::new(), Person::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    relay.add(&alice, &channel, &bob, "member");
    for filters in [
        json!([{"kinds": [44100]}]),
        json!([{"kinds": [44100], "#p": [bob.hex()]}]),
        json!([{"kinds": [44100], "#p": [stranger.hex(), bob.hex()]}]),
        json!([{"kinds": [44100], "#p": []}]),
        json!([{"#p": [bob.hex()]}]),
        json!([{"authors": [bob.hex()]}]),
        json!([{}]),
        json!([{"ids": []}]),
        json!([{"search": "x"}]),
        json!([{"kinds": [1], "authors": [bob.hex()]}, {"kinds": [44101]}]),
    ] {
        let refusal = relay.ask(&stranger, Via::Socket, filters.clone()).unwrap_err();
        assert_eq!(
            refusal.message, "restricted: p-gated events require #p matching your pubkey",
            "{filters}"
        );
        let refusal = relay.ask(&stranger, Via::Http, filters).unwrap_err();
        assert_eq!(refusal.message, "restricted: p-gated kinds require #p tag matching your pubkey");
        assert_eq!(refusal.status, 403);
    }
    let counted = relay.count(&stranger, json!({"kinds": [44100]})).unwrap_err();
    assert_eq!(counted.message, "restricted: p-gated kinds require #p tag matching your pubkey");
    assert_eq!(relay.get(&bob, json!({"kinds": [44100], "#p": [bob.hex()]})).len(), 1);
    assert_eq!(relay.get(&stranger, json!({"kinds": [44100], "#p": [stranger.hex()]})), []);
    assert!(relay.ask(&alice, Via::Http, json!([{"#h": [channel]}])).is_err());
    assert!(relay.ask(&alice, Via::Socket, json!([{"#h": [channel]}])).is_ok());
}

#[test]
fn a_subscription_is_of_one_channel_or_of_none() {
    let (relay, alice) = (Relay::new(), Person::new());
    let (one, two) = (relay.channel(&alice, "open"), relay.channel(&alice, "private"));
    let scope = |filters: Value| relay.desk().scope(&filters_of(&filters), &alice.on(Via::Socket));
    let channel = Ok(Scope::Channel(one.parse().unwrap()));
    assert_eq!(scope(json!([{"#h": [one]}, {"kinds": [9], "#h": [one]}])), channel);
    assert_eq!(scope(json!([{"kinds": [], "#h": [one]}])), channel);
    for filters in [
        json!([{"kinds": [9], "#h": [one, two]}]),
        json!([{"kinds": [9], "#h": [one]}, {"kinds": [9], "#h": [two]}]),
        json!([{"kinds": [9], "#h": [one]}, {"kinds": [1]}]),
        json!([]),
    ] {
        assert_eq!(scope(filters), Ok(Scope::Global));
    }
    let stranger = Person::new();
    let refusal = relay.desk().scope(&filters_of(&json!([{"#h": [two]}])), &stranger.on(Via::Socket));
    assert_eq!(refusal.unwrap_err().message, "restricted: not a channel member");
}

#[test]
fn a_private_channel_does_not_exist_for_outsiders() {
    let (relay, alice, stranger) = (Relay::new(), Person::new(), Person::new());
    let (open, private) = (relay.channel(&alice, "open"), relay.channel(&alice, "private"));
    let said = relay.say(&alice, &open, "open words");
    let secret = relay.say(&alice, &private, "secret words");
    relay.send(&alice, 7, "+", json!([["e", secret.id]]));
    for filter in [
        json!({"ids": [secret.id]}),
        json!({"kinds": [7], "#e": [secret.id]}),
        json!({"kinds": [39000, 39001, 39002], "#d": [private]}),
        json!({"kinds": [9], "search": "secret"}),
    ] {
        for via in [Via::Socket, Via::Http] {
            assert_eq!(relay.ask(&stranger, via, json!([filter])), Ok(Vec::new()), "{filter}");
        }
        assert_eq!(relay.count(&stranger, filter), Ok(0));
    }
    assert_eq!(relay.fetch(&stranger, json!({"kinds": [9], "#h": [private]})), []);
    assert_eq!(relay.count(&stranger, json!({"kinds": [9], "#h": [private]})), Ok(0));
    let newest = json!({"kinds": [9], "authors": [alice.hex()], "limit": 1});
    assert_eq!(ids(&relay.get(&stranger, newest)), [said.id]);
    assert_eq!(ids(&relay.get(&stranger, json!({"kinds": [9], "#h": [private, open]}))), [said.id]);
}

#[test]
fn empty_lists_and_a_limit_of_none_give_nothing_and_limits_are_bounded() {
    let (relay, alice) = (Relay::new(), Person::new());
    for n in 0..1100 {
        relay.send(&alice, 1, &n.to_string(), json!([]));
    }
    for filter in
        [json!({"kinds": []}), json!({"kinds": [1], "authors": []}), json!({"kinds": [1], "limit": 0})]
    {
        assert_eq!(relay.get(&alice, filter), []);
    }
    for filter in [json!({"kinds": [1]}), json!({"kinds": [1], "limit": 5000})] {
        assert_eq!(relay.get(&alice, filter).len(), 1000);
    }
    let page = relay.fetch(&alice, json!({"kinds": [1], "limit": 5000, "page": 2}));
    assert_eq!(page.len(), 100);
    assert_eq!(page[0].content, "99");
    assert_eq!(relay.count(&alice, json!({"kinds": [1], "limit": 2})), Ok(1100));
}

#[test]
fn equal_times_are_in_order_of_id_and_pages_over_them_lose_and_repeat_nothing() {
    let (relay, alice) = (Relay::new(), Person::new());
    let mut notes: Vec<_> = (0..9).map(|n| alice.sign(1, &n.to_string(), json!([]), relay.now())).collect();
    for note in &notes {
        assert!(relay.submit(&alice, note).reply.accepted);
    }
    notes.sort_by_key(|note| note.id);
    assert_eq!(ids(&relay.get(&alice, json!({"kinds": [1]}))), ids(&notes));
    let mut found = ids(&relay.fetch(&alice, json!({"kinds": [1], "limit": 4})));
    while let Some(last) = found.last() {
        let next = json!({"kinds": [1], "limit": 4, "until": relay.now(), "before_id": last});
        let page = relay.fetch(&alice, next);
        if page.is_empty() {
            break;
        }
        found.extend(ids(&page));
    }
    assert_eq!(found, ids(&notes));
}

#[test]
fn overlapping_filters_give_an_event_once_on_the_socket_and_twice_over_http() {
    let (relay, alice) = (Relay::new(), Person::new());
    let note = relay.send(&alice, 1, "x", json!([]));
    let filters = json!([{"ids": [note.id]}, {"kinds": [1]}]);
    assert_eq!(relay.ask(&alice, Via::Socket, filters.clone()).unwrap().len(), 1);
    assert_eq!(relay.ask(&alice, Via::Http, filters.clone()).unwrap().len(), 2);
    assert_eq!(relay.desk().count(&filters_of(&filters), &alice.on(Via::Socket)), Ok(2));
    assert_eq!(relay.ask(&alice, Via::Socket, json!([])), Ok(Vec::new()));
}

#[test]
fn an_event_matches_h_by_its_tag_or_else_by_where_it_is() {
    let (relay, alice) = (Relay::new(), Person::new());
    let (one, two) = (relay.channel(&alice, "open"), relay.channel(&alice, "open"));
    let message = relay.say(&alice, &one, "x");
    let reaction = relay.send(&alice, 7, "+", json!([["e", message.id]]));
    assert_eq!(ids(&relay.get(&alice, json!({"kinds": [7], "#h": [one]}))), [reaction.id]);
    assert_eq!(relay.get(&alice, json!({"kinds": [7], "#h": [two]})), []);
    let tagged = relay.send(&alice, 9, "y", json!([["h", one], ["p", alice.hex()], ["t", "a"]]));
    assert_eq!(
        ids(&relay.get(&alice, json!({"kinds": [9], "#p": [alice.hex()], "#t": ["a", "b"]}))),
        [tagged.id]
    );
    assert_eq!(relay.get(&alice, json!({"kinds": [9], "#p": [alice.hex()], "#t": ["b"]})), []);
}

#[test]
fn search_finds_words_best_first_and_keeps_to_its_kinds() {
    let (relay, alice) = (Relay::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    relay.say(&alice, &channel, "a lighthouse, a Lighthouse!");
    relay.say(&alice, &channel, "the lighthouse keeper");
    relay.send(&alice, 1, "lighthouse note", json!([]));
    relay.send(&alice, 0, "{\"name\":\"Lighthouse Ann\"}", json!([]));
    let find = |search: &str, extra: Value| {
        let mut filter = json!({"kinds": [9], "search": search});
        filter.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        relay.ask(&alice, Via::Http, json!([filter])).map(|events| contents(&events).join("|"))
    };
    let found = |search: &str| find(search, json!({})).unwrap();
    assert_eq!(found("LIGHTHOUSE"), "a lighthouse, a Lighthouse!|the lighthouse keeper");
    assert_eq!(found("lighthouse keeper"), "the lighthouse keeper");
    assert_eq!(found("lighthouse -keeper"), "a lighthouse, a Lighthouse!");
    assert_eq!(found("\"keeper lighthouse\""), "");
    assert_eq!(found("keeper or nothing"), "the lighthouse keeper");
    assert_eq!(found("light"), "");
    assert_eq!(find("light keep", json!({"search_mode": "prefix"})).unwrap(), "the lighthouse keeper");
    assert_eq!(find("lighthouse", json!({"limit": 1, "page": 2})).unwrap(), "the lighthouse keeper");
    assert_eq!(find("ann", json!({"kinds": [0]})).unwrap(), "{\"name\":\"Lighthouse Ann\"}");
    assert_eq!(find("lighthouse", json!({"kinds": [1]})).unwrap(), "");
    let mixed = json!([{"kinds": [9], "search": "x"}, {"kinds": [1]}]);
    let refusal = relay.ask(&alice, Via::Socket, mixed.clone()).unwrap_err();
    assert_eq!(refusal.message, "error: mixed search and non-search filters not supported");
    let refusal = relay.ask(&alice, Via::Http, mixed).unwrap_err();
    assert_eq!(
        (&*refusal.message, refusal.status),
        ("mixed search and non-search filters not supported", 400)
    );
}

#[test]
fn a_feed_is_what_names_me_what_waits_for_me_and_what_goes_on() {
    let (relay, alice, bob) = (Relay::new(), Person::new(), Person::new());
    let channel = relay.channel(&alice, "open");
    relay.send(&bob, 9, "ping", json!([["h", channel], ["p", alice.hex()]]));
    relay.say(&bob, &channel, "not for you");
    relay.send(&bob, 40007, "remember", json!([["h", channel], ["p", alice.hex()]]));
    relay.send(&bob, 1, "note", json!([["p", alice.hex()]]));
    let feed = |types: Value| {
        let filter = json!({"#p": [alice.hex()], "feed_types": types});
        contents(&relay.fetch(&alice, filter)).join("|")
    };
    assert_eq!(feed(json!(["mentions"])), "note|ping");
    assert_eq!(feed(json!(["needs_action", "mentions", "gossip", 7])), "remember|note|ping");
    assert_eq!(feed(json!(["mentions", "agent_activity"])), "note|ping|not for you");
    let limited = json!({"#p": [alice.hex()], "feed_types": ["mentions"], "limit": 1});
    assert_eq!(contents(&relay.fetch(&alice, limited)), ["note"]);
    assert_eq!(relay.ask(&alice, Via::Http, json!([{"feed_types": ["mentions"]}])).unwrap_err().status, 403);
}
