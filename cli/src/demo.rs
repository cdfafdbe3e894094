//! `waxlog demo`: the whole story with no key and no service.
//!
//! A recorded model on loopback; all else is real: relay, harness, agent and shell, which are killed in the
//! middle of a turn. Every step is checked; the first that does not hold ends the demo with an error.

mod machine;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use structopt::StructOpt;
use tempfile::TempDir;
use waxlog_nostr::turn_metric::{self, TokenCounts};
use waxlog_nostr::{kind, Event, Filter};
use waxlog_scripted::model_server::ModelServer;
use waxlog_scripted::recording::Recording;

use self::machine::{Machine, Site};
use crate::buzz::Context;
use crate::failure::Failure;
use crate::home::{HomeOption, OpenLog};
use crate::keys;
use crate::logs::request_bytes;
use crate::readable::{brief, quoted};
use crate::replay::{replay_log, Verdicts};
use crate::table::known;
use crate::usage::{self, TurnUsage};

/// What the model answers, a line each.
const ANSWERS: &str = include_str!("../../fixtures/demo/answers.jsonl");
/// The call in whose middle everything is killed.
const LAST_CALL: &str = "call_count";
/// The answers that are paid for by then.
const PAID: u64 = 2;
const VISITORS: &str = "mason\nhoney\nhoney\ncarder\nhoney\nmason\n";
/// Waits for as long as somebody else writes the visitors down, then counts.
const COUNT: &str =
    "while [ -e busy ]; do sleep 0.1; done\nsort visitors.txt | uniq -c | sort -rn | tee counts.txt\n";
const BUSY: &str = "busy";
const MENTION: &str = "@Waxlog how often did each bee visit? It is in visitors.txt.";

/// A mention, a kill in the middle of its turn, the one answer, what it cost, a replay.
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog demo --keep /tmp/waxlog-demo")]
pub(crate) struct Demo {
    /// Keeps the demo's home in this folder, which must be new or empty
    #[structopt(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Where the story takes place.
struct Stage {
    site: Site,
    model: ModelServer,
    recording: Recording,
    _removed_at_the_end: TempDir,
}

impl Demo {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let stage = Stage::set(self.keep.as_deref())?;
        let mention = stage.turn_and_kill(out)?;
        let session = stage.count(out)?;
        let machine = stage.answer(&mention, out)?;
        stage.bill(&machine, out)?;
        machine.stop()?;
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
        fs::create_dir(&work).map_err(failed)?;
        for (name, text) in [("visitors.txt", VISITORS), ("count.sh", COUNT), (BUSY, "")] {
            fs::write(work.join(name), text).map_err(failed)?;
        }
        let recording = Recording::parse(ANSWERS)
            .map_err(|error| Failure::SetUp(format!("the demo's recording: {error}")))?;
        let model = ModelServer::start_recorded(recording.clone()).map_err(failed)?;
        let site = Site { home, work, folder: folder.path().to_owned(), model: model.url() };
        Ok(Stage { site, model, recording, _removed_at_the_end: folder })
    }

    /// A turn up to its third call, and the kill. Gives the id of the message that began it.
    fn turn_and_kill(&self, out: &mut dyn Write) -> Result<String, Failure> {
        let why = "Relay, harness and agent start; the model is a recording, all else is real.";
        heading(out, "1. waxlog up", why)?;
        let machine = Machine::start(&self.site)?;
        writeln!(out, "   relay    {}", machine.relay)?;
        writeln!(out, "   agent    {}", machine.agent)?;
        heading(
            out,
            "2. A person's mention",
            "The agent takes its turn; each command runs in a real shell.",
        )?;
        let mention = self.mention(&machine, out)?;
        loop {
            let told = machine.next()?;
            let update = &told["frame"]["payload"]["params"]["update"];
            narrate(update, out)?;
            if update["toolCallId"] == LAST_CALL {
                break;
            }
            if told["type"] == "metric" {
                return Err(machine.trouble(format!("the turn ended before it could be killed: {told}")));
            }
        }
        let [agent, harness] = machine.kill()?;
        let why = "Two answers are paid for, a command runs, nothing is published. No one can clean up.";
        let title = format!("3. SIGKILL to the agent ({agent}), and to harness and relay ({harness})");
        heading(out, &title, why)?;
        Ok(mention)
    }

