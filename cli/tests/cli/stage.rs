//! Where tests take place: a home, a folder to work in, a model, and the binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{json, Value};
use tempfile::TempDir;
use waxlog_core::record::Record;
use waxlog_scripted::mcp_server::{self, Script};
use waxlog_scripted::model_server::{Answer, ModelServer};
use waxlog_store::{NewRecord, Reader, Record as Stored};

use crate::agent::Agent;
use crate::answers::Dialect;

/// The binary under test.
pub(crate) const WAXLOG: &str = env!("CARGO_BIN_EXE_waxlog");
/// The variable that tells [`scripted_server`] its script.
const SCRIPT_VARIABLE: &str = "SCRIPT";

/// The tool server of the tests is this same test binary. Does nothing as a test.
#[test]
fn scripted_server() {
    let Some(script) = std::env::var_os(SCRIPT_VARIABLE).map(PathBuf::from) else { return };
    // The test runner has begun a line already, which is none of the protocol.
    println!();
    mcp_server::run(&script, &script.with_extension("log")).expect("served");
}

/// A model on loopback, a home, and a folder to work in. All of it goes with the value.
pub(crate) struct Stage {
    pub(crate) model: ModelServer,
    pub(crate) dialect: Dialect,
    folder: TempDir,
}

impl Stage {
    pub(crate) fn new(dialect: Dialect, answers: Vec<Answer>) -> Stage {
        let model = ModelServer::start(answers).expect("a port");
        Stage { model, dialect, folder: tempfile::tempdir().expect("temp dir") }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The log that the first agent of the home writes.
    pub(crate) fn log(&self) -> PathBuf {
        self.home().join("agent/0")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The binary with the home of this stage, and nothing else of the environment that it listens to.
    pub(crate) fn waxlog(&self) -> Command {
        let mut command = Command::new(WAXLOG);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("WAXLOG_HOME", self.home());
        command
    }

    /// The agent's command with the provider's settings.
    pub(crate) fn agent_command(&self) -> Command {
        let mut command = self.waxlog();
        command.arg("agent").envs(self.dialect.settings()).env(self.dialect.url_variable(), self.model.url());
        command
    }

    /// An agent that has been greeted.
    pub(crate) fn agent(&self) -> Agent {
        self.agent_with(&[])
    }

    pub(crate) fn agent_with(&self, settings: &[(&str, &str)]) -> Agent {
        let mut command = self.agent_command();
        command.envs(settings.iter().copied());
        let mut agent = Agent::start(command);
        agent.ask("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
        agent
    }

    /// The parameters of a session whose one server, `tools`, does what the script says.
    pub(crate) fn session(&self, script: &Script) -> Value {
        let file = self.path("script.json");
        std::fs::write(&file, serde_json::to_vec(script).expect("json")).expect("written");
        // A record shows the command: where a build lies is no part of a fixture.
        let server = self.path("tools");
        if !server.exists() {
            std::os::unix::fs::symlink(std::env::current_exe().expect("own path"), &server).expect("a link");
        }
        let server = json!({
            "name": "tools",
            "command": server,
            "args": ["stage::scripted_server", "--exact", "--nocapture", "--test-threads=1"],
            "env": [{"name": SCRIPT_VARIABLE, "value": file}],
        });
        json!({"cwd": self.folder.path(), "mcpServers": [server]})
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        Done::of(self.waxlog().args(arguments).output().expect("runs"))
    }

    /// The records of a session.
    pub(crate) fn records(&self, session: &str) -> Vec<Record> {
        let reader = Reader::open(&self.log()).expect("opens");
        assert!(reader.damage().is_none(), "{:?}", reader.damage());
        let stored = reader.stream(session).expect("reads");
        stored.map(|stored| decode(stored.expect("sound"))).collect()
    }
}

pub(crate) fn decode(stored: Stored) -> Record {
    Record::decode(&stored.kind, stored.version, &stored.head, stored.raw).expect("a known kind")
}

/// A stored record as it is appended to another log.
pub(crate) fn renewed(stored: Stored) -> NewRecord {
    let Stored { stream, kind, version, time_ms, head, raw, .. } = stored;
    NewRecord { stream, kind, version, time_ms, head, raw }
}

/// The recorded turns of the repository.
pub(crate) fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let entries = std::fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("entry").path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    files.sort();
    assert!(files.len() >= 10, "the fixtures are not there: {files:?}");
    files
}

/// What a command gave.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) bytes: Vec<u8>,
}

impl Done {
    pub(crate) fn of(output: Output) -> Done {
        Done {
            code: output.status.code().expect("no signal"),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            bytes: output.stdout,
        }
    }

    /// It must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Done {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }

    /// It must have failed with this code, saying this.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, saying: &str) -> Done {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        assert!(self.out.contains(saying) || self.err.contains(saying), "{saying}: {}{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect("json")
    }

    pub(crate) fn last_line(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}
