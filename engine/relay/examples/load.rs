//! A load client: how many events a relay takes a second, beside how many signatures this machine verifies,
//! and what reading them back costs.
//!
//!     cargo run --release --example load -- --pid "$(pidof waxlog)" ws://127.0.0.1:3000
//!
//! Events are signed beforehand. Each connection keeps a window of them unanswered. The relay's own quotas
//! must be off, as they are on loopback.

use std::error::Error;
use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_std::net::TcpStream;
use async_std::task;
use async_tungstenite::tungstenite::protocol::WebSocketConfig;
use async_tungstenite::tungstenite::Message;
use async_tungstenite::WebSocketStream;
use futures_lite::StreamExt;
use futures_util::SinkExt;
use structopt::StructOpt;
use waxlog_nostr::auth::answer_challenge;
use waxlog_nostr::frame::{ClientFrame, RelayFrame};
use waxlog_nostr::{Draft, Event, Filter, Keys};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How often the query is repeated; the middle of its times is told.
const QUERIES: usize = 21;
const QUERY_ROWS: usize = 500;
/// How many signatures each thread verifies for the comparison.
const VERIFIED: usize = 4_000;

/// Drives a relay with events that were signed beforehand.
#[derive(StructOpt)]
struct Load {
    /// Where the relay is
    #[structopt(default_value = "ws://127.0.0.1:3000")]
    url: String,
    /// How many events, of all connections
    #[structopt(long, default_value = "20000")]
    events: usize,
    /// How many connections publish
    #[structopt(long, default_value = "8")]
    connections: usize,
    /// How many events of a connection may be unanswered
    #[structopt(long, default_value = "64")]
    window: usize,
    /// How many subscriptions that hear nothing are open meanwhile
    #[structopt(long, default_value = "0")]
    idle: usize,
    /// The relay's process, to tell its memory
    #[structopt(long)]
    pid: Option<u32>,
}

struct Client {
    socket: WebSocketStream<TcpStream>,
}

impl Client {
    async fn login(url: &str, keys: &Keys) -> Outcome<Self> {
        let stream = TcpStream::connect(url.trim_start_matches("ws://")).await?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().write_buffer_size(16 << 10);
        let (socket, _) = async_tungstenite::client_async_with_config(url, stream, Some(config)).await?;
        let mut client = Self { socket };
        let RelayFrame::Auth(challenge) = client.next().await? else { return Err("no challenge".into()) };
        let proof = answer_challenge(keys, url, &challenge, None, now());
        client.say(ClientFrame::Auth(proof).to_json()).await?;
        match client.next().await? {
            RelayFrame::Ok(_, true, _) => Ok(client),
            other => Err(format!("not let in: {other:?}").into()),
        }
    }

    async fn say(&mut self, text: String) -> Outcome<()> {
        Ok(self.socket.send(Message::text(text)).await?)
    }

    async fn text(&mut self) -> Outcome<String> {
        loop {
            match self.socket.next().await.ok_or("the relay has ended the connection")?? {
                Message::Text(text) => return Ok(text.to_string()),
                Message::Ping(_) | Message::Pong(_) => {}
                other => return Err(format!("unexpected: {other:?}").into()),
            }
        }
    }

    async fn next(&mut self) -> Outcome<RelayFrame> {
        Ok(RelayFrame::parse(&self.text().await?)?)
    }

    /// Publishes all, keeping a window unanswered. Gives how long it took.
    async fn publish(mut self, frames: Vec<String>, window: usize) -> Outcome<Duration> {
        let (begin, total) = (Instant::now(), frames.len());
        let mut left = frames.into_iter();
        let mut answered = 0;
        let mut sent = 0;
        while answered < total {
            for frame in left.by_ref().take(window - (sent - answered)) {
                self.socket.feed(Message::text(frame)).await?;
                sent += 1;
            }
            self.socket.flush().await?;
            // Half a window at a time, as a client does that handles what has come before it sends more.
            for _ in 0..(sent - answered).div_ceil(2) {
                let answer = self.text().await?;
                if !answer.starts_with("[\"OK\"") || !answer.ends_with(",true,\"\"]") {
                    return Err(format!("not taken: {answer}").into());
                }
                answered += 1;
            }
        }
        Ok(begin.elapsed())
    }

    /// Reads the newest events. Gives how many came and how long it took.
    async fn query(&mut self) -> Outcome<(usize, Duration)> {
        let (begin, mut rows) = (Instant::now(), 0);
        let filter = Filter::new().kinds([1]).limit(QUERY_ROWS);
        self.say(ClientFrame::Req("newest".into(), vec![filter]).to_json()).await?;
        while !self.text().await?.starts_with("[\"EOSE\"") {
            rows += 1;
        }
        let took = begin.elapsed();
        self.say(ClientFrame::Close("newest".into()).to_json()).await?;
        self.text().await?;
        Ok((rows, took))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// Signatures verified a second, all processors at work.
fn verification_rate(event: &Event) -> f64 {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..VERIFIED {
                    assert!(event.verify().is_ok(), "a signed event does not verify");
                }
            });
        }
    });
    (threads * VERIFIED) as f64 / begin.elapsed().as_secs_f64()
}

async fn idle(url: &str, subscriptions: usize) -> Outcome<Client> {
    let mut client = Client::login(url, &Keys::generate()).await?;
    for number in 0..subscriptions {
        let filter = Filter::new().kinds([1]).authors([Keys::generate().public_key()]);
        client.say(ClientFrame::Req(number.to_string(), vec![filter]).to_json()).await?;
        client.text().await?;
    }
    Ok(client)
}

async fn run(load: &Load) -> Outcome<()> {
    let share = load.events / load.connections;
    let mut writers = Vec::new();
    let start = now().saturating_sub(600);
    let mut sample = None;
    for _ in 0..load.connections {
        let keys = Keys::generate();
        let made = (0..share).map(|n| {
            let at = start + (n % 600) as u64;
            keys.sign(Draft::new(1, format!("event {n} of the load"), at))
        });
        let frames: Vec<String> = made
            .inspect(|event| sample = Some(event.clone()))
            .map(|event| ClientFrame::Event(event).to_json())
            .collect();
        writers.push((Client::login(&load.url, &keys).await?, frames));
    }
    let _idle = idle(&load.url, load.idle).await?;
    let begin = Instant::now();
    let tasks: Vec<_> = writers
        .into_iter()
        .map(|(client, frames)| task::spawn(client.publish(frames, load.window)))
        .collect();
    for task in tasks {
        task.await?;
    }
    let rate = (share * load.connections) as f64 / begin.elapsed().as_secs_f64();
    let verified = sample.as_ref().map_or(0.0, verification_rate);
    println!(
        "{} events over {} connections beside {} idle subscriptions: {rate:.0} taken/s; {verified:.0} \
         verified/s on all processors; ratio {:.2}",
        share * load.connections,
        load.connections,
        load.idle,
        rate / verified,
    );
    let mut reader = Client::login(&load.url, &Keys::generate()).await?;
    let mut times = Vec::new();
    let mut rows = 0;
    for _ in 0..QUERIES {
        let (found, took) = reader.query().await?;
        rows = found;
        times.push(took);
    }
    times.sort();
    println!("query of the {rows} newest: middle {:.1} ms", times[QUERIES / 2].as_secs_f64() * 1e3);
    if let Some(pid) = load.pid {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        for line in status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM")) {
            println!("{line}");
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let load = Load::from_args();
    task::block_on(run(&load))
}
