//! One process of the agent: the connection, and the driver of the session while it is served.

use waxlog_core::acp::code;
use waxlog_core::acp::frame::{classify, Frame, Id};
use waxlog_core::connection::{self, Connection, Route, Work};
use waxlog_core::record::{Head, Record, RecordError};
use waxlog_core::session::{Input, Session};

use crate::driver::{Driver, KEEPALIVE_MS};
use crate::log::{Log, Stored, Stream};
use crate::schedule::{Happening, Token};
use crate::setup::SESSION;
use crate::violation::{Invariant, Violation};
use crate::world::{Stop, World};

/// Inputs that share one flush.
const BATCH_MAX_INPUTS: usize = 16;
/// Longest pause between two things that the client does, in milliseconds.
const MOVE_MAX_MS: u64 = 60_000;
/// How long servers take to start, in milliseconds.
const START_MAX_MS: u64 = 2_000;
/// How often a client goes away after a line, in thousandths.
const GONE_PERMILLE: u32 = 20;

/// The process.
#[derive(Debug)]
pub struct Process {
    connection: Connection,
    driver: Option<Driver>,
    /// The client is gone, and the process ends with its turn.
    forsaken: bool,
    /// The log has failed: only refusals leave.
    refuses: bool,
}

impl Process {
    /// A process that has found its log in order.
    pub fn start(world: &mut World) -> Result<Process, Stop> {
        let connection = Connection::default();
        let mut process = Process { connection, driver: None, forsaken: false, refuses: false };
        let opened = connection::Head::ConnectionOpened { version: "0".to_owned(), max_sessions: 1 };
        process.record(opened, b"", world)?;
        Ok(process)
    }

