//! What an agent proposes to its owner: a new agent, or a change of one. A sealed frame, kind 24200, that
//! nobody stores; the owner decides.

use serde_json::{json, Map, Value};

use super::BuildError;
use crate::channel::ChannelId;
use crate::event::Draft;
use crate::id::PublicKey;
use crate::keys::Keys;
use crate::kind::OBSERVER_FRAME;
use crate::nip44::{ConversationKey, Nip44Error};

/// Longest name of an agent, in characters.
pub const MAX_NAME_CHARS: usize = 120;
/// Longest system prompt, in characters.
pub const MAX_PROMPT_CHARS: usize = 20_000;
/// Longest text of every other field, in characters.
pub const MAX_FIELD_CHARS: usize = 300;

const REQUEST: &str = "agent_management_request";

/// What can be said of an agent. Texts are trimmed; one that is empty is refused.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// Its name.
    pub display_name: Option<String>,
    /// What it is told.
    pub system_prompt: Option<String>,
    /// What it runs on.
    pub runtime: Option<String>,
    /// Whose model.
    pub provider: Option<String>,
    /// Which model.
    pub model: Option<String>,
    /// To whom it answers.
    pub respond_to: Option<String>,
}

/// A proposal.
#[derive(Debug, Clone)]
pub enum Proposal {
    /// A new agent, with a name and a prompt.
    Create(Fields),
    /// A change of the agent of this name, of one field or more.
    Update(String, Fields),
}

impl Proposal {
    /// The word for it: `create` or `update`.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Update(..) => "update",
        }
    }

    /// The `request` object, or what is wrong with it.
    pub fn request(&self, channel: &ChannelId) -> Result<Map<String, Value>, BuildError> {
        let mut request = Map::from_iter([("channelId".to_owned(), channel.to_string().into())]);
        let fields = match self {
            Self::Create(fields) => {
                if fields.display_name.is_none() || fields.system_prompt.is_none() {
                    return Err(BuildError::Together("a new agent needs a name and a system prompt"));
                }
                fields.entries()?
            }
            Self::Update(agent, fields) => {
                request.insert("agentName".into(), text("the agent's name", agent, MAX_NAME_CHARS)?.into());
                let entries = fields.entries()?;
                if entries.is_empty() {
                    return Err(BuildError::Together(
                        "nothing to change: give --display-name, --system-prompt, --runtime, --provider, --model or --respond-to",
                    ));
                }
                entries
            }
        };
        request.extend(fields);
        Ok(request)
    }
}

impl Fields {
    fn entries(&self) -> Result<Map<String, Value>, BuildError> {
        let all = [
            ("displayName", "the display name", &self.display_name, MAX_NAME_CHARS),
            ("systemPrompt", "the system prompt", &self.system_prompt, MAX_PROMPT_CHARS),
            ("runtime", "the runtime", &self.runtime, MAX_FIELD_CHARS),
            ("provider", "the provider", &self.provider, MAX_FIELD_CHARS),
            ("model", "the model", &self.model, MAX_FIELD_CHARS),
            ("respondTo", "respond-to", &self.respond_to, MAX_FIELD_CHARS),
        ];
        let mut entries = Map::new();
        for (key, what, value, limit) in all {
            if let Some(value) = value {
                entries.insert(key.to_owned(), text(what, value, limit)?.into());
            }
        }
        Ok(entries)
    }
}

fn text<'a>(what: &'static str, text: &'a str, limit: usize) -> Result<&'a str, BuildError> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err(BuildError::invalid(what, "a text that is not blank", text)),
        got if got > limit => Err(BuildError::TooLong { what, got, limit, unit: "characters" }),
        _ => Ok(text),
    }
}

