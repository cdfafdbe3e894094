//! The connection under a clock of its own.

use serde_json::json;
use waxlog_nostr::{Draft, Event, EventId, PublicKey, Signature};

use super::*;
use crate::step::Effects;

const GENERAL: &str = "11111111-1111-4111-8111-111111111111";

struct Rig {
    link: Link,
    effects: Effects,
    now_ms: u64,
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self { link: Link::default(), effects: Effects::default(), now_ms: 1_000_000_000 };
        rig.with(|link, step| link.start(step));
        rig
    }

    /// A rig whose relay has taken our identity; what was sent so far is forgotten.
    fn up() -> Self {
        let mut rig = Self::new();
        rig.prove();
        rig.effects.take();
        rig
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Link, &mut Step) -> T) -> T {
        let mut step = Step::new(self.now_ms, 7, &mut self.effects);
        act(&mut self.link, &mut step)
    }

    fn frame(&mut self, frame: serde_json::Value) -> Vec<News> {
        let number = self.link.number;
        self.with(|link, step| link.frame(step, number, &frame.to_string(), None))
    }

    fn prove(&mut self) {
        self.with(|link, step| link.opened(step));
        self.frame(json!(["AUTH", "c"]));
        self.frame(json!(["OK", "00".repeat(32), true, ""]));
    }

    fn lose(&mut self) -> Vec<News> {
        let number = self.link.number;
        self.with(|link, step| link.lost(step, number, "gone"))
    }

    /// Lets time pass to the next thing that is due.
    fn wait(&mut self) -> Vec<News> {
        self.now_ms = self.link.wake_at_ms().expect("something is due").max(self.now_ms);
        self.with(|link, step| link.tick(step))
    }

    fn subscribe(&mut self, floor_secs: u64) {
        let filter = json!({"#h": [GENERAL]}).as_object().unwrap().clone();
        let subscription = Subscription { filter, floor_secs };
        self.with(|link, step| link.subscribe(step, SubKey::Channel(GENERAL.into()), subscription));
    }

    /// The frames sent since the last look.
    fn sent(&mut self) -> Vec<String> {
        let frame = |effect| match effect {
            Effect::Send { frame, .. } => Some(frame),
            _ => None,
        };
        self.effects.take().into_iter().filter_map(frame).collect()
    }
}

fn event(number: u8, created_at: u64) -> Event {
    Event {
        id: EventId::from_bytes([number; 32]),
        pubkey: PublicKey::from_bytes([1; 32]),
        created_at,
        kind: 9,
        tags: vec![],
        content: String::new(),
        sig: Signature::from_bytes([0; 64]),
    }
}

fn channel_frame(event: &Event) -> serde_json::Value {
    json!(["EVENT", format!("ch-{GENERAL}"), event])
}

fn req(since: u64) -> String {
    json!(["REQ", format!("ch-{GENERAL}"), {"#h": [GENERAL], "since": since}]).to_string()
}

#[test]
fn a_connection_is_up_after_challenge_answer_and_ok() {
    let mut rig = Rig::new();
    rig.with(|link, step| link.opened(step));
    rig.frame(json!(["AUTH", "c1"]));
    assert!(rig.effects.take().contains(&Effect::Authenticate { link: 1, challenge: "c1".into() }));
    assert_eq!(rig.frame(json!(["OK", "00".repeat(32), true, ""])), [News::Up]);
}

#[test]
fn what_came_too_early_is_taken_once_we_are_known() {
    let mut rig = Rig::new();
    rig.subscribe(1);
    rig.with(|link, step| link.opened(step));
    rig.frame(channel_frame(&event(1, 100)));
    rig.frame(json!(["AUTH", "c1"]));
    let news = rig.frame(json!(["OK", "00".repeat(32), true, ""]));
    assert!(matches!(&news[..], [News::Up, News::Channel { .. }]));
}

