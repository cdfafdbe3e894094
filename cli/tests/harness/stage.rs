//! A whole machine: relay, harness, agent and tool server as real processes, a model, and people.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use async_std::task;
use rustix::process::{kill_process, kill_process_group, Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;
use waxlog_nostr::client::http::{RelayHttp, Settings};
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{kind, turn_metric, Event, Filter, Keys};

use crate::model::Model;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_waxlog");
/// How long anything may take that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// How many events one query gives.
const PAGE: usize = 500;
const POLL: Duration = Duration::from_millis(100);

pub(crate) struct Stage {
    folder: TempDir,
    model: Model,
    relay: Child,
    url: String,
    harness: Option<Child>,
    agent: Keys,
    owner: Keys,
    person: Keys,
    channel: String,
}

impl Stage {
    /// A relay with one channel that the agent is in, and a harness that listens.
    pub(crate) fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for name in ["buzz-agent", "buzz-dev-mcp"] {
            symlink(BINARY, bin.join(name)).unwrap();
        }
        let mut relay = Command::new(BINARY)
            .args(["relay", "--listen", "127.0.0.1:0"])
            .env_clear()
            .env("HOME", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(relay.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().next().unwrap().to_owned();
        let (agent, owner, person) = (Keys::generate(), Keys::generate(), Keys::generate());
        let channel = String::new();
        let model = Model::start();
        let mut stage = Self { folder, model, relay, url, harness: None, agent, owner, person, channel };
        stage.furnish();
        stage.start_harness();
        stage
    }

    fn furnish(&mut self) {
        let create = ["channels", "create", "--name", "general", "--type", "stream", "--visibility", "open"];
        let created = self.buzz(&self.owner, &create);
        self.channel = created["channel_id"].as_str().unwrap().to_owned();
        self.buzz(&self.agent, &["users", "set-profile", "--name", "Robin"]);
        let (channel, agent) = (self.channel.clone(), self.agent.public_key().to_hex());
        self.buzz(
            &self.owner,
            &["channels", "add-member", "--channel", &channel, "--pubkey", &agent, "--role", "bot"],
        );
    }

    fn owner_tag(&self) -> String {
        OwnerTag::issue(&self.owner, &self.agent.public_key(), "").unwrap().to_json()
    }

    fn command(&self, keys: &Keys) -> Command {
        let mut command = Command::new(BINARY);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("BUZZ_RELAY_URL", &self.url)
            .env("BUZZ_PRIVATE_KEY", keys.secret_hex().expose());
        if keys.public_key() == self.agent.public_key() {
            command.env("BUZZ_AUTH_TAG", self.owner_tag());
        }
        command
    }

    /// Runs a command of a group; gives what it prints.
    fn buzz(&self, keys: &Keys, arguments: &[&str]) -> Value {
        let output = self.command(keys).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    pub(crate) fn start_harness(&mut self) {
        let bin = |name: &str| self.folder.path().join("bin").join(name);
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        let child = self
            .command(&self.agent)
            .arg("acp")
            .env("BUZZ_RELAY_URL", self.url.replace("http://", "ws://"))
            .env("BUZZ_ACP_AGENT_COMMAND", bin("buzz-agent"))
            .env("BUZZ_ACP_AGENT_ARGS", "")
            .env("BUZZ_ACP_MCP_COMMAND", bin("buzz-dev-mcp"))
            .env("BUZZ_ACP_RESPOND_TO", "anyone")
            .env("BUZZ_ACP_MULTIPLE_EVENT_HANDLING", "queue")
            .env("BUZZ_AGENT_PROVIDER", "openai")
            .env("OPENAI_COMPAT_API", "chat")
            .env("OPENAI_COMPAT_API_KEY", "sk-test-0123456789abcdef")
            .env("OPENAI_COMPAT_MODEL", "m")
            .env("OPENAI_COMPAT_BASE_URL", &self.model.url)
            .current_dir(self.folder.path())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        self.harness = Some(child);
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("harness.log")
    }

    /// Kills the harness and nothing else, as an out-of-memory killer would.
    pub(crate) fn kill_harness(&mut self) {
        let mut harness = self.harness.take().unwrap();
        harness.kill().unwrap();
        harness.wait().unwrap();
    }

    /// Kills the agent that the harness has started, if one runs.
    pub(crate) fn kill_agent(&self) {
        let harness = self.harness.as_ref().unwrap().id();
        let children = format!("/proc/{harness}/task/{harness}/children");
        for pid in fs::read_to_string(children).unwrap_or_default().split_whitespace() {
            if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
                // It may have ended by itself in this moment.
                let _ = kill_process_group(pid, Signal::KILL);
            }
        }
    }

    /// A person writes to the agent; gives the message's id.
    pub(crate) fn mention(&self, text: &str) -> String {
        let agent = self.agent.public_key().to_hex();
        let sent = self.buzz(
            &self.person,
            &["messages", "send", "--channel", &self.channel, "--mention", &agent, "--content", text],
        );
        sent["event_id"].as_str().unwrap().to_owned()
    }

    /// How often each message has been answered.
    pub(crate) fn answers(&self) -> BTreeMap<String, usize> {
        let filter = Filter::new()
            .kinds([kind::MESSAGE])
            .authors([self.agent.public_key()])
            .tag('h', [self.channel.as_str()]);
        let mut answers = BTreeMap::new();
        for event in self.find(&self.person, filter) {
            for answered in event.tag_values("e") {
                *answers.entry(answered.to_owned()).or_default() += 1;
            }
        }
        answers
    }

    /// All events that answer a filter, however many pages they are on.
    fn find(&self, keys: &Keys, filter: Filter) -> Vec<Event> {
        let relay = RelayHttp::new(Settings {
            relay: self.url.clone(),
            keys: keys.clone(),
            owner_tag: None,
            timeout: PATIENCE,
            connect_timeout: PATIENCE,
            watcher: None,
        })
        .unwrap();
        let mut found: Vec<Event> = Vec::new();
        loop {
            let mut page = filter.clone().limit(PAGE);
            if let Some(last) = found.last() {
                page = page.until(last.created_at).extension("before_id", last.id.to_hex());
            }
            let events = task::block_on(relay.query(&[page])).unwrap().events;
            let is_last = events.len() < PAGE;
            found.extend(events);
            if is_last {
                return found;
            }
        }
    }

    pub(crate) fn await_answers(&self, mentions: &[String]) {
        self.until("every mention is answered", || {
            let answers = self.answers();
            mentions.iter().all(|mention| answers.contains_key(mention))
        });
    }

    /// What the owner has been told that turns cost: input and output tokens.
    pub(crate) fn billed(&self) -> (u64, u64) {
        let mut sums = (0, 0);
        for event in self.find(&self.owner, turn_metric::filter(&self.owner.public_key(), 0)) {
            let payload = turn_metric::open(&self.owner, &event).unwrap();
            let turn = payload.turn.expect("the sessions of our own agent begin at zero");
            sums.0 += turn.input_tokens.unwrap_or(0);
            sums.1 += turn.output_tokens.unwrap_or(0);
        }
        sums
    }

    /// What the agent's own log says that turns have cost.
    pub(crate) fn spent(&self) -> (u64, u64) {
        let output = self.command(&self.owner).args(["usage", "--json"]).output().unwrap();
        let turns: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let sum = |key: &str| turns.iter().filter_map(|turn| turn[key].as_u64()).sum();
        (sum("input"), sum("output"))
    }

    /// Ends the harness as a service manager does. Gives whether it was content.
    pub(crate) fn stop_harness(&mut self) -> bool {
        let mut harness = self.harness.take().unwrap();
        kill_process(Pid::from_child(&harness), Signal::TERM).unwrap();
        harness.wait().unwrap().success()
    }

    pub(crate) fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            let log = || fs::read_to_string(self.log()).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}\n{}", log());
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.harness.is_some() {
            self.kill_agent();
            self.kill_harness();
        }
        self.relay.kill().unwrap();
        self.relay.wait().unwrap();
    }
}
