//! Parameters of the methods, decoded with errors that name the field and never a value: values may be
//! secrets.

use serde_json::Value;

use super::blocks::{self, Block};

/// `session/prompt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The session.
    pub session: String,
    /// The content.
    pub blocks: Vec<Block>,
}

/// `_goose/unstable/session/steer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steer {
    /// The session.
    pub session: String,
    /// The run that the client believes to be active.
    pub expected_run: String,
    /// The content.
    pub blocks: Vec<Block>,
}

/// `session/set_model`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetModel {
    /// The session.
    pub session: String,
    /// The model for later prompts.
    pub model: String,
}

/// `session/new`, its servers' secrets left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// The working folder.
    pub cwd: String,
    /// The servers to start, in order.
    pub servers: Vec<ServerSpec>,
    /// The client's own system prompt, if it gave one that is not blank.
    pub system_prompt: Option<String>,
}

/// `session/list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Only sessions of this working folder.
    pub cwd: Option<String>,
    /// Where the previous page ended.
    pub cursor: Option<String>,
}

/// `session/set_config_option`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOption {
    /// The session.
    pub session: String,
    /// The option's id.
    pub option: String,
    /// The value.
    pub value: String,
}

/// One MCP server of `session/new`. Its variables' values are not here: see [`env_of`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServerSpec {
    /// Its name, the prefix of its tools.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The names of the variables that it was given.
    pub env_names: Vec<String>,
}

/// The `sessionId` of a request that has one.
pub fn session_id(params: &Value) -> Result<String, String> {
    required(params, "sessionId")
}

/// Decodes `session/prompt`.
pub fn prompt(params: &Value) -> Result<Prompt, String> {
    Ok(Prompt { session: session_id(params)?, blocks: blocks::decode(params.get("prompt"))? })
}

/// Decodes a steer; a missing prompt is an empty one.
pub fn steer(params: &Value) -> Result<Steer, String> {
    let blocks = match params.get("prompt") {
        None => Vec::new(),
        some => blocks::decode(some)?,
    };
    let expected_run = match params.get("expectedRunId") {
        None => String::new(),
        Some(Value::String(run)) => run.clone(),
        Some(_) => return Err("`expectedRunId` must be a string".to_owned()),
    };
    Ok(Steer { session: session_id(params)?, expected_run, blocks })
}

/// Decodes `session/set_model`.
pub fn set_model(params: &Value) -> Result<SetModel, String> {
    Ok(SetModel { session: session_id(params)?, model: required(params, "modelId")? })
}

/// Decodes `session/list`.
pub fn list(params: &Value) -> Result<List, String> {
    Ok(List { cwd: optional(params, "cwd")?, cursor: optional(params, "cursor")? })
}

/// Decodes `session/set_config_option`.
pub fn set_option(params: &Value) -> Result<SetOption, String> {
    Ok(SetOption {
        session: session_id(params)?,
        option: required(params, "configId")?,
        value: required(params, "value")?,
    })
}

/// Decodes `session/load` and `session/resume`: a session, and what it is to go on with.
pub fn load(params: &Value) -> Result<(String, NewSession), String> {
    Ok((session_id(params)?, new_session(params)?))
}

/// The protocol version that `initialize` asks for, and the peer's name if it gave one.
pub fn initialize(params: &Value) -> Result<(u32, Option<String>), String> {
    let version = params
        .get("protocolVersion")
        .ok_or_else(|| "missing field `protocolVersion`".to_owned())?
        .as_u64()
        .and_then(|v| u32::try_from(v).ok())
        .ok_or_else(|| "`protocolVersion` must be an integer from 0 to 4294967295".to_owned())?;
    let name = params.get("clientInfo").and_then(|i| i.get("name")).and_then(Value::as_str);
    Ok((version, name.map(str::to_owned)))
}

/// Decodes `session/new`.
pub fn new_session(params: &Value) -> Result<NewSession, String> {
    let cwd = required(params, "cwd")?;
    let servers = match params.get("mcpServers") {
        None => Vec::new(),
        Some(Value::Array(list)) => {
            list.iter().enumerate().map(|(i, s)| server(i, s)).collect::<Result<_, _>>()?
        }
        Some(_) => return Err("`mcpServers` must be a list".to_owned()),
    };
    let system_prompt = match params.get("systemPrompt") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()).filter(|t| !t.trim().is_empty()),
        Some(_) => return Err("`systemPrompt` must be a string".to_owned()),
    };
    Ok(NewSession { cwd, servers, system_prompt })
}

