//! The vectors of NIP-MP.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use waxlog_nostr::coordinate::Coordinate;
use waxlog_nostr::project::{members, place, Container, ProjectHead, RepoHead};
use waxlog_nostr::{Draft, Keys};

use super::{key, load};

#[test]
fn nip_mp_each_event_has_its_verdict_and_rule() {
    let vector = load(include_str!("../vectors/nip-mp-ingest.json"));
    let cases = vector["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 31);
    for case in cases {
        let template = &case["template"];
        let mut draft = Draft::new(30621, template["content"].as_str().unwrap(), 1);
        draft.tags = serde_json::from_value(template["tags"].clone()).unwrap();
        let verdict = members(&Keys::generate().sign(draft));
        match case["expect"].as_str().unwrap() {
            "accept" => assert!(verdict.is_ok(), "{}: {verdict:?}", case["name"]),
            _ => {
                let rule = verdict.unwrap_err().rule();
                let allowed = case["reject_rules"].as_array().unwrap();
                assert!(allowed.iter().any(|allowed| allowed == rule), "{}: {rule}", case["name"]);
            }
        }
    }
}

fn coordinate(value: &Value) -> Coordinate {
    value.as_str().unwrap().parse().unwrap()
}

fn coordinates(value: &Value) -> BTreeSet<Coordinate> {
    value.as_array().unwrap().iter().map(coordinate).collect()
}

fn repos(case: &Value) -> Vec<RepoHead> {
    let live = case["repositories"].as_array().unwrap().iter().filter(|repo| repo["state"] == "live");
    live.map(|repo| RepoHead {
        coordinate: coordinate(&repo["coordinate"]),
        maintainers: repo["maintainers"].as_array().into_iter().flatten().map(key).collect(),
        is_hidden: repo["viewer_hidden"].as_bool().unwrap(),
    })
    .collect()
}

fn projects(case: &Value) -> Vec<ProjectHead> {
    let live = case["projects"].as_array().unwrap().iter().filter(|project| project["state"] == "live");
    live.map(|project| ProjectHead {
        coordinate: coordinate(&project["coordinate"]),
        members: coordinates(&project["members"]),
        is_unlisted: project["visibility"] == "unlisted",
        is_hidden: project["viewer_hidden"].as_bool().unwrap(),
    })
    .collect()
}

fn containers(value: &Value) -> BTreeSet<Container> {
    let member = |member: &Value| (coordinate(&member["coordinate"]), member["render"] == "resolved");
    let container = |container: &Value| Container {
        project: coordinate(&container["project"]),
        members: container["members"].as_array().unwrap().iter().map(member).collect::<BTreeMap<_, _>>(),
    };
    value.as_array().unwrap().iter().map(container).collect()
}

#[test]
fn nip_mp_each_repository_is_where_it_belongs() {
    let vector = load(include_str!("../vectors/nip-mp-fold.json"));
    let cases = vector["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 12);
    for case in cases {
        let placement = place(&repos(case), &projects(case));
        assert_eq!(placement.containers, containers(&case["expect"]["containers"]), "{}", case["name"]);
        assert_eq!(placement.cards, coordinates(&case["expect"]["implicit_cards"]), "{}", case["name"]);
    }
}
