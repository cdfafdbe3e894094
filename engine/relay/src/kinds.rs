//! Which kinds the relay takes, and what each needs.

use waxlog_nostr::kind::{self, *};

/// The first and the last kind of the huddle.
const HUDDLE_FIRST: u16 = 48_100;
const HUDDLE_LAST: u16 = 48_103;
const HUDDLE_STATE: u16 = 48_106;
/// Messages of a channel that are not plain: rich, edited, pinned, bookmarked, scheduled, due, diffs.
const CHANNEL_FIRST: u16 = MESSAGE_V2;
const CHANNEL_LAST: u16 = DIFF_MESSAGE;
/// Lists of a user.
const LISTS_FIRST: u16 = 10_000;
const LISTS_LAST: u16 = 10_003;
const EMOJI_LIST: u16 = 10_030;
const FOLLOW_SET: u16 = 30_000;
const BOOKMARK_SET: u16 = 30_003;
const READ_STATE: u16 = 30_078;

/// Whether only the relay itself says this.
pub(crate) fn is_relay_only(kind: u16) -> bool {
    matches!(
        kind,
        RELAY_MEMBERS | CHANNEL_SUMMARY | PRESENCE_SNAPSHOT | DM_VISIBILITY | THREAD_SUMMARY | WINDOW_BOUNDS
    )
}

/// Whether events of this kind belong to no channel, whatever their tags say.
pub(crate) fn is_global(kind: u16) -> bool {
    matches!(
        kind,
        PROFILE
            | NOTE
            | CONTACTS
            | GIFT_WRAP
            | GIT_PATCH
            | GIT_PULL_REQUEST
            | GIT_PULL_REQUEST_UPDATE
            | GIT_ISSUE
            | GIT_STATUS_OPEN..=GIT_STATUS_DRAFT
            | LISTS_FIRST..=LISTS_LAST
            | EMOJI_LIST
            | AGENT_PROFILE
            | FOLLOW_SET
            | BOOKMARK_SET
            | LONG_FORM
            | EMOJI_SET
            | READ_STATE
            | ENGRAM..=TEAM_CATALOG
            | REMINDER
            | USER_STATUS
            | REPO
            | REPO_STATE
            | WORKFLOW
            | PROJECT
            | TURN_METRIC
    )
}

/// Whether an event of this kind must name its channel.
pub(crate) fn needs_channel(kind: u16) -> bool {
    matches!(
        kind,
        MESSAGE
            | CHANNEL_FIRST..=CHANNEL_LAST
            | CANVAS
            | FORUM_POST..=FORUM_COMMENT
            | PUT_USER
            | REMOVE_USER
            | EDIT_CHANNEL
            | DELETE_MESSAGE
            | DELETE_CHANNEL
            | LEAVE_CHANNEL
            | HUDDLE_FIRST..=HUDDLE_LAST
            | HUDDLE_STATE
    )
}

/// Whether a kind is carried out at once and not stored.
pub(crate) fn is_command(kind: u16) -> bool {
    matches!(kind, DM_OPEN | DM_ADD | DM_HIDE)
}

/// Whether clients may send this kind. Reports, moderation, leases, the running of workflows and the relay's
/// own administration are not served and refused like a kind that nobody knows.
pub(crate) fn is_accepted(kind: u16) -> bool {
    is_global(kind)
        || needs_channel(kind)
        || is_command(kind)
        || matches!(kind, DELETION | REACTION | CREATE_CHANNEL | JOIN_CHANNEL)
}

/// Whether membership of the channel is looked at by the kind's own rule.
pub(crate) fn has_own_membership_rule(kind: u16) -> bool {
    matches!(kind, JOIN_CHANNEL | CREATE_CHANNEL | EDIT | EDIT_CHANNEL | DELETE_MESSAGE | DELETE_CHANNEL)
}

/// Whether the words of an event of this kind are found by a search.
pub(crate) fn is_searchable(kind: u16) -> bool {
    matches!(kind, PROFILE | MESSAGE | MESSAGE_V2 | FORUM_POST | FORUM_COMMENT)
}

/// Whether each event of this kind must be looked at before it is shown to someone.
pub(crate) fn is_gated_row_by_row(kind: u16) -> bool {
    kind::is_result_gated(kind) || kind::is_author_only(kind) || kind::is_shared_gated(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_accepted_kind_is_of_one_sort() {
        for kind in 0..=u16::MAX {
            let sorts = [is_global(kind), needs_channel(kind), is_command(kind), is_relay_only(kind)];
            assert!(sorts.iter().filter(|sort| **sort).count() <= 1, "kind {kind}");
            assert!(!(is_relay_only(kind) && is_accepted(kind)), "kind {kind}");
        }
    }

    #[test]
    fn kinds_that_the_relay_makes_itself_are_not_accepted() {
        for kind in
            [6, 41, 1063, 9009, 39000, 39001, 39002, 39003, 40099, 41001, 43001, 46001, 44100, 8000, 9999]
        {
            assert!(!is_accepted(kind), "kind {kind}");
        }
        for kind in [0, 1, 3, 5, 7, 9, 1059, 9000, 9021, 30023, 30620, 40007, 41010, 44200, 45001, 48106] {
            assert!(is_accepted(kind), "kind {kind}");
        }
    }
}
