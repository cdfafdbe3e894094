//! From what was typed and what is in the environment to a configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use waxlog_harness_core::command;
use waxlog_harness_core::prompt::BASE;
use waxlog_harness_core::rules::{Rules, MENTION_KINDS};
use waxlog_harness_core::settings::{
    AgentCommand, Handling, McpServer, Prompts, RespondTo, Settings, Subscribe,
};
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Keys, PublicKey};

use super::{Config, ConfigError, Options, Secrets};
use crate::rules_file;

const AGENTS_MAX: u64 = 32;
const MAX_TURN_SECS: u64 = 604_800;
const DAY_SECS: u64 = 86_400;
const CONTEXT_MAX: u64 = 100;
/// Largest text file that is read, in bytes.
const TEXT_MAX_BYTES: usize = 1_048_576;
const MODES: [(&str, RespondTo); 4] = [
    ("owner-only", RespondTo::OwnerOnly),
    ("allowlist", RespondTo::Allowlist),
    ("anyone", RespondTo::Anyone),
    ("nobody", RespondTo::Nobody),
];

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

struct Reader<'a> {
    options: &'a Options,
    around: &'a Surroundings<'a>,
}

fn form<T>(name: &str, why: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::Form { name: name.to_owned(), why: why.into() })
}

fn value<T>(why: impl Into<String>) -> Result<T, ConfigError> {
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
    fn text(&self, typed: &Option<String>, variable: &str) -> Option<String> {
        typed.clone().or_else(|| self.env(&format!("BUZZ_ACP_{variable}")))
    }

    fn filled(&self, typed: &Option<String>, variable: &str) -> Option<String> {
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
    fn switch(&self, typed: bool, variable: &str) -> Result<bool, ConfigError> {
        let name = format!("BUZZ_ACP_{variable}");
        match (typed, self.env(&name).as_deref()) {
            (true, _) | (_, Some("true")) => Ok(true),
            (_, None | Some("false")) => Ok(false),
            (_, Some(other)) => form(&name, format!("true or false is needed, got {other:?}")),
        }
    }

    fn list(&self, typed: &Option<String>, variable: &str) -> Vec<String> {
        let text = self.text(typed, variable).unwrap_or_default();
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    fn word<T: Copy>(
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

    fn subscribe(&self) -> Result<Subscribe, ConfigError> {
        let options = self.options;
        let modes = [("mentions", 0), ("all", 1), ("config", 2)];
        let mode = self.word(&options.subscribe, "SUBSCRIBE", &modes, 0)?;
        let by_mention = !self.switch(options.no_mention_filter, "NO_MENTION_FILTER")?;
        let kinds = self.kinds()?;
        let channels = self.channels();
        if mode == 2 {
            if kinds.is_some() || channels.is_some() || !by_mention {
                log::warn!("--kinds, --channels and --no-mention-filter mean nothing in the mode config");
            }
            let file = self.text(&options.config, "CONFIG").unwrap_or_else(|| "./buzz-acp.toml".to_owned());
            let rules = rules_file::read(Path::new(&file)).or_else(value)?;
            if rules.is_empty() {
                log::warn!("{file} has no rules: nothing will be answered");
            }
            let subscribe = Subscribe::Rules(rules);
            return Rules::new(&subscribe)
                .map(|_| subscribe)
                .or_else(|error| value(format!("{file}: {error}")));
        }
        Ok(match mode {
            0 => Subscribe::Mentions {
                kinds: kinds.unwrap_or_else(|| MENTION_KINDS.to_vec()),
                by_mention,
                channels,
            },
            _ => Subscribe::All { kinds, channels },
        })
    }

    fn kinds(&self) -> Result<Option<Vec<u16>>, ConfigError> {
        let list = self.list(&self.options.kinds, "KINDS");
        let kind = |item: &String| {
            item.parse::<u16>().or_else(|_| {
                form("BUZZ_ACP_KINDS", format!("a kind from 0 to 65535 is needed, got {item:?}"))
            })
        };
        let kinds: Vec<u16> = list.iter().map(kind).collect::<Result<_, _>>()?;
        Ok((!kinds.is_empty()).then_some(kinds))
    }

    fn channels(&self) -> Option<Vec<String>> {
        let list = self.list(&self.options.channels, "CHANNELS");
        let read = |item: &String| {
            let read = item.parse::<ChannelId>();
            read.map_err(|_| log::warn!("channel {item:?} is passed over: it is no UUID")).ok()
        };
        (!list.is_empty()).then(|| list.iter().filter_map(read).map(|id| id.to_string()).collect())
    }

    fn handling(&self, drop_busy: bool) -> Result<Handling, ConfigError> {
        let known = [
            ("steer", Handling::Steer),
            ("queue", Handling::Queue),
            ("interrupt", Handling::Interrupt),
            ("owner-interrupt", Handling::OwnerInterrupt),
        ];
        let handling = self.word(
            &self.options.multiple_event_handling,
            "MULTIPLE_EVENT_HANDLING",
            &known,
            Handling::Steer,
        )?;
        if drop_busy && handling != Handling::Queue {
            return value(
                "BUZZ_ACP_DEDUP=drop drops what comes during a turn: it needs BUZZ_ACP_MULTIPLE_EVENT_HANDLING=queue",
            );
        }
        Ok(handling)
    }

    fn permission_mode(&self) -> Result<Option<String>, ConfigError> {
        let known = [
            ("default", None),
            ("accept-edits", Some("acceptEdits")),
            ("acceptEdits", Some("acceptEdits")),
            ("bypass-permissions", Some("bypassPermissions")),
            ("bypassPermissions", Some("bypassPermissions")),
            ("dont-ask", Some("dontAsk")),
            ("dontAsk", Some("dontAsk")),
            ("plan", Some("plan")),
        ];
        let mode =
            self.word(&self.options.permission_mode, "PERMISSION_MODE", &known, Some("bypassPermissions"))?;
        Ok(mode.map(str::to_owned))
    }

    fn respond_to(&self) -> Result<(RespondTo, Vec<PublicKey>), ConfigError> {
        let options = self.options;
        let mode = self.word(&options.respond_to, "RESPOND_TO", &MODES, RespondTo::OwnerOnly)?;
        let word_of =
            |mode: RespondTo| MODES.iter().find(|(_, known)| *known == mode).map_or("", |(word, _)| word);
        let allowed = self.list(&options.allowed_respond_to, "ALLOWED_RESPOND_TO");
        for item in &allowed {
            if !MODES.iter().any(|(word, _)| word == item) {
                return value(format!("BUZZ_ACP_ALLOWED_RESPOND_TO: {item:?} is no mode"));
            }
        }
        if !allowed.is_empty() && !allowed.iter().any(|item| item == word_of(mode)) {
            return value(format!(
                "BUZZ_ACP_RESPOND_TO={} is not permitted here; BUZZ_ACP_ALLOWED_RESPOND_TO permits {}",
                word_of(mode),
                allowed.join(", ")
            ));
        }
        let listed = self.list(&options.respond_to_allowlist, "RESPOND_TO_ALLOWLIST");
        if mode != RespondTo::Allowlist {
            if !listed.is_empty() {
                log::warn!(
                    "BUZZ_ACP_RESPOND_TO_ALLOWLIST means nothing without BUZZ_ACP_RESPOND_TO=allowlist"
                );
            }
            return Ok((mode, Vec::new()));
        }
        let key = |item: &String| {
            item.to_lowercase()
                .parse::<PublicKey>()
                .or_else(|error| value(format!("BUZZ_ACP_RESPOND_TO_ALLOWLIST: {error}")))
        };
        let mut keys: Vec<PublicKey> = listed.iter().map(key).collect::<Result<_, _>>()?;
        keys.sort();
        keys.dedup();
        if keys.is_empty() {
            return value(
                "BUZZ_ACP_RESPOND_TO=allowlist needs at least one key in BUZZ_ACP_RESPOND_TO_ALLOWLIST",
            );
        }
        Ok((mode, keys))
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
