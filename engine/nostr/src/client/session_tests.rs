use super::*;
use crate::{Draft, Signature};

const NOW: u64 = 1_700_000_000;

fn session() -> Session {
    Session::new(Login { relay: "ws://127.0.0.1:1".into(), keys: Keys::generate(), owner: None })
}

fn challenge(session: &mut Session, text: &str, now: u64) -> EventId {
    let steps = session.on_frame(RelayFrame::Auth(text.to_owned()), now).unwrap();
    let [Step::Send(ClientFrame::Auth(answer))] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(answer.tag_value("challenge"), Some(text));
    answer.id
}

fn accept(session: &mut Session, id: EventId) -> Vec<Step> {
    session.on_frame(RelayFrame::Ok(id, true, String::new()), NOW).unwrap()
}

fn logged_in() -> Session {
    let mut session = session();
    let id = challenge(&mut session, "c1", NOW);
    assert_eq!(accept(&mut session, id), []);
    assert!(session.is_logged_in());
    session
}

fn closed(session: &mut Session, why: &str) -> Vec<Step> {
    session.on_frame(RelayFrame::Closed("s".into(), why.to_owned()), NOW).unwrap()
}

fn req() -> Step {
    Step::Send(ClientFrame::Req("s".into(), vec![Filter::new()]))
}

fn given_closed(why: &str) -> Step {
    Step::Give(Incoming::Closed("s".into(), why.to_owned()))
}

#[test]
fn a_subscription_closed_before_the_login_is_asked_for_once_after_it() {
    let mut session = session();
    session.subscribe("s", vec![Filter::new()]).unwrap();
    assert_eq!(closed(&mut session, "auth-required: x"), []);
    let id = challenge(&mut session, "c1", NOW);
    assert_eq!(closed(&mut session, "auth-required: x"), []);
    assert_eq!(accept(&mut session, id), [req()]);
    assert_eq!(closed(&mut session, "auth-required: x"), [given_closed("auth-required: x")]);
    assert_eq!(closed(&mut session, "auth-required: x"), [given_closed("auth-required: x")]);
}

#[test]
fn a_subscription_closed_after_the_login_is_asked_for_once_and_again_after_the_next_login() {
    let mut session = logged_in();
    session.subscribe("s", vec![Filter::new()]).unwrap();
    assert_eq!(closed(&mut session, "auth-required: x"), [req()]);
    assert_eq!(closed(&mut session, "auth-required: x"), [given_closed("auth-required: x")]);
    let id = challenge(&mut session, "c2", NOW);
    assert!(!session.is_logged_in());
    assert_eq!(accept(&mut session, id), [req()]);
    assert_eq!(closed(&mut session, "auth-required: x"), [given_closed("auth-required: x")]);
}

#[test]
fn a_subscription_closed_for_another_reason_is_gone() {
    let mut session = logged_in();
    session.subscribe("s", vec![Filter::new()]).unwrap();
    assert_eq!(closed(&mut session, "restricted: x"), [given_closed("restricted: x")]);
    assert_eq!(closed(&mut session, "restricted: x"), []);
}

#[test]
fn the_latest_challenge_wins() {
    let mut session = session();
    let first = challenge(&mut session, "c1", NOW);
    let second = challenge(&mut session, "c2", NOW);
    let refused = RelayFrame::Ok(first, false, "auth-required: old".into());
    assert_eq!(session.on_frame(refused, NOW), Ok(vec![]));
    assert_eq!(accept(&mut session, first), []);
    assert!(!session.is_logged_in());
    accept(&mut session, second);
    assert!(session.is_logged_in());
}

#[test]
fn a_thousand_challenges_are_not_answered() {
    let mut session = session();
    for at in 0..MAX_CHALLENGES {
        let id = challenge(&mut session, &at.to_string(), NOW);
        accept(&mut session, id);
    }
    let more = session.on_frame(RelayFrame::Auth("more".into()), NOW + CHALLENGE_WINDOW_SECONDS - 1);
    assert_eq!(more, Err(SessionError::Challenges));
    challenge(&mut session, "later", NOW + CHALLENGE_WINDOW_SECONDS);
}

#[test]
fn a_challenge_of_the_limit_is_answered_and_a_longer_one_is_refused() {
    challenge(&mut session(), &"c".repeat(MAX_CHALLENGE_BYTES), NOW);
    let long = session().on_frame(RelayFrame::Auth("c".repeat(MAX_CHALLENGE_BYTES + 1)), NOW);
    assert_eq!(long, Err(SessionError::ChallengeLength(1_025)));
}

