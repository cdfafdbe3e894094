//! The one thread that takes events in: in the order in which they came, many to a flush.
//!
//! Signatures are checked by a pool while earlier events are taken in; whatever the pool has not begun when
//! its turn comes, the clerk checks itself. Only what a flush has covered is answered and passed on.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use waxlog_nostr::frame::RelayFrame;
use waxlog_nostr::{Event, EventId};

use super::connection::Connection;
use super::gauge::Counted;
use super::hub::Hub;
use super::pool::{panic_text, NotDone, Pool};
use super::{lock, now_seconds};
use crate::asker::Asker;
use crate::desk::Desk;
use crate::live::Live;
use crate::reply::{Checked, Reply, Ticket};

/// How many events one flush covers at most.
const BATCH: usize = 256;

/// Where the answer goes.
pub(crate) enum Answer {
    /// An `OK` frame. The marks end with the answer.
    Socket(Arc<Connection>, EventId, [Counted; 2]),
    /// A waiting request.
    Http(async_channel::Sender<Reply>),
}

impl Answer {
    fn give(self, reply: Reply) {
        match self {
            Self::Socket(connection, id, _marks) => {
                connection.say(&RelayFrame::Ok(id, reply.accepted, reply.message.into_owned()));
            }
            Self::Http(waiting) => {
                // A client that has left needs no answer.
                let _ = waiting.try_send(reply);
            }
        }
    }
}

enum Stage {
    Waiting(Event),
    Begun,
    Done(Result<Checked, Reply>),
    Taken,
}

/// An event whose signature somebody checks.
struct Check {
    asker: Asker,
    now: u64,
    stage: Mutex<Stage>,
    done: Condvar,
}

impl Check {
    /// Checks the event, unless somebody has begun.
    fn work(&self) {
        let event = {
            let mut stage = lock(&self.stage);
            match std::mem::replace(&mut *stage, Stage::Begun) {
                Stage::Waiting(event) => event,
                other => {
                    *stage = other;
                    return;
                }
            }
        };
        let checked = catch_unwind(AssertUnwindSafe(|| Desk::check(event, &self.asker, self.now)));
        let checked = checked.unwrap_or_else(|panic| {
            log::error!("the check of an event failed inside: {}", panic_text(&*panic));
            Err(Reply::internal())
        });
        *lock(&self.stage) = Stage::Done(checked);
        self.done.notify_one();
    }

    /// The outcome, once.
    fn take(&self) -> Result<Checked, Reply> {
        self.work();
        let mut stage = lock(&self.stage);
        loop {
            match std::mem::replace(&mut *stage, Stage::Taken) {
                Stage::Done(checked) => return checked,
                other => *stage = other,
            }
            stage = self.done.wait(stage).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

enum Job {
    Submit(Arc<Check>, Answer),
    Reap,
}

/// What came of a job and waits for the flush.
struct Settling {
    number: u64,
    live: Vec<Live>,
    ticket: Option<Ticket>,
    answer: Option<(Answer, Reply)>,
}

/// The line to the clerk.
pub(crate) struct Clerk {
    jobs: async_channel::Sender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Clerk {
    /// Starts the thread. At most `line` jobs wait.
    pub(crate) fn start(desk: Arc<Desk>, hub: Arc<Hub>, line: usize) -> std::io::Result<Self> {
        let (jobs, line) = async_channel::bounded(line);
        let thread = thread::Builder::new().name("relay-clerk".into()).spawn(move || {
            while let Ok(first) = line.recv_blocking() {
                let more = std::iter::from_fn(|| line.try_recv().ok());
                serve(&desk, &hub, std::iter::once(first).chain(more).take(BATCH));
            }
        })?;
        Ok(Self { jobs, thread: Mutex::new(Some(thread)) })
    }

    /// Hands in an event. Waits while the line is full.
    pub(crate) async fn submit(
        &self,
        pool: &Pool,
        event: Event,
        asker: Asker,
        answer: Answer,
    ) -> Result<(), NotDone> {
        let stage = Mutex::new(Stage::Waiting(event));
        let check = Arc::new(Check { asker, now: now_seconds(), stage, done: Condvar::new() });
        let offered = check.clone();
        pool.offer(move || offered.work());
        self.jobs.send(Job::Submit(check, answer)).await.map_err(|_| NotDone)
    }

    /// Has channels archived whose time has passed.
    pub(crate) async fn reap(&self) -> Result<(), NotDone> {
        self.jobs.send(Job::Reap).await.map_err(|_| NotDone)
    }

    /// Answers what waits and ends the thread. Blocks.
    pub(crate) fn stop(&self) {
        self.jobs.close();
        let thread = lock(&self.thread).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            log::error!("the thread that takes events in ended by a panic");
        }
    }
}

/// One flush: takes the jobs in, settles them, then answers and passes on.
fn serve(desk: &Desk, hub: &Hub, jobs: impl Iterator<Item = Job>) {
    let taken: Vec<Settling> = jobs.map(|job| take_in(desk, hub, job)).collect();
    let Some(last) = taken.last().map(|settling| settling.number) else { return };
    let ticket = taken.iter().filter_map(|settling| settling.ticket).max();
    let settled = ticket.map_or(Ok(()), |ticket| desk.settle(ticket));
    if let Err(error) = &settled {
        log::error!("events could not be made to last: {error}");
    }
    for settling in taken {
        let is_lost = settling.ticket.is_some() && settled.is_err();
        if let Some((answer, reply)) = settling.answer {
            answer.give(if is_lost { Reply::internal() } else { reply });
        }
        if !is_lost {
            hub.pass_on(desk, settling.number, &settling.live);
        }
    }
    hub.passed_on(last);
}

fn take_in(desk: &Desk, hub: &Hub, job: Job) -> Settling {
    let number = hub.number();
    match job {
        Job::Reap => {
            let (live, ticket) = desk.reap(now_seconds()).unwrap_or_else(|error| {
                log::error!("channels could not be looked through for those whose time has passed: {error}");
                (Vec::new(), None)
            });
            Settling { number, live, ticket, answer: None }
        }
        Job::Submit(check, answer) => match check.take() {
            Err(reply) => Settling { number, live: Vec::new(), ticket: None, answer: Some((answer, reply)) },
            Ok(checked) => {
                let taken = catch_unwind(AssertUnwindSafe(|| desk.admit(checked, &check.asker, check.now)));
                match taken {
                    Ok(taken) => Settling {
                        number,
                        live: taken.live,
                        ticket: taken.ticket,
                        answer: Some((answer, taken.reply)),
                    },
                    Err(panic) => {
                        log::error!("an event could not be taken in: {}", panic_text(&*panic));
                        let answer = Some((answer, Reply::internal()));
                        Settling { number, live: Vec::new(), ticket: None, answer }
                    }
                }
            }
        },
    }
}
