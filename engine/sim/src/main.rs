//! `waxlog-sim`: runs seeds of the simulated driver, or the fuzz targets over their corpus.
//!
//! The last line is `N passed, N failed`; the exit code is 1 if anything failed.

use std::path::PathBuf;
use std::time::Duration;

use structopt::clap::AppSettings;
use structopt::StructOpt;
use waxlog_sim::fuzz::{campaign, Target, TARGETS};
use waxlog_sim::life::run;
use waxlog_sim::sweep::{sweep, Failure, Swept};
use waxlog_sim::trace::Trace;
use waxlog_sim::world::Sabotage;

/// Steps that are shown of a failing run.
const TAIL_STEPS: usize = 40;
/// Where inputs that break a target are put, below the working folder.
const FAILURES: &str = "target/fuzz-failures";

/// Drives simulated sessions through everything that can go wrong.
#[derive(StructOpt)]
#[structopt(
    name = "waxlog-sim",
    global_settings = &[AppSettings::VersionlessSubcommands, AppSettings::DisableHelpSubcommand],
    after_help = "EXAMPLE:\n    cargo run -p waxlog-sim -- --seeds 10000"
)]
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
    #[structopt(subcommand)]
    command: Option<Command>,
}

#[derive(StructOpt)]
enum Command {
    /// Runs the fuzz targets over their corpus and mutations of it.
    Fuzz(Fuzz),
}

#[derive(StructOpt)]
struct Fuzz {
    /// How long each target runs.
    #[structopt(long, default_value = "5")]
    seconds: u64,
    /// Only this target.
    #[structopt(long)]
    target: Option<String>,
    /// Where chance begins.
    #[structopt(long, default_value = "0")]
    seed: u64,
    /// With --target: only this file's bytes.
    #[structopt(long, requires = "target", parse(from_os_str))]
    input: Option<PathBuf>,
}

fn main() {
    let arguments = Arguments::from_args();
    let passed = match (&arguments.command, arguments.seed) {
        (Some(Command::Fuzz(fuzz)), _) => fuzz_targets(fuzz),
        (None, Some(seed)) => one(seed, arguments.trace),
        (None, None) => many(arguments.from, arguments.seeds),
    };
    std::process::exit(i32::from(!passed));
}

fn many(from: u64, seeds: u64) -> bool {
    let Swept { passed, failed, failures, sum } = sweep(from, seeds, Sabotage::None);
    for Failure { seed, .. } in &failures {
        one(*seed, false);
        println!();
    }
    for (kind, count) in &sum.records {
        println!("{count:>9}  {kind}");
    }
    let records: u64 = sum.records.values().sum();
    println!("{records} records, {} requests, {} kills", sum.requests, sum.kills);
    println!("{passed} passed, {failed} failed");
    failed == 0
}

/// Runs a seed with its trace, and shows that if it is wanted or needed.
fn one(seed: u64, every_step: bool) -> bool {
    let mut trace = Trace::on();
    let result = run(seed, Sabotage::None, &mut trace);
    if every_step || result.is_err() {
        trace.tail(if every_step { usize::MAX } else { TAIL_STEPS }).for_each(|step| println!("{step}"));
    }
    match result {
        Ok(report) => println!("seed {seed}: {} requests, {} kills", report.requests, report.kills),
        Err(violation) => {
            println!("seed {seed}: {violation}");
            println!("again: cargo run -p waxlog-sim -- --seed {seed} --trace");
            return false;
        }
    }
    true
}

fn fuzz_targets(fuzz: &Fuzz) -> bool {
    // A panic is what a failure is made of here; its words come with the report.
    std::panic::set_hook(Box::new(|_| {}));
    let wanted = |target: &&Target| fuzz.target.as_ref().is_none_or(|name| name == target.name);
    let (mut passed, mut failed) = (0, 0);
    for target in TARGETS.iter().filter(wanted) {
        match fuzz_one(target, fuzz) {
            true => passed += 1,
            false => failed += 1,
        }
    }
    println!("{passed} passed, {failed} failed");
    failed == 0 && passed > 0
}

fn fuzz_one(target: &Target, fuzz: &Fuzz) -> bool {
    let (name, failures) = (target.name, PathBuf::from(FAILURES));
    let outcome = match &fuzz.input {
        Some(file) => std::fs::read(file)
            .and_then(|input| campaign::try_input(target, &input, &failures))
            .map(|failure| campaign::Outcome { inputs: 1, failure }),
        None => campaign::run(target, fuzz.seed, Duration::from_secs(fuzz.seconds), &failures),
    };
    match outcome {
        Ok(campaign::Outcome { inputs, failure: None }) => {
            println!("{name}: {inputs} inputs");
            true
        }
        Ok(campaign::Outcome { inputs, failure: Some((file, text)) }) => {
            println!("{name}: input {inputs} breaks it: {text}");
            println!("again: cargo run -p waxlog-sim -- fuzz --target {name} --input {}", file.display());
            false
        }
        Err(error) => {
            println!(
                "{name}: {error}; its corpus lies in {}",
                campaign::corpus_folder().join(name).display()
            );
            false
        }
    }
}
