//! `waxlog-sim`: runs seeds of the simulated driver, or the fuzz targets over their corpus.
//!
//! The last line is `N passed, N failed`; the exit code is 1 if anything failed.

use structopt::StructOpt;
use waxlog_sim::sweep::{sweep, Failure, Swept};
use waxlog_sim::trace::Trace;
use waxlog_sim::world::{run, Sabotage};

/// Steps that are shown of a failing run.
const TAIL_STEPS: usize = 40;

/// Drives simulated sessions through everything that can go wrong.
#[derive(StructOpt)]
#[structopt(name = "waxlog-sim", after_help = "EXAMPLE:\n    cargo run -p waxlog-sim -- --seeds 10000")]
struct Arguments {
    /// How many seeds to run.
    #[structopt(long, default_value = "1000")]
    seeds: u64,
    /// The first seed.
    #[structopt(long, default_value = "0")]
    from: u64,
    /// Run this one seed only.
    #[structopt(long)]
    seed: Option<u64>,
    /// With --seed: show every step.
    #[structopt(long, requires = "seed")]
    trace: bool,
}

fn main() {
    let arguments = Arguments::from_args();
    let passed = match arguments.seed {
        Some(seed) => one(seed, arguments.trace),
        None => many(arguments.from, arguments.seeds),
    };
    std::process::exit(i32::from(!passed));
}

fn many(from: u64, seeds: u64) -> bool {
    let Swept { passed, failed, failures, sum } = sweep(from, seeds, Sabotage::None);
    for Failure { seed, .. } in &failures {
        one(*seed, false);
        println!();
    }
    println!("{} records, {} requests, {} kills", sum.records, sum.requests, sum.kills);
    println!("{passed} passed, {failed} failed");
    failed == 0
}

/// Runs a seed again with its trace, and shows that if it is wanted or needed.
fn one(seed: u64, every_step: bool) -> bool {
    let mut trace = Trace::on();
    let result = run(seed, Sabotage::None, &mut trace);
    let steps = if every_step { usize::MAX } else { TAIL_STEPS };
    if every_step || result.is_err() {
        trace.tail(steps).for_each(|step| println!("{step}"));
    }
    match result {
        Ok(report) => println!("seed {seed}: {report:?}"),
        Err(violation) => {
            println!("seed {seed}: {violation}");
            println!("again: cargo run -p waxlog-sim -- --seed {seed} --trace");
            return false;
        }
    }
    true
}