#[test]
fn a_refused_identity_is_final_unless_the_relay_is_at_fault() {
    for (message, is_final) in [("blocked: you", true), ("whatever", true), ("error: database", false)] {
        let mut rig = Rig::new();
        rig.with(|link, step| link.opened(step));
        rig.frame(json!(["AUTH", "c1"]));
        let news = rig.frame(json!(["OK", "00".repeat(32), false, message]));
        assert_eq!(matches!(&news[..], [News::Unusable { .. }]), is_final, "{message}");
    }
}

#[test]
fn a_silent_relay_is_left_after_its_time() {
    let mut rig = Rig::new();
    rig.with(|link, step| link.opened(step));
    assert_eq!(rig.link.wake_at_ms(), Some(rig.now_ms + HANDSHAKE_MS));
    rig.wait();
    rig.wait();
    assert_eq!(rig.link.number, 2);
}

#[test]
fn c57_an_event_is_told_once_on_whatever_channel() {
    let mut rig = Rig::up();
    rig.subscribe(1);
    assert_eq!(rig.frame(channel_frame(&event(1, 100))).len(), 1);
    assert_eq!(rig.frame(channel_frame(&event(1, 100))), []);
    assert_eq!(rig.frame(json!(["EVENT", "membership-notif", event(1, 100)])), []);
}

#[test]
fn c60_a_forged_event_is_dropped_and_the_real_one_is_still_new() {
    let mut rig = Rig::up();
    let text = channel_frame(&event(1, 100)).to_string();
    for _ in 0..2 {
        assert_eq!(rig.with(|link, step| link.frame(step, 1, &text, Some("invalid signature"))), []);
    }
    assert_eq!(rig.frame(channel_frame(&event(1, 100))).len(), 1);
}

#[test]
fn c54_after_a_loss_a_channel_goes_on_from_its_newest_event() {
    let mut rig = Rig::up();
    rig.subscribe(500);
    assert_eq!(rig.sent(), [req(495)]);
    rig.frame(channel_frame(&event(1, 900)));
    assert_eq!(rig.lose(), [News::Lost]);
    rig.wait();
    rig.prove();
    assert_eq!(rig.sent(), [req(895)]);
}

