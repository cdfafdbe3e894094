//! A share of the seeds, and the proof that the simulator finds a driver that is wrong.

use waxlog_sim::life::run;
use waxlog_sim::sweep::{sweep, Swept};
use waxlog_sim::trace::Trace;
use waxlog_sim::violation::Invariant;
use waxlog_sim::world::Sabotage;

/// Seeds of the share that each test run takes.
const SHARE: u64 = 500;
/// Seeds within which a sabotaged driver must be found.
const SABOTAGED: u64 = 200;

/// The kinds of records that a session is made of.
const KINDS: [&str; 34] = [
    "session_opened",
    "session_resumed",
    "option_selected",
    "close_requested",
    "session_closed",
    "delete_requested",
    "session_deleted",
    "turn_prompted",
    "line_refused",
    "steer_accepted",
    "cancel_requested",
    "model_selected",
    "steers_applied",
    "history_truncated",
    "mesh_sought",
    "mesh_answered",
    "round_asked",
    "summary_asked",
    "handoff_done",
    "hooks_asked",
    "hooks_finished",
    "end_objected",
    "round_answered",
    "attempt_failed",
    "permission_asked",
    "permission_answered",
    "permission_expired",
    "calls_started",
    "call_finished",
    "skill_loaded",
    "server_changed",
    "keepalive_ticked",
    "turn_ended",
    "turn_interrupted",
];

#[test]
fn a_share_of_the_seeds_passes_and_leaves_no_kind_of_record_out() {
    let Swept { failed, failures, sum, .. } = sweep(0, SHARE, Sabotage::None);
    assert_eq!(failed, 0, "cargo run -p waxlog-sim -- --seed N --trace repeats one: {failures:#?}");
    let unseen: Vec<&str> = KINDS.into_iter().filter(|kind| !sum.records.contains_key(*kind)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    for seed in 0..20 {
        let (mut first, mut second) = (Trace::on(), Trace::on());
        assert_eq!(run(seed, Sabotage::None, &mut first), run(seed, Sabotage::None, &mut second));
        assert!(first.tail(usize::MAX).eq(second.tail(usize::MAX)), "seed {seed}");
    }
}

#[test]
fn an_early_act_is_found() {
    assert_eq!(found(Sabotage::ActEarly), [Invariant::Durable]);
}

#[test]
fn a_lost_steer_is_found() {
    assert_eq!(found(Sabotage::LoseSteer), [Invariant::Steers]);
}

#[test]
fn an_input_that_is_not_recorded_is_found() {
    assert!(found(Sabotage::ForgetTick).contains(&Invariant::Durable));
}

#[test]
fn a_client_that_is_not_told_of_a_failed_log_is_found() {
    assert_eq!(found(Sabotage::TellNobody), [Invariant::Answers]);
}

/// The rules that the first failures of a sabotaged sweep break.
fn found(sabotage: Sabotage) -> Vec<Invariant> {
    let Swept { failures, .. } = sweep(0, SABOTAGED, sabotage);
    let mut found: Vec<Invariant> = failures.iter().map(|failure| failure.violation.invariant).collect();
    found.dedup();
    found
}
