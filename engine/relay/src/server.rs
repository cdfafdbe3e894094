//! The relay on the network: one port for HTTP and sockets, on async-std.
//!
//! A connection is two tasks: one reads, one writes what waits. Events go to the clerk, the one thread that
//! takes them in; reads and signatures go to pools of threads. What is sent out is covered by a flush first.

mod bridge;
mod clerk;
mod connection;
mod gauge;
mod http;
mod hub;
mod info;
pub mod limits;
mod linger;
mod media;
mod names;
mod outbox;
mod pool;
pub mod rate;
mod replay;
mod session;
mod signal;
mod socket;
mod transport;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_std::future::timeout;
use async_std::net::{TcpListener, TcpStream};
use async_std::task::{self, JoinHandle};
use trillium_http::Stopper;
use waxlog_nostr::{Keys, PublicKey};

use crate::desk::{Desk, DeskError, Settings};
use clerk::Clerk;
use gauge::{Counted, Gauge};
use hub::Hub;
use limits::Limits;
use media::{BlobStore, Uploads};
use names::Names;
pub use names::RelayUrlError;
use pool::Pool;
use rate::Rates;
use replay::Replays;

/// How often channels are looked through for those whose time has passed.
const REAP_EVERY: Duration = Duration::from_secs(60);
/// Threads that read the store and write blobs.
const READERS: usize = 4;
/// How many jobs wait for a pool's threads.
const POOL_LINE: usize = 1_024;
/// How long to wait when the system has no more descriptors for new connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a server is started with.
pub struct ServerSettings {
    /// Where to listen. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// The relay's address as clients know it (`ws://` or `wss://`), if it differs from where it listens.
    pub public_url: Option<String>,
    /// Where everything is kept.
    pub folder: PathBuf,
    /// What signs the relay's own events.
    pub relay_keys: Keys,
    /// A key that counts as a member of every channel.
    pub trusted: Option<PublicKey>,
    /// Whether HTTP requests may name their key without a proof (`X-Pubkey`). For tests of others only:
    /// whoever reaches the port is then anyone.
    pub trusts_x_pubkey: bool,
    /// How often channels are looked through for those whose time has passed.
    pub reap_every: Duration,
    /// What the server takes at most.
    pub limits: Limits,
}

