//! One run: the world around a session, and the loop that drives both until the client is quiet and the
//! session idle.

use waxlog_core::acp::frame::{classify, Frame};
use waxlog_core::connection::{self, Connection, Route};
use waxlog_core::mcp::ServerEvent;
use waxlog_core::session::{Input, Session};

use crate::checks::{Checks, Truth};
use crate::client::Client;
use crate::dice::Dice;
use crate::driver::Driver;
use crate::log::{Log, Stored};
use crate::model::Model;
use crate::schedule::{Happening, Schedule, Token};
use crate::servers::Servers;
use crate::setup::{Setup, SESSION};
use crate::trace::Trace;
use crate::violation::{Invariant, Violation};

/// Inputs that share one flush.
const BATCH_MAX_INPUTS: usize = 16;
/// Things that may happen once the client is quiet, until the turn must be over.
const QUIET_STEPS_MAX: u32 = 2_000;
/// Longest pause between two things that the client does, in milliseconds.
const MOVE_MAX_MS: u64 = 60_000;
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
}

/// What a run that passed was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Durable records.
    pub records: u64,
    /// Requests to the model.
    pub requests: u64,
    /// Kills that the log came through.
    pub kills: u64,
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
    log: Log,
    trace: Trace,
    /// Records, flushes and effects until the next kill.
    until_kill: Option<u64>,
    /// Writes until one fails.
    until_failure: Option<u64>,
}

impl World {
    fn new(setup: Setup, mut dice: Dice, sabotage: Sabotage, trace: Trace) -> World {
        let until_failure = setup.faults.log_fails.then(|| dice.within(0..FAILURE_MAX_WRITES));
        World {
            schedule: Schedule::default(),
            checks: Checks::default(),
            model: Model::default(),
            servers: Servers::start(&setup.catalogue, setup.faults.tool_permille),
            client: Client::new(setup.moves, setup.models),
            log: Log::default(),
            until_kill: None,
            until_failure,
            setup,
            dice,
            sabotage,
            trace,
        }
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
            check_durable(self.log.flush(), &mut self.checks, &self.model, &self.client)?;
            self.note(|| "flush".to_owned());
        }
        self.may_die()
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
        Ok(self.client.hear(line)?)
    }

    /// Puts an input on the agenda; it may come twice.
    pub fn plan(&mut self, wait_ms: u64, until: Option<Token>, input: Input) {
        if self.dice.chance(self.setup.faults.repeat_permille) {
            let again_ms = wait_ms.saturating_add(self.dice.wait_ms(REPEAT_MAX_MS));
            self.schedule.after(again_ms, until, Happening::Input(input.clone()));
        }
        self.schedule.after(wait_ms, until, Happening::Input(input));
    }

    /// Kills a tool server.
    pub fn kill_server(&mut self, server: usize, reason: &str) -> Vec<ServerEvent> {
        self.servers.kill(server, reason, self.schedule.now_ms(), &mut self.dice)
    }

    fn write(&mut self) -> Result<(), Stop> {
        match counted_down(&mut self.until_failure) {
            true => Err(Stop::LogFailed),
            false => Ok(()),
        }
    }

    fn note(&mut self, step: impl FnOnce() -> String) {
        self.trace.note(self.schedule.now_ms(), step);
    }
}

fn check_durable(rows: &[Stored], checks: &mut Checks, model: &Model, client: &Client) -> Result<(), Violation> {
    rows.iter().try_for_each(|row| {
        let truth = Truth { bill: model.bill(&row.raw), steers: client.steers() };
        checks.durable(row, truth)
    })
}

/// Counts down; true once, at zero.
fn counted_down(count: &mut Option<u64>) -> bool {
    *count = match *count {
        Some(0) => {
            *count = None;
            return true;
        }
        Some(n) => Some(n - 1),
        None => None,
    };
    false
}

/// One process: the connection and the session's driver.
#[derive(Debug)]
struct Process {
    connection: Connection,
    driver: Driver,
    /// Whether the log has failed, so that only refusals leave.
    refuses: bool,
}

/// Runs a seed; `trace` gets the steps, also of a run that fails.
pub fn run(seed: u64, sabotage: Sabotage, trace: &mut Trace) -> Result<Report, Violation> {
    let mut dice = Dice::new(seed);
    let setup = Setup::draw(&mut dice).map_err(|e| Violation::new(Invariant::Replay, e.to_string()))?;
    let mut world = World::new(setup, dice, sabotage, std::mem::replace(trace, Trace::off()));
    let result = live(&mut world);
    *trace = world.trace;
    result
}

