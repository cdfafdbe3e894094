//! The numbers: read strictly, checked together, never adjusted.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use super::environment::Environment;
use super::error::ConfigError;

const MAX_OUTPUT_TOKENS: &str = "BUZZ_AGENT_MAX_OUTPUT_TOKENS";
const LLM_TIMEOUT: &str = "BUZZ_AGENT_LLM_TIMEOUT_SECS";
const TOOL_TIMEOUT: &str = "BUZZ_AGENT_TOOL_TIMEOUT_SECS";
const MCP_INIT_TIMEOUT: &str = "BUZZ_AGENT_MCP_INIT_TIMEOUT_SECS";
const RESTART_MAX_ATTEMPTS: &str = "BUZZ_AGENT_MCP_RESTART_MAX_ATTEMPTS";
const RESTART_BASE: &str = "BUZZ_AGENT_MCP_RESTART_BASE_MS";
const RESTART_MAX: &str = "BUZZ_AGENT_MCP_RESTART_MAX_MS";
const MAX_LINE: &str = "BUZZ_AGENT_MAX_LINE_BYTES";
const MAX_HISTORY: &str = "BUZZ_AGENT_MAX_HISTORY_BYTES";
const MAX_RESULT_TEXT: &str = "BUZZ_AGENT_MAX_TOOL_RESULT_TEXT_BYTES";
const MAX_PARALLEL_TOOLS: &str = "BUZZ_AGENT_MAX_PARALLEL_TOOLS";

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The tunables of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Follow the catalogue of models when the model is `auto`.
    pub prefer_mesh_for_auto: bool,
    /// Model calls per prompt; 0 is unlimited.
    pub max_rounds: u32,
    /// Tokens per answer of a model.
    pub max_output_tokens: u32,
    /// How long a model may be silent: before its answer, and within.
    pub llm_timeout: Duration,
    /// How long one tool call may take.
    pub tool_timeout: Duration,
    /// How long an MCP server may take for its handshake, and again to list its tools.
    pub mcp_init_timeout: Duration,
    /// How a dead MCP server is started again.
    pub mcp_restart: RestartPolicy,
    /// Sessions in one process; 0 refuses all.
    pub max_sessions: usize,
    /// Longest line from the client, in bytes, with its line feed.
    pub max_line_bytes: usize,
    /// Largest history, in bytes.
    pub max_history_bytes: usize,
    /// Most text of one tool result, in bytes.
    pub max_result_text_bytes: usize,
    /// The model's context window, in tokens.
    pub max_context_tokens: u64,
    /// Handoffs per session; 0 truncates instead.
    pub max_handoffs: usize,
    /// Tool calls at a time.
    pub max_parallel_tools: usize,
    /// How long one hook may take.
    pub hook_timeout: Duration,
    /// How often hooks and the reply guard may object to the end of a turn.
    pub stop_max_rejections: u32,
    /// Remind a model that ends a turn without a reply.
    pub require_reply: bool,
    /// Look for AGENTS.md and skills.
    pub hints: bool,
    /// Mark what a provider may cache.
    pub prompt_caching: bool,
    /// Ask the client before a server's tool is called.
    pub ask_permission: bool,
}

/// How often and how soon a dead MCP server is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Failures in a row, the death itself included, after which the server is given up.
    pub max_attempts: u32,
    /// Pause after the first failure, in milliseconds; it doubles with each further one.
    pub base_ms: u64,
    /// Longest pause, in milliseconds, before jitter.
    pub max_ms: u64,
}

