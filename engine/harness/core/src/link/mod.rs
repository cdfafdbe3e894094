//! The connection to the relay: opening, proving who we are, subscribing, and coming back after a loss.

mod cursor;
mod ladder;
mod outgoing;
mod seen;
mod subscription;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use waxlog_nostr::frame::RelayFrame;
use waxlog_nostr::Event;

use crate::effect::{Effect, Level};
use crate::record::LinkFailure;
use crate::step::Step;

pub use cursor::Cursors;
use ladder::{Ladder, Next};
use seen::Seen;
use subscription::Subscriptions;
pub use subscription::{SubKey, Subscription};

/// How long the relay has to send its challenge, and then to answer ours.
pub const HANDSHAKE_MS: u64 = 20_000;
/// How often the relay is pinged.
pub const PING_MS: u64 = 30_000;
/// How late its answer may be when the next ping is due.
pub const PONG_LATE_MS: u64 = 10_000;
/// Between two frames of what is sent again after a loss or a rate limit.
pub const PACE_MS: u64 = 125;
/// How many frames are kept while the connection is being proven.
pub const HANDSHAKE_FRAMES_MAX: usize = 1_024;
/// How many published events wait for the relay's OK.
pub const UNANSWERED_MAX: usize = 256;
/// How many observer frames wait.
pub const OBSERVER_PENDING_MAX: usize = 256;
/// How long a rate limit lasts that names no time, or too short a one.
const RATE_LIMIT_MS: u64 = 5_000;
/// How soon a subscription that the relay closed again is asked for once more.
const RECLOSED_WAIT_MS: u64 = 5_000;
const DENIED: [&str; 2] = ["restricted: not a channel member", "restricted: channel access revoked"];

/// What the rest of the machine learns from the connection.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// The relay knows who we are; what was subscribed to before is being asked for again.
    Up,
    /// The connection is gone and is being made anew.
    Lost,
    /// A new event of a channel subscription.
    Channel {
        /// The channel that was subscribed to.
        channel: String,
        /// The event.
        event: Event,
    },
    /// A new event of the membership subscription.
    Membership(Event),
    /// An event of the control subscription.
    Control(Event),
    /// The relay does not let us read a channel.
    Denied {
        /// Which.
        channel: String,
        /// What it says.
        why: String,
    },
    /// The relay cannot be used at all.
    Unusable {
        /// Why.
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// Not wanted.
    Down,
    /// Waiting for the next try.
    Waiting { until_ms: u64 },
    /// The driver opens a socket.
    Opening,
    /// The relay is to send its challenge.
    Unchallenged { until_ms: u64 },
    /// The relay is to say whether it takes our answer.
    Unproven { until_ms: u64 },
    /// All is well.
    Up { since_ms: u64 },
}

/// What was published over the socket and not yet answered, oldest first.
#[derive(Clone, Debug, PartialEq)]
enum Sent {
    Passing,
    Observer(String),
}

/// The connection.
#[derive(Clone, Debug)]
pub struct Link {
    number: u64,
    phase: Phase,
    ladder: Ladder,
    was_up: bool,
    early: VecDeque<String>,
    subscriptions: Subscriptions,
    cursors: Cursors,
    seen: Seen,
    closed_until_ms: Option<u64>,
    next_paced_ms: u64,
    sent: VecDeque<Sent>,
    observer: VecDeque<String>,
    observer_dropped: u64,
    ping: Ping,
}

#[derive(Clone, Debug, Default)]
struct Ping {
    next_ms: u64,
    sent_ms: Option<u64>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            number: 0,
            phase: Phase::Down,
            ladder: Ladder::first(),
            was_up: false,
            early: VecDeque::new(),
            subscriptions: Subscriptions::default(),
            cursors: Cursors::default(),
            seen: Seen::default(),
            closed_until_ms: None,
            next_paced_ms: 0,
            sent: VecDeque::new(),
            observer: VecDeque::new(),
            observer_dropped: 0,
            ping: Ping::default(),
        }
    }
}

