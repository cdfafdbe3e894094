//! What a socket's client says and is told: the frames of NIP-01, NIP-42 and NIP-45.

use std::collections::HashSet;
use std::sync::Arc;

use waxlog_nostr::auth::check_answer;
use waxlog_nostr::frame::{ClientFrame, RelayFrame};
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Event, Filter};

use super::clerk::Answer;
use super::connection::Connection;
use super::gauge::Counted;
use super::hub::Subscription;
use super::pool::NotDone;
use super::rate::Use;
use super::{now_seconds, random_hex, Relay};
use crate::asker::Asker;
use crate::reply::INTERNAL;

const NOT_AUTHENTICATED: &str = "auth-required: not authenticated";
const FIRST_AUTHENTICATE: &str = "auth-required: authenticate before subscribing";
const VERIFICATION_FAILED: &str = "auth-required: verification failed";
const FAILED_ALREADY: &str = "auth-required: authentication already failed";
const KNOWN_ALREADY: &str = "auth-required: already authenticated";
const TOO_MANY_REQUESTS: &str = "rate-limited: too many concurrent requests";

enum Identity {
    /// Not said yet.
    Unknown,
    /// Proved.
    Known(Asker),
    /// A proof has failed; no other is taken.
    Failed,
}

/// A socket's conversation.
pub(crate) struct Session {
    relay: Arc<Relay>,
    connection: Arc<Connection>,
    host: String,
    challenge: String,
    identity: Identity,
}

impl Session {
    /// Opens the conversation: the challenge goes out at once.
    pub(crate) fn open(relay: Arc<Relay>, connection: Arc<Connection>, host: String) -> Self {
        let challenge = random_hex();
        connection.say(&RelayFrame::Auth(challenge.clone()));
        Self { relay, connection, host, challenge, identity: Identity::Unknown }
    }

    /// Whether the client has proved who it is.
    pub(crate) fn has_identity(&self) -> bool {
        matches!(self.identity, Identity::Known(_))
    }

    /// The client is alive.
    pub(crate) fn ponged(&self) {
        self.connection.forget_pings();
    }

    /// Tells that a frame is none.
    pub(crate) fn malformed(&self, why: &str) {
        self.connection.say(&RelayFrame::Notice(format!("invalid message: {why}")));
    }

    /// Ends everything that the conversation holds.
    pub(crate) async fn close(&mut self) {
        self.connection.end_all(&self.relay.hub);
        if let Identity::Known(asker) = &self.identity {
            let (desk, pubkey) = (self.relay.desk.clone(), asker.pubkey);
            if self.relay.reads.run(move || desk.disconnected(&pubkey)).await.is_err() {
                log::error!("the end of a connection of {pubkey} could not be noted");
            }
        }
    }

    /// Handles one frame. Fails only when the relay stops.
    pub(crate) async fn handle(&mut self, text: &str) -> Result<(), NotDone> {
        match ClientFrame::parse(text) {
            Err(error) => {
                self.malformed(&error.to_string());
                Ok(())
            }
            Ok(ClientFrame::Auth(event)) => self.authenticate(event).await,
            Ok(ClientFrame::Event(event)) => self.event(event).await,
            Ok(ClientFrame::Req(id, filters)) => self.subscribe(id, filters).await,
            Ok(ClientFrame::Count(id, filters)) => self.count(id, filters).await,
            Ok(ClientFrame::Close(id)) => {
                self.connection.end_subscription(&self.relay.hub, &id);
                self.closed(id, "");
                Ok(())
            }
        }
    }

    fn notice(&self, text: impl ToString) {
        self.connection.say(&RelayFrame::Notice(text.to_string()));
    }

    fn closed(&self, id: String, why: impl ToString) {
        self.connection.say(&RelayFrame::Closed(id, why.to_string()));
    }

    async fn authenticate(&mut self, event: Event) -> Result<(), NotDone> {
        let id = event.id;
        let refusal = match self.identity {
            Identity::Failed => Some(FAILED_ALREADY),
            Identity::Known(_) => Some(KNOWN_ALREADY),
            Identity::Unknown => match self.prove(event).await? {
                Ok(asker) => {
                    self.identity = Identity::Known(asker);
                    None
                }
                Err(refusal) => {
                    self.identity = Identity::Failed;
                    Some(refusal)
                }
            },
        };
        let (accepted, text) = (refusal.is_none(), refusal.unwrap_or_default());
        self.connection.say(&RelayFrame::Ok(id, accepted, text.to_owned()));
        Ok(())
    }