#[test]
fn subscriptions_after_a_loss_are_paced() {
    let mut rig = Rig::up();
    rig.subscribe(500);
    let membership = Subscription { filter: Default::default(), floor_secs: 7 };
    rig.with(|link, step| link.subscribe(step, SubKey::Membership, membership));
    rig.sent();
    rig.lose();
    rig.wait();
    rig.prove();
    assert_eq!(rig.sent(), [req(495)]);
    rig.wait();
    rig.wait();
    assert_eq!(rig.sent(), [r#"["REQ","membership-notif",{"since":2}]"#]);
}

#[test]
fn a_denied_channel_is_dropped_and_the_connection_kept() {
    for why in DENIED {
        let mut rig = Rig::up();
        rig.subscribe(500);
        let closed = json!(["CLOSED", format!("ch-{GENERAL}"), why]);
        assert!(matches!(&rig.frame(closed.clone())[..], [News::Denied { .. }]));
        assert_eq!(rig.frame(closed), [], "a second time it is not known any more");
        rig.sent();
        rig.lose();
        rig.wait();
        rig.prove();
        assert_eq!(rig.sent(), [""; 0]);
    }
}

#[test]
fn c59_other_denials_make_a_new_connection_slower_each_time() {
    let mut rig = Rig::up();
    rig.subscribe(500);
    let mut waits_ms = Vec::new();
    for _ in 0..8 {
        assert_eq!(rig.frame(json!(["CLOSED", format!("ch-{GENERAL}"), "auth-required: x"])), [News::Lost]);
        waits_ms.push(rig.link.wake_at_ms().unwrap() - rig.now_ms);
        rig.wait();
        rig.prove();
    }
    assert!(waits_ms[7] > 3000, "{waits_ms:?}");
    assert_eq!(rig.link.number, 9);
}

#[test]
fn c59_the_latest_challenge_is_answered_at_any_time() {
    let mut rig = Rig::up();
    assert_eq!(rig.frame(json!(["AUTH", "again"])), []);
    assert_eq!(rig.effects.take(), [Effect::Authenticate { link: 1, challenge: "again".into() }]);
    assert!(rig.link.is_up());
}

#[test]
fn a_subscription_that_is_closed_is_asked_for_again_at_once_and_then_later() {
    let mut rig = Rig::up();
    rig.subscribe(500);
    rig.sent();
    let closed = json!(["CLOSED", format!("ch-{GENERAL}"), "error: too much"]);
    rig.now_ms += 1000;
    rig.frame(closed.clone());
    assert_eq!(rig.sent(), [req(495)]);
    rig.now_ms += 1000;
    rig.frame(closed);
    assert_eq!(rig.sent(), [""; 0]);
    rig.now_ms += RECLOSED_WAIT_MS;
    rig.with(|link, step| link.tick(step));
    assert_eq!(rig.sent(), [req(495)]);
}

#[test]
fn a_rate_limit_parks_what_is_asked_and_drops_what_passes() {
    let mut rig = Rig::up();
    rig.frame(json!(["NOTICE", "rate-limited: slow down; retry in 12s"]));
    rig.subscribe(500);
    rig.with(|link, step| link.publish(step, Draft::new(20002, "", 1)));
    rig.with(|link, step| link.observe(step, "frame".into()));
    assert_eq!(rig.effects.take(), []);
    rig.frame(json!(["NOTICE", "rate-limited: retry in 3s"]));
    rig.now_ms += 9_000;
    rig.with(|link, step| link.tick(step));
    assert!(!rig.effects.take().iter().any(|effect| matches!(effect, Effect::Send { .. })));
    rig.now_ms += 6_000;
    rig.with(|link, step| link.tick(step));
    assert_eq!(rig.sent(), [req(495)]);
    rig.wait();
    let effects = rig.effects.take();
    assert!(effects.contains(&Effect::Observe { link: 1, frame: "frame".into() }), "{effects:?}");
}

#[test]
fn an_observer_frame_that_a_limit_swallowed_is_sent_again() {
    let mut rig = Rig::up();
    rig.with(|link, step| link.observe(step, "frame".into()));
    let observed = Effect::Observe { link: 1, frame: "frame".into() };
    assert_eq!(rig.effects.take(), std::slice::from_ref(&observed));
    rig.frame(json!(["NOTICE", "rate-limited: retry in 3s"]));
    rig.now_ms += 4_000;
    rig.with(|link, step| link.tick(step));
    rig.wait();
    assert!(rig.effects.take().contains(&observed));
    rig.frame(json!(["OK", "00".repeat(32), true, ""]));
    rig.frame(json!(["NOTICE", "rate-limited: retry in 3s"]));
    rig.now_ms += 4_000;
    rig.with(|link, step| link.tick(step));
    assert!(!rig.effects.take().contains(&observed), "what was answered is not sent again");
}

#[test]
fn a_relay_that_answers_no_pings_is_left() {
    let mut rig = Rig::up();
    rig.wait();
    assert_eq!(rig.effects.take(), [Effect::Ping { link: 1 }]);
    rig.with(|link, _| link.ponged(1));
    rig.wait();
    assert_eq!(rig.effects.take(), [Effect::Ping { link: 1 }]);
    assert_eq!(rig.wait(), [News::Lost]);
}

#[test]
fn a_hint_is_read_from_the_text() {
    assert_eq!(retry_hint_secs("rate-limited: quota exceeded; retry in 12s"), Some(12));
    for text in ["", "retry in", "retry in s", "retry in xs", "retry in 5"] {
        assert_eq!(retry_hint_secs(text), None, "{text}");
    }
}
