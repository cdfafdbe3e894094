//! Recorded answers of a model that serve any number of turns.
//!
//! Which answer a request gets follows from the request alone: it is the one whose number is the count of
//! answers that the turn has already, so it makes no difference which process asks, how often, or after which
//! kill. What a recording cannot know stands in it as a placeholder, and is taken from the turn's prompt.

use serde_json::Value;

/// Stands for the channel of the prompt, a UUID.
pub const CHANNEL: &str = "{{channel}}";
/// Stands for the newest event that the prompt names, in hex.
pub const EVENT: &str = "{{event}}";

const CHANNEL_MARK: &str = "--channel ";
const EVENT_MARK: &str = "Event ID: ";
const EVENT_HEX: usize = 64;
/// The digits of a UUID's parts.
const UUID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// The answers of one turn, in order.
#[derive(Clone, Debug)]
pub struct Recording {
    answers: Vec<String>,
}

/// Why a text is no recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotARecording {
    /// The line, counted from 1; nothing where the text has none.
    pub line: Option<usize>,
    /// What is wrong with it.
    pub reason: String,
}

impl std::fmt::Display for NotARecording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line} is no answer of a model: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for NotARecording {}

impl Recording {
    /// Reads a recording: each line is the body of a chat completion (OpenAI's form).
    pub fn parse(text: &str) -> Result<Self, NotARecording> {
        let mut answers = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |reason: String| NotARecording { line: Some(number), reason };
            let answer: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            if !answer["choices"][0]["message"].is_object() {
                return Err(wrong("a chat completion has choices[0].message".to_owned()));
            }
            answers.push(line.to_owned());
        }
        match answers.is_empty() {
            true => Err(NotARecording { line: None, reason: "there is no answer in it".to_owned() }),
            false => Ok(Self { answers }),
        }
    }

    /// The answers as they were recorded.
    pub fn answers(&self) -> &[String] {
        &self.answers
    }

    /// The answer to a request's body, or why there is none. A turn that goes on after the last answer gets
    /// that one again.
    pub fn answer(&self, request: &[u8]) -> Result<String, String> {
        let request: Value =
            serde_json::from_slice(request).map_err(|error| format!("the request is not JSON: {error}"))?;
        let messages = request["messages"].as_array().ok_or("the request is no chat completion's")?;
        let prompt = messages.iter().rposition(|message| message["role"] == "user");
        let prompt = prompt.ok_or("the request has no prompt")?;
        let given = messages[prompt..].iter().filter(|message| message["role"] == "assistant").count();
        let answer = &self.answers[given.min(self.answers.len() - 1)];
        fill(answer, &messages[prompt]["content"].to_string())
    }
}

fn fill(answer: &str, prompt: &str) -> Result<String, String> {
    let mut filled = answer.to_owned();
    for (placeholder, found) in [(CHANNEL, channel(prompt)), (EVENT, event(prompt))] {
        if filled.contains(placeholder) {
            let found = found.ok_or_else(|| format!("the prompt has nothing to put for {placeholder}"))?;
            filled = filled.replace(placeholder, found);
        }
    }
    Ok(filled)
}

fn channel(prompt: &str) -> Option<&str> {
    let length = UUID_PARTS.iter().sum::<usize>() + UUID_PARTS.len() - 1;
    after_each(prompt, CHANNEL_MARK, length).find(|text| {
        let parts: Vec<&str> = text.split('-').collect();
        parts.iter().map(|part| part.len()).eq(UUID_PARTS) && parts.iter().all(|part| is_hex(part))
    })
}

fn event(prompt: &str) -> Option<&str> {
    after_each(prompt, EVENT_MARK, EVENT_HEX).filter(|text| is_hex(text)).last()
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What follows each occurrence of `mark`, so many bytes of it.
fn after_each<'a>(text: &'a str, mark: &'a str, bytes: usize) -> impl Iterator<Item = &'a str> + 'a {
    text.match_indices(mark).filter_map(move |(at, _)| text.get(at + mark.len()..at + mark.len() + bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UUID: &str = "5f0c2f52-0d3c-4d9a-9d2a-6f1d6b1f2a3b";

    fn recording() -> Recording {
        let answer = |text: &str| {
            json!({"choices": [{"message": {"role": "assistant", "content": text}}]}).to_string()
        };
        let lines = [answer("first"), String::new(), answer("to {{event}} in {{channel}}")];
        Recording::parse(&lines.join("\n")).expect("a recording")
    }

    fn prompt(event: char) -> Value {
        let event = event.to_string().repeat(EVENT_HEX);
        json!({"role": "user", "content": [{"type": "text", "text": format!(
            "Event ID: {event}\nuse --channel ... or --channel {UUID}")}]})
    }

    fn ask(messages: &[Value]) -> Result<String, String> {
        recording().answer(json!({"messages": messages}).to_string().as_bytes())
    }

    #[test]
    fn the_answer_is_the_one_that_the_turn_lacks() {
        let said = json!({"role": "assistant", "content": "x"});
        let system = json!({"role": "system", "content": "y"});
        let first = ask(&[system.clone(), prompt('a')]).expect("an answer");
        assert!(first.contains("first"), "{first}");
        let wanted = format!("to {} in {UUID}", "b".repeat(EVENT_HEX));
        let earlier = [prompt('a'), said.clone(), said.clone(), prompt('b'), said.clone()];
        assert!(ask(&earlier).expect("an answer").contains(&wanted));
        let beyond = [prompt('b'), said.clone(), said.clone(), said];
        assert!(ask(&beyond).expect("an answer").contains(&wanted));
    }

    #[test]
    fn what_the_prompt_does_not_name_is_not_made_up() {
        let said = json!({"role": "assistant", "content": "x"});
        let bare = json!({"role": "user", "content": "Event ID: none, --channel ..."});
        let error = ask(&[bare, said]).expect_err("nothing to put");
        assert!(error.contains(CHANNEL), "{error}");
        assert!(ask(&[]).is_err());
        assert!(recording().answer(b"{").is_err());
    }

    #[test]
    fn a_text_that_is_no_recording_is_refused_with_the_line() {
        let line = |text: &str| Recording::parse(text).expect_err("refused").line;
        assert_eq!(line("\n{\"choices\":[]}"), Some(2));
        assert_eq!(line("{"), Some(1));
        assert_eq!(line("\n \n"), None);
    }
}
