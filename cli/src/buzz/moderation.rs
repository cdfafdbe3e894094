//! `moderation`: what a relay's moderators do, and what they see.

use std::str::FromStr;

use structopt::StructOpt;
use waxlog_nostr::build::moderation::{ban, resolve, timeout, unban, untimeout, ReportAction, ReportStatus};
use waxlog_nostr::{EventId, PublicKey};

use async_std::task::block_on;

use super::context::Context;
use super::failure::{as_usage, Failure};
use super::output::Output;

// Bans, silences, and handles reports. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog moderation reports --status open")]
pub(crate) enum Moderation {
    /// Shuts somebody out, for a time or for good.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog moderation ban --pubkey HEX --expires-in 604800 --reason spam"
    )]
    Ban {
        #[structopt(flatten)]
        restriction: Restriction,
    },
    /// Lifts a ban.
    #[structopt(after_help = "EXAMPLE:\n    waxlog moderation unban --pubkey HEX")]
    Unban {
        /// Whose
        #[structopt(long, value_name = "PUBKEY")]
        pubkey: PublicKey,
    },
    /// Silences somebody for a time.
    #[structopt(after_help = "EXAMPLE:\n    waxlog moderation timeout --pubkey HEX --expires-in 3600")]
    Timeout {
        #[structopt(flatten)]
        restriction: Restriction,
    },
    /// Lifts a time-out.
    #[structopt(after_help = "EXAMPLE:\n    waxlog moderation untimeout --pubkey HEX")]
    Untimeout {
        /// Whose
        #[structopt(long, value_name = "PUBKEY")]
        pubkey: PublicKey,
    },
    /// Closes a report. What it says was done is another command.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog moderation resolve --report ID --status dismissed --action dismiss"
    )]
    Resolve {
        /// The report
        #[structopt(long, value_name = "ID")]
        report: EventId,
        /// resolved or dismissed
        #[structopt(long, value_name = "STATUS")]
        status: ReportStatus,
        /// delete, kick, ban, timeout, dismiss or escalate; dismiss goes with dismissed only
        #[structopt(long, value_name = "ACTION")]
        action: ReportAction,
        /// Why; the reporter reads it
        #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
        reason: Option<String>,
    },
    /// Lists the reports, the newest first.
    #[structopt(after_help = "EXAMPLE:\n    waxlog moderation reports --status open --limit 20")]
    Reports {
        /// Only with this status: open, resolved, dismissed or escalated
        #[structopt(long, value_name = "STATUS")]
        status: Option<ListedStatus>,
        /// At most so many
        #[structopt(long, value_name = "N", default_value = "50")]
        limit: u32,
    },
    /// Lists who is shut out or silenced.
    #[structopt(after_help = "EXAMPLE:\n    waxlog moderation restricted")]
    Restricted,
    /// Lists what moderators did, the newest first.
    #[structopt(after_help = "EXAMPLE:\n    waxlog moderation audit --limit 20")]
    Audit {
        /// At most so many
        #[structopt(long, value_name = "N", default_value = "50")]
        limit: u32,
    },
}

// (A doc comment here would become the help of the commands.)
#[derive(StructOpt)]
pub(crate) struct Restriction {
    /// Who
    #[structopt(long, value_name = "PUBKEY")]
    pubkey: PublicKey,
    /// It ends so many seconds from now
    #[structopt(long, value_name = "SECONDS", conflicts_with = "expires-at")]
    expires_in: Option<u64>,
    /// It ends then, in seconds since 1970
    #[structopt(long, value_name = "TIME")]
    expires_at: Option<u64>,
    /// Why
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,
}

impl Restriction {
    /// When it ends, in seconds since 1970.
    fn end(&self, now: u64) -> Option<u64> {
        self.expires_at.or(self.expires_in.map(|seconds| now.saturating_add(seconds)))
    }
}

/// A status that reports can be listed by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedStatus(String);

impl FromStr for ListedStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<ListedStatus, String> {
        match text {
            "open" | "resolved" | "dismissed" | "escalated" => Ok(ListedStatus(text.to_owned())),
            _ => Err(format!("unknown status {text:?}: use open, resolved, dismissed or escalated")),
        }
    }
}

impl Moderation {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        let now = context.now();
        match self {
            Moderation::Ban { restriction } => {
                let reason = restriction.reason.as_deref();
                let draft = ban(&restriction.pubkey, restriction.end(now), reason, now);
                context.publish(draft.map_err(as_usage)?)
            }
            Moderation::Timeout { restriction } => {
                let end = restriction.end(now).ok_or_else(|| {
                    Failure::Usage("a time-out ends: give --expires-in or --expires-at".into())
                })?;
                let draft = timeout(&restriction.pubkey, end, restriction.reason.as_deref(), now);
                context.publish(draft.map_err(as_usage)?)
            }
            Moderation::Unban { pubkey } => context.publish(unban(&pubkey, now)),
            Moderation::Untimeout { pubkey } => context.publish(untimeout(&pubkey, now)),
            Moderation::Resolve { report, status, action, reason } => {
                context.publish(resolve(&report, status, action, reason.as_deref(), now))
            }
            Moderation::Reports { status, limit } => {
                let status = status.map(|ListedStatus(status)| format!("&status={status}"));
                rows(context, &format!("reports?limit={limit}{}", status.unwrap_or_default()))
            }
            Moderation::Restricted => rows(context, "restricted"),
            Moderation::Audit { limit } => rows(context, &format!("audit?limit={limit}")),
        }
    }
}

fn rows(context: &Context, what: &str) -> Result<Output, Failure> {
    Ok(block_on(context.relay().get(&format!("/moderation/{what}")))?.into())
}
