//! Hears what happens in the room, with the person's key, and shows it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use waxlog_nostr::client::http::socket_url;
use waxlog_nostr::client::session::{Incoming, Login};
use waxlog_nostr::client::socket::{Limits, Socket, SocketError};
use waxlog_nostr::id::EventId;
use waxlog_nostr::kind::{OBSERVER_FRAME, TURN_METRIC};
use waxlog_nostr::{observer, turn_metric, Event, Filter, Keys};

use super::show::{Seen, Show};

const CHANNEL: &str = "channel";
const METRICS: &str = "metrics";
const FRAMES: &str = "frames";
/// How often a lost connection is made again before this gives up.
const RECONNECTS_MAX: usize = 1_000;
/// How many events are remembered, so that a new connection's repetitions are not shown.
const REMEMBERED_EVENTS: usize = 1_000;
/// How much is held back until the agent listens; what is more is not shown.
const HELD_MAX_BYTES: usize = 1024 * 1024;

/// A connection with the person's key.
pub(super) struct Watch {
    socket: Socket,
    person: Keys,
    show: Show,
    /// The time of the newest event, in seconds since 1970.
    newest: u64,
    remembered: VecDeque<EventId>,
    /// The lines of what came before the agent listened; nothing once they are written.
    held: Option<Vec<u8>>,
}

/// Shows what happens until it is cancelled, or cannot go on: then the agent works on unseen.
pub(super) async fn watch(mut watch: Watch) {
    match watch.run().await {
        Ok(()) => {}
        Err(Trouble::Socket(error)) => log::error!("what happens is not shown any more: {error}"),
        Err(Trouble::Stdout(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(Trouble::Stdout(error)) => log::error!("cannot write to stdout: {error}"),
    }
}

#[derive(Debug)]
enum Trouble {
    Socket(SocketError),
    Stdout(io::Error),
}

impl From<SocketError> for Trouble {
    fn from(error: SocketError) -> Self {
        Trouble::Socket(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Stdout(error)
    }
}

impl Watch {
    /// Connects, and listens from now on.
    pub(super) async fn connect(person: Keys, show: Show) -> Result<Watch, SocketError> {
        let newest = now();
        let (room, me) = (show.room(), person.public_key());
        let login = Login { relay: socket_url(&room.relay), keys: person.clone(), owner: None };
        let channel = Filter::new().tag('h', [room.channel.to_string()]).since(newest);
        let mut socket = Socket::connect(login, Limits::default()).await?;
        socket.subscribe(FRAMES, vec![observer::filter(&me, newest)]).await?;
        socket.subscribe(CHANNEL, vec![channel]).await?;
        // Of a turn that was killed, the metric is as old as the kill: only those to come, of any age.
        socket.subscribe(METRICS, vec![turn_metric::filter(&me, 0).limit(0)]).await?;
        Ok(Watch { socket, person, show, newest, remembered: VecDeque::new(), held: Some(Vec::new()) })
    }

    async fn run(&mut self) -> Result<(), Trouble> {
        loop {
            match self.socket.next().await {
                Ok(Incoming::Event(_, event)) => {
                    self.newest = self.newest.max(event.created_at.min(now()));
                    self.hear(&event)?;
                }
                Ok(Incoming::Closed(what, why)) => log::warn!("the relay does not show the {what}: {why}"),
                Ok(_) => {}
                Err(error) if error.is_final() => return Err(error.into()),
                Err(error) => {
                    log::warn!("the connection that shows what happens was lost: {error}");
                    let since = Some(self.newest);
                    self.socket.reconnect(RECONNECTS_MAX, |_| since, fastrand::f64).await?;
                    let missed = turn_metric::filter(&self.person.public_key(), self.newest);
                    self.socket.subscribe(METRICS, vec![missed]).await?;
                }
            }
        }
    }

    fn hear(&mut self, event: &Event) -> Result<(), Trouble> {
        if self.remembered.contains(&event.id) {
            return Ok(());
        }
        if self.remembered.len() == REMEMBERED_EVENTS {
            self.remembered.pop_front();
        }
        self.remembered.push_back(event.id);
        let Some(seen) = self.open(event) else { return Ok(()) };
        let mut line = Vec::new();
        self.show.line(event, &seen, &mut line)?;
        if let Some(mut held) = self.held.take() {
            // The first frame comes when all channels are listened to.
            if !matches!(seen, Seen::Frame(_)) {
                if held.len() + line.len() <= HELD_MAX_BYTES {
                    held.append(&mut line);
                }
                self.held = Some(held);
                return Ok(());
            }
            self.show.announce(&mut io::stdout())?;
            held.append(&mut line);
            line = held;
        }
        let mut out = io::stdout().lock();
        out.write_all(&line)?;
        Ok(out.flush()?)
    }

    /// What is in an event; nothing if it is sealed and cannot be opened, or not by the agent.
    fn open<'a>(&self, event: &'a Event) -> Option<Seen<'a>> {
        let is_ours = event.pubkey == self.show.room().agent;
        let opened = match event.kind {
            OBSERVER_FRAME | TURN_METRIC if !is_ours => return None,
            OBSERVER_FRAME => observer::open_telemetry(&self.person, event, now())
                .map(Seen::Frame)
                .map_err(|error| error.to_string()),
            TURN_METRIC => {
                turn_metric::open(&self.person, event).map(Seen::Metric).map_err(|error| error.to_string())
            }
            _ => Ok(Seen::Plain(event)),
        };
        opened.map_err(|error| log::warn!("event {} cannot be shown: {error}", event.id)).ok()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
