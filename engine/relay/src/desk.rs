//! The relay without its network: it takes events in, answers filters and says who hears what.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use waxlog_nostr::kind::{class, Class, PRESENCE};
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Event, Filter, Keys, PublicKey};

use crate::asker::{Asker, Via};
use crate::channel::ChannelId;
use crate::index::Index;
use crate::live::{Live, LiveEvent, Row};
use crate::presence::Presence;
use crate::query::{gate, Failure, Reader};
use crate::rate::{Limiter, Quota};
use crate::reply::{Checked, Refusal, Reply, Submission, Ticket};
use crate::rules::ephemeral::{self, Pass};
use crate::rules::{channel, check, ingest, Facts, Fault, Keep, Verdict};
use crate::state::{Changes, State};
use crate::store::record::Stored;
use crate::store::{key, Batch, Store, StoreError};
use crate::writer::index::keys as index_keys;
use crate::writer::{Finished, Kept, Transaction};

/// How many frames of telemetry an agent may send.
const TELEMETRY: Quota = Quota { limit: 100, window_ms: 1000 };
/// What an agent that sends more is told.
const TOO_MUCH_TELEMETRY: &str = "rate-limited: observer frame rate exceeded (100/sec per agent)";
/// What a sender of an event is told of which a newer one is there.
const OLDER: &str = "duplicate: a newer version of this event is there";

/// What the relay holds of blobs, as rules on `imeta` tags need to know it.
pub trait Blobs: Send + Sync {
    /// Whether this is the address of a blob with this SHA-256 (in hex) that the relay holds.
    fn holds(&self, url: &str, sha256: &str) -> bool;
}

/// What a relay is opened with.
#[derive(Clone)]
pub struct Settings {
    /// How much of the store is kept in memory, in bytes.
    pub cache_bytes: u64,
    /// The relay's blobs; without any, an event that names one is refused.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// A key that counts as a member of every channel.
    pub trusted: Option<PublicKey>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { cache_bytes: 8 << 20, blobs: None, trusted: None }
    }
}

/// Why the relay's store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the relay's store in {folder:?} cannot be used: {reason}")]
pub struct DeskError {
    /// The folder of the store.
    pub folder: String,
    /// What happened, and what to do.
    pub reason: String,
}

/// Which events a subscription hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of one channel.
    Channel(ChannelId),
    /// Those of no channel.
    Global,
}

/// The relay. All its methods may be called from any thread; they block on the disk, so keep them off async
/// threads.
pub struct Desk {
    folder: String,
    store: Store,
    index: Index,
    state: RwLock<State>,
    keys: Keys,
    blobs: Option<Arc<dyn Blobs>>,
    writer: Mutex<Writer>,
    /// How many writes are in the store, flushed or not.
    applied: AtomicU64,
    /// How many writes the last flush has covered. Its lock is the line of those who wait for a flush.
    settled: Mutex<u64>,
    presence: Mutex<Presence>,
    telemetry: Mutex<Limiter<PublicKey>>,
}

/// What only the writer knows.
struct Writer {
    next_seq: u64,
}

impl Desk {
    /// Opens or creates the store in `folder`. `relay_keys` sign what the relay says itself.
    pub fn open(folder: &Path, settings: Settings, relay_keys: Keys) -> Result<Self, DeskError> {
        let name = folder.display().to_string();
        let fail = |error: StoreError| DeskError { folder: name.clone(), reason: error.0 };
        let store = Store::open(folder, settings.cache_bytes).map_err(fail)?;
        let (index, indexed) = Index::open(&store).map_err(fail)?;
        let next_seq = index_rest(&store, &index, indexed).map_err(fail)?;
        let state = State::load(&store, &index, settings.trusted).map_err(fail)?;
        Ok(Self {
            folder: name,
            store,
            index,
            state: RwLock::new(state),
            keys: relay_keys,
            blobs: settings.blobs,
            writer: Mutex::new(Writer { next_seq }),
            applied: AtomicU64::new(0),
            settled: Mutex::new(0),
            presence: Mutex::default(),
            telemetry: Mutex::new(Limiter::new(TELEMETRY)),
        })
    }

    /// Whether the event is what it says it is and of the sender: all that needs no state, signature
    /// included. This is the costly part of a submission and takes no lock: run it in parallel.
    pub fn check(event: Event, asker: &Asker, now: u64) -> Result<Checked, Reply> {
        check::check(&event, asker, now)?;
        let json = event.to_json().into();
        Ok(Checked { event, json })
    }

    /// Takes a checked event in, or says why not. Submissions queue here for the one writer.
    pub fn admit(&self, checked: Checked, asker: &Asker, now: u64) -> Submission {
        let result = match class(checked.event.kind) {
            Class::Ephemeral => self.pass(checked, asker, now),
            _ => self.take_in(checked, now),
        };
        match result {
            Ok(submission) => submission,
            Err(Fault::Refused(reply)) => {
                Submission { ticket: self.ticket(&reply), ..Submission::just(reply) }
            }
            Err(Fault::Store(error)) => {
                self.complain(&error);
                Submission::just(Reply::internal())
            }
        }
    }

