//! Where tests take place: a scripted relay, an identity, and the binary.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{json, Value};
use tempfile::TempDir;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Draft, Event, Keys};
use waxlog_scripted::model_server::{Answer, ModelServer};

/// The binary under test.
pub(crate) const WAXLOG: &str = env!("CARGO_BIN_EXE_waxlog");

/// A relay that answers from a list, the last entry standing for all that follow. All of it goes with the
/// value.
pub(crate) struct Stage {
    pub(crate) server: ModelServer,
    pub(crate) keys: Keys,
    pub(crate) owner: Option<Keys>,
    folder: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// What was printed, of a command that succeeded.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The exit code and the category of a command that failed, which has printed nothing.
    pub(crate) fn failure(&self) -> (i32, String) {
        assert_eq!(self.out, "", "{self:?}");
        let line: Value = serde_json::from_str(&self.err).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        (self.code, line["error"].as_str().unwrap().to_owned())
    }
}

/// The answer to a write that counts.
pub(crate) fn accepted() -> Answer {
    Answer::json(json!({"event_id": "e", "accepted": true, "message": ""}).to_string())
}

/// The answer to a write that lost against a newer version.
pub(crate) fn duplicate() -> Answer {
    Answer::json(json!({"event_id": "e", "accepted": true, "message": "duplicate: have a newer"}).to_string())
}

/// The answer to a query.
pub(crate) fn found(events: &[Event]) -> Answer {
    Answer::json(json!(events).to_string())
}

impl Stage {
    pub(crate) fn new(answers: Vec<Answer>) -> Stage {
        Stage::of(Keys::generate(), answers)
    }

    /// A stage on which somebody is known beforehand.
    pub(crate) fn of(keys: Keys, answers: Vec<Answer>) -> Stage {
        let server = ModelServer::start(answers).unwrap();
        Stage { server, keys, owner: None, folder: tempfile::tempdir().unwrap() }
    }

    /// The same for an agent that has its owner's word.
    pub(crate) fn with_owner(mut self, owner: Keys) -> Stage {
        self.owner = Some(owner);
        self
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, "")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &str) -> Run {
        let mut command = command(&self.server.url(), &self.keys);
        command.current_dir(self.folder.path()).env("WAXLOG_HOME", self.folder.path()).args(arguments);
        if let Some(owner) = &self.owner {
            let tag = OwnerTag::issue(owner, &self.keys.public_key(), "").unwrap();
            command.env("BUZZ_AUTH_TAG", tag.to_json());
        }
        run(command, stdin)
    }

    /// The events that were sent, in order.
    pub(crate) fn sent(&self) -> Vec<Event> {
        let requests = self.server.requests();
        let writes = requests.iter().filter(|request| request.path == "/events");
        writes.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    }

    /// The only event that was sent.
    pub(crate) fn sent_one(&self) -> Event {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1);
        let event = sent.remove(0);
        assert_eq!(event.verify(), Ok(()));
        event
    }

    /// The filter lists that were asked for, in order.
    pub(crate) fn queries(&self) -> Vec<Value> {
        let requests = self.server.requests();
        let reads = requests.iter().filter(|request| request.path == "/query");
        reads.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    }
}

/// The binary for an identity on a relay, with nothing else of the environment that it listens to.
pub(crate) fn command(relay: &str, keys: &Keys) -> Command {
    let mut command = Command::new(WAXLOG);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("BUZZ_RELAY_URL", relay).env("BUZZ_PRIVATE_KEY", keys.secret_hex().expose());
    command
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command, stdin: &str) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that fails early does not read its input.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The tags of an event as lines, for comparison.
pub(crate) fn tags(event: &Event) -> Vec<String> {
    event.tags.iter().map(|tag| tag.join("|")).collect()
}

/// An event of somebody.
pub(crate) fn event(keys: &Keys, kind: u16, tags: &[&[&str]], content: &str, created_at: u64) -> Event {
    let draft = Draft::new(kind, content, created_at);
    keys.sign(tags.iter().fold(draft, |draft, tag| draft.tag(tag.iter().copied())))
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}
