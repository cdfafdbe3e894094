//! A relay that answers from a list, and what was asked of it.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{json, Value};
use waxlog_nostr::{Draft, Event, Keys};
use waxlog_scripted::model_server::{Answer, ModelServer};

use crate::stage::{Done, Person};

/// Somebody and a scripted relay, whose last answer stands for all that follow. All of it goes with the value.
pub(crate) struct Stage {
    pub(crate) server: ModelServer,
    pub(crate) keys: Keys,
    person: Person,
}

/// What can be asked of a command that may also talk on stderr.
pub(crate) trait Outcome {
    /// What was printed, of a command that succeeded.
    fn json(&self) -> Value;
    /// The exit code and the category of a command that failed, which has printed nothing.
    fn failure(&self) -> (i32, String);
}

impl Outcome for Done {
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    fn failure(&self) -> (i32, String) {
        assert_eq!(self.out, "", "{self:?}");
        let line: Value = serde_json::from_str(&self.err).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        (self.code, line["error"].as_str().expect("a category").to_owned())
    }
}

/// The exit code and category of a slip of the caller.
pub(crate) fn usage() -> (i32, String) {
    (1, "user_error".into())
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

    /// A stage for somebody who is known beforehand.
    pub(crate) fn of(keys: Keys, answers: Vec<Answer>) -> Stage {
        let server = ModelServer::start(answers).expect("a port");
        let mut person = Person::at(&server.url());
        person.keys = keys.clone();
        Stage { server, keys, person }
    }

    /// The same for an agent that has its owner's word.
    pub(crate) fn with_owner(self, owner: Keys) -> Stage {
        let mut person = Person::at(&self.server.url());
        person.keys = owner;
        Stage { person: self.person.owned_by(&person), ..self }
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.person.path(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        self.person.run(arguments)
    }

    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &str) -> Done {
        self.person.run_with(stdin, arguments)
    }

    /// The events that were sent, in order.
    pub(crate) fn sent(&self) -> Vec<Event> {
        let requests = self.server.requests();
        let writes = requests.iter().filter(|request| request.path == "/events");
        writes.map(|request| serde_json::from_slice(&request.body).expect("an event")).collect()
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
        reads.map(|request| serde_json::from_slice(&request.body).expect("filters")).collect()
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
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}