impl Link {
    /// A new process: what belonged to the socket is gone, what was seen is not.
    pub fn restart(&mut self, alive_until_secs: Option<u64>, catch_up_secs: u64, now_secs: u64) {
        let cursors = std::mem::take(&mut self.cursors);
        *self = Self {
            number: self.number,
            cursors: cursors.restarted(alive_until_secs, catch_up_secs, now_secs),
            seen: std::mem::take(&mut self.seen),
            ..Self::default()
        };
    }

    /// Opens the first connection.
    pub fn start(&mut self, step: &mut Step) {
        self.open(step);
    }

    fn open(&mut self, step: &mut Step) {
        self.number += 1;
        self.phase = Phase::Opening;
        step.act(Effect::Connect { link: self.number });
    }

    /// Whether events can be published and received.
    pub fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up { .. })
    }

    /// The driver has a socket.
    pub fn opened(&mut self, step: &mut Step) {
        if self.phase == Phase::Opening {
            self.phase = Phase::Unchallenged { until_ms: step.now_ms + HANDSHAKE_MS };
            self.ping = Ping { next_ms: step.now_ms, sent_ms: None };
        }
    }

    /// The driver could not get a socket.
    pub fn refused(&mut self, step: &mut Step, class: LinkFailure, reason: &str) -> Vec<News> {
        if self.phase != Phase::Opening {
            return Vec::new();
        }
        step.tell(Level::Warn, format!("cannot connect to the relay: {reason}"));
        self.try_again(step, class, reason)
    }

    /// Chooses when the next try is, or that there is none.
    fn try_again(&mut self, step: &mut Step, class: LinkFailure, reason: &str) -> Vec<News> {
        // Once it has worked, no refusal is final: the relay may be between two versions of itself.
        let class =
            if self.was_up && class == LinkFailure::Terminal { LinkFailure::Transient } else { class };
        match self.ladder.next(class) {
            Next::In(base_ms) => {
                let until_ms = step.now_ms + step.jittered(base_ms);
                self.phase = Phase::Waiting { until_ms };
                Vec::new()
            }
            Next::Never => {
                self.phase = Phase::Down;
                vec![News::Unusable { reason: reason.to_owned() }]
            }
        }
    }

    /// The connection `link` is gone.
    pub fn lost(&mut self, step: &mut Step, link: u64, reason: &str) -> Vec<News> {
        if link != self.number || matches!(self.phase, Phase::Down | Phase::Waiting { .. } | Phase::Opening) {
            return Vec::new();
        }
        step.tell(Level::Warn, format!("the relay's connection is lost: {reason}"));
        let was_up = self.is_up();
        self.settle_loss(step);
        let mut news = if was_up { vec![News::Lost] } else { Vec::new() };
        news.extend(self.try_again(step, LinkFailure::Transient, reason));
        news
    }

    /// Drops a connection that is of no use any more and makes a new one.
    fn reconnect(&mut self, step: &mut Step, reason: &str) -> Vec<News> {
        step.act(Effect::Disconnect { link: self.number, clean: false });
        self.lost(step, self.number, reason)
    }

    fn settle_loss(&mut self, step: &Step) {
        if let Phase::Up { since_ms } = self.phase {
            self.ladder.was_up_for(step.now_ms - since_ms);
        }
        self.early.clear();
        self.requeue_observer();
        self.sent.clear();
        self.subscriptions.lost();
    }

    /// Ends the connection for good.
    pub fn close(&mut self, step: &mut Step) {
        if !matches!(self.phase, Phase::Down | Phase::Waiting { .. }) {
            step.act(Effect::Disconnect { link: self.number, clean: true });
        }
        self.phase = Phase::Down;
    }

    /// A pong came.
    pub fn ponged(&mut self, link: u64) {
        if link == self.number {
            self.ping.sent_ms = None;
        }
    }

    /// A frame came. `forged` says why the event in it failed its checks.
    pub fn frame(&mut self, step: &mut Step, link: u64, text: &str, forged: Option<&str>) -> Vec<News> {
        if link != self.number {
            return Vec::new();
        }
        let frame = match RelayFrame::parse(text) {
            Ok(frame) => frame,
            Err(error) => {
                step.tell(Level::Warn, format!("a frame of the relay cannot be read: {error}"));
                return Vec::new();
            }
        };
        if let Some(why) = forged {
            step.tell(Level::Warn, format!("an event was dropped: {why}"));
            return Vec::new();
        }
        match (&self.phase, frame) {
            (
                Phase::Unchallenged { .. } | Phase::Unproven { .. } | Phase::Up { .. },
                RelayFrame::Auth(challenge),
            ) => self.challenged(step, challenge),
            (Phase::Unproven { .. }, RelayFrame::Ok(_, accepted, message)) => {
                self.proven(step, accepted, &message)
            }
            (Phase::Unchallenged { .. } | Phase::Unproven { .. }, _) => {
                if self.early.len() < HANDSHAKE_FRAMES_MAX {
                    self.early.push_back(text.to_owned());
                }
                Vec::new()
            }
            (Phase::Up { .. }, frame) => self.take(step, frame),
            _ => Vec::new(),
        }
    }

    /// The latest challenge counts, at whatever time it comes.
    fn challenged(&mut self, step: &mut Step, challenge: String) -> Vec<News> {
        if !self.is_up() {
            self.phase = Phase::Unproven { until_ms: step.now_ms + HANDSHAKE_MS };
        }
        step.act(Effect::Authenticate { link: self.number, challenge });
        Vec::new()
    }

    fn proven(&mut self, step: &mut Step, accepted: bool, message: &str) -> Vec<News> {
        if !accepted {
            let class = match message.starts_with("error:") {
                true => LinkFailure::Transient,
                false => LinkFailure::Terminal,
            };
            step.act(Effect::Disconnect { link: self.number, clean: false });
            let reason = format!("the relay does not take our identity: {message}");
            step.tell(Level::Error, reason.clone());
            self.early.clear();
            return self.try_again(step, class, &reason);
        }
        self.phase = Phase::Up { since_ms: step.now_ms };
        self.was_up = true;
        self.ladder = self.ladder.clone().connected();
        self.subscriptions.wanted_again();
        self.next_paced_ms = step.now_ms;
        let mut news = vec![News::Up];
        for text in std::mem::take(&mut self.early) {
            if let Ok(frame) = RelayFrame::parse(&text) {
                news.extend(self.take(step, frame));
            }
        }
        self.pace(step);
        news
    }

    fn take(&mut self, step: &mut Step, frame: RelayFrame) -> Vec<News> {
        match frame {
            RelayFrame::Event(sub, event) => self.event(&sub, event),
            RelayFrame::Ok(_, accepted, message) => {
                self.sent.pop_front();
                match !accepted && message.starts_with("auth") {
                    true => self.reconnect(step, &message),
                    false => Vec::new(),
                }
            }
            RelayFrame::Closed(sub, message) => self.closed(step, &sub, &message),
            RelayFrame::Notice(text) => {
                if text.starts_with("rate-limited:") {
                    self.limit(step, &text);
                    self.requeue_observer();
                } else {
                    step.tell(Level::Info, format!("the relay says: {text}"));
                }
                Vec::new()
            }
            RelayFrame::Eose(_) | RelayFrame::Count(..) | RelayFrame::Auth(_) => Vec::new(),
        }
    }

    fn event(&mut self, sub: &str, event: Event) -> Vec<News> {
        match SubKey::parse(sub) {
            Some(SubKey::Control) => vec![News::Control(event)],
            Some(SubKey::Membership) if self.seen.insert(event.id) => {
                self.cursors.saw_membership(event.created_at);
                vec![News::Membership(event)]
            }
            Some(SubKey::Channel(channel)) if self.seen.insert(event.id) => {
                self.cursors.saw(&channel, event.created_at);
                vec![News::Channel { channel, event }]
            }
            _ => Vec::new(),
        }
    }

    fn closed(&mut self, step: &mut Step, sub: &str, message: &str) -> Vec<News> {
        let Some(key) = SubKey::parse(sub).filter(|key| self.subscriptions.is_active(key)) else {
            return Vec::new();
        };
        match key {
            SubKey::Channel(channel) if DENIED.contains(&message) => {
                self.forget(&channel);
                return vec![News::Denied { channel, why: message.to_owned() }];
            }
            key if message.starts_with("rate-limited:") => {
                self.limit(step, message);
                self.subscriptions.park(&key, 0);
            }
            _ if message.starts_with("restricted") || message.contains("auth") => {
                return self.reconnect(step, message);
            }
            key => {
                let wait_ms = self.subscriptions.closed_again(&key, step.now_ms, RECLOSED_WAIT_MS);
                self.subscriptions.park(&key, wait_ms);
            }
        }
        self.pace(step);
        Vec::new()
    }

    /// Nothing is asked of the relay for as long as it says; never shorter than it has said before.
    fn limit(&mut self, step: &mut Step, text: &str) {
        let named_ms = retry_hint_secs(text).map(|secs| secs * 1000).filter(|ms| *ms >= 2000);
        let until_ms = step.now_ms + step.jittered(named_ms.unwrap_or(RATE_LIMIT_MS));
        self.closed_until_ms = Some(self.closed_until_ms.map_or(until_ms, |earlier| earlier.max(until_ms)));
    }

    fn is_limited(&self, now_ms: u64) -> bool {
        self.closed_until_ms.is_some_and(|until_ms| until_ms > now_ms)
    }

    /// A time has come: looks at all that may be due.
    pub fn tick(&mut self, step: &mut Step) -> Vec<News> {
        let now_ms = step.now_ms;
        if self.closed_until_ms.is_some_and(|until_ms| until_ms <= now_ms) {
            self.closed_until_ms = None;
        }
        match self.phase {
            Phase::Waiting { until_ms } if until_ms <= now_ms => {
                self.open(step);
                Vec::new()
            }
            Phase::Unchallenged { until_ms } | Phase::Unproven { until_ms } if until_ms <= now_ms => {
                self.reconnect(step, "the relay did not finish the handshake in time")
            }
            Phase::Up { .. } => self.tick_up(step),
            _ => Vec::new(),
        }
    }

    fn tick_up(&mut self, step: &mut Step) -> Vec<News> {
        if self.ping.next_ms <= step.now_ms {
            if self.ping.sent_ms.is_some_and(|sent_ms| step.now_ms - sent_ms > PONG_LATE_MS) {
                return self.reconnect(step, "the relay does not answer pings");
            }
            step.act(Effect::Ping { link: self.number });
            self.ping = Ping { next_ms: step.now_ms + PING_MS, sent_ms: Some(step.now_ms) };
        }
        self.pace(step);
        Vec::new()
    }

    /// When something here is due.
    pub fn wake_at_ms(&self) -> Option<u64> {
        match self.phase {
            Phase::Down | Phase::Opening => None,
            Phase::Waiting { until_ms } | Phase::Unchallenged { until_ms } | Phase::Unproven { until_ms } => {
                Some(until_ms)
            }
            Phase::Up { .. } => {
                let parked_ms = self.subscriptions.parked_until_ms();
                let observer_ms = (!self.observer.is_empty()).then_some(0);
                let paced_ms = parked_ms
                    .into_iter()
                    .chain(observer_ms)
                    .min()
                    .map(|due_ms| due_ms.max(self.next_paced_ms).max(self.closed_until_ms.unwrap_or(0)));
                paced_ms.into_iter().chain([self.ping.next_ms]).min()
            }
        }
    }
}

/// The number of `retry in Ns`, in seconds.
pub fn retry_hint_secs(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("retry in ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    rest[digits.len()..].starts_with('s').then(|| digits.parse().ok()).flatten()
}
