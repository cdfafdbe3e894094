//! What was typed: each option of the harness as text. Its variable counts where the option is not given.

use structopt::StructOpt;

/// The options. Each has a variable of its name with `BUZZ_ACP_` before it, unless its help names another.
#[derive(Clone, Debug, Default, StructOpt)]
pub struct Options {
    /// The relay [default: ws://localhost:3000] [env: BUZZ_RELAY_URL]
    #[structopt(long, value_name = "URL")]
    pub relay_url: Option<String>,
    /// The agent's secret key, nsec or hex; the variable is safer [env: BUZZ_PRIVATE_KEY]
    #[structopt(long, value_name = "KEY")]
    pub private_key: Option<String>,
    /// Whose agent this is: a public key in hex
    #[structopt(long, value_name = "HEX")]
    pub agent_owner: Option<String>,
    /// The agent's program [default: waxlog's own agent when started by `waxlog up`, else goose]
    #[structopt(long, value_name = "COMMAND")]
    pub agent_command: Option<String>,
    /// The program's arguments, separated by commas
    #[structopt(long, value_name = "LIST", allow_hyphen_values = true)]
    pub agent_args: Option<String>,
    /// The tool server that sessions get
    #[structopt(long, value_name = "COMMAND")]
    pub mcp_command: Option<String>,
    /// The tool server's arguments, separated by commas [env: WAXLOG_MCP_ARGS]
    #[structopt(long, value_name = "LIST", allow_hyphen_values = true)]
    pub mcp_args: Option<String>,
    /// How many agents run, 1 to 32 [default: 1]
    #[structopt(long, value_name = "N")]
    pub agents: Option<String>,
    /// Start agents only when there is work
    #[structopt(long)]
    pub lazy_pool: bool,
    /// The model of new sessions
    #[structopt(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// What sessions are called
    #[structopt(long, value_name = "TEXT")]
    pub session_title: Option<String>,
    /// How long a turn may be silent, in seconds [default: 900]
    #[structopt(long, value_name = "S")]
    pub idle_timeout: Option<String>,
    /// The old name of --idle-timeout
    #[structopt(long, value_name = "S", hidden = true)]
    pub turn_timeout: Option<String>,
    /// How long a turn may take, in seconds [default: 7200]
    #[structopt(long, value_name = "S")]
    pub max_turn_duration: Option<String>,
    /// After how many turns a session is replaced; 0 is never [default: 0]
    #[structopt(long, value_name = "N")]
    pub max_turns_per_session: Option<String>,
    /// Instructions for the agent
    #[structopt(long, value_name = "TEXT", conflicts_with = "system-prompt-file")]
    pub system_prompt: Option<String>,
    /// A file with instructions for the agent
    #[structopt(long, value_name = "FILE")]
    pub system_prompt_file: Option<String>,
    /// Instructions of the agent's team
    #[structopt(long, value_name = "TEXT")]
    pub team_instructions: Option<String>,
    /// A file in place of the built-in base prompt
    #[structopt(long, value_name = "FILE", conflicts_with = "no-base-prompt")]
    pub base_prompt_file: Option<String>,
    /// No base prompt
    #[structopt(long)]
    pub no_base_prompt: bool,
    /// What is sent first in each new session
    #[structopt(long, value_name = "TEXT")]
    pub initial_message: Option<String>,
    /// Give the agent its core memory; the default
    #[structopt(long, conflicts_with = "no-memory")]
    pub memory: bool,
    /// Do not give the agent its core memory
    #[structopt(long)]
    pub no_memory: bool,
    /// How often the agent is woken without a message, in seconds; 0 is never [default: 0]
    #[structopt(long, value_name = "S")]
    pub heartbeat_interval: Option<String>,
    /// What it is woken with
    #[structopt(long, value_name = "TEXT", conflicts_with = "heartbeat-prompt-file")]
    pub heartbeat_prompt: Option<String>,
    /// A file with what it is woken with
    #[structopt(long, value_name = "FILE")]
    pub heartbeat_prompt_file: Option<String>,
    /// How often a running turn shows the owner that it lives, in seconds; 0 is never [default: 10]
    #[structopt(long, value_name = "S")]
    pub turn_liveness_secs: Option<String>,
    /// What is answered: mentions, all, or config [default: mentions]
    #[structopt(long, value_name = "MODE")]
    pub subscribe: Option<String>,
    /// Only these kinds of event, separated by commas
    #[structopt(long, value_name = "LIST")]
    pub kinds: Option<String>,
    /// Only these channels, separated by commas
    #[structopt(long, value_name = "LIST")]
    pub channels: Option<String>,
    /// Answer events that do not name the agent as well
    #[structopt(long)]
    pub no_mention_filter: bool,
    /// The file with the rules of the mode config [default: ./buzz-acp.toml]
    #[structopt(long, value_name = "FILE")]
    pub config: Option<String>,
    /// Messages for a channel that is being answered: queue or drop [default: queue]
    #[structopt(long, value_name = "MODE")]
    pub dedup: Option<String>,
    /// What such a message does: steer, queue, interrupt or owner-interrupt [default: steer]
    #[structopt(long, value_name = "MODE")]
    pub multiple_event_handling: Option<String>,
    /// Answer the agent's own events
    #[structopt(long)]
    pub no_ignore_self: bool,
    /// How many earlier messages a prompt shows, 0 to 100 [default: 12]
    #[structopt(long, value_name = "N")]
    pub context_message_limit: Option<String>,
    /// Do not show that the agent is there
    #[structopt(long)]
    pub no_presence: bool,
    /// Do not show that the agent is typing
    #[structopt(long)]
    pub no_typing: bool,
    /// Show the owner what the agent does, in encrypted frames
    #[structopt(long)]
    pub relay_observer: bool,
    /// The permission mode of new sessions [default: bypass-permissions]
    #[structopt(long, value_name = "MODE")]
    pub permission_mode: Option<String>,
    /// Who is answered: owner-only, allowlist, anyone or nobody [default: owner-only]
    #[structopt(long, value_name = "MODE")]
    pub respond_to: Option<String>,
    /// Who else is answered in the mode allowlist: public keys in hex, separated by commas
    #[structopt(long, value_name = "LIST")]
    pub respond_to_allowlist: Option<String>,
    /// The modes that --respond-to may have here, separated by commas
    #[structopt(long, value_name = "LIST")]
    pub allowed_respond_to: Option<String>,
    /// How old a message may be that came while the harness was stopped, in seconds; 0 answers none
    /// [default: 86400] [env: WAXLOG_CATCH_UP_SECS]
    #[structopt(long, value_name = "S")]
    pub catch_up_secs: Option<String>,
}