impl Limits {
    /// Reads all numbers; what they mean to each other is checked by [`Limits::check`].
    pub(super) fn read(env: &Environment) -> Result<Self, ConfigError> {
        let seconds = |name, default| number(env, name, default).map(Duration::from_secs);
        Ok(Self {
            prefer_mesh_for_auto: flag(env, "BUZZ_AGENT_PREFER_MESH_FOR_AUTO", false)?,
            max_rounds: number(env, "BUZZ_AGENT_MAX_ROUNDS", 0)?,
            max_output_tokens: number(env, MAX_OUTPUT_TOKENS, 32_768)?,
            llm_timeout: seconds(LLM_TIMEOUT, 240)?,
            tool_timeout: seconds(TOOL_TIMEOUT, 660)?,
            mcp_init_timeout: seconds(MCP_INIT_TIMEOUT, 30)?,
            mcp_restart: RestartPolicy {
                max_attempts: number(env, RESTART_MAX_ATTEMPTS, 3)?,
                base_ms: number(env, RESTART_BASE, 500)?,
                max_ms: number(env, RESTART_MAX, 30_000)?,
            },
            max_sessions: number(env, "BUZZ_AGENT_MAX_SESSIONS", usize::MAX)?,
            max_line_bytes: number(env, MAX_LINE, 4 * MIB)?,
            max_history_bytes: number(env, MAX_HISTORY, 16 * MIB)?,
            max_result_text_bytes: number(env, MAX_RESULT_TEXT, 50 * KIB)?,
            max_context_tokens: number(env, "BUZZ_AGENT_MAX_CONTEXT_TOKENS", 200_000)?,
            max_handoffs: number(env, "BUZZ_AGENT_MAX_HANDOFFS", 10)?,
            max_parallel_tools: number(env, MAX_PARALLEL_TOOLS, 8)?,
            hook_timeout: number(env, "BUZZ_AGENT_HOOK_TIMEOUT_MS", 2500).map(Duration::from_millis)?,
            stop_max_rejections: number(env, "BUZZ_AGENT_STOP_MAX_REJECTIONS", 3)?,
            require_reply: flag(env, "BUZZ_AGENT_REQUIRE_REPLY", false)?,
            hints: !flag(env, "BUZZ_AGENT_NO_HINTS", false)?,
            prompt_caching: flag(env, "BUZZ_AGENT_PROMPT_CACHING", true)?,
            ask_permission: flag(env, "WAXLOG_ASK_PERMISSION", false)?,
        })
    }

    /// Checks the numbers against their bounds and each other; the first that is wrong counts.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        at_least(MAX_OUTPUT_TOKENS, self.max_output_tokens.into(), 1)?;
        if self.max_context_tokens <= u64::from(self.max_output_tokens) {
            return Err(ConfigError::NoRoomForOutput {
                context: self.max_context_tokens,
                output: self.max_output_tokens,
            });
        }
        at_least(MAX_HISTORY, self.max_history_bytes as u64, MIB as u64)?;
        at_least(MAX_LINE, self.max_line_bytes as u64, KIB as u64)?;
        let text_bytes = self.max_result_text_bytes as u64;
        at_least(MAX_RESULT_TEXT, text_bytes, KIB as u64)?;
        at_most(MAX_RESULT_TEXT, text_bytes, 8 * MIB as u64)?;
        at_least(LLM_TIMEOUT, self.llm_timeout.as_secs(), 1)?;
        at_least(TOOL_TIMEOUT, self.tool_timeout.as_secs(), 1)?;
        at_least(MCP_INIT_TIMEOUT, self.mcp_init_timeout.as_secs(), 1)?;
        at_least(MAX_PARALLEL_TOOLS, self.max_parallel_tools as u64, 1)?;
        self.mcp_restart.check()
    }
}

impl RestartPolicy {
    fn check(&self) -> Result<(), ConfigError> {
        let Self { base_ms, max_ms, .. } = *self;
        at_least(RESTART_MAX_ATTEMPTS, self.max_attempts.into(), 1)?;
        at_least(RESTART_BASE, base_ms, 1)?;
        if max_ms < base_ms {
            return Err(ConfigError::BackoffCap { max_ms, base_ms });
        }
        Ok(())
    }
}

/// The number in `name`, exactly as its type is written: no blanks, no units. Unset is the default, empty is
/// an error.
fn number<T>(env: &Environment, name: &'static str, default: T) -> Result<T, ConfigError>
where
    T: FromStr,
    T::Err: Display,
{
    env.get(name).map_or(Ok(default), |typed| {
        typed.parse().map_err(|error: T::Err| ConfigError::Number { name, reason: error.to_string() })
    })
}

/// Flags are small numbers: 0 is off, 1 to 255 are on, words are errors.
fn flag(env: &Environment, name: &'static str, default: bool) -> Result<bool, ConfigError> {
    number(env, name, u8::from(default)).map(|value| value != 0)
}

fn at_least(name: &'static str, value: u64, min: u64) -> Result<(), ConfigError> {
    if value < min {
        return Err(ConfigError::TooSmall { name, value, min });
    }
    Ok(())
}

fn at_most(name: &'static str, value: u64, max: u64) -> Result<(), ConfigError> {
    if value > max {
        return Err(ConfigError::TooLarge { name, value, max });
    }
    Ok(())
}
