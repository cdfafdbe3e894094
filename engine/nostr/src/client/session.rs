//! What a connection to a relay means: challenges, subscriptions and what comes. Pure: the clock is given, and
//! what is to be sent is returned.
//!
//! Three rules hold. The latest challenge counts, and no more than [`MAX_CHALLENGES`] in a time are answered.
//! A subscription that the relay closes for want of a login is asked for again once after each login, never
//! in a loop. An event is given on only after both its checks have passed, each time it comes.

use std::collections::{BTreeMap, VecDeque};

use crate::auth::answer_challenge;
use crate::event::Event;
use crate::filter::Filter;
use crate::frame::{ClientFrame, RelayFrame};
use crate::id::EventId;
use crate::keys::Keys;
use crate::owner::OwnerTag;

/// The longest challenge that is answered, in bytes.
pub const MAX_CHALLENGE_BYTES: usize = 1_024;
/// The most challenges that are answered in [`CHALLENGE_WINDOW_SECONDS`].
pub const MAX_CHALLENGES: usize = 10;
/// The time in which challenges are counted.
pub const CHALLENGE_WINDOW_SECONDS: u64 = 60;
/// The most subscriptions of a connection.
pub const MAX_SUBSCRIPTIONS: usize = 1_024;
/// What a refusal for want of a login begins with.
pub(super) const AUTH_REQUIRED: &str = "auth-required";

/// Who logs in, and where.
#[derive(Debug, Clone)]
pub struct Login {
    /// The relay's URL as it was given, which goes into the proof.
    pub relay: String,
    /// Who.
    pub keys: Keys,
    /// The owner's word, if the relay lets somebody in for it.
    pub owner: Option<OwnerTag>,
}

/// What a relay says to whoever uses a connection.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A verified event of a subscription. One that answers two subscriptions comes twice.
    Event(String, Event),
    /// All that was stored for a subscription has come.
    Eose(String),
    /// A subscription was closed by the relay. One that needs a login is asked for again after the next one.
    Closed(String, String),
    /// Whether an event was taken, and why not.
    Ok(EventId, bool, String),
    /// The answer to a count.
    Count(String, u64),
    /// A word to a person.
    Notice(String),
}

/// Why a session cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// A challenge that is too long.
    #[error("the relay's challenge has {0} bytes, at most {MAX_CHALLENGE_BYTES} are answered")]
    ChallengeLength(usize),
    /// More challenges than are answered.
    #[error(
        "the relay sent more than {MAX_CHALLENGES} challenges in {CHALLENGE_WINDOW_SECONDS} s; it does not \
         accept a login"
    )]
    Challenges,
    /// The relay does not let this identity in.
    #[error("the relay refused the login: {0}")]
    Refused(String),
    /// More subscriptions than a relay takes.
    #[error("{MAX_SUBSCRIPTIONS} subscriptions are open already; close one first")]
    Subscriptions,
}

/// What follows from a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// This goes to the relay.
    Send(ClientFrame),
    /// This goes to the user of the connection.
    Give(Incoming),
}

/// What was dropped since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Events whose id or signature was wrong.
    pub forged: u64,
    /// Frames that were none.
    pub malformed: u64,
}

#[derive(Debug)]
struct Subscription {
    filters: Vec<Filter>,
    asked_again_at_login: u64,
    waits_for_login: bool,
}

/// One connection's state.
#[derive(Debug)]
pub struct Session {
    login: Login,
    answers: VecDeque<(u64, EventId)>,
    is_pending: bool,
    logins: u64,
    subscriptions: BTreeMap<String, Subscription>,
    dropped: Dropped,
}

impl Session {
    /// A session before its first challenge.
    pub fn new(login: Login) -> Self {
        Self {
            login,
            answers: VecDeque::new(),
            is_pending: false,
            logins: 0,
            subscriptions: BTreeMap::new(),
            dropped: Dropped::default(),
        }
    }

    /// Whether a challenge has come.
    pub fn is_challenged(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Whether the relay has accepted the answer to the latest challenge.
    pub fn is_logged_in(&self) -> bool {
        self.logins > 0 && !self.is_pending
    }

    /// How often the relay has let this identity in on this connection.
    pub fn logins(&self) -> u64 {
        self.logins
    }

    /// What was dropped.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Opens a subscription, or replaces one.
    pub fn subscribe(&mut self, id: &str, filters: Vec<Filter>) -> Result<ClientFrame, SessionError> {
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS && !self.subscriptions.contains_key(id) {
            return Err(SessionError::Subscriptions);
        }
        let frame = ClientFrame::Req(id.to_owned(), filters.clone());
        let subscription = Subscription { filters, asked_again_at_login: 0, waits_for_login: false };
        self.subscriptions.insert(id.to_owned(), subscription);
        Ok(frame)
    }

    /// Ends a subscription. What is still under way for it is dropped.
    pub fn unsubscribe(&mut self, id: &str) -> ClientFrame {
        self.subscriptions.remove(id);
        ClientFrame::Close(id.to_owned())
    }

    /// Begins anew on another connection: the login is open again, and each subscription is to be asked for
    /// from the time that `since` gives for it, if any.
    pub fn renew(&mut self, since: impl Fn(&str) -> Option<u64>) {
        self.answers.clear();
        (self.is_pending, self.logins) = (false, 0);
        for (id, subscription) in &mut self.subscriptions {
            (subscription.asked_again_at_login, subscription.waits_for_login) = (0, false);
            if let Some(since) = since(id) {
                subscription.filters.iter_mut().for_each(|filter| filter.since = Some(since));
            }
        }
    }

    /// What asks for all subscriptions.
    pub fn requests(&self) -> impl Iterator<Item = ClientFrame> + '_ {
        self.subscriptions
            .iter()
            .map(|(id, subscription)| ClientFrame::Req(id.clone(), subscription.filters.clone()))
    }