    /// A person writes to the agent. Gives the message's id.
    fn mention(&self, machine: &Machine, out: &mut dyn Write) -> Result<String, Failure> {
        let arguments = ["messages", "send", "--channel", &machine.channel, "--content", MENTION];
        writeln!(out, "   $ waxlog {} {}", arguments[..5].join(" "), quoted(MENTION))?;
        out.flush()?;
        let mut send = self.site.waxlog()?;
        let sent = send.args(arguments).env("BUZZ_RELAY_URL", &machine.relay).output();
        let sent = sent.map_err(|error| Failure::io("cannot send the message", &error))?;
        let answer: Value = serde_json::from_slice(&sent.stdout).unwrap_or_default();
        answer["event_id"].as_str().map(str::to_owned).ok_or_else(|| {
            machine.trouble(format!("the message was not sent: {}", String::from_utf8_lossy(&sent.stderr)))
        })
    }

    /// Compares the turn's tokens with those of the answers that the model gave. Gives the session's id.
    fn count(&self, out: &mut dyn Write) -> Result<String, Failure> {
        let why =
            "Each answer was on disk before it was acted on, so what was paid for is known to the token.";
        heading(out, "4. The tokens of the killed turn", why)?;
        let turns = usage::turns_of(&self.log()?)?;
        usage::table(&turns).write(out)?;
        let [TurnUsage { session, stop, answered: PAID, input, output, .. }] = &turns[..] else {
            return Err(Failure::Check(format!("the log should hold one turn with {PAID} answers")));
        };
        let paid = self.paid()?;
        if stop != "interrupted" || (*input, *output) != (paid.input_tokens, paid.output_tokens) {
            return Err(Failure::Check(format!("the model was paid {paid:?}, the log says otherwise")));
        }
        Ok(session.clone())
    }

    /// What all answers cost that the model has given.
    fn paid(&self) -> Result<TokenCounts, Failure> {
        let mut sum = TokenCounts::default();
        for request in self.model.requests() {
            let answer = self.recording.answer(&request.body).map_err(Failure::Check)?;
            let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
            let count = |name: &str| answer["usage"][name].as_u64();
            add(&mut sum, count("prompt_tokens"), count("completion_tokens"));
        }
        Ok(sum)
    }

    /// Starts everything again, and waits for the answer and for the bill of both turns.
    fn answer(&self, mention: &str, out: &mut dyn Write) -> Result<Machine, Failure> {
        let why = "The mention was recorded before anything was done with it, so it is not forgotten.";
        heading(out, "5. waxlog up, once more", why)?;
        fs::remove_file(self.site.work.join(BUSY))
            .map_err(|error| Failure::io("cannot go on with the demo", &error))?;
        let machine = Machine::start(&self.site)?;
        let mut billed = TokenCounts::default();
        let (mut bills, mut is_answered) = (0, false);
        while bills < 2 || !is_answered {
            let told = machine.next()?;
            if told["type"] == "metric" {
                bills += 1;
                let count = |name: &str| told["metric"]["turn"][name].as_u64();
                add(&mut billed, count("inputTokens"), count("outputTokens"));
            }
            let event: Option<Event> = serde_json::from_value(told["event"].clone()).ok();
            if let Some(event) = event.filter(|event| answers(event, &machine, mention)) {
                is_answered = true;
                event.content.lines().try_for_each(|line| writeln!(out, "   > {line}"))?;
                out.flush()?;
            }
        }
        let (paid, all) = (self.paid()?, self.relay(&machine)?.query(&[messages(&machine)]));
        let given = all.map_err(Failure::Group)?;
        let given = given.iter().filter(|event| answers(event, &machine, mention)).count();
        match (given, billed == paid) {
            (1, true) => Ok(machine),
            _ => Err(machine.trouble(format!("{given} answers; {billed:?} billed for {paid:?}"))),
        }
    }

