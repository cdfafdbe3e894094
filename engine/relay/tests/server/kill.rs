//! A relay process under load that is killed: what it answered OK is there afterwards.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use async_std::task;
use serde_json::json;
use waxlog_nostr::{Event, Keys};
use waxlog_relay::{Server, ServerSettings};

use crate::client::{limits, note, Client};

/// Where the process that is killed keeps its store; set for that process only.
const FOLDER_VARIABLE: &str = "RELAY_TO_BE_KILLED";
/// How often the process is killed; CI sets more.
const KILLS_VARIABLE: &str = "WAXLOG_RELAY_KILLS";
const FEW_KILLS: u64 = 3;
const CONNECTIONS: usize = 2;
const MAX_EVENTS: usize = 1_000;
const SEED: u64 = 20;

/// The process that is killed, run by the test below only.
#[test]
#[ignore = "serves until it is killed"]
fn serves_until_it_is_killed() {
    let folder = std::env::var(FOLDER_VARIABLE).expect("run by the test of kills only");
    let keys = Keys::parse(&format!("{:064x}", 7)).unwrap();
    let mut settings = ServerSettings::on_loopback(folder.into(), keys);
    settings.limits = limits();
    task::block_on(async {
        let server = Server::start(settings).await.unwrap();
        println!("\nlistens at {}", server.address());
        std::future::pending::<()>().await;
    });
}

struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::serves_until_it_is_killed", "--ignored", "--nocapture"])
            .env(FOLDER_VARIABLE, folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| Some(format!("ws://{}", line.ok()?.strip_prefix("listens at ")?)));
        Self { child, url: url.expect("the relay did not start") }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Publishes until the relay is gone; gives what was answered OK.
async fn publish(url: String, keys: Keys, round: u64) -> Vec<Event> {
    let mut client = login(&url, &keys).await;
    let events: Vec<Event> =
        (0..MAX_EVENTS).map(|n| note(&keys, &format!("round {round} note {n}"))).collect();
    let mut kept = Vec::new();
    for (n, event) in events.iter().enumerate() {
        let frame = json!(["EVENT", event]).to_string();
        let sent = futures_util::SinkExt::send(
            &mut client.socket,
            async_tungstenite::tungstenite::Message::text(frame),
        );
        if sent.await.is_err() {
            break;
        }
        // Some stay unanswered, so that the kill meets work in every stage.
        if n >= 32 && !answered(&mut client, &events[n - 32], &mut kept).await {
            return kept;
        }
    }
    while answered(&mut client, &events[kept.len()], &mut kept).await {
        if kept.len() == events.len() {
            break;
        }
    }
    kept
}

async fn answered(client: &mut Client, event: &Event, kept: &mut Vec<Event>) -> bool {
    let Some(message) = client.message().await else { return false };
    let Ok(text) = message.into_text() else { return false };
    if text.as_str() == json!(["OK", event.id, true, ""]).to_string() {
        kept.push(event.clone());
        return true;
    }
    assert!(text.is_empty(), "{text}");
    false
}

async fn login(url: &str, keys: &Keys) -> Client {
    let mut client = Client::connect(url).await;
    let challenge = client.next().await[1].as_str().unwrap().to_owned();
    client.authenticate(keys, url, &challenge).await;
    client
}

#[test]
fn what_was_answered_ok_survives_every_kill() {
    let kills = std::env::var(KILLS_VARIABLE).map_or(FEW_KILLS, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let keys: Vec<Keys> = (0..CONNECTIONS).map(|_| Keys::generate()).collect();
    let mut all_kept = 0;
    for round in 0..kills {
        let mut process = Process::start(folder.path());
        let writers: Vec<_> =
            keys.iter().map(|keys| task::spawn(publish(process.url.clone(), keys.clone(), round))).collect();
        // Another moment of the load in each round.
        std::thread::sleep(Duration::from_millis(20 + (round * SEED) % 180));
        process.child.kill().unwrap();
        let kept: Vec<Event> = task::block_on(async {
            let mut kept = Vec::new();
            for writer in writers {
                kept.extend(writer.await);
            }
            kept
        });
        drop(process);
        all_kept += kept.len();
        let again = Process::start(folder.path());
        task::block_on(all_are_there(&again.url, &keys[0], &kept));
    }
    assert!(all_kept > 0, "no event was answered before a kill");
    println!("{all_kept} events were answered before {kills} kills");
}

async fn all_are_there(url: &str, keys: &Keys, kept: &[Event]) {
    let mut client = login(url, keys).await;
    for part in kept.chunks(500) {
        let ids: Vec<_> = part.iter().map(|event| event.id).collect();
        let found = client.subscribe("kept", &[json!({"ids": ids})]).await;
        let missing: Vec<_> = ids.iter().filter(|id| !found.contains(&json!(id))).collect();
        assert!(missing.is_empty(), "{} of {} are lost: {missing:?}", missing.len(), part.len());
    }
}
