//! What is answered, of whom, and what happens to a message while another is being answered.

use std::path::Path;

use waxlog_harness_core::rules::{Rules, MENTION_KINDS};
use waxlog_harness_core::settings::{Handling, RespondTo, Subscribe};
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::PublicKey;

use super::read::{form, value, Reader};
use super::ConfigError;
use crate::rules_file;

const MODES: [(&str, RespondTo); 4] = [
    ("owner-only", RespondTo::OwnerOnly),
    ("allowlist", RespondTo::Allowlist),
    ("anyone", RespondTo::Anyone),
    ("nobody", RespondTo::Nobody),
];

impl Reader<'_> {
    pub(super) fn subscribe(&self) -> Result<Subscribe, ConfigError> {
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

    pub(super) fn handling(&self, drop_busy: bool) -> Result<Handling, ConfigError> {
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

    pub(super) fn permission_mode(&self) -> Result<Option<String>, ConfigError> {
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

    pub(super) fn respond_to(&self) -> Result<(RespondTo, Vec<PublicKey>), ConfigError> {
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
}
