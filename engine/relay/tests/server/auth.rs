//! Proofs of identity on sockets.

use serde_json::json;
use waxlog_nostr::auth::answer_challenge;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Draft, Event, Keys};

use crate::client::{now, TestRelay};

/// Makes a proof from keys, the relay's URL and the challenge.
type MakeProof = fn(&Keys, &str, &str) -> Event;

const FAILED: &str = "auth-required: verification failed";

#[async_std::test]
async fn a_wrong_proof_is_refused_and_no_other_is_taken() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let url = relay.url();
    let wrong: [(&str, MakeProof); 5] = [
        ("challenge", |keys, url, _| answer_challenge(keys, url, &"0".repeat(64), None, now())),
        ("relay", |keys, _, challenge| {
            answer_challenge(keys, "ws://elsewhere.example", challenge, None, now())
        }),
        ("kind", |keys, url, challenge| {
            keys.sign(Draft::new(1, "", now()).tag(["relay", url]).tag(["challenge", challenge]))
        }),
        ("time", |keys, url, challenge| answer_challenge(keys, url, challenge, None, now() - 70)),
        ("signature", |keys, url, challenge| {
            let other = Keys::generate().sign_hash(&[7; 32]);
            Event { sig: other, ..answer_challenge(keys, url, challenge, None, now()) }
        }),
    ];
    for (name, make) in wrong {
        let (mut client, challenge) = relay.connect().await;
        let proof = make(&keys, &url, &challenge);
        client.say(&json!(["AUTH", proof])).await;
        assert_eq!(client.next().await, json!(["OK", proof.id, false, FAILED]), "{name}");
        let proof = answer_challenge(&keys, &url, &challenge, None, now());
        client.say(&json!(["AUTH", proof])).await;
        let text = "auth-required: authentication already failed";
        assert_eq!(client.next().await, json!(["OK", proof.id, false, text]), "{name}");
        client.say(&json!(["COUNT", "c", {}])).await;
        assert_eq!(client.next().await, json!(["CLOSED", "c", "auth-required: not authenticated"]));
    }
}

#[async_std::test]
async fn the_loopbacks_names_are_one_relay_and_a_second_proof_is_one_too_many() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let (mut client, challenge) = relay.connect().await;
    let alias = format!("ws://localhost:{}/", relay.server.address().port());
    client.authenticate(&keys, &alias, &challenge).await;
    let proof = answer_challenge(&keys, &alias, &challenge, None, now());
    client.say(&json!(["AUTH", proof])).await;
    let text = "auth-required: already authenticated";
    assert_eq!(client.next().await, json!(["OK", proof.id, false, text]));
}

#[async_std::test]
async fn the_first_owner_of_an_agent_stays_and_two_tags_count_as_none() {
    let relay = TestRelay::start().await;
    let (agent, first, second) = (Keys::generate(), Keys::generate(), Keys::generate());
    let metric = |owner: &Keys| {
        let content = waxlog_nostr::nip44::ConversationKey::new(&agent, &owner.public_key()).unwrap();
        let draft = Draft::new(44200, content.encrypt("the cost").unwrap(), now());
        let draft = draft.tag(["p", &owner.public_key().to_hex()]);
        agent.sign(draft.tag(["agent", &agent.public_key().to_hex()]))
    };
    let tag = |owner: &Keys| OwnerTag::issue(owner, &agent.public_key(), "").unwrap().to_tag();
    let proof = |challenge: &str, tags: Vec<Vec<String>>| {
        let mut draft =
            Draft::new(22242, "", now()).tag(["relay", &relay.url()]).tag(["challenge", challenge]);
        draft.tags.extend(tags);
        agent.sign(draft)
    };
    for (tags, owner, is_taken) in [
        (vec![tag(&first), tag(&second)], &first, false),
        (vec![tag(&first)], &first, true),
        (vec![tag(&second)], &second, false),
        (vec![], &first, true),
    ] {
        let (mut client, challenge) = relay.connect().await;
        let proof = proof(&challenge, tags);
        client.say(&json!(["AUTH", proof])).await;
        assert_eq!(client.next().await, json!(["OK", proof.id, true, ""]));
        let (accepted, text) = client.publish(&metric(owner)).await;
        assert_eq!(accepted, is_taken, "{text}");
    }
}

#[async_std::test]
async fn presence_ends_with_the_last_connection() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let (mut first, second) = (relay.login(&keys).await, relay.login(&keys).await);
    let online = keys.sign(Draft::new(20001, "online", now()));
    assert!(first.publish(&online).await.0);
    let asked = json!([{"kinds": [20001], "authors": [keys.public_key()]}]);
    let asker = Keys::generate();
    let shown = || async {
        let (status, found) = crate::requests::post(&relay, &asker, "/query", &asked).await;
        assert_eq!(status, 200, "{found}");
        found.as_array().unwrap().len()
    };
    assert_eq!(shown().await, 1);
    drop(second);
    assert_eq!(shown().await, 1);
    drop(first);
    let gone = async {
        while shown().await > 0 {
            async_std::task::yield_now().await;
        }
    };
    async_std::future::timeout(crate::client::PATIENCE, gone).await.expect("presence stayed");
}