    /// Takes what the relay sent as text, at a time in seconds since 1970.
    pub fn on_text(&mut self, text: &str, now: u64) -> Result<Vec<Step>, SessionError> {
        match RelayFrame::parse(text) {
            Ok(frame) => self.on_frame(frame, now),
            Err(error) => {
                self.dropped.malformed += 1;
                log::warn!("dropped a frame of {}: {error}", self.login.relay);
                Ok(Vec::new())
            }
        }
    }

    fn on_frame(&mut self, frame: RelayFrame, now: u64) -> Result<Vec<Step>, SessionError> {
        Ok(match frame {
            RelayFrame::Auth(challenge) => vec![self.on_challenge(&challenge, now)?],
            RelayFrame::Ok(id, accepted, why) => return self.on_ok(id, accepted, why),
            RelayFrame::Event(id, event) => self.on_event(id, event).into_iter().collect(),
            RelayFrame::Closed(id, why) => self.on_closed(id, why).into_iter().collect(),
            RelayFrame::Eose(id) if self.subscriptions.contains_key(&id) => give(Incoming::Eose(id)),
            RelayFrame::Eose(_) => Vec::new(),
            RelayFrame::Count(id, count) => give(Incoming::Count(id, count)),
            RelayFrame::Notice(text) => give(Incoming::Notice(text)),
        })
    }

    fn on_challenge(&mut self, challenge: &str, now: u64) -> Result<Step, SessionError> {
        if challenge.len() > MAX_CHALLENGE_BYTES {
            return Err(SessionError::ChallengeLength(challenge.len()));
        }
        let is_old = |(at, _): &(u64, EventId)| now.saturating_sub(*at) >= CHALLENGE_WINDOW_SECONDS;
        while self.answers.front().is_some_and(is_old) {
            self.answers.pop_front();
        }
        if self.answers.len() >= MAX_CHALLENGES {
            return Err(SessionError::Challenges);
        }
        let Login { relay, keys, owner } = &self.login;
        let answer = answer_challenge(keys, relay, challenge, owner.as_ref(), now);
        self.answers.push_back((now, answer.id));
        self.is_pending = true;
        Ok(Step::Send(ClientFrame::Auth(answer)))
    }

    fn on_ok(&mut self, id: EventId, accepted: bool, why: String) -> Result<Vec<Step>, SessionError> {
        let is_answer = self.answers.iter().any(|(_, answer)| *answer == id);
        if !is_answer {
            return Ok(give(Incoming::Ok(id, accepted, why)));
        }
        let is_latest = self.answers.back().is_some_and(|(_, answer)| *answer == id);
        if !is_latest || !self.is_pending {
            return Ok(Vec::new());
        }
        self.is_pending = false;
        if !accepted {
            return Err(SessionError::Refused(why));
        }
        self.logins += 1;
        Ok(self.ask_waiting_again())
    }

    fn ask_waiting_again(&mut self) -> Vec<Step> {
        let waiting = self.subscriptions.iter_mut().filter(|(_, subscription)| subscription.waits_for_login);
        waiting
            .map(|(id, subscription)| {
                subscription.waits_for_login = false;
                subscription.asked_again_at_login = self.logins;
                Step::Send(ClientFrame::Req(id.clone(), subscription.filters.clone()))
            })
            .collect()
    }

    fn on_event(&mut self, id: String, event: Event) -> Option<Step> {
        if !self.subscriptions.contains_key(&id) {
            return None;
        }
        if let Err(error) = event.verify() {
            self.dropped.forged += 1;
            log::warn!("dropped a forged event of {}: {error}", self.login.relay);
            return None;
        }
        Some(Step::Give(Incoming::Event(id, event)))
    }

    fn on_closed(&mut self, id: String, why: String) -> Option<Step> {
        let subscription = self.subscriptions.get_mut(&id)?;
        if !why.starts_with(AUTH_REQUIRED) {
            self.subscriptions.remove(&id);
            return Some(Step::Give(Incoming::Closed(id, why)));
        }
        if self.logins == 0 || self.is_pending {
            subscription.waits_for_login = true;
            return None;
        }
        if subscription.asked_again_at_login < self.logins {
            subscription.asked_again_at_login = self.logins;
            return Some(Step::Send(ClientFrame::Req(id, subscription.filters.clone())));
        }
        subscription.waits_for_login = true;
        Some(Step::Give(Incoming::Closed(id, why)))
    }
}

fn give(incoming: Incoming) -> Vec<Step> {
    vec![Step::Give(incoming)]
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
