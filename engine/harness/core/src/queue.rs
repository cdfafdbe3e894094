//! The queue: what waits for an agent, channel by channel, and what becomes of it.
//!
//! One turn runs per channel. An event is in exactly one place: waiting, in flight, withheld while a steer
//! carries it, or kept from a cancelled turn until the next batch takes it along.

use std::collections::{BTreeMap, VecDeque};

use waxlog_nostr::{Event, EventId};

/// How many events wait per channel; the oldest gives way.
pub const PENDING_MAX: usize = 500;
/// How many events one batch takes.
pub const BATCH_MAX: usize = 50;
/// How often a batch is tried again before it is given up.
pub const RETRIES_MAX: u32 = 10;
/// How much longer than the longest turn a channel may stay in flight.
pub const DEADLINE_SLACK_MS: u64 = 100_000;
const RETRY_BASE_MS: u64 = 5_000;
const RETRY_CAP_MS: u64 = 300_000;
const RETRY_DOUBLINGS_MAX: u32 = 6;

/// An event that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Queued {
    /// The event.
    pub event: Event,
    /// What the prompt calls it.
    pub tag: String,
    /// When it came, in milliseconds since 1970.
    pub received_ms: u64,
}

/// Why a turn was cancelled in favour of what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A message arrived meanwhile.
    Steer,
    /// The message takes the place of the request.
    Interrupt,
}

/// What one turn answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Where.
    pub channel: String,
    /// The new events, oldest first.
    pub events: Vec<Queued>,
    /// The events of a cancelled turn, which are asked again together with the new ones.
    pub cancelled: Vec<Queued>,
    /// Why that turn was cancelled.
    pub why: Option<Why>,
}

impl Batch {
    /// All events, those of the cancelled turn first.
    pub fn all(&self) -> impl Iterator<Item = &Queued> {
        self.cancelled.iter().chain(&self.events)
    }

    /// The event that decides on scope and anchor.
    pub fn last(&self) -> Option<&Queued> {
        self.events.last()
    }
}

/// What became of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It waits.
    Taken,
    /// It waits, and the oldest that waited had to go.
    TakenFor(EventId),
    /// The channel is busy and such messages are dropped.
    Refused,
}

/// What became of a batch that failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Requeued {
    /// It is tried again at this time.
    Waiting {
        /// In milliseconds since 1970.
        until_ms: u64,
    },
    /// It was tried too often.
    Dead(Batch),
}

#[derive(Clone, Debug, Default)]
struct Lane {
    waiting: VecDeque<Queued>,
    /// Events of a turn that was cancelled, and why.
    cancelled: Vec<Queued>,
    why: Option<Why>,
    /// Events that a steer carries.
    withheld: Vec<Queued>,
    /// What runs, and until when it may.
    in_flight: Option<Flight>,
    retry_after_ms: Option<u64>,
    retries: u32,
}

#[derive(Clone, Debug)]
struct Flight {
    batch: Batch,
    deadline_ms: u64,
}

impl Lane {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty()
            && self.cancelled.is_empty()
            && self.withheld.is_empty()
            && self.in_flight.is_none()
    }

    fn is_throttled(&self, now_ms: u64) -> bool {
        self.retry_after_ms.is_some_and(|until_ms| until_ms > now_ms)
    }

    /// What was taken out goes back. Nothing is cut for it: a lane holds one batch more than it takes in.
    fn put_first(&mut self, events: Vec<Queued>) {
        for queued in events.into_iter().rev() {
            self.waiting.push_front(queued);
        }
    }

    fn keep_cancelled(&mut self, events: Vec<Queued>, why: Option<Why>) {
        self.cancelled.extend(events);
        self.why = why.or(self.why);
    }
}

/// The queue of all channels.
#[derive(Clone, Debug)]
pub struct Queue {
    lanes: BTreeMap<String, Lane>,
    max_turn_ms: u64,
    drop_busy: bool,
}

impl Queue {
    /// An empty queue. With `drop_busy` what comes for a channel whose turn runs is refused.
    pub fn new(max_turn_ms: u64, drop_busy: bool) -> Self {
        Self { lanes: BTreeMap::new(), max_turn_ms, drop_busy }
    }

    /// New settings; what waits stays.
    pub fn configure(&mut self, max_turn_ms: u64, drop_busy: bool) {
        (self.max_turn_ms, self.drop_busy) = (max_turn_ms, drop_busy);
    }

    /// Adds an event.
    pub fn push(&mut self, channel: &str, queued: Queued) -> Pushed {
        let drop_busy = self.drop_busy;
        let lane = self.lane(channel);
        if drop_busy && lane.in_flight.is_some() {
            return Pushed::Refused;
        }
        lane.waiting.push_back(queued);
        match lane.waiting.len() > PENDING_MAX {
            true => {
                lane.waiting.pop_front().map_or(Pushed::Taken, |oldest| Pushed::TakenFor(oldest.event.id))
            }
            false => Pushed::Taken,
        }
    }