    /// Checks the proof, and keeps whose agent the client is if it says so.
    async fn prove(&self, event: Event) -> Result<Result<Asker, &'static str>, NotDone> {
        let urls = self.relay.names.socket_urls(&self.host);
        let (challenge, desk) = (self.challenge.clone(), self.relay.desk.clone());
        let prove = move || {
            if let Err(error) = check_answer(&event, &challenge, &urls, now_seconds()) {
                log::debug!("a proof of identity failed: {error}");
                return Err(VERIFICATION_FAILED);
            }
            let pubkey = event.pubkey;
            let owner = match OwnerTag::of_event(&event) {
                None => None,
                Some(tag) => desk.attest(&pubkey, &tag, event.created_at).map_err(|error| {
                    log::error!("the owner of {pubkey} could not be kept: {error}");
                    INTERNAL
                })?,
            };
            desk.connected(&pubkey);
            Ok(Asker { owner, ..Asker::socket(pubkey) })
        };
        self.relay.checks.run(prove).await
    }

    /// Counts a frame of a client with an identity.
    fn spend(&self, asker: &Asker, uses: &[Use]) -> Result<(), String> {
        let now = now_seconds();
        let spend = |what: &Use| self.relay.rates.spend(&asker.pubkey, asker.owner.is_some(), *what, now);
        uses.iter().try_for_each(spend).map_err(|exceeded| exceeded.to_string())
    }

    fn enter(&self) -> Result<Counted, String> {
        self.relay.in_flight.try_enter().ok_or_else(|| TOO_MANY_REQUESTS.to_owned())
    }

    async fn event(&mut self, event: Event) -> Result<(), NotDone> {
        let Identity::Known(asker) = self.identity else {
            self.connection.say(&RelayFrame::Ok(event.id, false, NOT_AUTHENTICATED.into()));
            return Ok(());
        };
        let entered = self.spend(&asker, &[Use::Frame, Use::Event]).and_then(|()| self.enter());
        let (entered, unanswered) = match (entered, self.connection.unanswered.try_enter()) {
            (Ok(entered), Some(unanswered)) => (entered, unanswered),
            (Err(why), _) => {
                self.notice(why);
                return Ok(());
            }
            (Ok(_), None) => {
                self.notice(TOO_MANY_REQUESTS);
                return Ok(());
            }
        };
        let answer = Answer::Socket(self.connection.clone(), event.id, [entered, unanswered]);
        self.relay.clerk.submit(&self.relay.checks, event, asker, answer).await
    }

    async fn count(&mut self, id: String, filters: Vec<Filter>) -> Result<(), NotDone> {
        let Identity::Known(asker) = self.identity else {
            self.closed(id, NOT_AUTHENTICATED);
            return Ok(());
        };
        let _entered = match self.spend(&asker, &[Use::Frame]).and_then(|()| self.enter()) {
            Ok(entered) => entered,
            Err(why) => {
                self.notice(why);
                return Ok(());
            }
        };
        self.connection.unanswered.none().await;
        let desk = self.relay.desk.clone();
        match self.relay.reads.run(move || desk.count(&filters, &asker)).await {
            Ok(Ok(count)) => self.connection.say(&RelayFrame::Count(id, count)),
            Ok(Err(refusal)) => self.closed(id, refusal.message),
            Err(NotDone) => self.closed(id, INTERNAL),
        }
        Ok(())
    }

    async fn subscribe(&mut self, id: String, filters: Vec<Filter>) -> Result<(), NotDone> {
        let Identity::Known(asker) = self.identity else {
            self.notice(FIRST_AUTHENTICATE);
            self.closed(id, NOT_AUTHENTICATED);
            return Ok(());
        };
        let _entered = match self.spend(&asker, &[Use::Frame]).and_then(|()| self.enter()) {
            Ok(entered) => entered,
            Err(why) => {
                self.closed(id, why);
                return Ok(());
            }
        };
        self.connection.end_subscription(&self.relay.hub, &id);
        // A client reads what it has written before.
        self.connection.unanswered.none().await;
        let (desk, asked) = (self.relay.desk.clone(), filters.clone());
        let scope = match self.relay.reads.run(move || desk.scope(&asked, &asker)).await {
            Ok(Ok(scope)) => scope,
            Ok(Err(refusal)) => {
                self.closed(id, refusal.message);
                return Ok(());
            }
            Err(NotDone) => {
                self.closed(id, INTERNAL);
                return Ok(());
            }
        };
        let bytes = Subscription::filter_bytes(&filters);
        if let Err(why) = self.connection.check_room(bytes) {
            self.closed(id, why);
            return Ok(());
        }
        let hub = &self.relay.hub;
        let subscription =
            hub.open(self.connection.clone(), id.clone(), filters.clone(), scope, asker.pubkey);
        self.connection.keep(subscription.clone(), bytes);
        let is_search = filters.iter().any(|filter| filter.search.is_some());
        let (sent, until) = match self.stored(&subscription, filters, asker).await {
            Ok(found) => found,
            Err(why) => {
                self.connection.end_subscription(hub, &id);
                self.closed(id, why);
                return Ok(());
            }
        };
        if is_search {
            self.connection.end_subscription(hub, &id);
        }
        self.connection.say(&RelayFrame::Eose(id));
        hub.go_live(&subscription, sent, until);
        Ok(())
    }

    /// Sends the stored events. Gives their ids and the number behind which no event can be among them, or
    /// why the subscription is refused.
    async fn stored(
        &self,
        subscription: &Subscription,
        filters: Vec<Filter>,
        asker: Asker,
    ) -> Result<(HashSet<waxlog_nostr::EventId>, u64), String> {
        let (desk, hub) = (self.relay.desk.clone(), self.relay.hub.clone());
        let query = move || {
            let rows = desk.query(&filters, &asker, now_seconds());
            (rows, hub.admitted())
        };
        let (rows, until) = match self.relay.reads.run(query).await {
            Ok((Ok(rows), until)) => (rows, until),
            // A failure inside ends the stored events; the subscription lives.
            Ok((Err(refusal), until)) if refusal.status >= 500 => {
                log::error!("stored events could not be read: {}", refusal.message);
                (Vec::new(), until)
            }
            Ok((Err(refusal), _)) => return Err(refusal.message.into_owned()),
            Err(NotDone) => return Err(INTERNAL.to_owned()),
        };
        let outbox = &self.connection.outbox;
        let mut sent = HashSet::with_capacity(rows.len());
        for row in rows {
            if outbox.killed().stop_future(outbox.room()).await.is_none() {
                break;
            }
            sent.insert(row.event.id);
            outbox.answer(subscription.frame(row.event.to_json().into()));
        }
        Ok((sent, until))
    }
}
