//! Where tests take place: an empty home, people, and a relay.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{json, Value};
use tempfile::TempDir;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Draft, Keys};

/// The binary under test.
pub(crate) const WAXLOG: &str = env!("CARGO_BIN_EXE_waxlog");
/// A channel that nobody made.
pub(crate) const NO_CHANNEL: &str = "99999999-9999-4999-8999-999999999999";
/// An event that nobody signed.
pub(crate) const NO_EVENT: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What a command gave.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    fn of(output: Output) -> Done {
        Done {
            code: output.status.code().expect("no signal"),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// It must have succeeded without a word on stderr; gives what it printed.
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    /// It must have failed with this code and category, in one line of JSON; gives the message.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, category: &str) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{}", self.err);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        let line: Value = serde_json::from_str(&self.err).expect("json");
        assert_eq!(line["error"], category, "{}", self.err);
        line["message"].as_str().expect("a text").to_owned()
    }
}

/// Somebody with an empty home who talks to one relay.
pub(crate) struct Person {
    pub(crate) keys: Keys,
    pub(crate) folder: TempDir,
    relay: String,
    owner: Option<OwnerTag>,
}

impl Person {
    pub(crate) fn at(relay: &str) -> Person {
        let folder = tempfile::tempdir().expect("temp dir");
        Person { keys: Keys::generate(), folder, relay: relay.to_owned(), owner: None }
    }

    /// The same as an agent of `owner`.
    pub(crate) fn owned_by(mut self, owner: &Person) -> Person {
        let tag = OwnerTag::issue(&owner.keys, &self.keys.public_key(), "");
        self.owner = Some(tag.expect("another key"));
        self
    }

    /// Talks to another relay from here on.
    pub(crate) fn move_to(&mut self, relay: &str) {
        self.relay = relay.to_owned();
    }

    pub(crate) fn key(&self) -> String {
        self.keys.public_key().to_hex()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The binary with this person's settings and nothing else of the environment that it listens to.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(WAXLOG);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.folder.path())
            .env("BUZZ_RELAY_URL", &self.relay)
            .env("BUZZ_PRIVATE_KEY", self.keys.secret_hex().expose())
            .envs(self.owner.as_ref().map(|tag| ("BUZZ_AUTH_TAG", tag.to_json())));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        finish(self.command(arguments), "")
    }

    pub(crate) fn run_with(&self, stdin: &str, arguments: &[&str]) -> Done {
        finish(self.command(arguments), stdin)
    }

    /// Opens a channel; gives its id.
    pub(crate) fn channel(&self, name: &str, visibility: &str) -> String {
        let made =
            self.run(&["channels", "create", "--name", name, "--type", "stream", "--visibility", visibility]);
        made.ok()["channel_id"].as_str().expect("an id").to_owned()
    }

    /// Says something; gives the event's id.
    pub(crate) fn say(&self, channel: &str, text: &str) -> String {
        let said = self.run(&["messages", "send", "--channel", channel, "--content", text]).ok();
        said["event_id"].as_str().expect("an id").to_owned()
    }

    /// An event of this person, for a scripted relay.
    pub(crate) fn event(&self, kind: u16, content: &str, tags: &[&[&str]]) -> Value {
        let draft = Draft::new(kind, content, 1_700_000_000);
        json!(self.keys.sign(tags.iter().fold(draft, |draft, tag| draft.tag(tag.iter().copied()))))
    }
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command, stdin: &str) -> Done {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut input = child.stdin.take().expect("piped");
    let text = stdin.to_owned();
    let writer = std::thread::spawn(move || {
        // A command that does not read it closes its end.
        let _ = input.write_all(text.as_bytes());
    });
    let output = child.wait_with_output().expect("ends");
    writer.join().expect("no panic");
    Done::of(output)
}

/// The embedded relay with a folder of its own. It ends with the value.
pub(crate) struct Relay {
    child: Child,
    url: String,
    _folder: TempDir,
}

impl Relay {
    pub(crate) fn start() -> Relay {
        let folder = tempfile::tempdir().expect("temp dir");
        let mut child = Command::new(WAXLOG)
            .args(["relay", "--listen", "127.0.0.1:0"])
            .env_clear()
            .env("WAXLOG_HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let url = line.split(' ').next().expect("an address").trim().to_owned();
        Relay { child, url, _folder: folder }
    }

    pub(crate) fn person(&self) -> Person {
        Person::at(&self.url)
    }

    pub(crate) fn socket_url(&self) -> String {
        self.url.replace("http://", "ws://")
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
