//! What moderators ask of a relay: kinds 9040 to 9044.

use std::str::FromStr;

use super::BuildError;
use crate::event::Draft;
use crate::id::{EventId, PublicKey};
use crate::kind::{BAN, RESOLVE_REPORT, TIMEOUT, UNBAN, UNTIMEOUT};

/// Shuts somebody out until a time in seconds since 1970, or for good.
pub fn ban(
    who: &PublicKey,
    expires_at: Option<u64>,
    reason: Option<&str>,
    now: u64,
) -> Result<Draft, BuildError> {
    restriction(BAN, who, expires_at, reason, now)
}

/// Lifts a ban.
pub fn unban(who: &PublicKey, now: u64) -> Draft {
    Draft::new(UNBAN, "", now).tag(["p", &who.to_hex()])
}

/// Silences somebody until a time in seconds since 1970.
pub fn timeout(
    who: &PublicKey,
    expires_at: u64,
    reason: Option<&str>,
    now: u64,
) -> Result<Draft, BuildError> {
    restriction(TIMEOUT, who, Some(expires_at), reason, now)
}

/// Lifts a time-out.
pub fn untimeout(who: &PublicKey, now: u64) -> Draft {
    Draft::new(UNTIMEOUT, "", now).tag(["p", &who.to_hex()])
}

fn restriction(
    kind: u16,
    who: &PublicKey,
    expires_at: Option<u64>,
    reason: Option<&str>,
    now: u64,
) -> Result<Draft, BuildError> {
    let mut draft = Draft::new(kind, "", now).tag(["p", &who.to_hex()]);
    if let Some(time) = expires_at {
        if time <= now {
            return Err(BuildError::invalid(
                "the end of the restriction",
                "in the future",
                &time.to_string(),
            ));
        }
        draft = draft.tag(["expiration", &time.to_string()]);
    }
    Ok(reason.iter().fold(draft, |draft, reason| draft.tag(["reason", reason])))
}

/// How a report ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportStatus(&'static str);

/// What was done about a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportAction(&'static str);

const STATUSES: [&str; 2] = ["resolved", "dismissed"];
const ACTIONS: [&str; 6] = ["delete", "kick", "ban", "timeout", "dismiss", "escalate"];

fn word(
    what: &'static str,
    wanted: &'static str,
    known: &[&'static str],
    text: &str,
) -> Result<&'static str, BuildError> {
    known.iter().copied().find(|word| *word == text).ok_or_else(|| BuildError::invalid(what, wanted, text))
}

impl FromStr for ReportStatus {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        word("the status of a report", "resolved or dismissed", &STATUSES, text).map(Self)
    }
}

impl FromStr for ReportAction {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        let wanted = "delete, kick, ban, timeout, dismiss or escalate";
        word("the action on a report", wanted, &ACTIONS, text).map(Self)
    }
}

/// Closes a report: `report`, `status`, `action`, `reason`. The action itself is another command.
pub fn resolve(
    report: &EventId,
    status: ReportStatus,
    action: ReportAction,
    reason: Option<&str>,
    now: u64,
) -> Draft {
    let draft = Draft::new(RESOLVE_REPORT, "", now)
        .tag(["report", &report.to_hex()])
        .tag(["status", status.0])
        .tag(["action", action.0]);
    reason.iter().fold(draft, |draft, reason| draft.tag(["reason", reason]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: PublicKey = PublicKey::from_bytes([7; 32]);

    #[test]
    fn a_ban_may_be_for_good_and_a_restriction_ends_in_the_future() {
        let who = WHO.to_hex();
        let for_good = ban(&WHO, None, None, 5).unwrap();
        assert_eq!((for_good.kind, for_good.tags), (9040, vec![vec!["p".to_owned(), who.clone()]]));
        let draft = timeout(&WHO, 6, Some("spam"), 5).unwrap();
        assert_eq!(draft.kind, 9042);
        assert_eq!(draft.tags, [["p", &who], ["expiration", "6"], ["reason", "spam"]]);
        assert!(timeout(&WHO, 5, None, 5).is_err() && ban(&WHO, Some(1), None, 5).is_err());
    }

    #[test]
    fn what_is_lifted_names_only_whom() {
        let wanted = [["p", &WHO.to_hex()]];
        assert_eq!((unban(&WHO, 5).kind, untimeout(&WHO, 5).kind), (9041, 9043));
        assert_eq!(unban(&WHO, 5).tags, wanted);
        assert_eq!(untimeout(&WHO, 5).tags, wanted);
    }

    #[test]
    fn a_report_is_closed_with_known_words() {
        let report = EventId::from_bytes([8; 32]);
        let draft = resolve(&report, "resolved".parse().unwrap(), "ban".parse().unwrap(), Some("rule 3"), 5);
        let wanted =
            [["report", &report.to_hex()], ["status", "resolved"], ["action", "ban"], ["reason", "rule 3"]];
        assert_eq!((draft.kind, draft.content.as_str()), (9044, ""));
        assert_eq!(draft.tags, wanted);
        assert!("open".parse::<ReportStatus>().is_err() && "dismissed".parse::<ReportStatus>().is_ok());
        assert!("warn".parse::<ReportAction>().is_err());
        assert!(ACTIONS.iter().all(|action| action.parse::<ReportAction>().is_ok()));
    }
}
