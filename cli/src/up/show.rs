//! How what happens is shown: a line each, for people or as JSON.

use std::io::{self, Write};

use serde_json::{json, Value};
use waxlog_nostr::kind::{DELETE_MESSAGE, DELETION, EDIT, MESSAGE, MESSAGE_V2, REACTION};
use waxlog_nostr::observer::TelemetryFrame;
use waxlog_nostr::turn_metric::Payload;
use waxlog_nostr::{Event, PublicKey};

use super::room::Room;
use crate::readable::{brief, harmless, quoted};
use crate::table::rfc3339;

/// The time of day in an RFC 3339 time.
const TIME_OF_DAY: std::ops::Range<usize> = 11..19;
/// How many digits of a stranger's key are shown.
const KEY_DIGITS: usize = 8;

/// What is in an event.
pub(super) enum Seen<'a> {
    /// What anybody in the channel sees.
    Plain(&'a Event),
    /// What the agent does, shown to its owner.
    Frame(TelemetryFrame),
    /// What a turn cost.
    Metric(Payload),
}

/// Shows what happens in a room.
pub(super) struct Show {
    room: Room,
    /// What a command needs in its environment to be the person, and at this relay.
    variables: Vec<(&'static str, String)>,
    as_json: bool,
}

impl Show {
    pub(super) fn new(room: Room, variables: Vec<(&'static str, String)>, as_json: bool) -> Self {
        Self { room, variables, as_json }
    }

    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// Says who is there and how to talk to the agent.
    pub(super) fn announce(&self, out: &mut impl Write) -> io::Result<()> {
        let Room { relay, channel, channel_name, person, agent, agent_name } = &self.room;
        if self.as_json {
            let ready = json!({
                "type": "ready", "relay": relay, "channel": channel.to_string(),
                "channel_name": channel_name, "person": person.to_hex(),
                "agent": agent.to_hex(), "agent_name": agent_name,
            });
            return writeln!(out, "{ready}");
        }
        writeln!(out, "relay    {relay}")?;
        writeln!(out, "channel  #{channel_name}")?;
        writeln!(out, "you      {}", person.to_npub())?;
        writeln!(out, "agent    {}, {}", agent_name, agent.to_npub())?;
        writeln!(out, "\nTalk to it from another terminal:\n    {}\n", self.example())
    }

    /// A command that the agent answers.
    fn example(&self) -> String {
        let Room { channel, agent_name, .. } = &self.room;
        let hello = quoted(&format!("@{agent_name} hello"));
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={} ", quoted(value)));
        let variables: String = variables.collect();
        format!("{variables}waxlog messages send --channel {channel} --content {hello}")
    }

    /// Shows one thing; what people need not see has no line for them.
    pub(super) fn line(&self, event: &Event, seen: &Seen, out: &mut impl Write) -> io::Result<()> {
        if self.as_json {
            let object = match seen {
                Seen::Plain(event) => json!({"type": "event", "event": event}),
                Seen::Frame(frame) => json!({"type": "frame", "frame": frame}),
                Seen::Metric(payload) => json!({"type": "metric", "event_id": event.id, "metric": payload}),
            };
            return writeln!(out, "{object}");
        }
        let said = match seen {
            Seen::Plain(event) => self.plain(event),
            Seen::Frame(frame) => observed(frame),
            Seen::Metric(payload) => Some(cost(payload)),
        };
        let Some(said) = said else { return Ok(()) };
        let time = match seen {
            // Frames go out one by one, and so later than what they tell of.
            Seen::Frame(frame) => frame.timestamp.clone(),
            _ => rfc3339(event.created_at.saturating_mul(1_000)),
        };
        let time = time.get(TIME_OF_DAY).unwrap_or_default();
        writeln!(out, "{time}  {}  {}", self.who(&event.pubkey), harmless(&said))
    }

    /// The agent's own reactions show what its frames tell in words.
    fn plain(&self, event: &Event) -> Option<String> {
        let content = &event.content;
        match event.kind {
            MESSAGE | MESSAGE_V2 => Some(format!("> {content}")),
            EDIT => Some(format!("changed a message to > {content}")),
            REACTION | DELETION if event.pubkey == self.room.agent => None,
            REACTION => Some(format!("reacted {content}")),
            DELETION | DELETE_MESSAGE => Some("took something back".to_owned()),
            _ => None,
        }
    }

    fn who(&self, key: &PublicKey) -> String {
        if *key == self.room.person {
            return "you".to_owned();
        }
        if *key == self.room.agent {
            return harmless(&self.room.agent_name);
        }
        key.to_hex().chars().take(KEY_DIGITS).collect()
    }
}

fn observed(frame: &TelemetryFrame) -> Option<String> {
    match frame.kind.as_str() {
        "turn_started" => Some("begins a turn".to_owned()),
        "turn_error" => Some(format!("the turn failed: {}", brief(text(&frame.payload["error"])))),
        "agent_panic" => Some(format!("the agent ended: {}", brief(text(&frame.payload["error"])))),
        "acp_read" => update(&frame.payload["params"]["update"]),
        _ => None,
    }
}

/// What the agent reports of a turn while it runs.
fn update(update: &Value) -> Option<String> {
    match update["sessionUpdate"].as_str()? {
        "tool_call" => {
            let input = &update["rawInput"];
            let input = input["command"].as_str().map_or_else(|| input.to_string(), str::to_owned);
            Some(format!("calls {}: {}", text(&update["title"]), brief(&input)))
        }
        "tool_call_update" if update["status"] == "failed" => Some("the call failed".to_owned()),
        "agent_message_chunk" => Some(format!("thinks: {}", brief(text(&update["content"]["text"])))),
        _ => None,
    }
}

fn cost(payload: &Payload) -> String {
    let end = payload.stop_reason.map_or("unknown", |reason| reason.as_str());
    let Some(turn) = &payload.turn else { return format!("ended a turn ({end}) of unknown cost") };
    let count = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    let (input, output) = (count(turn.input_tokens), count(turn.output_tokens));
    format!("ended a turn ({end}) that took {input} tokens in and {output} out")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::channel::ChannelId;
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    fn room(person: &Keys, agent: &Keys) -> Room {
        Room {
            relay: "http://127.0.0.1:4000".to_owned(),
            channel: ChannelId::from_bytes([7; 16]),
            channel_name: "general".to_owned(),
            person: person.public_key(),
            agent: agent.public_key(),
            agent_name: "O'Neill".to_owned(),
        }
    }

    fn shown(show: &Show, event: &Event, seen: &Seen) -> String {
        let mut out = Vec::new();
        show.line(event, seen, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_example_is_what_a_shell_takes() {
        let (person, agent) = (Keys::generate(), Keys::generate());
        let variables = vec![("BUZZ_RELAY_URL", "http://127.0.0.1:4000".to_owned())];
        let example = Show::new(room(&person, &agent), variables, false).example();
        let start = "BUZZ_RELAY_URL='http://127.0.0.1:4000' waxlog messages send --channel 07070707-";
        assert!(example.starts_with(start), "{example}");
        assert!(example.ends_with(r"--content '@O'\''Neill hello'"), "{example}");
    }

    #[test]
    fn what_is_written_cannot_steer_the_terminal() {
        let (person, agent) = (Keys::generate(), Keys::generate());
        let show = Show::new(room(&person, &agent), Vec::new(), false);
        let event = Keys::generate().sign(Draft::new(MESSAGE, "one\x1b[2J\ntwo\r", 0));
        let line = shown(&show, &event, &Seen::Plain(&event));
        assert!(line.ends_with("> one\u{fffd}[2J\n    two\u{fffd}\n"), "{line:?}");
        for silent in [agent.sign(Draft::new(20_002, "", 0)), agent.sign(Draft::new(REACTION, "+", 0))] {
            assert_eq!(shown(&show, &silent, &Seen::Plain(&silent)), "");
        }
    }

    #[test]
    fn a_call_is_shown_with_its_command() {
        let (person, agent) = (Keys::generate(), Keys::generate());
        let show = Show::new(room(&person, &agent), Vec::new(), false);
        let event = agent.sign(Draft::new(24_200, "", 0));
        let payload = json!({"params": {"update": {"sessionUpdate": "tool_call", "title": "shell",
            "rawInput": {"command": "ls\n-l"}}}});
        let frame = TelemetryFrame::new(1, "t", "acp_read", payload);
        let line = shown(&show, &event, &Seen::Frame(frame));
        assert!(line.ends_with("O'Neill  calls shell: ls -l\n"), "{line}");
    }

    #[test]
    fn an_unknown_cost_is_not_shown_as_none() {
        let mut payload = Payload::new("x", "t");
        assert!(cost(&payload).contains("unknown cost"));
        payload.turn =
            Some(waxlog_nostr::turn_metric::TokenCounts { input_tokens: Some(0), ..Default::default() });
        assert!(cost(&payload).contains("0 tokens in and ? out"), "{}", cost(&payload));
    }
}
