//! The world around a session: everything that its process reaches, with what goes wrong there.

use waxlog_core::mcp::ServerEvent;
use waxlog_core::session::Input;

use crate::checks::{Checks, Truth};
use crate::client::Client;
use crate::dice::Dice;
use crate::log::{Log, Stored};
use crate::model::Model;
use crate::schedule::{Happening, Schedule, Token};
use crate::servers::Servers;
use crate::setup::Setup;
use crate::trace::Trace;
use crate::violation::Violation;

/// A kill comes after this many records, flushes and effects at most.
const KILL_MAX_POINTS: u64 = 80;
/// The failing write of a log is one of its first so many.
const FAILURE_MAX_WRITES: u64 = 40;
/// How late a repeated input comes at most, in milliseconds.
const REPEAT_MAX_MS: u64 = 5_000;

/// A fault put into the driver on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// None: the driver as it should be.
    #[default]
    None,
    /// Effects are performed before the flush.
    ActEarly,
    /// Steers are acknowledged and their words are lost.
    LoseSteer,
    /// Keepalive ticks are folded and not recorded.
    ForgetTick,
    /// When the log fails, those who wait for an answer are left waiting.
    TellNobody,
}

/// Why the driver stops where it is.
#[derive(Debug)]
pub enum Stop {
    /// The process is killed.
    Killed,
    /// The log cannot be written.
    LogFailed,
    /// A rule is broken.
    Violated(Violation),
}

impl From<Violation> for Stop {
    fn from(violation: Violation) -> Stop {
        Stop::Violated(violation)
    }
}

/// Everything around the session.
#[derive(Debug)]
pub struct World {
    /// Chance.
    pub dice: Dice,
    /// What is going to happen.
    pub schedule: Schedule,
    /// The invariants.
    pub checks: Checks,
    /// The run's start.
    pub setup: Setup,
    /// The model.
    pub model: Model,
    /// The tool servers.
    pub servers: Servers,
    /// The client.
    pub client: Client,
    /// What is broken on purpose.
    pub sabotage: Sabotage,
    /// The log.
    pub log: Log,
    /// The steps so far.
    pub trace: Trace,
    /// Records, flushes and effects until the next kill.
    until_kill: Option<u64>,
    /// Writes until one fails.
    until_failure: Option<u64>,
}

impl World {
    /// The world of a run.
    pub fn new(setup: Setup, dice: Dice, sabotage: Sabotage, trace: Trace) -> World {
        World {
            schedule: Schedule::default(),
            checks: Checks::default(),
            model: Model::default(),
            servers: Servers::start(&setup.catalogue, setup.faults.tool_permille),
            client: Client::new(setup.moves),
            log: Log::default(),
            until_kill: None,
            until_failure: None,
            setup,
            dice,
            sabotage,
            trace,
        }
    }

    /// Plans the next kill.
    pub fn plan_kill(&mut self) {
        self.until_kill = Some(self.dice.within(0..KILL_MAX_POINTS));
    }

    /// Plans that the log fails.
    pub fn plan_failure(&mut self) {
        self.until_failure = Some(self.dice.within(0..FAILURE_MAX_WRITES));
    }

    /// Appends a record to the live half.
    pub fn append(&mut self, row: Stored) -> Result<(), Stop> {
        self.note(|| format!("record {} {}", row.kind, String::from_utf8_lossy(&row.head)));
        self.write()?;
        self.log.append(row);
        self.may_die()
    }

    /// Makes everything durable; the checks see what was not before.
    pub fn flush(&mut self) -> Result<(), Stop> {
        if self.log.at_risk() > 0 {
            self.write()?;
            self.may_die()?;
            self.note(|| "flush".to_owned());
            check(self.log.flush(), &mut self.checks, &self.model, &self.client)?;
        }
        self.may_die()
    }

    /// The process dies: what was not durable is lost but for a few records, and so is everything under way.
    pub fn kill(&mut self) -> Result<(), Violation> {
        let at_risk = self.log.at_risk();
        let kept = self.dice.size(0..at_risk + 1);
        self.note(|| format!("KILL: of {at_risk} records at risk {kept} survive"));
        check(self.log.kill(kept), &mut self.checks, &self.model, &self.client)?;
        self.checks.killed();
        self.schedule.kill();
        (self.until_kill, self.until_failure) = (None, None);
        Ok(())
    }

    /// A point at which the process may be killed.
    pub fn may_die(&mut self) -> Result<(), Stop> {
        match counted_down(&mut self.until_kill) {
            true => Err(Stop::Killed),
            false => Ok(()),
        }
    }

    /// Says a line to the client.
    pub fn say(&mut self, line: &[u8]) -> Result<(), Stop> {
        self.note(|| format!("say {}", String::from_utf8_lossy(line)));
        self.client.hear(line)?;
        if let Some((wait_ms, response)) = self.client.response(line, &mut self.dice) {
            self.schedule.after(wait_ms, None, Happening::Line(response));
        }
        Ok(())
    }

    /// Puts an input on the agenda; it may come twice.
    pub fn plan(&mut self, wait_ms: u64, until: Option<Token>, input: Input) {
        if self.dice.chance(self.setup.faults.repeat_permille) {
            let again_ms = wait_ms.saturating_add(self.dice.wait_ms(REPEAT_MAX_MS));
            self.schedule.after(again_ms, until, Happening::Input(input.clone()));
        }
        self.schedule.after(wait_ms, until, Happening::Input(input));
    }

    /// Starts the tool servers anew.
    pub fn start_servers(&mut self) {
        self.servers = Servers::start(&self.setup.catalogue, self.setup.faults.tool_permille);
    }

    /// Kills a tool server.
    pub fn kill_server(&mut self, server: usize, reason: &str) -> Vec<ServerEvent> {
        self.servers.kill(server, reason, self.schedule.now_ms(), &mut self.dice)
    }

    /// Notes a step.
    pub fn note(&mut self, step: impl FnOnce() -> String) {
        self.trace.note(self.schedule.now_ms(), step);
    }

    fn write(&mut self) -> Result<(), Stop> {
        match counted_down(&mut self.until_failure) {
            true => Err(Stop::LogFailed),
            false => Ok(()),
        }
    }
}

/// Shows the checks what has become durable.
fn check(rows: &[Stored], checks: &mut Checks, model: &Model, client: &Client) -> Result<(), Violation> {
    rows.iter().try_for_each(|row| {
        let truth = Truth { bill: model.bill(&row.raw), steers: client.steers() };
        checks.durable(row, truth)
    })
}

/// Counts down; true once, at zero.
fn counted_down(count: &mut Option<u64>) -> bool {
    let left = count.take();
    *count = left.and_then(|n| n.checked_sub(1));
    left == Some(0)
}
