//! The queue, behaviour by behaviour.

use waxlog_nostr::{Event, EventId, PublicKey, Signature};

use crate::queue::*;

const MAX_TURN_MS: u64 = 1_000_000;

fn event(number: u8, created_at: u64) -> Event {
    Event {
        id: EventId::from_bytes([number; 32]),
        pubkey: PublicKey::from_bytes([1; 32]),
        created_at,
        kind: 9,
        tags: Vec::new(),
        content: String::new(),
        sig: Signature::from_bytes([0; 64]),
    }
}

fn queued(number: u8, received_ms: u64) -> Queued {
    Queued { event: event(number, u64::from(number)), tag: "@mention".into(), received_ms }
}

fn queue() -> Queue {
    Queue::new(MAX_TURN_MS, false)
}

fn numbers(events: &[Queued]) -> Vec<u8> {
    events.iter().map(|queued| queued.event.id.as_bytes()[0]).collect()
}

fn requeue(queue: &mut Queue, batch: Batch, now_ms: u64) -> Requeued {
    queue.requeue(batch, now_ms, |base_ms| base_ms)
}

#[test]
fn a_channel_in_flight_is_blocked_and_others_are_not() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    assert_eq!(numbers(&queue.flush(10).unwrap().events), [1]);
    queue.push("a", queued(2, 2));
    queue.push("b", queued(3, 3));
    assert_eq!(queue.flush(10).unwrap().channel, "b");
    assert_eq!(queue.flush(10), None);
    queue.complete("a", 10);
    assert_eq!(numbers(&queue.flush(10).unwrap().events), [2]);
}

#[test]
fn the_channel_that_waits_longest_is_first() {
    let mut queue = queue();
    queue.push("a", queued(1, 5));
    queue.push("b", queued(2, 4));
    assert_eq!(queue.flush(10).unwrap().channel, "b");
}

#[test]
fn a_batch_takes_fifty_in_order_of_their_time() {
    let mut queue = queue();
    for number in (1..=60).rev() {
        queue.push("a", queued(number, u64::from(60 - number)));
    }
    let batch = queue.flush(100).unwrap();
    assert_eq!(batch.events.len(), BATCH_MAX);
    assert!(numbers(&batch.events).is_sorted());
    queue.complete("a", 100);
    assert_eq!(queue.flush(100).unwrap().events.len(), 10);
}

#[test]
fn in_drop_mode_only_the_busy_channel_refuses() {
    let mut queue = Queue::new(MAX_TURN_MS, true);
    queue.push("a", queued(1, 1));
    queue.flush(1);
    assert_eq!(queue.push("a", queued(2, 2)), Pushed::Refused);
    assert_eq!(queue.push("b", queued(3, 3)), Pushed::Taken);
}

#[test]
fn one_too_many_drops_the_oldest() {
    let mut queue = queue();
    for received_ms in 0..500 {
        assert_eq!(queue.push("a", queued(7, received_ms)), Pushed::Taken);
    }
    assert_eq!(queue.push("a", queued(8, 500)), Pushed::TakenFor(EventId::from_bytes([7; 32])));
    assert_eq!(queue.pending(), PENDING_MAX);
}

#[test]
fn a_failed_batch_waits_longer_each_time_and_is_given_up_at_the_eleventh() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    let mut now_ms = 0;
    let mut waits = Vec::new();
    for _ in 0..RETRIES_MAX {
        let batch = queue.flush(now_ms).unwrap();
        let Requeued::Waiting { until_ms } = requeue(&mut queue, batch, now_ms) else { panic!("given up") };
        queue.complete("a", now_ms);
        assert_eq!(queue.flush(now_ms), None);
        assert_eq!(queue.wake_at_ms(), Some(until_ms));
        waits.push((until_ms - now_ms) / 1000);
        now_ms = until_ms;
    }
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300, 300, 300]);
    let batch = queue.flush(now_ms).unwrap();
    assert!(matches!(requeue(&mut queue, batch, now_ms), Requeued::Dead(_)));
    queue.push("a", queued(2, 2));
    let batch = queue.flush(now_ms).unwrap();
    assert_eq!(requeue(&mut queue, batch, now_ms), Requeued::Waiting { until_ms: now_ms + 5000 });
}

#[test]
fn success_resets_the_count() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    let batch = queue.flush(0).unwrap();
    requeue(&mut queue, batch, 0);
    queue.flush(5000).unwrap();
    queue.complete("a", 5001);
    queue.push("a", queued(2, 2));
    let batch = queue.flush(6000).unwrap();
    assert_eq!(requeue(&mut queue, batch, 6000), Requeued::Waiting { until_ms: 11_000 });
}

#[test]
fn a_throttled_channel_lets_others_pass() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    let batch = queue.flush(0).unwrap();
    requeue(&mut queue, batch, 0);
    queue.push("b", queued(2, 2));
    assert_eq!(queue.flush(1).unwrap().channel, "b");
}

