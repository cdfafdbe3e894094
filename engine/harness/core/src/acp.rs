//! The client's side of ACP: lines to an agent, and what its lines say.

use serde_json::{json, Map, Value};
use waxlog_nostr::PublicKey;

use crate::settings::{McpServer, Settings};

/// The longest line that is taken from an agent, in bytes.
pub const LINE_MAX_BYTES: usize = 10_000_000;
/// The protocol version that is asked for.
pub const PROTOCOL_VERSION: u64 = 2;
/// What a line that holds it has in place of the secret key; the driver puts the key in when it writes.
pub const SECRET_PLACEHOLDER: &str = "${BUZZ_PRIVATE_KEY}";
const CLIENT_NAME: &str = "buzz-acp";

/// What a line of an agent is.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// An answer to a request of ours.
    Response {
        /// The request.
        id: u64,
        /// What came of it.
        result: Result<Value, AgentError>,
    },
    /// A request to us.
    Request {
        /// Its id, of any type.
        id: Value,
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
    },
    /// A notification.
    Notification {
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
    },
    /// A line without anything in it.
    Blank,
    /// Valid JSON that is none of these.
    Odd,
    /// Not JSON.
    Invalid {
        /// What the parser says.
        reason: String,
    },
}

/// An error that an agent answered with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    /// The code; -32000 if there was none.
    pub code: i64,
    /// The message; the whole error as JSON if there was none.
    pub message: String,
}

impl AgentError {
    fn read(error: &Value) -> Self {
        let message = match error["message"].as_str() {
            Some(message) => message.to_owned(),
            None => error.to_string(),
        };
        Self { code: error["code"].as_i64().unwrap_or(-32000), message }
    }

    /// Whether it says that the agent must be logged in again.
    pub fn is_login(&self) -> bool {
        self.message.contains("Re-authenticate") || self.message.contains("API Error: 401")
    }
}

/// Reads one line.
pub fn read(line: &[u8]) -> Said {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Said::Blank;
    }
    let mut message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => return Said::Invalid { reason: error.to_string() },
    };
    let (id, params) = (message["id"].take(), message["params"].take());
    match (message["method"].as_str(), id) {
        (Some(method), Value::Null) => Said::Notification { method: method.to_owned(), params },
        (Some(method), id) => Said::Request { id, method: method.to_owned(), params },
        (None, id) => match id.as_u64() {
            Some(id) => Said::Response { id, result: outcome(message) },
            None => Said::Odd,
        },
    }
}

fn outcome(mut message: Value) -> Result<Value, AgentError> {
    match &message["error"] {
        Value::Null => Ok(message["result"].take()),
        error => Err(AgentError::read(error)),
    }
}

/// A request.
pub fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// A notification.
pub fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// The answer to a request of the agent.
pub fn answer(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// The answer to a request for a method that there is not.
pub fn method_not_found(id: &Value, method: &str) -> String {
    let error = json!({"code": -32601, "message": format!("Method not found: {method}")});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

/// The parameters of `initialize`.
pub fn initialize(version: &str) -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "clientInfo": {"name": CLIENT_NAME, "version": version},
        "clientCapabilities": {
            "auth": {"terminal": true},
            "_meta": {"goose": {"customNotifications": true}, "terminal-auth": true},
        },
    })
}

/// The parameters of `session/new`.
pub fn session_new(settings: &Settings, system_prompt: Option<&str>, title: Option<&str>) -> Value {
    let servers: Vec<Value> = settings.mcp.iter().map(|server| mcp_server(settings, server)).collect();
    let mut params = Map::new();
    params.insert("cwd".into(), json!(settings.cwd));
    params.insert("mcpServers".into(), servers.into());
    if let Some(text) = system_prompt {
        params.insert("systemPrompt".into(), json!(text));
    }
    if let Some(title) = title {
        params.insert("_meta".into(), json!({"sessionTitle": title}));
    }
    params.into()
}

/// The parameters of `session/load`: those of a new session, for one that the agent has kept.
pub fn session_load(settings: &Settings, session: &str) -> Value {
    let servers: Vec<Value> = settings.mcp.iter().map(|server| mcp_server(settings, server)).collect();
    json!({"sessionId": session, "cwd": settings.cwd, "mcpServers": servers})
}

fn mcp_server(settings: &Settings, server: &McpServer) -> Value {
    let mut env = vec![
        json!({"name": "BUZZ_RELAY_URL", "value": server.relay_url}),
        json!({"name": "BUZZ_PRIVATE_KEY", "value": SECRET_PLACEHOLDER}),
    ];
    let optional = [("BUZZ_AUTH_TAG", &server.auth_tag), ("BUZZ_ACP_DISPLAY_NAME", &settings.display_name)];
    for (name, value) in optional {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            env.push(json!({"name": name, "value": value}));
        }
    }
    json!({"name": server.name, "command": server.command, "args": server.args, "env": env})
}

/// The parameters of a prompt or steer: a text block each.
pub fn prompt(session: &str, blocks: &[String]) -> Value {
    json!({"sessionId": session, "prompt": text_blocks(blocks)})
}

fn text_blocks(blocks: &[String]) -> Value {
    blocks.iter().map(|text| json!({"type": "text", "text": text})).collect()
}

/// How an agent takes a message into a running turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SteerPath {
    /// By the run it has named.
    Run(String),
    /// By the capability it has advertised.
    Capability,
}

