//! A model endpoint that answers each mention with one message, whatever it was asked before.
//!
//! What it answers follows from the request alone, so that it makes no difference which process asks, or how
//! often: events that the last prompt names are answered through the shell, a tool's result ends the turn.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};

/// How long it thinks before it ends a turn, so that kills find turns that run.
const THINKING: Duration = Duration::from_millis(300);

/// The endpoint. It serves until the test's process ends.
pub(crate) struct Model {
    pub(crate) url: String,
}

impl Model {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that is killed meanwhile is no matter of the endpoint.
                thread::spawn(move || serve(stream).ok());
            }
        });
        Self { url }
    }
}

fn serve(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let answer = answer(&serde_json::from_slice(&body)?).to_string();
        write!(
            writer,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        )?;
    }
}

fn answer(request: &Value) -> Value {
    let last = request["messages"].as_array().and_then(|messages| messages.last()).unwrap();
    if last["role"] == "tool" {
        thread::sleep(THINKING);
        return said(json!({"role": "assistant", "content": "done"}), "stop");
    }
    let text = last["content"].to_string();
    let events: Vec<&str> = after_each(&text, "Event ID: ", 64).collect();
    let channel = after_each(&text, "--channel ", 36).next().unwrap_or_default();
    let send = |event: &&str| {
        format!("buzz messages send --channel {channel} --reply-to {event} --content 'answer to {event}'")
    };
    let command = events.iter().map(send).collect::<Vec<_>>().join(" && ");
    let shell = request["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .find_map(|tool| tool["function"]["name"].as_str().filter(|name| name.ends_with("shell")));
    let call = json!({"id": "call_1", "type": "function", "function": {
        "name": shell.unwrap(), "arguments": json!({"command": command}).to_string()}});
    said(json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
}

fn said(message: Value, why: &str) -> Value {
    json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": why}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    })
}

/// What follows each occurrence of `mark`, so many bytes of it.
fn after_each<'a>(text: &'a str, mark: &'a str, bytes: usize) -> impl Iterator<Item = &'a str> + 'a {
    text.match_indices(mark).filter_map(move |(at, _)| text.get(at + mark.len()..at + mark.len() + bytes))
}