fn server(index: usize, value: &Value) -> Result<ServerSpec, String> {
    let at = |e: String| format!("mcpServers[{index}]: {e}");
    let args = match value.get("args") {
        None => Vec::new(),
        Some(list) => strings(list).ok_or_else(|| at("`args` must be a list of strings".to_owned()))?,
    };
    let env = env_of(value).ok_or_else(|| at("`env` must be a list of {name, value}".to_owned()))?;
    Ok(ServerSpec {
        name: required(value, "name").map_err(at)?,
        command: required(value, "command")
            .map_err(|e| at(format!("{e}; only stdio servers are supported")))?,
        args,
        env_names: env.into_iter().map(|(name, _)| name).collect(),
    })
}

/// The variables of one entry of `mcpServers`, values included: for the process that starts the server,
/// for nothing that is kept. `None` if they have another shape.
pub fn env_of(server: &Value) -> Option<Vec<(String, String)>> {
    let Some(env) = server.get("env") else { return Some(Vec::new()) };
    let word = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    env.as_array()?.iter().map(|entry| Some((word(entry, "name")?, word(entry, "value")?))).collect()
}

/// What a recorded line shows in place of a secret.
pub const REDACTED: &str = "***";

/// A copy of `session/new` parameters that may be kept: the values of variables and headers are masked.
pub fn redacted(params: &Value) -> Value {
    let mut params = params.clone();
    let servers = params.get_mut("mcpServers").and_then(Value::as_array_mut);
    for server in servers.into_iter().flatten() {
        for key in ["env", "headers"] {
            if let Some(entries) = server.get_mut(key) {
                mask(entries);
            }
        }
    }
    params
}

fn mask(entries: &mut Value) {
    let well_formed = entries.as_array().is_some_and(|list| {
        list.iter().all(|e| {
            e.get("name").is_some_and(Value::is_string) && e.get("value").is_some_and(Value::is_string)
        })
    });
    match entries.as_array_mut() {
        Some(list) if well_formed => list.iter_mut().for_each(|entry| {
            let name = entry["name"].clone();
            *entry = serde_json::json!({"name": name, "value": REDACTED});
        }),
        _ => *entries = Value::String(REDACTED.to_owned()),
    }
}

fn required(params: &Value, key: &str) -> Result<String, String> {
    match params.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("`{key}` must be a string")),
        None => Err(format!("missing field `{key}`")),
    }
}

fn optional(params: &Value, key: &str) -> Result<Option<String>, String> {
    match params.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` must be a string")),
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|v| v.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_session_takes_its_defaults() {
        let new = new_session(&json!({"cwd": "/x", "systemPrompt": " \n", "_meta": {}})).expect("decodes");
        assert_eq!(new, NewSession { cwd: "/x".into(), servers: vec![], system_prompt: None });
    }

    #[test]
    fn an_http_server_is_refused() {
        let error =
            new_session(&json!({"cwd": "/x", "mcpServers": [{"type": "http", "name": "h", "url": "u"}]}));
        assert!(error.expect_err("refused").contains("mcpServers[0]: missing field `command`"));
        assert!(new_session(&json!({"cwd": "/x", "mcpServers": null})).is_err());
    }

    #[test]
    fn values_of_variables_and_headers_never_stay_in_a_kept_line() {
        let secret = "nsec1verysecret";
        for env in [
            json!([{"name": "K", "value": secret}]),
            json!({"K": secret}),
            json!([{"name": "K", "val": secret}]),
        ] {
            let params = json!({"cwd": "/x", "mcpServers": [{"name": "s", "command": "c", "env": env, "headers": env}]});
            let kept = redacted(&params).to_string();
            assert!(!kept.contains(secret), "{kept}");
            if let Err(error) = new_session(&params) {
                assert!(!error.contains(secret), "{error}");
            }
        }
    }

    #[test]
    fn the_protocol_version_is_an_unsigned_integer() {
        assert_eq!(initialize(&json!({"protocolVersion": 1})), Ok((1, None)));
        for odd in [
            json!({}),
            json!({"protocolVersion": "1"}),
            json!({"protocolVersion": -1}),
            json!({"protocolVersion": 1.5}),
        ] {
            assert!(initialize(&odd).is_err(), "{odd}");
        }
    }
}
