//! What a run starts from: the session's settings, its servers, and how much goes wrong.

use serde_json::{json, Value};
use waxlog_core::acp::frame::Id;
use waxlog_core::dialect::Dialect;
use waxlog_core::mcp::{Catalogue, ToolSpec};
use waxlog_core::record::{Record, RecordError, RECORD_VERSION};

use crate::dice::Dice;

/// The session's id; a run has one session.
pub const SESSION: &str = "ses_00000000000000a1";

/// The providers, with models that take each of their ways.
const PROVIDERS: [(&str, &[&str]); 5] = [
    ("anthropic", &["claude-opus-4-7", "claude-sonnet-4-5"]),
    ("openai", &["gpt-5.5", "local-model", "auto"]),
    ("openrouter", &["anthropic/claude-sonnet-4.5", "openai/gpt-5"]),
    ("databricks", &["goose-claude-4-6-sonnet", "llama"]),
    ("databricks_v2", &["databricks-gpt-5-5", "databricks-claude-opus-4-7", "gemini"]),
];

/// The servers that a session may have, with their tools.
const SERVERS: [(&str, &[&str]); 3] = [
    ("dev", &["shell", "read", "_Stop", "_PostCompact"]),
    ("web", &["fetch", "shot"]),
    ("db", &["query", "_Stop"]),
];

/// How much goes wrong, in thousandths of the occasions.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Attempts at the model's endpoint that fail.
    pub model_permille: u32,
    /// Calls that fail in some way.
    pub tool_permille: u32,
    /// Inputs that come twice.
    pub repeat_permille: u32,
    /// Kills in the whole run.
    pub kills: u64,
    /// The process, counted by the kills before it, whose log fails.
    pub fails_after_kills: u64,
}

/// The start of a run, and of each time that its session comes back.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The provider's word.
    pub provider: &'static str,
    /// The models that the client may choose.
    pub models: &'static [&'static str],
    /// The tools.
    pub catalogue: Catalogue,
    /// What goes wrong.
    pub faults: Faults,
    /// How many things the client does.
    pub moves: u32,
    /// What else the session's first record says.
    opened: Value,
}

impl Setup {
    /// What `dice` make of a run.
    pub fn draw(dice: &mut Dice) -> Setup {
        let (provider, models) = dice.pick(&PROVIDERS);
        let catalogue = catalogue(dice.size(0..SERVERS.len() + 1));
        let skill = json!({"name": "bees", "description": "of bees", "folder": "/skills/bees", "files": []});
        let opened = json!({
            "session": SESSION, "profile": dice.pick(&["harness", "standard"]), "cwd": "/project", "servers": [],
            "catalogue": catalogue, "upgraded": false, "models": models,
            "settings": settings(dice, provider, models[0]), "prompt_source": "built-in", "sources": [],
            "skills": if dice.chance(300) { json!([skill]) } else { json!([]) },
            "hook_servers": (0..catalogue.servers.len()).filter(|_| dice.chance(600)).collect::<Vec<_>>(),
        });
        let faults = Faults {
            model_permille: dice.pick(&[0, 50, 300]),
            tool_permille: dice.pick(&[0, 100, 500]),
            repeat_permille: dice.pick(&[0, 0, 100]),
            kills: dice.pick(&[0, 0, 1, 1, 2, 4]),
            fails_after_kills: dice.pick(&[0, 1, 9, 9, 9, 9]),
        };
        let moves = u32::try_from(dice.within(3..60)).unwrap_or(3);
        Setup { provider, models, catalogue, faults, moves, opened }
    }

    /// The session comes back under other settings and with other servers, as often as not.
    pub fn redraw(&mut self, dice: &mut Dice) {
        if dice.chance(500) {
            let Setup { faults, moves, .. } = *self;
            *self = Setup { faults, moves, ..Setup::draw(dice) };
        }
    }

    /// The first record of the session that request `id` asks for.
    pub fn first_record(&self, id: &Id) -> Result<Record, RecordError> {
        Record::decode(
            "session_opened",
            RECORD_VERSION,
            &json_bytes(&self.head(id)),
            b"You are tested.".to_vec(),
        )
    }

    /// The record of its coming back.
    pub fn resumed_record(&self, id: &Id, tells_history: bool) -> Result<Record, RecordError> {
        let head = json!({"opened": self.head(id), "tells_history": tells_history});
        Record::decode("session_resumed", RECORD_VERSION, &json_bytes(&head), Vec::new())
    }

    fn head(&self, id: &Id) -> Value {
        let mut head = self.opened.clone();
        head["id"] = json!(id.as_json());
        head
    }

    /// The wire that is spoken on `path`.
    pub fn dialect(&self, path: &str) -> Dialect {
        match path {
            _ if path.ends_with("/responses") => Dialect::Responses,
            _ if path.ends_with("/messages") => Dialect::Anthropic,
            _ if self.provider == "openrouter" => Dialect::Openrouter,
            _ => Dialect::Chat,
        }
    }

    /// Whether an endpoint of this provider may ask for the other wire.
    pub fn may_upgrade(&self) -> bool {
        self.provider == "openai"
    }
}

fn json_bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn catalogue(servers: usize) -> Catalogue {
    let mut catalogue = Catalogue::default();
    for (name, tools) in &SERVERS[..servers] {
        let spec = |tool: &&str| ToolSpec {
            name: (*tool).to_owned(),
            description: format!("does {tool}"),
            input_schema: json!({"type": "object"}),
        };
        // The names above are legal, and a server that is left out would only make the run smaller.
        drop(catalogue.add(name, tools.iter().map(spec).collect()));
    }
    catalogue
}

/// Settings in the form of a first record, small limits among them.
fn settings(dice: &mut Dice, provider: &str, model: &str) -> Value {
    let (window, output) =
        dice.pick(&[(200_000, 32_768), (200_000, 32_768), (12_000, 2_000), (3_000, 500), (300, 20)]);
    json!({
        "provider": provider,
        "api": dice.pick(&["auto", "chat", "responses"]),
        "base_url": dice.pick(&["http://127.0.0.1:9/v1", "https://api.openai.com/v1"]),
        "model": model,
        "max_output_tokens": output,
        "max_context_tokens": window,
        "max_rounds": dice.pick(&[0, 0, 0, 1, 2, 6]),
        "max_handoffs": dice.pick(&[0, 1, 3, 10]),
        "stop_max_rejections": dice.within(0..4),
        "require_reply": dice.chance(300),
        "max_history_bytes": dice.pick(&[16 << 20, 16 << 20, 20_000, 2_000, 300]),
        "max_parallel_tools": dice.within(1..9),
        "max_tool_result_text_bytes": dice.pick(&[51_200, 1_024]),
        "prompt_caching": dice.chance(500),
        "prefer_mesh_for_auto": dice.chance(500),
        "ask_permission": dice.chance(200),
        "effort": dice.pick(&[None, None, Some("low"), Some("high"), Some("max")]),
    })
}

#[cfg(test)]
mod tests {
    use waxlog_core::session::Session;

    use super::*;

    #[test]
    fn every_seed_gives_a_session_that_opens() {
        for seed in 0..200 {
            let setup = Setup::draw(&mut Dice::new(seed));
            let mut session =
                setup.first_record(&Id::null()).map(|first| Session::open(&first)).expect("a record");
            let resumed = setup.resumed_record(&Id::null(), true).expect("a record");
            session.as_mut().expect("a session").fold(&resumed);
        }
    }
}
