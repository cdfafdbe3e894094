//! `waxlog demo`: the whole story with no key and no service.
//!
//! A recorded model on loopback, a real tool, and the real agent as a child process that is killed in the
//! middle of its turn. Every step is checked; the first that does not hold ends the demo with an error.

mod client;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{json, Value};
use structopt::StructOpt;
use tempfile::TempDir;
use waxlog_agent::slot::agents_folder;
use waxlog_scripted::model_server::{Answer, ModelServer};

use self::client::AgentProcess;
use crate::failure::Failure;
use crate::home::OpenLog;
use crate::logs::request_bytes;
use crate::replay::{replay_log, Verdicts};
use crate::usage::{self, TurnUsage};

/// What the model answers, a line each.
const ANSWERS: &str = include_str!("../../fixtures/demo/answers.jsonl");
/// The call in whose middle the agent is killed.
const LAST_CALL: &str = "call_publish";
const VISITORS: &str = "mason\nhoney\nhoney\ncarder\nhoney\nmason\n";
const PROMPT: &str = "Count the visits of each bee in visitors.txt and publish the counts.";

/// A turn on recorded answers, a kill, the recovered tokens, a replay.
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog demo --keep /tmp/waxlog-demo")]
pub(crate) struct Demo {
    /// Keeps the demo's home in this folder, which must be new or empty
    #[structopt(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Where the story takes place.
struct Stage {
    model: ModelServer,
    home: PathBuf,
    /// The session's folder.
    work: PathBuf,
    answers: Vec<Value>,
    _removed_at_the_end: TempDir,
}

impl Demo {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let stage = Stage::set(self.keep.as_deref())?;
        let session = stage.turn_and_kill(out)?;
        let why =
            "Each answer was on disk before it was acted on, so what was paid for is known to the token.";
        heading(out, "3. The tokens of the killed turn", why)?;
        stage.count(&session, out)?;
        stage.restart(out)?;
        heading(out, "5. The tokens again", "Recovery appends; it changes nothing that was counted.")?;
        stage.count(&session, out)?;
        stage.read_back(&session, out)?;
        stage.replay(out)?;
        self.farewell(&session, out)
    }

    fn farewell(&self, session: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(home) = &self.keep else {
            writeln!(out, "All steps held. The demo's home is removed; to look around in one, run")?;
            return Ok(writeln!(out, "    waxlog demo --keep DIR")?);
        };
        let home = home.display();
        writeln!(out, "All steps held. To look further:")?;
        writeln!(out, "    waxlog log ls --home {home}")?;
        writeln!(out, "    waxlog log show {session} --home {home}")?;
        writeln!(out, "    waxlog log show {session} --round 3 --home {home}")?;
        Ok(writeln!(out, "    waxlog fixture record {session} -o turn.jsonl --home {home}")?)
    }
}

impl Stage {
    fn set(keep: Option<&Path>) -> Result<Stage, Failure> {
        let failed = |error| Failure::io("cannot set up the demo", &error);
        let folder = TempDir::with_prefix("waxlog-demo-").map_err(failed)?;
        let home = match keep {
            Some(dir) => empty_folder(dir)?,
            None => folder.path().join("home"),
        };
        let work = folder.path().join("work");
        fs::create_dir(&work)
            .and_then(|()| fs::write(work.join("visitors.txt"), VISITORS))
            .map_err(failed)?;
        let script = ANSWERS.lines().map(Answer::json).collect();
        let answers = ANSWERS.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        Ok(Stage {
            model: ModelServer::start(script).map_err(failed)?,
            home,
            work,
            answers: answers.map_err(|error| failed(error.into()))?,
            _removed_at_the_end: folder,
        })
    }

