//! How fast the desk takes events in, how fast it answers, and how much memory it takes meanwhile. Prints
//! one line for each; `DESK_EVENTS` says how many events (100,000 if it does not).
#![allow(missing_docs)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use waxlog_nostr::{Draft, Event, Filter, Keys};
use waxlog_relay::{Asker, ChannelId, Desk, Settings};

const NOW: u64 = 1_800_000_000;
const WORKERS: usize = 2;
/// How many submissions a worker has open before it waits for the flush that covers them.
const OPEN: usize = 256;
const AUTHORS: usize = 50;
/// How many signed events are held at a time.
const SIGNED: usize = 2048;

fn main() {
    let count = std::env::var("DESK_EVENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let folder = tempfile::tempdir().expect("a folder for the store");
    let keys: Vec<_> = (0..AUTHORS).map(|_| Keys::generate()).collect();
    let channel = ChannelId::from_random([7; 16]).to_string();
    let desk = Desk::open(folder.path(), Settings::default(), Keys::generate()).expect("opens");
    let create = Draft::new(9007, "", NOW).tag(["h", &channel]).tag(["name", "bench"]);
    take(&desk, keys[0].sign(create));
    println!("memory before              {:>9.1} MiB", rss_mib());

    let note = |n: usize| Draft::new(1, format!("note number {n} of many"), NOW - 800 + n as u64 % 800);
    let (verified, accepted) = ingest(&desk, &keys, count / 2, note);
    println!("verification alone         {verified:>9.0} events/s");
    println!(
        "notes accepted             {accepted:>9.0} events/s ({:.0} % of that)",
        100.0 * accepted / verified
    );
    println!("memory with them           {:>9.1} MiB", rss_mib());
    let message = |n: usize| {
        let text =
            format!("message {n} about topic {} in this channel by someone who says {}", n % 97, n % 13);
        Draft::new(9, text, NOW - 800 + n as u64 % 800).tag(["h", &channel])
    };
    let (_, accepted) = ingest(&desk, &keys, count - count / 2, message);
    println!("messages accepted          {accepted:>9.0} events/s");
    println!("memory with all            {:>9.1} MiB", rss_mib());

    for (name, filter) in [
        ("500 newest notes", Filter::new().kinds([1]).limit(500)),
        ("500 newest of an author", Filter::new().kinds([1]).authors([keys[1].public_key()]).limit(500)),
        ("500 newest of a channel", Filter::new().kinds([9]).tag('h', [&channel]).limit(500)),
        (
            "500 of an author in it",
            Filter::new().kinds([9]).tag('h', [&channel]).authors([keys[1].public_key()]).limit(500),
        ),
        ("search of two words", Filter::new().kinds([9]).search("topic 17").limit(500)),
    ] {
        let asker = Asker::socket(keys[0].public_key());
        let mut times_ms: Vec<f64> = (0..21)
            .map(|_| {
                let began = Instant::now();
                let rows = desk.query(&[filter.clone()], &asker, NOW).expect("answers");
                assert!(!rows.is_empty());
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times_ms.sort_by(f64::total_cmp);
        println!(
            "{name:<26} {:>9.2} ms (median of {}; worst {:.2})",
            times_ms[10],
            times_ms.len(),
            times_ms[20]
        );
    }
    println!("memory after the queries   {:>9.1} MiB", rss_mib());
    drop(desk);
    let began = Instant::now();
    let desk = Desk::open(folder.path(), Settings::default(), Keys::generate()).expect("opens again");
    println!("opened again in            {:>9.1} ms", began.elapsed().as_secs_f64() * 1e3);
    drop(desk);
}

/// Signs events, verifies them and has them taken in, some at a time. Returns how many a second were verified
/// alone, and how many were accepted.
fn ingest(desk: &Desk, keys: &[Keys], count: usize, draft: impl Fn(usize) -> Draft) -> (f64, f64) {
    let (mut verifying, mut accepting) = (Duration::ZERO, Duration::ZERO);
    for from in (0..count).step_by(SIGNED) {
        let until = count.min(from + SIGNED);
        let events: Vec<_> = (from..until).map(|n| keys[n % keys.len()].sign(draft(n))).collect();
        let began = Instant::now();
        in_parallel(&events, |part| part.iter().for_each(|event| event.verify().expect("is signed")));
        verifying += began.elapsed();
        let began = Instant::now();
        in_parallel(&events, |part| take_all(desk, part));
        accepting += began.elapsed();
    }
    (count as f64 / verifying.as_secs_f64(), count as f64 / accepting.as_secs_f64())
}

fn in_parallel(events: &[Event], work: impl Fn(&[Event]) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| loop {
                let from = next.fetch_add(OPEN, Ordering::Relaxed);
                if from >= events.len() {
                    break;
                }
                work(&events[from..events.len().min(from + OPEN)]);
            });
        }
    });
}

fn take(desk: &Desk, event: Event) {
    take_all(desk, &[event]);
}

fn take_all(desk: &Desk, events: &[Event]) {
    let mut last = None;
    for event in events {
        let submission = desk.submit(event.clone(), &Asker::socket(event.pubkey), NOW);
        assert!(submission.reply.accepted, "{:?}", submission.reply);
        last = submission.ticket.or(last);
    }
    desk.settle(last.expect("something was written")).expect("flushes");
}

/// How much memory this process has, in MiB; nothing where the system does not say.
fn rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default() / 1024.0
}
