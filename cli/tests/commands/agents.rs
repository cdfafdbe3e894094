//! Archived identities, and proposals to an owner.

use async_std::task::block_on;
use serde_json::json;
use waxlog_nostr::client::session::{Incoming, Login};
use waxlog_nostr::client::socket::{Limits, Socket};
use waxlog_nostr::observer;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Draft, Event, Keys, Signature};
use waxlog_scripted::model_server::Answer;

use crate::scripted::{accepted, event, found, now, tags, usage, Outcome, Stage};
use crate::stage::{Person, Relay, NO_CHANNEL};

#[test]
fn an_owner_shows_that_the_archived_agent_is_theirs() {
    let (owner, agent, other) = (Keys::generate(), Keys::generate(), "8".repeat(64));
    let word = OwnerTag::issue(&owner, &agent.public_key(), "").unwrap().to_tag();
    let profile = agent.sign(Draft::new(0, "{}", 5).tag(word.clone()));
    let stage = Stage::of(owner, vec![found(&[profile]), accepted()]);
    let target = agent.public_key().to_hex();
    let run = stage.run(&[
        "agents",
        "archive",
        &target,
        "--reason",
        "rebuilt",
        "--replaced-by",
        &other,
        "--content",
        "x",
    ]);
    let sent = stage.sent_one();
    assert_eq!(run.json(), json!({"ok": true, "event_id": sent.id, "action": "archive", "target": target}));
    let wanted = [
        "-".into(),
        format!("p|{target}"),
        "reason|rebuilt".into(),
        format!("replaced-by|{other}"),
        word.join("|"),
    ];
    assert_eq!((sent.kind, sent.content.as_str(), tags(&sent)), (9035, "x", wanted.to_vec()));
}

#[test]
fn an_agent_archives_itself_without_its_owners_word() {
    let stage = Stage::new(vec![found(&[]), accepted()]).with_owner(Keys::generate());
    let me = stage.keys.public_key().to_hex();
    assert_eq!(stage.run(&["agents", "unarchive", &me]).json()["action"], "unarchive");
    assert_eq!((stage.sent_one().kind, tags(&stage.sent_one())), (9036, vec!["-".into(), format!("p|{me}")]));
}

#[test]
fn what_cannot_be_asked_for_is_refused_before_any_request() {
    let (stage, key, long) = (Stage::new(vec![accepted()]), "7".repeat(64), "x".repeat(65));
    for more in [["--replaced-by", &key], ["--reason", &long], ["--reason", "a\nb"]] {
        let run = stage.run(&[&["agents", "archive", &key], &more[..]].concat());
        assert_eq!(run.failure(), usage(), "{more:?}");
    }
    assert!(stage.server.requests().is_empty());
}

#[test]
fn a_refused_request_is_an_error() {
    let refused = Answer::json(r#"{"event_id":"e","accepted":false,"message":"no"}"#);
    let stage = Stage::new(vec![found(&[]), refused]);
    assert_eq!(stage.run(&["agents", "archive", &"7".repeat(64)]).failure(), (4, "error".into()));
}

#[test]
fn only_the_relays_own_list_of_archived_identities_counts() {
    let (relay, key) = (Keys::generate(), "7".repeat(64));
    let document = |own: &str| Answer::json(json!({ "self": own }).to_string());
    let list = event(&relay, 13_535, &[&["-"], &["p", &key]], "", 5);
    let own = relay.public_key().to_hex();
    let run = |answers| Stage::new(answers).run(&["agents", "archived"]);
    assert_eq!(
        run(vec![document(&own), found(std::slice::from_ref(&list))]).json(),
        json!({"archived": [key]})
    );
    assert_eq!(run(vec![document(&own), found(&[])]).json(), json!({"archived": []}));
    let forged = Event { sig: Signature::from_bytes([1; 64]), ..list.clone() };
    let unmarked = event(&relay, 13_535, &[&["p", &key]], "", 5);
    let other = event(&Keys::generate(), 13_535, &[&["-"], &["p", &key]], "", 5);
    for list in [forged, unmarked, other] {
        let failure = run(vec![document(&own), found(&[list])]).failure();
        assert_eq!(failure.0, 4);
    }
    assert_eq!(run(vec![document("nonsense")]).failure(), (4, "error".into()));
}

/// A connection that hears frames to somebody.
async fn listen(relay: &Relay, reader: &Person) -> Socket {
    let login = Login { relay: relay.socket_url(), keys: reader.keys.clone(), owner: None };
    let mut socket = Socket::connect(login, Limits::default()).await.expect("a login");
    let filter = observer::filter(&reader.keys.public_key(), now());
    socket.subscribe("frames", vec![filter]).await.expect("sent");
    while !matches!(socket.next().await.expect("a frame"), Incoming::Eose(_)) {}
    socket
}

async fn first_event(socket: &mut Socket) -> Event {
    loop {
        if let Incoming::Event(_, event) = socket.next().await.expect("a frame") {
            return event;
        }
    }
}

#[test]
fn a_proposal_reaches_the_owner_sealed_and_is_saved_nowhere() {
    let relay = Relay::start();
    let owner = relay.person();
    let agent = relay.person().owned_by(&owner);
    let mut socket = block_on(listen(&relay, &owner));
    let create = [
        "agents",
        "draft-create",
        "--channel",
        NO_CHANNEL,
        "--display-name",
        " Bee ",
        "--system-prompt",
        "-",
    ];
    let done = agent.run_with("- Be brief.\n", &[&create[..], &["--model", "m"]].concat()).ok();
    let frame = block_on(first_event(&mut socket));
    assert_eq!(done["event_id"], json!(frame.id));
    assert_eq!(
        (&done["accepted"], &done["action"], &done["saved"]),
        (&json!(true), &json!("create"), &json!(false))
    );
    let opened = observer::open_telemetry(&owner.keys, &frame, now()).unwrap();
    let payload = opened.payload;
    assert_eq!(payload["requestId"], done["request_id"]);
    let wanted =
        json!({"channelId": NO_CHANNEL, "displayName": "Bee", "systemPrompt": "- Be brief.", "model": "m"});
    assert_eq!(payload["request"], wanted);
    let kept = owner.run(&["social", "event", "--event", &frame.id.to_hex()]).ok();
    assert_eq!(kept, json!([]));
}

#[test]
fn a_proposal_needs_an_owner_a_change_and_a_relay() {
    let stage = Stage::new(Vec::new());
    let update = ["agents", "draft-update", "--channel", NO_CHANNEL, "--agent-name", "Bee"];
    let change = [&update[..], &["--model", "m"]].concat();
    assert_eq!(stage.run(&change).failure(), (3, "auth_error".into()));
    let stage = stage.with_owner(Keys::generate());
    assert_eq!(stage.run(&update).failure(), usage());
    assert_eq!(stage.run(&[&update[..], &["--model", " "]].concat()).failure(), usage());
    assert!(stage.server.requests().is_empty());
    assert_eq!(stage.run(&change).failure(), (4, "error".into()));
}
