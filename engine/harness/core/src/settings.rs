//! Settings: what the process was started with, without its secrets.

use serde::{Deserialize, Serialize};
use waxlog_nostr::PublicKey;

/// All that the fold depends on. Times are checked and in range: see the driver's reading of arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The version of the program.
    pub version: String,
    /// Who this harness is.
    pub agent: PublicKey,
    /// Whose agent it is.
    pub owner: Option<PublicKey>,
    /// Whether the owner's attestation is shown to the relay.
    pub has_owner_tag: bool,
    /// The relay's URL as given.
    pub relay_url: String,
    /// The working folder, which the agents get too.
    pub cwd: String,
    /// The agent's command and arguments.
    pub agent_command: AgentCommand,
    /// The tool server that sessions get: its command and arguments.
    pub mcp: Option<McpServer>,
    /// How many agents there are.
    pub agents: usize,
    /// Whether agents are started only when there is work.
    pub lazy_pool: bool,
    /// The model that new sessions get.
    pub model: Option<String>,
    /// What sessions are called.
    pub session_title: Option<String>,
    /// How long a turn may be silent.
    pub idle_timeout_ms: u64,
    /// How long a turn may take.
    pub max_turn_ms: u64,
    /// After how many turns a session is replaced; 0 is never.
    pub max_turns_per_session: u32,
    /// The texts of the system prompt.
    pub prompts: Prompts,
    /// What is sent first in a new session.
    pub initial_message: Option<String>,
    /// Whether the agent's core memory is given to it.
    pub memory: bool,
    /// How often the agent is woken without a message; 0 is never.
    pub heartbeat_ms: u64,
    /// What it is woken with.
    pub heartbeat_prompt: Option<String>,
    /// How often a running turn shows that it lives; 0 is never.
    pub liveness_ms: u64,
    /// What is subscribed to.
    pub subscribe: Subscribe,
    /// What happens to a message for a channel whose turn runs.
    pub handling: Handling,
    /// Whether messages for a channel whose turn runs are dropped.
    pub drop_busy: bool,
    /// Whether own events are answered.
    pub answer_self: bool,
    /// How many messages of context a prompt shows.
    pub context_messages: usize,
    /// Whether presence is published.
    pub presence: bool,
    /// Whether typing is published.
    pub typing: bool,
    /// Whether the owner gets observer frames.
    pub observer: bool,
    /// The permission mode of new sessions: none leaves the agent's own.
    pub permission_mode: Option<String>,
    /// Who is answered.
    pub respond_to: RespondTo,
    /// Who else is answered in the mode `allowlist`.
    pub allowlist: Vec<PublicKey>,
    /// The name a tool server is told.
    pub display_name: Option<String>,
    /// How old an event may be that came while the harness was stopped, in seconds.
    pub catch_up_secs: u64,
    /// Where the lifecycle frames point to.
    pub start_nonce: Option<String>,
}

/// How an agent is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCommand {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What it is known as: see [`crate::command`].
    pub identity: String,
}

/// A tool server on stdio that sessions get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// What it is called.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The relay's URL that its commands get.
    pub relay_url: String,
    /// The owner's attestation, which is public.
    pub auth_tag: Option<String>,
}

/// The texts of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// How to live on this network; absent if switched off.
    pub base: Option<String>,
    /// The operator's own.
    pub system: Option<String>,
    /// The team's.
    pub team: Option<String>,
}

/// What is subscribed to in each channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subscribe {
    /// What names the agent.
    Mentions {
        /// The kinds.
        kinds: Vec<u16>,
        /// Whether the relay filters by the agent's key.
        by_mention: bool,
        /// Only these channels; none are all.
        channels: Option<Vec<String>>,
    },
    /// Everything.
    All {
        /// The kinds; none are all.
        kinds: Option<Vec<u16>>,
        /// Only these channels; none are all.
        channels: Option<Vec<String>>,
    },
    /// What the rules ask for.
    Rules(Vec<Rule>),
}

/// One rule: which events become prompts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What it is called.
    pub name: String,
    /// Where it holds; none is everywhere.
    pub channels: Option<Vec<String>>,
    /// For which kinds; none are all.
    pub kinds: Option<Vec<u16>>,
    /// Whether the event must name the agent.
    pub require_mention: bool,
    /// A further condition: see [`crate::rules`].
    pub filter: Option<String>,
    /// What the prompt calls the event.
    pub prompt_tag: String,
}

/// What happens to a message for a channel whose turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handling {
    /// It waits.
    Queue,
    /// It is brought into the turn.
    Steer,
    /// The turn is cancelled for it.
    Interrupt,
    /// The turn is cancelled for it if the owner wrote it.
    OwnerInterrupt,
}

/// Who is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RespondTo {
    /// The owner and the owner's other agents.
    OwnerOnly,
    /// These and who is listed.
    Allowlist,
    /// Everyone, but in direct conversations only the first.
    Anyone,
    /// Nobody.
    Nobody,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Settings as a harness has them that was told nothing but its keys.
    pub(crate) fn settings() -> Settings {
        Settings {
            version: "0".into(),
            agent: PublicKey::from_bytes([1; 32]),
            owner: None,
            has_owner_tag: false,
            relay_url: "ws://127.0.0.1:1".into(),
            cwd: "/work".into(),
            agent_command: AgentCommand { program: "agent".into(), args: vec![], identity: "agent".into() },
            mcp: None,
            agents: 1,
            lazy_pool: false,
            model: None,
            session_title: None,
            idle_timeout_ms: 900_000,
            max_turn_ms: 7_200_000,
            max_turns_per_session: 0,
            prompts: Prompts { base: Some("base".into()), system: None, team: None },
            initial_message: None,
            memory: false,
            heartbeat_ms: 0,
            heartbeat_prompt: None,
            liveness_ms: 10_000,
            subscribe: Subscribe::Mentions {
                kinds: crate::rules::MENTION_KINDS.to_vec(),
                by_mention: true,
                channels: None,
            },
            handling: Handling::Queue,
            drop_busy: false,
            answer_self: false,
            context_messages: 12,
            presence: true,
            typing: true,
            observer: false,
            permission_mode: None,
            respond_to: RespondTo::Anyone,
            allowlist: vec![],
            display_name: None,
            catch_up_secs: 86_400,
            start_nonce: None,
        }
    }

    #[test]
    fn settings_survive_json() {
        let text = serde_json::to_string(&settings()).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings());
    }
}
