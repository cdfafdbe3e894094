//! The harness as people meet it: a mention on the relay, an answer, and nothing lost or doubled by kills.

#![allow(clippy::unwrap_used)]

mod model;
mod stage;
mod up;

use std::thread;
use std::time::Duration;

use stage::Stage;

/// How many mentions the random kills are among; a longer run is asked for by `WAXLOG_MENTIONS`.
const MENTIONS: usize = 10;

#[test]
fn a_mention_is_answered_once_and_billed_once() {
    let mut stage = Stage::open();
    let mention = stage.mention("hello");
    stage.await_answers(std::slice::from_ref(&mention));
    stage.until("the turn is billed", || stage.billed() == (200, 20));
    assert!(stage.stop_harness());
    assert_eq!(stage.answers()[&mention], 1);
    assert_eq!(stage.spent(), (200, 20));
}

#[test]
fn c55_a_mention_that_came_while_the_harness_was_stopped_is_answered() {
    let mut stage = Stage::open();
    let before = stage.mention("first");
    stage.await_answers(&[before]);
    assert!(stage.stop_harness());
    let meanwhile = stage.mention("while you were out");
    stage.start_harness();
    stage.await_answers(std::slice::from_ref(&meanwhile));
    assert_eq!(stage.answers()[&meanwhile], 1);
}

#[test]
fn kills_of_harness_and_agent_lose_no_mention_and_double_none() {
    let mentions =
        std::env::var("WAXLOG_MENTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(MENTIONS);
    let mut random = fastrand::Rng::with_seed(7);
    let mut stage = Stage::open();
    let mut sent = Vec::new();
    for number in 0..mentions {
        sent.push(stage.mention(&format!("question {number}")));
        // Kills are to fall into all parts of a turn, so they are spread over its length.
        thread::sleep(Duration::from_millis(random.u64(0..900)));
        match random.u8(0..4) {
            0 => {
                stage.kill_harness();
                stage.start_harness();
            }
            1 => stage.kill_agent(),
            _ => {}
        }
    }
    stage.await_answers(&sent);
    stage.until("all turns are billed", || stage.billed() == stage.spent());
    assert!(stage.stop_harness());
    let answers = stage.answers();
    let doubled: Vec<&String> = sent.iter().filter(|mention| answers[*mention] != 1).collect();
    assert!(doubled.is_empty(), "answered more than once: {doubled:?}");
    assert_eq!(stage.billed(), stage.spent());
}
