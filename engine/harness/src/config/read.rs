//! From what was typed and what is in the environment to a configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use waxlog_harness_core::command;
use waxlog_harness_core::prompt::BASE;
use waxlog_harness_core::settings::{AgentCommand, McpServer, Prompts, Settings};
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Keys, PublicKey};

use super::{Config, ConfigError, Options, Secrets};

const AGENTS_MAX: u64 = 32;
const MAX_TURN_SECS: u64 = 604_800;
const DAY_SECS: u64 = 86_400;
const CONTEXT_MAX: u64 = 100;
/// Largest text file that is read, in bytes.
const TEXT_MAX_BYTES: usize = 1_048_576;

/// What surrounds the process.
pub struct Surroundings<'a> {
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The working folder.
    pub cwd: PathBuf,
    /// The folder of all logs.
    pub home: PathBuf,
    /// The version of the program.
    pub version: String,
}

pub(super) struct Reader<'a> {
    pub(super) options: &'a Options,
    around: &'a Surroundings<'a>,
}

pub(super) fn form<T>(name: &str, why: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Form { name: name.to_owned(), why: why.into() })
}

pub(super) fn value<T>(why: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Value(why.into()))
}

impl Config {
    /// Reads the configuration.
    pub fn read(options: &Options, around: &Surroundings) -> Result<Config, ConfigError> {
        Reader { options, around }.config()
    }
}