    /// Whether a turn is under way.
    pub fn is_busy(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.session().is_busy()) && !self.refuses
    }

    /// The log cannot be written.
    pub fn fail(&mut self, world: &mut World) -> Result<(), Stop> {
        world.note(|| "the log fails".to_owned());
        self.refuses = true;
        match self.driver.as_mut() {
            Some(driver) => driver.refuse_all(world)?,
            None => return Err(Stop::Killed),
        }
        world.client.check_told()?;
        match self.forsaken {
            true => Err(Stop::Killed),
            false => Ok(()),
        }
    }

    /// Something happens.
    pub fn step(&mut self, what: Happening, until: Option<Token>, world: &mut World) -> Result<(), Stop> {
        match what {
            Happening::Move => client_moves(world),
            // Nobody reads what a client sent that is gone.
            Happening::Line(_) if self.forsaken => return Ok(()),
            Happening::Line(line) => self.line(line, world)?,
            Happening::Up(_) if self.refuses => return Err(Stop::Killed),
            Happening::Up(work) => self.up(work, world)?,
            Happening::Gone => self.gone(world)?,
            Happening::Input(_) | Happening::Tick { .. } if self.refuses => {}
            Happening::Tick { asked } => {
                world.schedule.after(KEEPALIVE_MS, until, Happening::Tick { asked });
                self.inputs(Input::KeepaliveTick { asked }, world)?;
            }
            Happening::Input(input) => self.inputs(input, world)?,
        }
        self.may_end()
    }

    /// A driver ends once its session is closed, the process once its client is gone; to the log, that is a
    /// kill.
    fn may_end(&mut self) -> Result<(), Stop> {
        if self.driver.as_ref().is_some_and(Driver::is_done) {
            self.driver = None;
        }
        match self.forsaken && self.driver.is_none() {
            true => Err(Stop::Killed),
            false => Ok(()),
        }
    }

    fn gone(&mut self, world: &mut World) -> Result<(), Stop> {
        world.note(|| "the client is gone".to_owned());
        self.forsaken = true;
        match self.driver.as_mut() {
            Some(_) if self.refuses => Err(Stop::Killed),
            Some(driver) => {
                driver.close(world)?;
                driver.act(world)
            }
            None => Ok(()),
        }
    }

    /// Takes an input, and those that are there by then, before it acts.
    fn inputs(&mut self, first: Input, world: &mut World) -> Result<(), Stop> {
        let Some(driver) = self.driver.as_mut() else { return Ok(()) };
        let mut next = Some(first);
        for _ in 0..world.dice.size(1..BATCH_MAX_INPUTS) {
            let Some(input) = next else { break };
            world.note(|| format!("input {input:?}"));
            driver.take(input, world)?;
            next = world.schedule.next_due_input();
        }
        // What was looked at and is not taken any more comes right after.
        if let Some(input) = next {
            world.schedule.after(0, None, Happening::Input(input));
        }
        driver.act(world)
    }

    fn line(&mut self, line: Vec<u8>, world: &mut World) -> Result<(), Stop> {
        world.note(|| format!("line {}", String::from_utf8_lossy(&line)));
        let frame = classify(&line);
        let of_session = match self.connection.route(&frame) {
            Route::Nobody => return Ok(()),
            Route::Session(_) => true,
            Route::Connection => false,
        };
        if let (Frame::Request { id, .. }, true) = (&frame, of_session) {
            world.client.took(id);
        }
        match self.driver.as_mut().filter(|_| of_session) {
            Some(driver) if self.refuses => driver.refuse(&frame, world),
            // The connection cannot record it either, and that is the end of the process.
            None if self.refuses => Err(Stop::Killed),
            Some(driver) => {
                let closes = matches!(&frame, Frame::Request { method, .. } if method == "session/close" || method == "session/delete");
                driver.take_line(frame, line, world)?;
                driver.act(world)?;
                if closes {
                    self.record(connection::Head::SessionLeft { session: SESSION.to_owned() }, b"", world)?;
                }
                Ok(())
            }
            None => self.connection_line(&frame, &line, world),
        }
    }

    fn connection_line(&mut self, frame: &Frame, line: &[u8], world: &mut World) -> Result<(), Stop> {
        let kept = connection::kept_line(frame, line);
        let Some(work) = self.record(connection::Head::LineReceived {}, &kept, world)? else { return Ok(()) };
        let wait_ms = world.dice.wait_ms(START_MAX_MS);
        world.schedule.after(wait_ms, None, Happening::Up(work));
        Ok(())
    }

    /// Records, folds, and says what follows. A connection that cannot write ends the process.
    fn record(
        &mut self,
        head: connection::Head,
        raw: &[u8],
        world: &mut World,
    ) -> Result<Option<Work>, Stop> {
        let ends = |stop| if matches!(stop, Stop::LogFailed) { Stop::Killed } else { stop };
        world.append(Stored::of_connection(&head, raw)).map_err(ends)?;
        let follows = self.connection.fold(&head, raw);
        world.flush().map_err(ends)?;
        follows.lines.iter().try_for_each(|line| world.say(line))?;
        Ok(follows.work)
    }

    /// The servers are up: the session begins, or comes back.
    fn up(&mut self, work: Work, world: &mut World) -> Result<(), Stop> {
        let (id, tells_history) = match work {
            Work::Open { id, .. } => (id, None),
            Work::Load { id, tells_history, .. } => (id, Some(tells_history)),
            Work::Delete { id, session } => return self.delete(id, session, world),
            Work::List { id, .. } => return self.list(id, world),
        };
        let before = refold(&world.log)?;
        let (session, record) = match (before, tells_history) {
            (None, None) => (None, world.setup.first_record(&id)),
            (Some(session), Some(tells_history))
                if self.driver.is_none() && !session.is_busy() && !session.is_deleted() =>
            {
                world.setup.redraw(&mut world.dice);
                (Some(session), world.setup.resumed_record(&id, tells_history))
            }
            _ => return self.no_session(id, world),
        };
        let record = record.map_err(|e| unread(&e))?;
        world.start_servers();
        self.serve(id, session, &record, world)
    }

    fn serve(
        &mut self,
        id: Id,
        session: Option<Session>,
        record: &Record,
        world: &mut World,
    ) -> Result<(), Stop> {
        let session = match session {
            Some(mut session) => {
                session.fold(record);
                session
            }
            None => {
                Session::open(record).ok_or_else(|| Violation::new(Invariant::Replay, "no session opens"))?
            }
        };
        world.append(Stored::of_session(record))?;
        self.record(connection::Head::SessionBegun { session: SESSION.to_owned() }, b"", world)?;
        let mut driver = Driver::new(session, id);
        if self.forsaken {
            driver.close(world)?;
        }
        self.driver.insert(driver).act(world)
    }

    fn no_session(&mut self, id: Id, world: &mut World) -> Result<(), Stop> {
        let (code, message) = (code::INVALID_PARAMS, "there is no such session at rest".to_owned());
        self.record(connection::Head::SessionFailed { id, code, message }, b"", world).map(drop)
    }

    /// A session at rest leaves the list.
    fn delete(&mut self, id: Id, session: String, world: &mut World) -> Result<(), Stop> {
        let ends = |stop| if matches!(stop, Stop::LogFailed) { Stop::Killed } else { stop };
        // A real client cannot name a session that is opened only after it has asked: here all have one id.
        let is_at_rest = |session: &Session| self.driver.is_none() && !session.is_deleted();
        let mut at_rest = refold(&world.log)?.filter(is_at_rest);
        let mut next = at_rest.is_some().then(|| Record::bare(Head::DeleteRequested { id: None }));
        while let (Some(record), Some(session)) = (next.take(), at_rest.as_mut()) {
            world.append(Stored::of_session(&record)).map_err(ends)?;
            session.fold(&record);
            next = session.decide();
        }
        self.record(connection::Head::DeletionDone { id, session }, b"", world).map(drop)
    }

    fn list(&mut self, id: Id, world: &mut World) -> Result<(), Stop> {
        let listed = connection::Head::SessionsListed { id, sessions: Vec::new(), next_cursor: None };
        self.record(listed, b"", world).map(drop)
    }
}

/// The client sends a line, now and then goes away, and plans what it does next.
fn client_moves(world: &mut World) {
    if world.client.is_quiet() {
        return;
    }
    let line = world.client.next_line(world.setup.models, &mut world.dice);
    let wait_ms = world.dice.wait_ms(20);
    world.schedule.after(wait_ms, None, Happening::Line(line));
    if world.dice.chance(GONE_PERMILLE) {
        world.schedule.after(wait_ms, None, Happening::Gone);
    }
    let next_ms = world.dice.wait_ms(MOVE_MAX_MS);
    world.schedule.after(next_ms, None, Happening::Move);
}

/// Folds the session's records of the log again, durable or not; `None` if it has none.
pub fn refold(log: &Log) -> Result<Option<Session>, Violation> {
    let mut session: Option<Session> = None;
    for row in log.all().iter().filter(|row| row.stream == Stream::Session) {
        let record = row.decode().map_err(|e| unread(&e))?;
        match session.as_mut() {
            None => session = Session::open(&record),
            Some(session) => session.fold(&record),
        }
        session.iter_mut().for_each(|session| drop(session.take_outbox()));
    }
    Ok(session)
}

fn unread(error: &RecordError) -> Violation {
    Violation::new(Invariant::Recovery, error.to_string())
}