    /// [`Desk::check`] and [`Desk::admit`] in one.
    pub fn submit(&self, event: Event, asker: &Asker, now: u64) -> Submission {
        match Self::check(event, asker, now) {
            Ok(checked) => self.admit(checked, asker, now),
            Err(reply) => Submission::just(reply),
        }
    }

    /// Waits until all up to `ticket` survives a kill. One flush serves all who wait at the time; a ticket
    /// that an earlier flush has covered costs nothing.
    pub fn settle(&self, ticket: Ticket) -> Result<(), DeskError> {
        let mut settled = lock(&self.settled);
        if *settled >= ticket.0 {
            return Ok(());
        }
        let applied = self.applied.load(Ordering::Acquire);
        self.store.flush().map_err(|error| self.complain(&error))?;
        *settled = applied;
        Ok(())
    }

    /// The stored events that answer the filters, in the order of the answer.
    pub fn query(&self, filters: &[Filter], asker: &Asker, now: u64) -> Result<Vec<Row>, Refusal> {
        if let (Via::Http, Some(subjects)) = (asker.via, Presence::asked_for(filters)) {
            return Ok(lock(&self.presence).rows(subjects, &self.keys));
        }
        self.reader(asker, now).query(filters).map_err(|failure| self.refusal(failure))
    }

    /// How many stored events answer the filters.
    pub fn count(&self, filters: &[Filter], asker: &Asker) -> Result<u64, Refusal> {
        self.reader(asker, 0).count(filters).map_err(|failure| self.refusal(failure))
    }

    /// Which live events a subscription with these filters hears, if the asker may have it at all.
    pub fn scope(&self, filters: &[Filter], asker: &Asker) -> Result<Scope, Refusal> {
        self.reader(asker, 0).scope(filters)
    }

    /// Whether the asker may be shown a live event; to be asked at each delivery.
    pub fn may_see(&self, live: &LiveEvent, reader: &PublicKey) -> bool {
        live.channel.is_none_or(|channel| shared(&self.state).admits(&channel, reader))
            && gate::shows(&live.event, reader)
    }

    /// Whether a key is a member of a channel now.
    pub fn is_member(&self, channel: &ChannelId, pubkey: &PublicKey) -> bool {
        shared(&self.state).is_member(channel, pubkey)
    }

    /// The owner that is kept for an agent.
    pub fn owner_of(&self, agent: &PublicKey) -> Option<PublicKey> {
        shared(&self.state).owner_of(agent)
    }

    /// Keeps that `agent` is its owner's, by a tag that verifies and whose time conditions hold at
    /// `created_at` (that of the proof that carried it). The first owner stays. Returns the owner that the
    /// tag proves for this session. What is kept is flushed before this returns.
    pub fn attest(
        &self,
        agent: &PublicKey,
        tag: &OwnerTag,
        created_at: u64,
    ) -> Result<Option<PublicKey>, DeskError> {
        if tag.verify(agent).is_err() || !tag.allows_at(created_at) {
            return Ok(None);
        }
        let _writer = lock(&self.writer);
        if self.owner_of(agent).is_none() {
            let mut batch = Batch::default();
            batch.put(key::owner(agent), tag.owner.as_bytes().to_vec());
            let changes = Changes { owners: [(*agent, tag.owner)].into(), ..Changes::default() };
            self.store
                .apply(batch)
                .and_then(|()| self.store.flush())
                .map_err(|error| self.complain(&error))?;
            self.change(changes);
        }
        Ok(Some(tag.owner))
    }

    /// A connection of this key is open.
    pub fn connected(&self, pubkey: &PublicKey) {
        lock(&self.presence).connected(pubkey);
    }

    /// A connection of this key has ended. With the last one its presence goes.
    pub fn disconnected(&self, pubkey: &PublicKey) {
        lock(&self.presence).disconnected(pubkey);
    }

    /// Archives channels whose time to live has passed. To be called about once a minute.
    pub fn reap(&self, now: u64) -> Result<(Vec<Live>, Option<Ticket>), DeskError> {
        let mut writer = lock(&self.writer);
        let (mut live, mut ticket) = (Vec::new(), None);
        let is_due = |deadline: Option<u64>| deadline.is_some_and(|deadline| deadline <= now);
        let due: Vec<_> = shared(&self.state)
            .channels()
            .filter(|channel| !channel.deleted && !channel.archived && is_due(channel.ttl_deadline))
            .cloned()
            .collect();
        for channel in due {
            let effects = channel::expire(&channel, &self.keys.public_key());
            let finished = {
                let state = shared(&self.state);
                let facts = self.facts(&state, now);
                let mut transaction = Transaction::new(&facts, &self.keys, writer.next_seq);
                transaction.follow(effects).and_then(|()| transaction.finish())
            };
            let applied = finished.and_then(|finished| self.apply(&mut writer, finished));
            let (said, place) = applied.map_err(|error| self.complain(&error))?;
            live.extend(said);
            ticket = Some(place);
        }
        Ok((live, ticket))
    }

