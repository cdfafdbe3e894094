//! What one record costs: append and flush of 1 KiB, and opening a segment of 60 MiB.

#![allow(missing_docs)] // what the criterion macros define has none

use criterion::{criterion_group, criterion_main, Criterion};
use waxlog_store::{Log, NewRecord, Options};

const SEGMENT_BYTES: usize = 60 << 20;
/// So that all of it stays in one segment.
const ROLL_BYTES: u64 = 256 << 20;
const RECORD_BYTES: usize = 2 << 10;

fn record(n: u64, raw_bytes: usize) -> NewRecord {
    let mut random = fastrand::Rng::with_seed(n);
    NewRecord {
        stream: format!("session/{}", n % 8),
        kind: "answered".to_owned(),
        version: 1,
        time_ms: n,
        head: b"{\"status\":200}".to_vec(),
        raw: std::iter::repeat_with(|| random.u8(..)).take(raw_bytes).collect(),
    }
}

fn append_flush(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("temp dir");
    let log = Log::open(&folder.path().join("log"), Options::default()).expect("open");
    let template = record(1, 1 << 10);
    criterion.bench_function("append and flush 1 KiB", |bench| {
        bench.iter(|| {
            log.append(vec![template.clone()]).expect("append");
            log.flush_blocking().expect("flush");
        });
    });
}

fn open(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("temp dir");
    let dir = folder.path().join("log");
    let options = Options { segment_bytes: ROLL_BYTES, ..Options::default() };
    let log = Log::open(&dir, options.clone()).expect("open");
    for n in 0..(SEGMENT_BYTES / RECORD_BYTES) as u64 {
        log.append(vec![record(n, RECORD_BYTES)]).expect("append");
        if n % 8 == 0 {
            log.flush_blocking().expect("flush");
        }
    }
    drop(log);
    let mut group = criterion.benchmark_group("segment of 60 MiB");
    let _ = group.sample_size(10);
    let _ = group.bench_function("open", |bench| {
        bench.iter(|| Log::open(&dir, options.clone()).expect("open"));
    });
    group.finish();
}

criterion_group!(benches, append_flush, open);
criterion_main!(benches);