    fn lane(&mut self, channel: &str) -> &mut Lane {
        self.lanes.entry(channel.to_owned()).or_default()
    }

    /// The next batch: of the channels that are free and not throttled, the one whose oldest event has waited
    /// longest; else a free one that has only events of a cancelled turn.
    pub fn flush(&mut self, now_ms: u64) -> Option<Batch> {
        let ready = self.ready(now_ms)?;
        let deadline_ms = now_ms + self.max_turn_ms + DEADLINE_SLACK_MS;
        let lane = self.lane(&ready);
        let count = lane.waiting.len().min(BATCH_MAX);
        let mut events: Vec<Queued> = lane.waiting.drain(..count).collect();
        events.sort_by_key(|queued| queued.event.created_at);
        let (mut cancelled, mut why) = (std::mem::take(&mut lane.cancelled), lane.why.take());
        if events.is_empty() {
            (events, cancelled, why) = (cancelled, Vec::new(), None);
        }
        let batch = Batch { channel: ready, events, cancelled, why };
        lane.in_flight = Some(Flight { batch: batch.clone(), deadline_ms });
        Some(batch)
    }

    fn ready(&self, now_ms: u64) -> Option<String> {
        let free = || self.lanes.iter().filter(|(_, lane)| lane.in_flight.is_none());
        let oldest = free()
            .filter(|(_, lane)| !lane.is_throttled(now_ms))
            .filter_map(|(channel, lane)| Some((lane.waiting.front()?.received_ms, channel)))
            .min();
        let only_cancelled = || {
            free()
                .find(|(_, lane)| lane.waiting.is_empty() && !lane.cancelled.is_empty())
                .map(|(channel, _)| channel)
        };
        oldest.map(|(_, channel)| channel).or_else(only_cancelled).cloned()
    }

    /// Whether [`Queue::flush`] would give something.
    pub fn has_work(&self, now_ms: u64) -> bool {
        self.ready(now_ms).is_some()
    }

    /// Whether a turn of the channel runs.
    pub fn is_in_flight(&self, channel: &str) -> bool {
        self.lanes.get(channel).is_some_and(|lane| lane.in_flight.is_some())
    }

    /// Whether any turn of a channel runs.
    pub fn is_any_in_flight(&self) -> bool {
        self.lanes.values().any(|lane| lane.in_flight.is_some())
    }

    /// The channel's turn has ended well, or its batch was given back before. A retry count stays only if a
    /// throttle is set.
    pub fn complete(&mut self, channel: &str, now_ms: u64) {
        let lane = self.lane(channel);
        lane.in_flight = None;
        if !lane.is_throttled(now_ms) {
            lane.retry_after_ms = None;
            lane.retries = 0;
        }
    }

    /// The batch failed: it is tried again later, unless that was too often. `jittered` spreads a wait.
    pub fn requeue(&mut self, batch: Batch, now_ms: u64, jittered: impl FnOnce(u64) -> u64) -> Requeued {
        let lane = self.lane(&batch.channel);
        lane.in_flight = None;
        lane.retries += 1;
        if lane.retries > RETRIES_MAX {
            (lane.retries, lane.retry_after_ms) = (0, None);
            return Requeued::Dead(batch);
        }
        let doublings = (lane.retries - 1).min(RETRY_DOUBLINGS_MAX);
        let until_ms = now_ms + jittered((RETRY_BASE_MS << doublings).min(RETRY_CAP_MS));
        lane.retry_after_ms = Some(until_ms);
        lane.keep_cancelled(batch.cancelled, batch.why);
        lane.put_first(batch.events);
        Requeued::Waiting { until_ms }
    }

    /// The process ended while the batch ran: it is tried again at once, unless that was too often.
    pub fn requeue_interrupted(&mut self, batch: Batch) -> Option<Batch> {
        let lane = self.lane(&batch.channel);
        lane.retries += 1;
        if lane.retries > RETRIES_MAX {
            lane.retries = 0;
            return Some(batch);
        }
        lane.keep_cancelled(batch.cancelled, batch.why);
        lane.put_first(batch.events);
        None
    }

    /// No agent was free: the batch goes back as it was, untouched by throttles and counts.
    pub fn requeue_unasked(&mut self, batch: Batch) {
        let lane = self.lane(&batch.channel);
        lane.in_flight = None;
        lane.keep_cancelled(batch.cancelled, batch.why);
        lane.put_first(batch.events);
    }

