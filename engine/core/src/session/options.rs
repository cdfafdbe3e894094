//! Sessions that end and come back, and what a client may choose for one.

use serde_json::{json, Value};

use crate::acp::frame::Id;
use crate::acp::lines::{self, Line};
use crate::content::{text_form, Part};
use crate::effort::Effort;
use crate::history::{Item, ToolResult};
use crate::record::{SessionOpened, SessionOption};

use super::state::{Closing, ServerState, Session};
use super::{Effect, REFLECTION};

impl Session {
    /// The session goes on with new servers and settings. Its prompt and what was said stay as they were.
    pub(super) fn resumed(&mut self, opened: &SessionOpened, tells_history: bool) {
        self.upgraded |= opened.upgraded;
        self.servers = ServerState::all(&opened.catalogue);
        self.permissions.clear();
        self.opened = SessionOpened { session: self.opened.session.clone(), ..opened.clone() };
        let route = self.opened.settings.route(&self.model(), self.upgraded);
        self.encode_for(&route);
        self.encode_tools();
        if tells_history {
            for line in self.history_lines() {
                self.say(line);
            }
        }
        let mut answer = self.opened_answer();
        if let Some(answer) = answer.as_object_mut() {
            answer.remove("sessionId");
        }
        self.say(lines::result(&opened.id, &answer));
    }

    /// The history as a client is told it: what the model still knows.
    fn history_lines(&self) -> Vec<Line> {
        let items = self.history.items();
        let mut told = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match item {
                Item::User(text) => told.push(lines::user_message(self.id(), text)),
                Item::UserParts(parts) => told.push(lines::user_message(self.id(), &text_form(parts))),
                Item::Assistant(assistant) => {
                    if !assistant.text.is_empty() {
                        told.push(lines::message(self.id(), &assistant.text));
                    }
                    for call in &assistant.calls {
                        let result = result_of(&items[index + 1..], &call.id);
                        let text = result.map(plain_text).unwrap_or_default();
                        let is_error = result.is_some_and(|r| r.is_error);
                        told.push(lines::call_told(self.id(), call, &text, is_error));
                    }
                }
                Item::ToolResult(_) => {}
            }
        }
        told
    }

    /// The session is to end; a turn under way ends first.
    pub(super) fn ends(&mut self, closing: Closing) {
        self.closing = Some(closing);
        self.cancelled();
    }

    /// The session has ended, as request `id` wanted.
    pub(super) fn closed_for(&mut self, id: Option<&Id>) {
        self.closing = None;
        if let Some(id) = id {
            self.say(lines::result(id, &json!({})));
        }
        self.outbox.push(Effect::Close);
    }

    pub(super) fn model_selected(&mut self, id: &Id, model: &str) {
        self.model_override = Some(model.to_owned());
        self.say(lines::result(id, &json!({"sessionId": self.id(), "modelId": model})));
    }

    pub(super) fn option_selected(&mut self, id: &Id, option: SessionOption, value: &str) {
        match option {
            SessionOption::Model => self.model_override = Some(value.to_owned()),
            SessionOption::ThoughtLevel => {
                self.opened.settings.effort = Effort::ALL.into_iter().find(|e| e.as_str() == value);
            }
        }
        self.say(lines::result(id, &json!({"configOptions": self.options()})));
    }

    /// The efforts that may be chosen.
    pub(super) fn efforts(&self) -> impl Iterator<Item = Effort> {
        let least = self.opened.settings.provider.spec().least_effort;
        Effort::ALL.into_iter().filter(move |effort| *effort >= least)
    }

    /// The options of the session, complete.
    fn options(&self) -> Value {
        let current = self.model();
        let mut models: Vec<&str> = self.opened.models.iter().map(String::as_str).collect();
        if !models.contains(&current.as_str()) {
            models.push(&current);
        }
        let choice = |word: &str| json!({"value": word, "name": word});
        let models: Vec<Value> = models.into_iter().map(choice).collect();
        let mut options = vec![json!({
            "id": SessionOption::Model.as_str(), "name": "Model", "category": "model", "type": "select",
            "currentValue": current, "options": models,
        })];
        if let Some(effort) = self.opened.settings.effort {
            let efforts: Vec<Value> = self.efforts().map(|e| choice(e.as_str())).collect();
            options.push(json!({
                "id": SessionOption::ThoughtLevel.as_str(), "name": "Thinking effort",
                "category": "thought_level", "type": "select", "currentValue": effort.as_str(),
                "options": efforts,
            }));
        }
        Value::Array(options)
    }

    /// The answer to the request that opened the session.
    pub(super) fn opened_answer(&self) -> Value {
        let available: Vec<Value> =
            self.opened.models.iter().map(|m| json!({"modelId": m, "name": m})).collect();
        json!({
            "sessionId": self.opened.session,
            "models": {"currentModelId": self.opened.settings.model, "availableModels": available},
            "configOptions": self.options(),
        })
    }
}

fn result_of<'a>(items: &'a [Item], id: &str) -> Option<&'a ToolResult> {
    items
        .iter()
        .map_while(|item| match item {
            Item::ToolResult(result) => Some(result),
            Item::User(_) | Item::UserParts(_) | Item::Assistant(_) => None,
        })
        .find(|result| result.id == id)
}

/// A result's text as the client knew it: the reflection line was never told.
fn plain_text(result: &ToolResult) -> String {
    let parts = match result.parts.split_last() {
        Some((Part::Text(last), rest)) if result.is_error && last == REFLECTION => rest,
        _ => &result.parts,
    };
    text_form(parts)
}
