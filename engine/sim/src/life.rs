//! A run from its first step to its last: processes that live, are killed and come back, until the client
//! is quiet and nothing is left to do.

use std::collections::BTreeMap;

use crate::dice::Dice;
use crate::log::Stored;
use crate::process::{refold, Process};
use crate::schedule::Happening;
use crate::setup::Setup;
use crate::trace::Trace;
use crate::violation::{Invariant, Violation};
use crate::world::{Sabotage, Stop, World};

/// Things that may happen once the client is quiet, until the turn must be over.
const QUIET_STEPS_MAX: u32 = 2_000;
/// How often a process gets through its recovery without being killed again, in thousandths.
const RECOVERS_PERMILLE: u32 = 700;

/// What a run that passed was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Durable records, by kind.
    pub records: BTreeMap<String, u64>,
    /// Requests to the model.
    pub requests: u64,
    /// Processes that ended without warning.
    pub kills: u64,
}

/// Runs a seed; `trace` gets the steps, also of a run that fails.
pub fn run(seed: u64, sabotage: Sabotage, trace: &mut Trace) -> Result<Report, Violation> {
    let mut dice = Dice::new(seed);
    let setup = Setup::draw(&mut dice);
    let mut world = World::new(setup, dice, sabotage, std::mem::replace(trace, Trace::off()));
    let result = live(&mut world);
    *trace = world.trace;
    result
}

fn live(world: &mut World) -> Result<Report, Violation> {
    let mut kills = 0;
    world.schedule.after(0, None, Happening::Move);
    while let Ended::Killed = process_life(kills, world)? {
        kills += 1;
    }
    // The end of a run is a kill as well: what was not flushed had no consequence.
    restart(world)?;
    world.checks.finish(world.log.durable())?;
    let mut records = BTreeMap::new();
    for row in world.log.durable() {
        *records.entry(row.kind.clone()).or_default() += 1;
    }
    Ok(Report { records, requests: world.checks.rounds(), kills })
}

/// How a process ended.
enum Ended {
    /// Suddenly; the next one begins with recovery.
    Killed,
    /// With nothing left to do.
    Idle,
}

fn process_life(kills: u64, world: &mut World) -> Result<Ended, Violation> {
    restart(world)?;
    if kills < world.setup.faults.kills {
        world.plan_kill();
    }
    if kills == world.setup.faults.fails_after_kills {
        world.plan_failure();
    }
    let mut quiet_steps = 0;
    let mut process = match Process::start(world) {
        Ok(process) => process,
        Err(Stop::Violated(violation)) => return Err(violation),
        Err(Stop::Killed | Stop::LogFailed) => return Ok(Ended::Killed),
    };
    while let Some((what, until)) = world.schedule.go_on() {
        quiet_steps += u32::from(world.client.is_quiet());
        if quiet_steps > QUIET_STEPS_MAX {
            let detail =
                format!("{QUIET_STEPS_MAX} steps after the client fell quiet there is still something to do");
            return Err(Violation::new(Invariant::Ends, detail));
        }
        let stepped = match process.step(what, until, world) {
            Err(Stop::LogFailed) => process.fail(world),
            stepped => stepped,
        };
        match stepped {
            Ok(()) => {}
            Err(Stop::Violated(violation)) => return Err(violation),
            Err(Stop::Killed | Stop::LogFailed) => return Ok(Ended::Killed),
        }
    }
    if process.is_busy() {
        return Err(Violation::new(Invariant::Ends, "the turn waits for something that nobody is doing"));
    }
    world.client.check_answered()?;
    Ok(Ended::Idle)
}

/// The process before is gone; the next one closes what it finds open. It may be killed on the way.
fn restart(world: &mut World) -> Result<(), Violation> {
    loop {
        world.kill()?;
        recover(world)?;
        if world.dice.chance(RECOVERS_PERMILLE) {
            break;
        }
    }
    let is_logged = refold(&world.log)?.is_some();
    world.client.forgets(is_logged);
    match world.flush() {
        Err(Stop::Violated(violation)) => return Err(violation),
        // No kill and no failure is planned here.
        _ => world.checks.killed(),
    }
    Ok(())
}

/// Folds the log and appends what closes it; once is enough.
fn recover(world: &mut World) -> Result<(), Violation> {
    let Some(found) = refold(&world.log)? else { return Ok(()) };
    for record in found.recovery() {
        world.note(|| format!("recovery {:?}", record.head));
        world.log.append(Stored::of_session(&record));
    }
    let Some(closed) = refold(&world.log)? else { return Ok(()) };
    let (left, next) = (closed.recovery(), closed.decide());
    if closed.is_busy() || !left.is_empty() || next.is_some() {
        let detail = format!("after recovery is left {left:.300?}, and to be decided {next:.300?}");
        return Err(Violation::new(Invariant::Recovery, detail));
    }
    Ok(())
}
