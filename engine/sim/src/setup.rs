//! What a run starts from: the session's settings, its servers, and how much goes wrong.

use serde_json::{json, Value};
use waxlog_core::dialect::Dialect;
use waxlog_core::mcp::{Catalogue, ToolSpec};
use waxlog_core::record::{Head, Record, RecordError, RECORD_VERSION};

use crate::dice::Dice;

/// The session's id; a run has one session.
pub const SESSION: &str = "ses_00000000000000a1";
/// The id of the request that opened it.
pub const OPENED_BY: u64 = 1;

/// The providers, with models that take each of their ways.
const PROVIDERS: [(&str, &[&str]); 5] = [
    ("anthropic", &["claude-opus-4-7", "claude-sonnet-4-5"]),
    ("openai", &["gpt-5.5", "local-model"]),
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
    pub kills: u32,
    /// Whether one write of the log fails.
    pub log_fails: bool,
}

/// The start of a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The session's first record.
    pub opened: Record,
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
}

impl Setup {
    /// What `dice` make of a run.
    pub fn draw(dice: &mut Dice) -> Result<Setup, RecordError> {
        let (provider, models) = dice.pick(&PROVIDERS);
        let catalogue = catalogue(dice.size(0..SERVERS.len() + 1));
        let head = json!({
            "id": OPENED_BY.to_string(), "session": SESSION, "profile": dice.pick(&["harness", "standard"]),
            "cwd": "/work", "servers": [], "catalogue": catalogue, "upgraded": false, "models": models,
            "settings": settings(dice, provider, models[0]), "prompt_source": "built-in",
            "hook_servers": (0..catalogue.servers.len()).filter(|_| dice.chance(600)).collect::<Vec<_>>(),
        });
        let head = head.to_string();
        let opened =
            Record::decode("session_opened", RECORD_VERSION, head.as_bytes(), b"You are tested.".to_vec())?;
        let faults = Faults {
            model_permille: dice.pick(&[0, 50, 300]),
            tool_permille: dice.pick(&[0, 100, 500]),
            repeat_permille: dice.pick(&[0, 0, 100]),
            kills: dice.pick(&[0, 0, 1, 1, 2, 4]),
            log_fails: dice.chance(100),
        };
        let moves = u32::try_from(dice.within(2..20)).unwrap_or(2);
        Ok(Setup { opened, provider, models, catalogue, faults, moves })
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

    /// Whether the session says that an endpoint may move it to the other wire.
    pub fn may_upgrade(&self) -> bool {
        match &self.opened.head {
            Head::SessionOpened(opened) => opened.settings.provider.spec().has_api_modes,
            _ => false,
        }
    }
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
    let (window, output) = dice.pick(&[(200_000, 32_768), (200_000, 32_768), (12_000, 2_000), (3_000, 500), (300, 20)]);
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
        "effort": dice.pick(&[None, None, Some("low"), Some("high"), Some("max")]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_gives_a_session_that_opens() {
        for seed in 0..200 {
            let setup = Setup::draw(&mut Dice::new(seed)).expect("a first record");
            assert!(waxlog_core::session::Session::open(&setup.opened).is_some(), "seed {seed}");
        }
    }
}