    /// A turn up to its third round, and the kill. Gives the session's id.
    fn turn_and_kill(&self, out: &mut dyn Write) -> Result<String, Failure> {
        heading(out, "1. A turn", "The agent's model is a recording on loopback, its tool is a real shell.")?;
        let mut agent = AgentProcess::start(&self.home, &self.model.url())?;
        agent.ask(1, "initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
        let program = std::env::current_exe().map_err(|error| Failure::io("cannot find the tool", &error))?;
        let shell = json!({"name": "shell", "command": program, "args": ["mcp"], "env": []});
        let opened = agent.ask(2, "session/new", &json!({"cwd": self.work, "mcpServers": [shell]}))?;
        let session = opened["sessionId"].as_str().unwrap_or_default().to_owned();
        writeln!(out, "   prompt   {PROMPT}")?;
        let prompt = json!([{"type": "text", "text": PROMPT}]);
        agent.send(3, "session/prompt", &json!({"sessionId": session, "prompt": prompt}))?;
        loop {
            let line = agent.next()?;
            let update = &line["params"]["update"];
            narrate(update, out)?;
            if update["toolCallId"] == LAST_CALL && update["status"] == "in_progress" {
                break;
            }
            if line["id"] == 3 {
                return Err(Failure::Check(format!("the turn ended before it could be killed: {line}")));
            }
        }
        let why = "Three answers are paid for, one command runs. The agent gets no chance to clean up.";
        heading(out, &format!("2. SIGKILL to process {}", agent.pid()), why)?;
        agent.kill()?;
        Ok(session)
    }

    /// Compares the turn's tokens with the answers that the model gave.
    fn count(&self, session: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let turns = usage::turns_of(&self.log()?)?;
        usage::table(&turns).write(out)?;
        let sum =
            |key: &str| self.answers.iter().map(|answer| answer["usage"][key].as_u64()).sum::<Option<u64>>();
        let [TurnUsage { session: counted, stop: found, answered: 3, input, output, total, .. }] = &turns[..]
        else {
            return Err(Failure::Check("the log should hold one turn with three answers".to_owned()));
        };
        let paid = [sum("prompt_tokens"), sum("completion_tokens"), sum("total_tokens")];
        if counted != session || found != "interrupted" || [*input, *output, *total] != paid {
            return Err(Failure::Check(format!("the model was paid {paid:?}, the log says otherwise")));
        }
        Ok(())
    }

    fn restart(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let why = "A start closes what a kill left open: the running call gets a result that says so.";
        heading(out, "4. The agent starts again", why)?;
        let mut agent = AgentProcess::start(&self.home, &self.model.url())?;
        agent.ask(1, "initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
        let log = agent.close()?;
        let told = log.lines().find(|line| line.contains("interrupted"));
        let told =
            told.ok_or_else(|| Failure::Check(format!("nothing was recovered; the log says: {log}")))?;
        Ok(writeln!(out, "   {told}")?)
    }

    /// Compares the requests in the log with those that the model received.
    fn read_back(&self, session: &str, out: &mut dyn Write) -> Result<(), Failure> {
        heading(out, "6. What the model saw", "Each request is read back from the log and compared.")?;
        let log = self.log()?;
        for (number, received) in (1..).zip(self.model.requests()) {
            let recorded = request_bytes(&log, session, number)?;
            if recorded != received.body {
                return Err(Failure::Check(format!(
                    "request {number} in the log is not the one that was sent"
                )));
            }
            writeln!(out, "   request {number}: {} bytes, the same", recorded.len())?;
        }
        Ok(())
    }

    fn replay(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let why = "The turn is folded again: every request and line must come out as it was, to the byte.";
        heading(out, "7. Replay", why)?;
        let mut verdicts = Verdicts::new(out);
        replay_log(&self.log()?, &mut verdicts)?;
        verdicts.conclude()?;
        Ok(writeln!(out)?)
    }

    fn log(&self) -> Result<OpenLog, Failure> {
        Ok(OpenLog::open(&agents_folder(&self.home).join("0"))?)
    }
}

fn empty_folder(dir: &Path) -> Result<PathBuf, Failure> {
    let failed = |error| Failure::io(format!("cannot use {}", dir.display()), &error);
    fs::create_dir_all(dir).map_err(failed)?;
    match fs::read_dir(dir).map_err(failed)?.next() {
        None => std::path::absolute(dir).map_err(failed),
        Some(_) => {
            Err(Failure::SetUp(format!("{} is not empty; give a new folder to --keep", dir.display())))
        }
    }
}

/// A step: what happens, and why it matters.
fn heading(out: &mut dyn Write, title: &str, why: &str) -> Result<(), Failure> {
    writeln!(out, "\n{title}\n   {why}")?;
    // Steps take a while; whoever watches wants to see them as they come.
    Ok(out.flush()?)
}

fn narrate(update: &Value, out: &mut dyn Write) -> Result<(), Failure> {
    match update["sessionUpdate"].as_str() {
        Some("agent_message_chunk") => writeln!(out, "   model    {}", text(&update["content"]["text"]))?,
        Some("tool_call") => writeln!(out, "   call     {}", text(&update["rawInput"]["command"]))?,
        _ => {}
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