fn live(world: &mut World) -> Result<Report, Violation> {
    let mut process = open(world)?;
    let (mut kills, mut quiet_steps) = (0, 0);
    world.schedule.after(0, None, Happening::Move);
    plan_kill(world, kills);
    let mut lived = process.driver.act(world);
    loop {
        match lived {
            Ok(()) => {}
            Err(Stop::Violated(violation)) => return Err(violation),
            Err(Stop::LogFailed) => process.fail(world)?,
            Err(Stop::Killed) => {
                kills += 1;
                process = restart(world)?;
                plan_kill(world, kills);
            }
        }
        let Some((what, until)) = world.schedule.next() else { break };
        quiet_steps += u32::from(world.client.is_quiet());
        if quiet_steps > QUIET_STEPS_MAX {
            let detail = format!("the client is quiet, and {QUIET_STEPS_MAX} steps later there is still something to do");
            return Err(Violation::new(Invariant::Ends, detail));
        }
        lived = process.step(what, until, world);
    }
    if process.driver.session().is_busy() && !process.refuses {
        return Err(Violation::new(Invariant::Ends, "the turn waits for something that nobody is doing"));
    }
    world.client.check_answered()?;
    finish(world, kills)
}

/// The end of a run is a kill as well: what was not flushed had no consequence.
fn finish(world: &mut World, kills: u64) -> Result<Report, Violation> {
    restart(world)?;
    world.checks.finish(world.log.durable())?;
    let records = world.log.durable().len() as u64;
    Ok(Report { records, requests: world.checks.rounds(), kills })
}

fn plan_kill(world: &mut World, kills: u64) {
    if kills < u64::from(world.setup.faults.kills) {
        world.until_kill = Some(world.dice.within(0..KILL_MAX_POINTS));
    }
}

/// The first process: it opens the session.
fn open(world: &mut World) -> Result<Process, Violation> {
    let opened = world.setup.opened.clone();
    let session = Session::open(&opened)
        .ok_or_else(|| Violation::new(Invariant::Replay, "the first record opens no session"))?;
    world.log.append(Stored::of_session(&opened));
    let process = Process::start(world, session);
    check_durable(world.log.flush(), &mut world.checks, &world.model, &world.client)?;
    Ok(process)
}

/// A kill, and the process after it: it closes what it finds open, and serves the session again.
fn restart(world: &mut World) -> Result<Process, Violation> {
    world.until_failure = None;
    let mut session = None;
    // A kill may come during recovery as well; the one after that goes through.
    for goes_through in [false, true] {
        let at_risk = world.log.at_risk();
        let kept = world.dice.size(0..at_risk + 1);
        world.note(|| format!("KILL: of {at_risk} records at risk {kept} survive"));
        check_durable(world.log.kill(kept), &mut world.checks, &world.model, &world.client)?;
        world.checks.killed();
        session = recover(world)?;
        if goes_through || world.dice.chance(700) {
            break;
        }
    }
    check_durable(world.log.flush(), &mut world.checks, &world.model, &world.client)?;
    world.checks.killed();
    world.schedule.kill();
    world.client.forgets();
    world.servers = Servers::start(&world.setup.catalogue, world.setup.faults.tool_permille);
    let session = session.ok_or_else(|| Violation::new(Invariant::Recovery, "the session is gone"))?;
    Ok(Process::start(world, session))
}

/// Folds the durable log and appends what closes it.
fn recover(world: &mut World) -> Result<Option<Session>, Violation> {
    let unread = |e: waxlog_core::record::RecordError| Violation::new(Invariant::Recovery, e.to_string());
    let mut session: Option<Session> = None;
    for row in world.log.durable().iter().filter(|row| row.stream == crate::log::Stream::Session) {
        let record = row.decode().map_err(unread)?;
        match session.as_mut() {
            None => session = Session::open(&record),
            Some(session) => session.fold(&record),
        }
    }
    let Some(mut session) = session else { return Ok(None) };
    for record in session.recovery() {
        world.note(|| format!("recovery {:?}", record.head));
        world.log.append(Stored::of_session(&record));
        session.fold(&record);
    }
    session.take_outbox();
    if session.is_busy() || !session.recovery().is_empty() || session.decide().is_some() {
        let detail = format!("after recovery the session still has to {:.200?}", session.decide());
        return Err(Violation::new(Invariant::Recovery, detail));
    }
    Ok(Some(session))
}

