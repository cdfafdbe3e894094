//! Channels made from templates, on a scripted relay whose answers come in the order of the requests.

use serde_json::{json, Value};
use waxlog_scripted::model_server::{Answer, ModelServer};

use crate::stage::Person;

const PUT_USER: u16 = 9000;

/// A relay that answers this, and a person who has one template with a canvas and one persona of a team.
fn stage(answers: impl FnOnce(&Person) -> Vec<Value>) -> (ModelServer, Person) {
    let mut person = Person::at("http://unused");
    let answers = answers(&person);
    let server = ModelServer::start(answers.iter().map(|answer| Answer::json(answer.to_string())).collect())
        .expect("a port");
    person.move_to(&server.url());
    let templates = json!([{"name": "Team Room", "canvas_template": "# {channel.name}", "visibility": "private",
        "agents": {"personas": [{"personaId": "keeper"}], "teams": [{"teamId": "t"}]}}]);
    std::fs::write(person.path("templates.json"), templates.to_string()).expect("written");
    (server, person)
}

fn create(person: &Person) -> crate::stage::Done {
    let from = ["--template", "team room", "--templates-file", "templates.json"];
    person.run(&[&["channels", "create", "--name", "bees"], &from[..]].concat())
}

fn agent(owner: &Person, key: &str, persona: &str) -> Value {
    owner.event(30_177, &json!({ "persona_id": persona }).to_string(), &[&["d", key]])
}

fn team(owner: &Person) -> Value {
    json!([owner.event(30_176, r#"{"persona_ids":["keeper","scout"]}"#, &[&["d", "t"]])])
}

fn accepted() -> Value {
    json!({"event_id": "", "accepted": true, "message": ""})
}

/// The events that were sent, in their order.
fn sent(server: &ModelServer) -> Vec<Value> {
    let requests = server.requests();
    let events = requests.iter().filter(|request| request.path == "/events");
    events.map(|request| serde_json::from_slice(&request.body).expect("json")).collect()
}

#[test]
fn a_template_brings_its_canvas_and_its_agents() {
    let relay = Person::at("http://unused");
    let (keeper, scout) = (Person::at("http://unused").key(), Person::at("http://unused").key());
    let (server, ann) = stage(|ann| {
        vec![
            team(ann),
            json!([agent(ann, &keeper, "keeper"), agent(ann, &scout, "scout")]),
            json!({"self": relay.key()}),
            json!([relay.event(13_535, "", &[&["-"], &["p", &scout]])]),
            accepted(),
        ]
    });
    let report = create(&ann).ok();
    assert_eq!((&report["status"], &report["canvas_applied"]), (&json!("ok"), &json!(true)));
    assert_eq!(report["members_added"], json!([{"persona_id": "keeper", "pubkey": keeper}]));
    assert_eq!(report["skipped"], json!([{"persona_id": "scout", "reason": "all instances archived"}]));
    assert_eq!(report["archived_excluded"], json!([{"persona_id": "scout", "pubkey": scout}]));
    assert!(report.get("archive_state_warning").is_none());
    let events = sent(&server);
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_u64().unwrap()).collect();
    assert_eq!(kinds, [9007, 40_100, 9000]);
    assert!(events[0]["tags"].as_array().unwrap().contains(&json!(["visibility", "private"])));
    assert_eq!(events[1]["content"], "# bees");
}

#[test]
fn two_agents_of_one_persona_create_nothing() {
    let relay = Person::at("http://unused");
    let (one, two) = (Person::at("http://unused").key(), Person::at("http://unused").key());
    let (server, ann) = stage(|ann| {
        vec![
            team(ann),
            json!([agent(ann, &one, "keeper"), agent(ann, &two, "keeper")]),
            json!({"self": relay.key()}),
            json!([]),
        ]
    });
    let message = create(&ann).fails(1, "user_error");
    assert!(message.contains(&one) && message.contains(&two), "{message}");
    assert_eq!(sent(&server), Vec::<Value>::new());
}

#[test]
fn an_untrusted_list_of_archived_identities_is_told_and_leaves_nobody_out() {
    let (relay, forger) = (Person::at("http://unused"), Person::at("http://unused"));
    let keeper = Person::at("http://unused").key();
    let (_server, ann) = stage(|ann| {
        vec![
            team(ann),
            json!([agent(ann, &keeper, "keeper")]),
            json!({"self": relay.key()}),
            json!([forger.event(13_535, "", &[&["-"], &["p", &keeper]])]),
            accepted(),
        ]
    });
    let done = create(&ann);
    assert_eq!(done.code, 0, "{}", done.err);
    let warning: Value = serde_json::from_str(&done.err).expect("one line of json");
    assert!(warning["warning"].as_str().unwrap().contains("untrusted"));
    let report: Value = serde_json::from_str(&done.out).expect("json");
    assert_eq!(report["archive_state_warning"], warning["warning"]);
    assert_eq!(report["members_added"][0]["pubkey"], json!(keeper));
    assert_eq!(report["skipped"], json!([{"persona_id": "scout", "reason": "no live instances"}]));
}

#[test]
fn an_agent_that_is_not_let_in_makes_the_report_partial() {
    let relay = Person::at("http://unused");
    let keeper = Person::at("http://unused").key();
    let refused = json!({"event_id": "", "accepted": false, "message": "policy:nobody"});
    let (server, ann) = stage(|ann| {
        vec![
            team(ann),
            json!([agent(ann, &keeper, "keeper")]),
            json!({"self": relay.key()}),
            json!([]),
            accepted(),
            accepted(),
            refused,
        ]
    });
    let report = create(&ann).ok();
    assert_eq!(report["status"], "partial");
    let failure = json!([{"persona_id": "keeper", "pubkey": keeper, "error": "policy:nobody"}]);
    assert_eq!(report["member_failures"], failure);
    assert_eq!(sent(&server).last().unwrap()["kind"], PUT_USER);
}

#[test]
fn a_template_or_team_that_is_not_there_is_told() {
    let (server, ann) = stage(|_| vec![json!([])]);
    let unknown =
        ["channels", "create", "--name", "x", "--template", "no", "--templates-file", "templates.json"];
    let message = ann.run(&unknown).fails(1, "not_found");
    assert!(message.contains("Team Room"), "{message}");
    ann.run(&["channels", "create", "--name", "x", "--template", "no"]).fails(1, "not_found");
    assert!(server.requests().is_empty());
    create(&ann).fails(1, "user_error");
    assert_eq!(sent(&server), Vec::<Value>::new());
}