impl Reader<'_> {
    fn env(&self, name: &str) -> Option<String> {
        (self.around.env)(name)
    }

    /// An option as typed, else its variable.
    pub(super) fn text(&self, typed: &Option<String>, variable: &str) -> Option<String> {
        typed.clone().or_else(|| self.env(&format!("BUZZ_ACP_{variable}")))
    }

    pub(super) fn filled(&self, typed: &Option<String>, variable: &str) -> Option<String> {
        self.text(typed, variable).filter(|text| !text.trim().is_empty())
    }

    fn number<T: FromStr>(
        &self,
        typed: &Option<String>,
        variable: &str,
        default: T,
    ) -> Result<T, ConfigError> {
        match self.text(typed, variable) {
            None => Ok(default),
            Some(text) => text.parse().or_else(|_| {
                form(&format!("BUZZ_ACP_{variable}"), format!("a number is needed, got {text:?}"))
            }),
        }
    }

    /// A switch: given, or its variable says `true`.
    pub(super) fn switch(&self, typed: bool, variable: &str) -> Result<bool, ConfigError> {
        let name = format!("BUZZ_ACP_{variable}");
        match (typed, self.env(&name).as_deref()) {
            (true, _) | (_, Some("true")) => Ok(true),
            (_, None | Some("false")) => Ok(false),
            (_, Some(other)) => form(&name, format!("true or false is needed, got {other:?}")),
        }
    }

    pub(super) fn list(&self, typed: &Option<String>, variable: &str) -> Vec<String> {
        let text = self.text(typed, variable).unwrap_or_default();
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    pub(super) fn word<T: Copy>(
        &self,
        typed: &Option<String>,
        variable: &str,
        known: &[(&str, T)],
        default: T,
    ) -> Result<T, ConfigError> {
        let Some(text) = self.text(typed, variable) else { return Ok(default) };
        let found = known.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).map_or_else(
            || {
                let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                form(
                    &format!("BUZZ_ACP_{variable}"),
                    format!("one of {} is needed, got {text:?}", words.join(", ")),
                )
            },
            Ok,
        )
    }

    fn config(&self) -> Result<Config, ConfigError> {
        let secrets = self.secrets()?;
        let settings = self.settings(&secrets)?;
        let filled = |name: &str| self.env(name).filter(|text| !text.is_empty());
        let auth_url = filled("BUZZ_ACP_NIP42_RELAY_URL").unwrap_or_else(|| settings.relay_url.clone());
        Ok(Config {
            agent_environment: self.agent_environment(&settings),
            agent_overrides: BTreeMap::new(),
            settings,
            secrets,
            home: self.around.home.clone(),
            is_power_safe: self.env("WAXLOG_DURABILITY").as_deref() == Some("power"),
            auth_url,
            http_base: filled("BUZZ_ACP_NIP98_BASE_URL"),
            host_header: filled("BUZZ_ACP_HOST_HEADER"),
        })
    }

    fn secrets(&self) -> Result<Secrets, ConfigError> {
        let variables = ["BUZZ_PRIVATE_KEY", "BUZZ_ACP_PRIVATE_KEY"];
        let key =
            self.options.private_key.clone().or_else(|| variables.iter().find_map(|name| self.env(name)));
        let Some(key) = key else {
            return form(
                "BUZZ_PRIVATE_KEY",
                "the agent's secret key is needed; make one with `waxlog keys new`",
            );
        };
        let keys = Keys::parse(key.trim()).or_else(|error| value(format!("BUZZ_PRIVATE_KEY: {error}")))?;
        let owner_tag = self.env("BUZZ_AUTH_TAG").filter(|tag| !tag.trim().is_empty()).and_then(|tag| {
            let read = OwnerTag::from_json(&tag);
            let checked = read.and_then(|tag| tag.verify(&keys.public_key()).map(|()| tag));
            checked.map_err(|error| log::warn!("BUZZ_AUTH_TAG is not used: {error}")).ok()
        });
        Ok(Secrets { nsec: keys.nsec(), keys, owner_tag })
    }

    fn settings(&self, secrets: &Secrets) -> Result<Settings, ConfigError> {
        let options = self.options;
        let (idle_secs, max_turn_secs) = self.turn_times()?;
        let relay_url = options.relay_url.clone().or_else(|| self.env("BUZZ_RELAY_URL"));
        let drop_busy = self.word(&options.dedup, "DEDUP", &[("queue", false), ("drop", true)], false)?;
        let (respond_to, allowlist) = self.respond_to()?;
        let settings = Settings {
            version: self.around.version.clone(),
            agent: secrets.keys.public_key(),
            owner: self.owner(secrets),
            has_owner_tag: secrets.owner_tag.is_some(),
            relay_url: relay_url.unwrap_or_else(|| "ws://localhost:3000".to_owned()),
            cwd: if self.around.cwd.is_absolute() {
                self.around.cwd.display().to_string()
            } else {
                "/".to_owned()
            },
            agent_command: self.agent_command()?,
            mcp: None,
            agents: usize::try_from(self.in_range(&options.agents, "AGENTS", 1, 1..=AGENTS_MAX)?)
                .unwrap_or(1),
            lazy_pool: self.switch(options.lazy_pool, "LAZY_POOL")?,
            model: self.filled(&options.model, "MODEL"),
            session_title: self
                .text(&options.session_title, "SESSION_TITLE")
                .and_then(|title| command::clean_title(&title)),
            idle_timeout_ms: idle_secs * 1000,
            max_turn_ms: max_turn_secs * 1000,
            max_turns_per_session: self.number(&options.max_turns_per_session, "MAX_TURNS_PER_SESSION", 0)?,
            prompts: self.prompts()?,
            initial_message: self.filled(&options.initial_message, "INITIAL_MESSAGE"),
            memory: !self.switch(options.no_memory, "NO_MEMORY")?,
            heartbeat_ms: self.interval(&options.heartbeat_interval, "HEARTBEAT_INTERVAL", 0, 10)? * 1000,
            heartbeat_prompt: self.text_or_file(
                (&options.heartbeat_prompt, "HEARTBEAT_PROMPT"),
                (&options.heartbeat_prompt_file, "HEARTBEAT_PROMPT_FILE"),
            )?,
            liveness_ms: self.interval(&options.turn_liveness_secs, "TURN_LIVENESS_SECS", 10, 5)? * 1000,
            subscribe: self.subscribe()?,
            handling: self.handling(drop_busy)?,
            drop_busy,
            answer_self: self.switch(options.no_ignore_self, "NO_IGNORE_SELF")?,
            context_messages: usize::try_from(self.in_range(
                &options.context_message_limit,
                "CONTEXT_MESSAGE_LIMIT",
                12,
                0..=CONTEXT_MAX,
            )?)
            .unwrap_or(0),
            presence: !self.switch(options.no_presence, "NO_PRESENCE")?,
            typing: !self.switch(options.no_typing, "NO_TYPING")?,
            observer: self.switch(options.relay_observer, "RELAY_OBSERVER")?,
            permission_mode: self.permission_mode()?,
            respond_to,
            allowlist,
            display_name: self.env("BUZZ_ACP_DISPLAY_NAME"),
            catch_up_secs: self.catch_up()?,
            start_nonce: self.env("BUZZ_MANAGED_AGENT_START_NONCE"),
        };
        let mcp = self.mcp(&settings, secrets);
        Ok(Settings { mcp, ..settings })
    }

    fn owner(&self, secrets: &Secrets) -> Option<PublicKey> {
        if let Some(tag) = &secrets.owner_tag {
            return Some(tag.owner);
        }
        let named = self.filled(&self.options.agent_owner, "AGENT_OWNER")?;
        let owner = PublicKey::parse(&named.trim().to_lowercase());
        owner.map_err(|error| log::warn!("the agent's owner is not known: {error}")).ok()
    }

    fn agent_command(&self) -> Result<AgentCommand, ConfigError> {
        let program =
            self.text(&self.options.agent_command, "AGENT_COMMAND").unwrap_or_else(|| "goose".to_owned());
        if program.trim().is_empty() {
            return value("BUZZ_ACP_AGENT_COMMAND is blank; name the agent's program");
        }
        let identity = command::identity(&program);
        let args = self.text(&self.options.agent_args, "AGENT_ARGS").unwrap_or_else(|| "acp".to_owned());
        Ok(AgentCommand {
            args: command::arguments(&identity, &args),
            identity,
            program: program.trim().to_owned(),
        })
    }

    fn mcp(&self, settings: &Settings, secrets: &Secrets) -> Option<McpServer> {
        let program = self.filled(&self.options.mcp_command, "MCP_COMMAND")?;
        let name = Path::new(&program).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let args = self.options.mcp_args.clone().or_else(|| self.env("WAXLOG_MCP_ARGS")).unwrap_or_default();
        Some(McpServer {
            name: name.filter(|name| !name.is_empty()).unwrap_or_else(|| "mcp".to_owned()),
            command: program,
            args: args.split(',').map(str::trim).filter(|arg| !arg.is_empty()).map(str::to_owned).collect(),
            relay_url: self
                .env("BUZZ_ACP_MCP_RELAY_URL")
                .filter(|url| !url.is_empty())
                .unwrap_or_else(|| settings.relay_url.clone()),
            auth_tag: secrets.owner_tag.as_ref().map(OwnerTag::to_json),
        })
    }

    fn turn_times(&self) -> Result<(u64, u64), ConfigError> {
        let options = self.options;
        let old = self.number(&options.turn_timeout, "TURN_TIMEOUT", 900_u64)?;
        let idle_secs = self.number(&options.idle_timeout, "IDLE_TIMEOUT", old)?.max(1);
        let max_secs = match self.number(&options.max_turn_duration, "MAX_TURN_DURATION", 7_200_u64)? {
            0 => 60,
            secs => secs,
        };
        if max_secs > MAX_TURN_SECS {
            return value(format!(
                "BUZZ_ACP_MAX_TURN_DURATION is {max_secs} s, at most {MAX_TURN_SECS} s are allowed"
            ));
        }
        if idle_secs >= max_secs {
            return value(format!(
                "BUZZ_ACP_IDLE_TIMEOUT ({idle_secs} s) must be less than BUZZ_ACP_MAX_TURN_DURATION ({max_secs} s)"
            ));
        }
        Ok((idle_secs, max_secs))
    }

    fn in_range(
        &self,
        typed: &Option<String>,
        variable: &str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, ConfigError> {
        let number = self.number(typed, variable, default)?;
        if range.contains(&number) {
            return Ok(number);
        }
        let why = format!("a number from {} to {} is needed, got {number}", range.start(), range.end());
        form(&format!("BUZZ_ACP_{variable}"), why)
    }

    /// Seconds between two times: 0 is never, a day is the most.
    fn interval(
        &self,
        typed: &Option<String>,
        variable: &str,
        default: u64,
        least: u64,
    ) -> Result<u64, ConfigError> {
        match self.number(typed, variable, default)? {
            secs if secs > 0 && secs < least => {
                value(format!("BUZZ_ACP_{variable} is {secs} s; use 0 to switch it off, or at least {least}"))
            }
            secs => Ok(secs.min(DAY_SECS)),
        }
    }

    fn catch_up(&self) -> Result<u64, ConfigError> {
        let given = self.options.catch_up_secs.clone().or_else(|| self.env("WAXLOG_CATCH_UP_SECS"));
        given.map_or(Ok(DAY_SECS), |text| {
            text.parse()
                .or_else(|_| form("WAXLOG_CATCH_UP_SECS", format!("a number is needed, got {text:?}")))
        })
    }

    fn text_or_file(
        &self,
        (text, variable): (&Option<String>, &str),
        (file, file_variable): (&Option<String>, &str),
    ) -> Result<Option<String>, ConfigError> {
        match (self.text(text, variable), self.filled(file, file_variable)) {
            (Some(_), Some(_)) => form(
                &format!("BUZZ_ACP_{variable}"),
                format!("it cannot be used with BUZZ_ACP_{file_variable}"),
            ),
            (text, None) => Ok(text),
            (None, Some(file)) => read_text(&file).map(Some),
        }
    }

    fn prompts(&self) -> Result<Prompts, ConfigError> {
        let options = self.options;
        let base_file = self.filled(&options.base_prompt_file, "BASE_PROMPT_FILE");
        let base = match (self.switch(options.no_base_prompt, "NO_BASE_PROMPT")?, base_file) {
            (true, Some(_)) => {
                return form("BUZZ_ACP_NO_BASE_PROMPT", "it cannot be used with BUZZ_ACP_BASE_PROMPT_FILE")
            }
            (true, None) => None,
            (false, Some(file)) => Some(read_text(&file)?),
            (false, None) => Some(BASE.to_owned()),
        };
        let system = self.text_or_file(
            (&options.system_prompt, "SYSTEM_PROMPT"),
            (&options.system_prompt_file, "SYSTEM_PROMPT_FILE"),
        )?;
        let team =
            self.filled(&options.team_instructions, "TEAM_INSTRUCTIONS").map(|team| team.trim().to_owned());
        Ok(Prompts { base, system, team })
    }

    /// What some agents need to know of where they are.
    fn agent_environment(&self, settings: &Settings) -> BTreeMap<String, String> {
        let mut extra = BTreeMap::new();
        if matches!(settings.agent_command.identity.as_str(), "hermes" | "hermes-agent" | "hermes-acp") {
            extra.insert("HERMES_ACP_SKIP_CONFIGURED_MCP".to_owned(), "1".to_owned());
        }
        extra.insert("WAXLOG_HOME".to_owned(), self.around.home.display().to_string());
        extra
    }
}

fn read_text(file: &str) -> Result<String, ConfigError> {
    let bytes = std::fs::read(file).or_else(|error| value(format!("{file}: {error}")))?;
    if bytes.len() > TEXT_MAX_BYTES {
        return value(format!("{file} has {} bytes, at most {TEXT_MAX_BYTES} are read", bytes.len()));
    }
    String::from_utf8(bytes).or_else(|_| value(format!("{file} is not UTF-8")))
}