#[test]
fn no_free_agent_costs_a_batch_nothing() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    queue.push("a", queued(2, 2));
    let batch = queue.flush(0).unwrap();
    queue.requeue_unasked(batch.clone());
    assert_eq!(queue.flush(0), Some(batch));
}

#[test]
fn a_cancelled_turn_is_asked_again_with_what_came() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    let batch = queue.flush(0).unwrap();
    queue.push("a", queued(2, 2));
    queue.requeue_cancelled(batch, Why::Interrupt);
    let merged = queue.flush(0).unwrap();
    assert_eq!((numbers(&merged.cancelled), numbers(&merged.events)), (vec![1], vec![2]));
    assert_eq!(merged.why, Some(Why::Interrupt));

    queue.push("a", queued(3, 3));
    queue.requeue_cancelled(merged, Why::Steer);
    let twice = queue.flush(0).unwrap();
    assert_eq!((numbers(&twice.cancelled), numbers(&twice.events)), (vec![1, 2], vec![3]));
    assert_eq!(twice.why, Some(Why::Steer));
}

#[test]
fn a_cancelled_turn_without_anything_new_is_a_plain_batch_even_when_throttled() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    let batch = queue.flush(0).unwrap();
    queue.requeue_cancelled(batch, Why::Steer);
    let again = queue.flush(0).unwrap();
    assert_eq!((numbers(&again.events), again.cancelled.len(), again.why), (vec![1], 0, None));
}

#[test]
fn a_merged_batch_keeps_both_parts_when_it_fails_or_finds_no_agent() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    let batch = queue.flush(0).unwrap();
    queue.push("a", queued(2, 2));
    queue.requeue_cancelled(batch, Why::Interrupt);
    let merged = queue.flush(0).unwrap();
    queue.requeue_unasked(merged.clone());
    assert_eq!(queue.flush(0), Some(merged.clone()));
    requeue(&mut queue, merged.clone(), 0);
    assert_eq!(queue.flush(5000), Some(merged));
}

#[test]
fn a_withheld_event_is_out_of_sight_until_its_steer_fails() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    queue.flush(0);
    queue.push("a", queued(2, 2));
    queue.push("a", queued(3, 3));
    let second = EventId::from_bytes([2; 32]);
    assert!(queue.withhold("a", &second));
    assert!(!queue.withhold("a", &second));
    queue.release("a", &second);
    queue.complete("a", 0);
    assert_eq!(numbers(&queue.flush(0).unwrap().events), [2, 3]);
}

#[test]
fn a_steered_event_belongs_to_the_turn_and_to_its_retry() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    queue.flush(0);
    queue.push("a", queued(2, 2));
    let second = EventId::from_bytes([2; 32]);
    queue.withhold("a", &second);
    queue.steered("a", &second, Some(MAX_TURN_MS * 2));
    let running = queue.in_flight("a").unwrap().clone();
    assert_eq!(numbers(&running.events), [1, 2]);
    assert!(queue.expire(MAX_TURN_MS + DEADLINE_SLACK_MS).is_empty());
    requeue(&mut queue, running, 0);
    assert_eq!(numbers(&queue.flush(5000).unwrap().events), [1, 2]);
}

#[test]
fn a_turn_over_its_deadline_frees_the_channel_and_what_was_withheld() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    queue.flush(0);
    queue.push("a", queued(2, 2));
    queue.withhold("a", &EventId::from_bytes([2; 32]));
    assert_eq!(queue.wake_at_ms(), Some(MAX_TURN_MS + DEADLINE_SLACK_MS));
    assert_eq!(queue.expire(MAX_TURN_MS + DEADLINE_SLACK_MS), ["a"]);
    assert_eq!(numbers(&queue.flush(0).unwrap().events), [2]);
}

#[test]
fn draining_forgets_all_but_what_runs() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    queue.flush(0);
    queue.push("a", queued(2, 2));
    queue.push("b", queued(3, 3));
    assert_eq!(queue.drain("a"), [EventId::from_bytes([2; 32])]);
    assert!(queue.is_in_flight("a"));
    assert_eq!(queue.flush(0).unwrap().channel, "b");
}

#[test]
fn compaction_keeps_what_is_in_use() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    let batch = queue.flush(0).unwrap();
    requeue(&mut queue, batch, 0);
    queue.compact(1);
    assert_eq!(queue.flush(1), None);
    queue.compact(5000);
    assert_eq!(numbers(&queue.flush(5000).unwrap().events), [1]);
    queue.complete("a", 5000);
    queue.compact(5000);
    assert_eq!(queue.pending(), 0);
}

#[test]
fn after_a_restart_what_ran_is_given_back() {
    let mut queue = queue();
    queue.push("a", queued(1, 1));
    queue.flush(0);
    queue.push("a", queued(2, 2));
    queue.withhold("a", &EventId::from_bytes([2; 32]));
    let interrupted = queue.take_interrupted();
    assert_eq!(interrupted.len(), 1);
    assert_eq!(numbers(&interrupted[0].events), [1]);
    assert_eq!(numbers(&queue.flush(0).unwrap().events), [2]);
}