    /// An event that is passed on and not stored.
    fn pass(&self, checked: Checked, asker: &Asker, now: u64) -> Result<Submission, Fault> {
        let Checked { event, json } = checked;
        let pass = ephemeral::judge(&event, asker, &shared(&self.state), now)?;
        let channel = match pass {
            Pass::Nowhere => return Ok(Submission::just(Reply::ok())),
            Pass::On(channel) => channel,
            Pass::Telemetry(agent) => {
                let taken = lock(&self.telemetry).take(agent, now.saturating_mul(1000));
                taken.map_err(|_| Fault::Refused(Reply::rate_limited(TOO_MUCH_TELEMETRY)))?;
                None
            }
        };
        if event.kind == PRESENCE {
            lock(&self.presence).set(event.pubkey, ephemeral::status(&event.content), now);
        }
        let live = vec![Live::Event(LiveEvent { event: Arc::new(event), json, channel })];
        Ok(Submission { live, ..Submission::just(Reply::ok()) })
    }

    /// An event that is judged, and stored if that is its verdict.
    fn take_in(&self, checked: Checked, now: u64) -> Result<Submission, Fault> {
        let mut writer = lock(&self.writer);
        let (reply, finished) = {
            let state = shared(&self.state);
            let facts = self.facts(&state, now);
            let Verdict { reply, keep, channel, thread, effects } = ingest::judge(&checked.event, &facts)?;
            let mut transaction = Transaction::new(&facts, &self.keys, writer.next_seq);
            match keep {
                Keep::Done => transaction.mark_done(&checked.event.id),
                Keep::PassedOn => transaction.pass_on(checked, channel),
                Keep::Stored if transaction.keep_and_pass(checked, channel, thread)? == Kept::Older => {
                    return Err(Fault::Refused(Reply::accepted(OLDER)));
                }
                Keep::Stored => {}
            }
            transaction.follow(effects)?;
            (reply, transaction.finish()?)
        };
        let (live, ticket) = self.apply(&mut writer, finished)?;
        Ok(Submission { reply, live, ticket: Some(ticket) })
    }

    /// Makes a transaction true: in the store, then in memory.
    fn apply(&self, writer: &mut Writer, finished: Finished) -> Result<(Vec<Live>, Ticket), StoreError> {
        let Finished { batch, changes, live, next_seq, added, removed } = finished;
        self.store.apply(batch)?;
        writer.next_seq = next_seq;
        self.index.change(added, removed);
        self.change(changes);
        if self.index.is_full() {
            self.index.write_run(&self.store, next_seq)?;
        }
        Ok((live, Ticket(self.applied.fetch_add(1, Ordering::Release) + 1)))
    }

    fn facts<'a>(&'a self, state: &'a State, now: u64) -> Facts<'a> {
        let (store, index, relay) = (&self.store, &self.index, self.keys.public_key());
        Facts { store, index, state, relay, blobs: self.blobs.as_deref(), now }
    }

    fn change(&self, changes: Changes) {
        if !changes.is_empty(&shared(&self.state)) {
            self.state.write().unwrap_or_else(PoisonError::into_inner).take(changes);
        }
    }

    /// An answer that says an event is there may not go out before the event is flushed.
    fn ticket(&self, reply: &Reply) -> Option<Ticket> {
        reply.accepted.then(|| Ticket(self.applied.load(Ordering::Acquire)))
    }

    fn reader<'a>(&'a self, asker: &'a Asker, now: u64) -> Reader<'a> {
        Reader::new(&self.store, &self.index, &self.state, &self.keys, asker, now)
    }

    fn refusal(&self, failure: Failure) -> Refusal {
        match failure {
            Failure::Refused(refusal) => refusal,
            Failure::Store(error) => {
                self.complain(&error);
                Refusal::internal()
            }
        }
    }

    fn complain(&self, error: &StoreError) -> DeskError {
        let error = DeskError { folder: self.folder.clone(), reason: error.0.clone() };
        log::error!("{error}");
        error
    }
}

/// Indexes the events from `seq` on, which are in no run yet. Returns the number of the next event.
fn index_rest(store: &Store, index: &Index, seq: u64) -> Result<u64, StoreError> {
    let mut next_seq = seq;
    let mut bodies = store.scan(&key::bodies(), &key::body(seq));
    let read = |key: &[u8], value: &[u8]| Ok((key::number(&key[1..]), Stored::from_bytes(value)?));
    while let Some((seq, stored)) = bodies.next_with(read)? {
        let seq = seq.ok_or_else(|| StoreError("an event has no number; the store is damaged".into()))?;
        if let Stored::Here(record) = stored {
            index.change(index_keys(&record, seq), Vec::new());
        }
        next_seq = seq + 1;
    }
    Ok(next_seq)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state for reading. It is whole after each change, so a panic elsewhere does not spoil it.
pub(crate) fn shared(state: &RwLock<State>) -> RwLockReadGuard<'_, State> {
    state.read().unwrap_or_else(PoisonError::into_inner)
}