#[test]
fn a_refused_login_ends_the_session_with_the_reason() {
    let mut session = session();
    let id = challenge(&mut session, "c", NOW);
    let refused = session.on_frame(RelayFrame::Ok(id, false, "restricted: not a relay member".into()), NOW);
    assert_eq!(refused, Err(SessionError::Refused("restricted: not a relay member".into())));
}

#[test]
fn the_answer_carries_the_owners_word() {
    let (owner, agent) = (Keys::generate(), Keys::generate());
    let tag = OwnerTag::issue(&owner, &agent.public_key(), "").unwrap();
    let login = Login { relay: "ws://127.0.0.1:1".into(), keys: agent, owner: Some(tag.clone()) };
    let steps = Session::new(login).on_frame(RelayFrame::Auth("c".into()), NOW).unwrap();
    let [Step::Send(ClientFrame::Auth(answer))] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(OwnerTag::of_event(answer), Some(tag));
}

fn event() -> Event {
    Keys::generate().sign(Draft::new(9, "hello", NOW))
}

fn comes(session: &mut Session, id: &str, event: &Event) -> Vec<Step> {
    session.on_text(&RelayFrame::Event(id.into(), event.clone()).to_json(), NOW).unwrap()
}

#[test]
fn a_forged_event_is_dropped_each_time_and_counted() {
    let mut session = logged_in();
    session.subscribe("s", vec![]).unwrap();
    let good = event();
    let unsigned = Event { sig: Signature::from_bytes([0; 64]), ..good.clone() };
    let changed = Event { content: "other".into(), ..good.clone() };
    for forged in [&unsigned, &changed, &unsigned] {
        assert_eq!(comes(&mut session, "s", forged), []);
    }
    assert_eq!(session.dropped().forged, 3);
    assert_eq!(comes(&mut session, "s", &good), [Step::Give(Incoming::Event("s".into(), good.clone()))]);
    assert_eq!(comes(&mut session, "s", &unsigned), []);
    assert_eq!(session.dropped(), Dropped { forged: 4, malformed: 0 });
}

#[test]
fn one_event_on_two_subscriptions_comes_twice_and_on_none_not_at_all() {
    let mut session = logged_in();
    session.subscribe("a", vec![]).unwrap();
    session.subscribe("b", vec![]).unwrap();
    let event = event();
    for id in ["a", "b", "a"] {
        assert_eq!(comes(&mut session, id, &event).len(), 1);
    }
    session.unsubscribe("a");
    assert_eq!(comes(&mut session, "a", &event), []);
    assert_eq!(comes(&mut session, "never", &event), []);
}

#[test]
fn a_renewed_session_asks_from_the_given_times_and_needs_a_new_login() {
    let mut session = logged_in();
    session.subscribe("a", vec![Filter::new().kinds([9]).since(1), Filter::new()]).unwrap();
    session.subscribe("b", vec![Filter::new().since(7)]).unwrap();
    session.renew(|id| (id == "a").then_some(100));
    assert!(!session.is_logged_in() && !session.is_challenged());
    let a = vec![Filter::new().kinds([9]).since(100), Filter::new().since(100)];
    let wanted =
        [ClientFrame::Req("a".into(), a), ClientFrame::Req("b".into(), vec![Filter::new().since(7)])];
    assert_eq!(session.requests().collect::<Vec<_>>(), wanted);
    let id = challenge(&mut session, "c1", NOW);
    assert_eq!(accept(&mut session, id), []);
}

#[test]
fn what_is_no_frame_is_dropped_and_counted() {
    let mut session = logged_in();
    for text in ["", "[]", "[\"EVENT\",\"s\",{}]", "[\"WHAT\"]"] {
        assert_eq!(session.on_text(text, NOW), Ok(vec![]));
    }
    assert_eq!(session.dropped().malformed, 4);
}

#[test]
fn no_more_subscriptions_are_open_than_may() {
    let mut session = logged_in();
    for at in 0..MAX_SUBSCRIPTIONS {
        session.subscribe(&at.to_string(), vec![]).unwrap();
    }
    assert!(session.subscribe("0", vec![]).is_ok());
    assert_eq!(session.subscribe("more", vec![]), Err(SessionError::Subscriptions));
}