impl ServerSettings {
    /// A server on a free port of the loopback, with defaults.
    pub fn on_loopback(folder: PathBuf, relay_keys: Keys) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            public_url: None,
            folder,
            relay_keys,
            trusted: None,
            trusts_x_pubkey: false,
            reap_every: REAP_EVERY,
            limits: Limits::default(),
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is taken or not ours.
    #[error("cannot listen at {address}: {reason}; give another with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's words.
        reason: io::Error,
    },
    /// The public address is none.
    #[error(transparent)]
    PublicUrl(#[from] RelayUrlError),
    /// The store cannot be used.
    #[error(transparent)]
    Desk(#[from] DeskError),
    /// The folder of blobs cannot be used.
    #[error("the folder of blobs {folder:?} cannot be used: {reason}")]
    Blobs {
        /// The folder.
        folder: PathBuf,
        /// The system's words.
        reason: io::Error,
    },
    /// The system gives no thread.
    #[error("cannot start the relay's threads: {0}")]
    Threads(io::Error),
}

/// What all connections share.
pub(crate) struct Relay {
    desk: Arc<Desk>,
    hub: Arc<Hub>,
    clerk: Clerk,
    checks: Pool,
    reads: Pool,
    limits: Limits,
    names: Names,
    relay_key: PublicKey,
    trusts_x_pubkey: bool,
    rates: Rates,
    replays: Replays,
    in_flight: Arc<Gauge>,
    blobs: Arc<BlobStore>,
    uploads: Uploads,
    stopper: Stopper,
}

/// A server that runs.
pub struct Server {
    address: SocketAddr,
    relay: Arc<Relay>,
    connections: Arc<Gauge>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Opens the store and listens.
    pub async fn start(settings: ServerSettings) -> Result<Self, ServerError> {
        let cannot_listen = |reason| ServerError::Listen { address: settings.listen, reason };
        let listener = TcpListener::bind(settings.listen).await.map_err(cannot_listen)?;
        let address = listener.local_addr().map_err(cannot_listen)?;
        let (every, max) = (settings.reap_every, settings.limits.connections);
        let names = Names::new(address, settings.public_url.as_deref())?;
        let relay = Arc::new(task::spawn_blocking(move || Relay::open(settings, names)).await?);
        let connections = Gauge::new(max);
        let tasks = vec![
            task::spawn(accept(relay.clone(), listener, connections.clone())),
            task::spawn(reap(relay.clone(), every)),
        ];
        Ok(Self { address, relay, connections, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: takes no more connections, lets those that are open end, answers what was taken in, and
    /// closes the store. Waits for open connections as long as the limits say.
    pub async fn stop(self) {
        self.relay.stopper.stop();
        for task in self.tasks {
            task.await;
        }
        if timeout(self.relay.limits.stop, self.connections.none()).await.is_err() {
            log::warn!("some connections did not end in time and were cut off");
        }
        let relay = self.relay;
        task::spawn_blocking(move || {
            relay.clerk.stop();
            relay.checks.stop();
            relay.reads.stop();
        })
        .await;
    }
}

impl Relay {
    fn open(settings: ServerSettings, names: Names) -> Result<Self, ServerError> {
        let limits = settings.limits;
        let folder = settings.folder.join("media");
        let blobs = BlobStore::open(&folder, names.clone());
        let blobs = Arc::new(blobs.map_err(|reason| ServerError::Blobs { folder, reason })?);
        let relay_key = settings.relay_keys.public_key();
        let desk_settings =
            Settings { blobs: Some(blobs.clone()), trusted: settings.trusted, ..Settings::default() };
        let desk = Desk::open(&settings.folder.join("events"), desk_settings, settings.relay_keys)?;
        let (desk, hub) = (Arc::new(desk), Arc::new(Hub::default()));
        let checkers = thread::available_parallelism().map_or(1, usize::from);
        let clerk = Clerk::start(desk.clone(), hub.clone(), limits.handlers_in_flight);
        Ok(Self {
            desk,
            hub,
            clerk: clerk.map_err(ServerError::Threads)?,
            checks: Pool::start("relay-check", checkers, POOL_LINE).map_err(ServerError::Threads)?,
            reads: Pool::start("relay-read", READERS, POOL_LINE).map_err(ServerError::Threads)?,
            names,
            relay_key,
            trusts_x_pubkey: settings.trusts_x_pubkey,
            rates: Rates::new(limits.quotas.clone(), limits.rate_windows),
            replays: Replays::new(limits.replay_proofs),
            in_flight: Gauge::new(limits.handlers_in_flight),
            blobs,
            uploads: Uploads::new(&limits),
            stopper: Stopper::new(),
            limits,
        })
    }
}

async fn accept(relay: Arc<Relay>, listener: TcpListener, connections: Arc<Gauge>) {
    loop {
        let next = async {
            let place = connections.enter().await;
            (listener.accept().await, place)
        };
        match relay.stopper.stop_future(next).await {
            None => break,
            Some((Ok((stream, _)), place)) => {
                task::spawn(serve(relay.clone(), stream, place));
            }
            Some((Err(error), _)) => {
                log::warn!("a connection could not be accepted: {error}");
                task::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(relay: Arc<Relay>, stream: TcpStream, place: Counted) {
    if let Err(error) = stream.set_nodelay(true) {
        log::debug!("a connection ended before it was served: {error}");
        return;
    }
    http::serve(relay, stream).await;
    drop(place);
}

async fn reap(relay: Arc<Relay>, every: Duration) {
    while relay.stopper.stop_future(task::sleep(every)).await.is_some() {
        if relay.clerk.reap().await.is_err() {
            break;
        }
    }
}

/// The clock of the relay, in seconds since 1970.
fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// 32 random bytes in hex.
fn random_hex() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).unwrap_or_else(|error| panic!("no randomness from the system: {error}"));
    hex::encode(bytes)
}

// A thread that panicked leaves what it held as it was: each holder changes it in one step.

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