impl SteerPath {
    /// The method and the parameters of a steer.
    pub fn request(&self, session: &str, text: &str) -> (&'static str, Value) {
        let prompt = text_blocks(&[text.to_owned()]);
        match self {
            Self::Run(run) => (
                "_goose/unstable/session/steer",
                json!({"sessionId": session, "expectedRunId": run, "prompt": prompt}),
            ),
            Self::Capability => ("_session/steering", json!({"sessionId": session, "prompt": prompt})),
        }
    }
}

/// The stop reason of a prompt's answer, in lower case; `None` if it is none of the protocol.
pub fn stop_reason(result: &Value) -> Option<&'static str> {
    let named = result["stopReason"].as_str()?.to_lowercase();
    ["end_turn", "cancelled", "max_tokens", "max_turn_requests", "refusal"]
        .into_iter()
        .find(|known| *known == named)
}

/// The answer to a request for permission: what may be done once, else what may be refused once.
pub fn permission(params: &Value) -> Option<Value> {
    let options = params["options"].as_array()?;
    let of_kind = |kind| options.iter().find(|option| option["kind"] == kind);
    let option = of_kind("allow_once").or_else(|| of_kind("reject_once"))?;
    let id = option["optionId"].as_str()?;
    Some(json!({"outcome": {"outcome": "selected", "optionId": id}}))
}

/// The answer to a request for permission when the turn is cancelled.
pub fn permission_cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

/// The name of an agent: what its `initialize` says, in lower case.
pub fn agent_name(initialized: &Value) -> String {
    let named = |key: &str| initialized[key]["name"].as_str().map(str::trim).filter(|name| !name.is_empty());
    named("agentInfo").or_else(|| named("serverInfo")).unwrap_or("unknown").to_lowercase()
}

/// How a session's model is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelPath {
    /// By the option with this id.
    Option(String),
    /// By the method for models.
    Method,
}

/// How `model` is set in a session that was answered with `session`, if it can be.
pub fn model_path(session: &Value, model: &str) -> Option<ModelPath> {
    let options = session["configOptions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let offers = |option: &Value| {
        option["category"] == "model"
            && option["options"]
                .as_array()
                .is_some_and(|values| values.iter().any(|value| value["value"] == model))
    };
    if let Some(option) = options.iter().find(|option| offers(option)) {
        let id = option["configId"].as_str().or_else(|| option["id"].as_str())?;
        return Some(ModelPath::Option(id.to_owned()));
    }
    let models = session["models"]["availableModels"].as_array()?;
    models.iter().any(|one| one["modelId"] == model).then_some(ModelPath::Method)
}

/// Whether a session offers a permission mode.
pub fn offers_mode(session: &Value, mode: &str) -> bool {
    session["modes"]["availableModes"]
        .as_array()
        .is_some_and(|modes| modes.iter().any(|one| one["id"] == mode))
}

/// The tags of an observer's or usage event.
pub fn owner_tags(owner: &PublicKey, agent: &PublicKey) -> [Vec<String>; 2] {
    [vec!["p".into(), owner.to_hex()], vec!["agent".into(), agent.to_hex()]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_our_id_and_no_method() {
        assert_eq!(
            read(br#"{"id":3,"result":{"a":1}}"#),
            Said::Response { id: 3, result: Ok(json!({"a": 1})) }
        );
        assert!(matches!(read(br#"{"id":3,"method":"x"}"#), Said::Request { .. }));
        assert!(matches!(read(br#"{"method":"x"}"#), Said::Notification { .. }));
        assert_eq!(read(b"  "), Said::Blank);
        assert_eq!(read(br#"{"id":"3","result":1}"#), Said::Odd);
        assert!(matches!(read(b"{"), Said::Invalid { .. }));
    }

    #[test]
    fn an_error_without_a_message_is_its_whole_json() {
        let Said::Response { result: Err(error), .. } = read(br#"{"id":1,"error":{"data":7}}"#) else {
            panic!("no error")
        };
        assert_eq!((error.code, error.message.as_str()), (-32000, r#"{"data":7}"#));
    }

    #[test]
    fn a_stop_reason_is_known_in_any_case() {
        assert_eq!(stop_reason(&json!({"stopReason": "END_TURN"})), Some("end_turn"));
        assert_eq!(stop_reason(&json!({"stopReason": "tired"})), None);
        assert_eq!(stop_reason(&json!({})), None);
    }

    #[test]
    fn permission_is_given_once_or_refused_once_and_nothing_else() {
        let option = |kind: &str| json!({"optionId": kind, "kind": kind});
        let asked = |kinds: &[&str]| {
            permission(&json!({"options": kinds.iter().map(|kind| option(kind)).collect::<Vec<_>>()}))
        };
        let chosen = |kind: &str| Some(json!({"outcome": {"outcome": "selected", "optionId": kind}}));
        assert_eq!(asked(&["reject_once", "allow_once"]), chosen("allow_once"));
        assert_eq!(asked(&["allow_always", "reject_once"]), chosen("reject_once"));
        assert_eq!(asked(&["allow_always"]), None);
    }

    #[test]
    fn a_model_is_set_by_option_before_method() {
        let session = json!({
            "configOptions": [{"category": "model", "id": "m", "options": [{"value": "a"}]}],
            "models": {"availableModels": [{"modelId": "a"}, {"modelId": "b"}]},
        });
        assert_eq!(model_path(&session, "a"), Some(ModelPath::Option("m".into())));
        assert_eq!(model_path(&session, "b"), Some(ModelPath::Method));
        assert_eq!(model_path(&session, "c"), None);
    }
}