impl Process {
    /// A process that serves `session`.
    fn start(world: &mut World, session: Session) -> Process {
        let mut connection = Connection::default();
        let heads = [
            connection::Head::ConnectionOpened { version: "0".to_owned(), max_sessions: 1 },
            connection::Head::SessionBegun { session: SESSION.to_owned() },
        ];
        for head in heads {
            world.log.append(Stored::of_connection(&head, b""));
            connection.fold(&head, b"");
        }
        Process { connection, driver: Driver::new(session), refuses: false }
    }

    fn fail(&mut self, world: &mut World) -> Result<(), Violation> {
        self.refuses = true;
        world.note(|| "the log fails".to_owned());
        match self.driver.refuse_all(world) {
            Err(Stop::Violated(violation)) => Err(violation),
            _ => Ok(()),
        }
    }

    fn step(&mut self, what: Happening, until: Option<Token>, world: &mut World) -> Result<(), Stop> {
        match what {
            Happening::Move => return self.client_moves(world),
            Happening::Line(line) => return self.line(line, world),
            // Once the log has failed, only an end of the process helps.
            Happening::Close if self.refuses => return Err(Stop::Killed),
            Happening::Close => self.driver.close(world)?,
            Happening::Input(_) | Happening::Tick { .. } if self.refuses => return Ok(()),
            Happening::Tick { asked } => {
                world.schedule.after(30_000, until, Happening::Tick { asked });
                self.input(Input::KeepaliveTick { asked }, world)?;
            }
            Happening::Input(input) => self.input(input, world)?,
        }
        for _ in 1..world.dice.size(1..BATCH_MAX_INPUTS) {
            let Some(Happening::Input(input)) = world.schedule.next_due_input() else { break };
            self.input(input, world)?;
        }
        self.driver.act(world)?;
        self.may_leave()
    }

    /// A process whose client is gone ends with the turn; for the log, that is a kill.
    fn may_leave(&self) -> Result<(), Stop> {
        match self.driver.is_done() {
            true => Err(Stop::Killed),
            false => Ok(()),
        }
    }

    fn input(&mut self, input: Input, world: &mut World) -> Result<(), Stop> {
        world.note(|| format!("input {input:?}"));
        self.driver.take(input, world)
    }

    /// The client sends a line, now and then goes away, and plans what it does next.
    fn client_moves(&mut self, world: &mut World) -> Result<(), Stop> {
        if world.client.is_quiet() {
            return Ok(());
        }
        let line = world.client.next_line(&mut world.dice);
        let wait_ms = world.dice.wait_ms(20);
        world.schedule.after(wait_ms, None, Happening::Line(line));
        if world.dice.chance(20) {
            world.schedule.after(wait_ms, None, Happening::Close);
        }
        let next_ms = world.dice.wait_ms(MOVE_MAX_MS);
        world.schedule.after(next_ms, None, Happening::Move);
        Ok(())
    }

    fn line(&mut self, line: Vec<u8>, world: &mut World) -> Result<(), Stop> {
        world.note(|| format!("line {}", String::from_utf8_lossy(&line)));
        let frame = classify(&line);
        match self.connection.route(&frame) {
            Route::Nobody => Ok(()),
            Route::Session(_) if self.refuses => self.driver.refuse(&frame, world),
            Route::Session(_) => {
                self.driver.take_line(frame, line, world)?;
                self.driver.act(world)?;
                self.may_leave()
            }
            // The connection cannot record it either, and that is the end of the process.
            Route::Connection if self.refuses => Err(Stop::Killed),
            Route::Connection => self.connection_line(&frame, &line, world),
        }
    }

    fn connection_line(&mut self, frame: &Frame, line: &[u8], world: &mut World) -> Result<(), Stop> {
        let kept = connection::kept_line(frame, line);
        let head = connection::Head::LineReceived {};
        world.append(Stored::of_connection(&head, &kept)).map_err(ends)?;
        let follows = self.connection.fold(&head, &kept);
        world.flush().map_err(ends)?;
        follows.lines.iter().try_for_each(|line| world.say(line))
    }
}

/// A connection that cannot write ends the process.
fn ends(stop: Stop) -> Stop {
    match stop {
        Stop::LogFailed => Stop::Killed,
        other => other,
    }
}