    /// Reads the bill as the person: from the relay, with the person's key.
    fn bill(&self, machine: &Machine, out: &mut dyn Write) -> Result<(), Failure> {
        let why = "One answer, two bills: events of kind 44200 that only the person's key opens.";
        heading(out, "6. What the person is told that it cost", why)?;
        let (person, relay) = (self.person()?, self.relay(machine)?);
        let mut sum = TokenCounts::default();
        let found = relay.query(&[turn_metric::filter(&person.public_key(), 0)]).map_err(Failure::Group)?;
        for event in found.iter().rev() {
            let bill = turn_metric::open(&person, event)
                .map_err(|error| machine.trouble(format!("event {}: {error}", event.id)))?;
            let turn = bill.turn.unwrap_or_default();
            add(&mut sum, turn.input_tokens, turn.output_tokens);
            let stop = bill.stop_reason.map_or("unknown", |reason| reason.as_str());
            writeln!(out, "   {stop:<9} {} in, {} out", known(turn.input_tokens), known(turn.output_tokens))?;
        }
        let paid = self.paid()?;
        if sum != paid {
            return Err(machine.trouble(format!("{sum:?} was billed, {paid:?} was paid")));
        }
        let (input, output) = (known(sum.input_tokens), known(sum.output_tokens));
        Ok(writeln!(out, "   together  {input} in, {output} out: all that the model was paid")?)
    }

    /// Compares the requests in the log with those that the model received.
    fn read_back(&self, session: &str, out: &mut dyn Write) -> Result<(), Failure> {
        heading(out, "7. What the model saw", "Each request is read back from the log and compared.")?;
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
        let why = "The turns are folded again: every request and line must come out as it was, to the byte.";
        heading(out, "8. Replay", why)?;
        let mut verdicts = Verdicts::new(out);
        replay_log(&self.log()?, &mut verdicts)?;
        verdicts.conclude()?;
        Ok(writeln!(out)?)
    }

    /// The agent's log.
    fn log(&self) -> Result<OpenLog, Failure> {
        Ok(OpenLog::open(&HomeOption::at(&self.site.home).log_or_only(None)?)?)
    }

    fn person(&self) -> Result<waxlog_nostr::Keys, Failure> {
        keys::kept(&self.site.home.join(keys::IDENTITY_FILE))
    }

    /// The relay, asked by the person.
    fn relay(&self, machine: &Machine) -> Result<Context, Failure> {
        Context::of(self.person()?, None, machine.relay.clone()).map_err(Failure::Group)
    }
}

fn messages(machine: &Machine) -> Filter {
    Filter::new().kinds([kind::MESSAGE]).tag('h', [machine.channel.as_str()])
}

/// Whether an event is the agent's answer to a message.
fn answers(event: &Event, machine: &Machine, mention: &str) -> bool {
    event.kind == kind::MESSAGE
        && event.pubkey.to_hex() == machine.agent
        && event.tag_values("e").any(|answered| answered == mention)
}

fn add(sum: &mut TokenCounts, input: Option<u64>, output: Option<u64>) {
    let plus = |a: Option<u64>, b: Option<u64>| Some(a.unwrap_or(0) + b?);
    sum.input_tokens = plus(sum.input_tokens, input);
    sum.output_tokens = plus(sum.output_tokens, output);
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
        Some("agent_message_chunk") => {
            writeln!(out, "   model    {}", brief(text(&update["content"]["text"])))?;
        }
        Some("tool_call") => writeln!(out, "   call     {}", brief(text(&update["rawInput"]["command"])))?,
        _ => return Ok(()),
    }
    Ok(out.flush()?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