/// The frame's plain text. `timestamp` is RFC 3339.
pub fn plaintext(
    action: &str,
    request: Map<String, Value>,
    channel: &ChannelId,
    request_id: &str,
    timestamp: &str,
) -> String {
    json!({
        "seq": 0,
        "timestamp": timestamp,
        "kind": REQUEST,
        "agentIndex": null,
        "channelId": channel.to_string(),
        "sessionId": null,
        "turnId": null,
        "payload": {"type": REQUEST, "action": action, "requestId": request_id, "request": request},
    })
    .to_string()
}

/// The sealed frame, for the agent to sign as it is: `p`, `agent`, `frame`, no other tag.
pub fn frame(agent: &Keys, owner: &PublicKey, plaintext: &str, now: u64) -> Result<Draft, Nip44Error> {
    let sealed = ConversationKey::new(agent, owner)?.encrypt(plaintext)?;
    Ok(Draft::new(OBSERVER_FRAME, sealed, now)
        .tag(["p", &owner.to_hex()])
        .tag(["agent", &agent.public_key().to_hex()])
        .tag(["frame", "telemetry"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: &str = "00112233-4455-4677-8899-aabbccddeeff";

    fn request(proposal: &Proposal) -> Result<Value, BuildError> {
        proposal.request(&CHANNEL.parse().unwrap()).map(Value::Object)
    }

    fn fields(name: &str, prompt: &str) -> Fields {
        Fields { display_name: Some(name.into()), system_prompt: Some(prompt.into()), ..Fields::default() }
    }

    #[test]
    fn a_new_agent_has_a_name_and_a_prompt_trimmed() {
        let create =
            Proposal::Create(Fields { respond_to: Some("owner".into()), ..fields(" Bee ", "Help.\n") });
        let wanted = json!({"channelId": CHANNEL, "displayName": "Bee", "systemPrompt": "Help.", "respondTo": "owner"});
        assert_eq!(request(&create), Ok(wanted));
        assert!(request(&Proposal::Create(Fields::default())).is_err());
        assert!(request(&Proposal::Create(fields(" ", "x"))).is_err());
    }

    #[test]
    fn a_change_changes_something() {
        let change = |fields| Proposal::Update("Bee".into(), fields);
        assert!(request(&change(Fields::default())).is_err());
        let model = Fields { model: Some("m".into()), ..Fields::default() };
        let wanted = json!({"channelId": CHANNEL, "agentName": "Bee", "model": "m"});
        assert_eq!(request(&change(model)), Ok(wanted));
    }

    #[test]
    fn texts_have_their_limits_in_characters() {
        assert!(request(&Proposal::Create(fields(&"ü".repeat(120), &"ü".repeat(20_000)))).is_ok());
        assert!(request(&Proposal::Create(fields(&"ü".repeat(121), "x"))).is_err());
        assert!(request(&Proposal::Create(fields("x", &"x".repeat(20_001)))).is_err());
        let long = Fields { runtime: Some("x".repeat(301)), ..fields("x", "x") };
        assert!(request(&Proposal::Create(long)).is_err());
    }

    #[test]
    fn a_frame_is_opened_by_the_owner_and_names_both() {
        let (agent, owner) = (Keys::generate(), Keys::generate());
        let channel = CHANNEL.parse().unwrap();
        let proposal = Proposal::Create(fields("Bee", "Help."));
        let plain = plaintext(proposal.action(), proposal.request(&channel).unwrap(), &channel, "r", "t");
        let draft = frame(&agent, &owner.public_key(), &plain, 5).unwrap();
        let (p, me) = (owner.public_key().to_hex(), agent.public_key().to_hex());
        assert_eq!(draft.kind, 24_200);
        assert_eq!(draft.tags, [["p", &p], ["agent", &me], ["frame", "telemetry"]]);
        let key = ConversationKey::new(&owner, &agent.public_key()).unwrap();
        let opened: Value = serde_json::from_str(&key.decrypt(&draft.content).unwrap()).unwrap();
        assert_eq!(opened["payload"]["action"], "create");
        assert_eq!(opened["payload"]["request"]["displayName"], "Bee");
        assert_eq!((&opened["seq"], &opened["turnId"]), (&json!(0), &Value::Null));
    }
}