    /// The turn was cancelled for what came: its events are asked again together with it.
    pub fn requeue_cancelled(&mut self, batch: Batch, why: Why) {
        let lane = self.lane(&batch.channel);
        lane.in_flight = None;
        let Batch { events, mut cancelled, .. } = batch;
        cancelled.extend(events);
        let newer = std::mem::take(&mut lane.cancelled);
        cancelled.extend(newer);
        lane.keep_cancelled(cancelled, Some(why));
    }

    /// The event of a channel that waits longest.
    pub fn first_waiting(&self, channel: &str) -> Option<&Queued> {
        self.lanes.get(channel)?.waiting.front()
    }

    /// Takes a waiting event out of sight while a steer carries it.
    pub fn withhold(&mut self, channel: &str, event: &EventId) -> bool {
        let lane = self.lane(channel);
        let Some(at) = lane.waiting.iter().position(|queued| queued.event.id == *event) else { return false };
        lane.withheld.extend(lane.waiting.remove(at));
        true
    }

    /// A steer has failed: its event waits again, before all others.
    pub fn release(&mut self, channel: &str, event: &EventId) {
        if let Some(queued) = self.take_withheld(channel, event) {
            self.lane(channel).put_first(vec![queued]);
        }
    }

    /// A steer was taken: its event is part of the turn that runs, and of what a retry of it asks.
    pub fn steered(&mut self, channel: &str, event: &EventId, extend_to_ms: Option<u64>) {
        let queued = self.take_withheld(channel, event);
        if let Some(flight) = &mut self.lane(channel).in_flight {
            flight.batch.events.extend(queued);
            flight.deadline_ms = flight.deadline_ms.max(extend_to_ms.unwrap_or(0));
        }
    }

    fn take_withheld(&mut self, channel: &str, event: &EventId) -> Option<Queued> {
        let lane = self.lane(channel);
        let at = lane.withheld.iter().position(|queued| queued.event.id == *event)?;
        Some(lane.withheld.remove(at))
    }

    /// The batch that runs in the channel, with what steers have added to it.
    pub fn in_flight(&self, channel: &str) -> Option<&Batch> {
        self.lanes.get(channel)?.in_flight.as_ref().map(|flight| &flight.batch)
    }

    /// Forgets a channel: all that waits goes, what runs stays. Gives the events that went.
    pub fn drain(&mut self, channel: &str) -> Vec<EventId> {
        let Some(lane) = self.lanes.get_mut(channel) else { return Vec::new() };
        let in_flight = lane.in_flight.take();
        let gone = std::mem::replace(lane, Lane { in_flight, ..Lane::default() });
        let waiting = gone.waiting.into_iter().chain(gone.cancelled).chain(gone.withheld);
        waiting.map(|queued| queued.event.id).collect()
    }

    /// Frees channels that are in flight for too long, with what was withheld for them. Gives their names.
    pub fn expire(&mut self, now_ms: u64) -> Vec<String> {
        let mut expired = Vec::new();
        for (channel, lane) in &mut self.lanes {
            if lane.in_flight.as_ref().is_some_and(|flight| flight.deadline_ms <= now_ms) {
                lane.in_flight = None;
                let withheld = std::mem::take(&mut lane.withheld);
                lane.put_first(withheld);
                expired.push(channel.clone());
            }
        }
        expired
    }

    /// Drops throttles that have passed and the counts of channels where nothing is left.
    pub fn compact(&mut self, now_ms: u64) {
        self.lanes.retain(|_, lane| {
            if !lane.is_throttled(now_ms) {
                lane.retry_after_ms = None;
            }
            !(lane.is_idle() && lane.retry_after_ms.is_none())
        });
    }

    /// When something here is due: a throttle ends over waiting events, or a turn must have ended.
    pub fn wake_at_ms(&self) -> Option<u64> {
        let due = |lane: &Lane| {
            let throttle =
                lane.retry_after_ms.filter(|_| lane.in_flight.is_none() && !lane.waiting.is_empty());
            let deadline = lane.in_flight.as_ref().map(|flight| flight.deadline_ms);
            throttle.into_iter().chain(deadline).min()
        };
        self.lanes.values().filter_map(due).min()
    }

    /// After a restart: takes back what ran when the process before ended, and what steers carried then.
    pub fn take_interrupted(&mut self) -> Vec<Batch> {
        let mut interrupted = Vec::new();
        for lane in self.lanes.values_mut() {
            let withheld = std::mem::take(&mut lane.withheld);
            lane.put_first(withheld);
            interrupted.extend(lane.in_flight.take().map(|flight| flight.batch));
        }
        interrupted
    }

    /// All events that are kept, wherever they are.
    pub fn pending(&self) -> usize {
        let held = |lane: &Lane| {
            let flight = lane.in_flight.as_ref().map_or(0, |flight| flight.batch.all().count());
            lane.waiting.len() + lane.cancelled.len() + lane.withheld.len() + flight
        };
        self.lanes.values().map(held).sum()
    }
}
