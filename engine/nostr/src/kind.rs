//! Kinds: their numbers, and how a relay keeps each.

/// A person's or agent's profile.
pub const PROFILE: u16 = 0;
/// A short note.
pub const NOTE: u16 = 1;
/// Whom an author follows.
pub const CONTACTS: u16 = 3;
/// A deletion of one event or coordinate.
pub const DELETION: u16 = 5;
/// A reaction to an event.
pub const REACTION: u16 = 7;
/// A message in a channel.
pub const MESSAGE: u16 = 9;
/// A sealed message (NIP-59).
pub const GIFT_WRAP: u16 = 1059;
/// A patch (NIP-34).
pub const GIT_PATCH: u16 = 1617;
/// A pull request.
pub const GIT_PULL_REQUEST: u16 = 1618;
/// New commits of a pull request.
pub const GIT_PULL_REQUEST_UPDATE: u16 = 1619;
/// An issue.
pub const GIT_ISSUE: u16 = 1621;
/// A status: open.
pub const GIT_STATUS_OPEN: u16 = 1630;
/// A status: applied, merged or resolved.
pub const GIT_STATUS_MERGED: u16 = 1631;
/// A status: closed.
pub const GIT_STATUS_CLOSED: u16 = 1632;
/// A status: draft.
pub const GIT_STATUS_DRAFT: u16 = 1633;
/// A report to the moderators.
pub const REPORT: u16 = 1984;
/// Adds a member to a channel, or changes its role.
pub const PUT_USER: u16 = 9000;
/// Removes a member of a channel.
pub const REMOVE_USER: u16 = 9001;
/// Changes a channel's metadata.
pub const EDIT_CHANNEL: u16 = 9002;
/// Deletes a message of a channel.
pub const DELETE_MESSAGE: u16 = 9005;
/// Creates a channel.
pub const CREATE_CHANNEL: u16 = 9007;
/// Deletes a channel.
pub const DELETE_CHANNEL: u16 = 9008;
/// Joins an open channel.
pub const JOIN_CHANNEL: u16 = 9021;
/// Leaves a channel.
pub const LEAVE_CHANNEL: u16 = 9022;
/// Asks the relay to archive an identity.
pub const ARCHIVE_IDENTITY: u16 = 9035;
/// Asks the relay to bring an identity back.
pub const UNARCHIVE_IDENTITY: u16 = 9036;
/// Bans an identity.
pub const BAN: u16 = 9040;
/// Lifts a ban.
pub const UNBAN: u16 = 9041;
/// Silences an identity for some time.
pub const TIMEOUT: u16 = 9042;
/// Lifts a time-out.
pub const UNTIMEOUT: u16 = 9043;
/// Closes a report.
pub const RESOLVE_REPORT: u16 = 9044;
/// An agent's own profile: who may add it to channels.
pub const AGENT_PROFILE: u16 = 10100;
/// The relay's list of members.
pub const RELAY_MEMBERS: u16 = 13534;
/// The relay's list of archived identities.
pub const ARCHIVED_IDENTITIES: u16 = 13535;
/// Presence; never stored.
pub const PRESENCE: u16 = 20001;
/// Typing; never stored.
pub const TYPING: u16 = 20002;
/// The answer to a relay's challenge (NIP-42).
pub const RELAY_AUTH: u16 = 22242;
/// A frame between an agent and its owner; never stored.
pub const OBSERVER_FRAME: u16 = 24200;
/// Authorizes an upload or download (Blossom).
pub const BLOB_AUTH: u16 = 24242;
/// Authorizes an HTTP request (NIP-98).
pub const HTTP_AUTH: u16 = 27235;
/// A long text (NIP-23).
pub const LONG_FORM: u16 = 30023;
/// A set of emoji.
pub const EMOJI_SET: u16 = 30030;
/// An agent's memory.
pub const ENGRAM: u16 = 30174;
/// A persona.
pub const PERSONA: u16 = 30175;
/// A team of personas.
pub const TEAM: u16 = 30176;
/// An agent that an owner runs.
pub const MANAGED_AGENT: u16 = 30177;
/// A catalogue of teams.
pub const TEAM_CATALOG: u16 = 30178;
/// A reminder to oneself.
pub const REMINDER: u16 = 30300;
/// What a user is doing.
pub const USER_STATUS: u16 = 30315;
/// A push lease.
pub const PUSH_LEASE: u16 = 30350;
/// A repository's announcement (NIP-34).
pub const REPO: u16 = 30617;
/// A repository's state.
pub const REPO_STATE: u16 = 30618;
/// A workflow's definition.
pub const WORKFLOW: u16 = 30620;
/// A project: a set of repositories.
pub const PROJECT: u16 = 30621;
/// Which direct conversations a viewer has hidden.
pub const DM_VISIBILITY: u16 = 30622;
/// A channel's metadata, by the relay.
pub const CHANNEL_METADATA: u16 = 39000;
/// A channel's owners and admins, by the relay.
pub const CHANNEL_ADMINS: u16 = 39001;
/// A channel's members, by the relay.
pub const CHANNEL_MEMBERS: u16 = 39002;
/// A thread's counts, by the relay.
pub const THREAD_SUMMARY: u16 = 39005;
/// The bounds of a channel window, by the relay.
pub const WINDOW_BOUNDS: u16 = 39006;
/// A message of the second form; read, never written here.
pub const MESSAGE_V2: u16 = 40002;
/// An edit of a message.
pub const EDIT: u16 = 40003;
/// A message that shows a diff.
pub const DIFF_MESSAGE: u16 = 40008;
/// What happened in a channel, by the relay.
pub const SYSTEM_MESSAGE: u16 = 40099;
/// A channel's shared document.
pub const CANVAS: u16 = 40100;
/// A channel's summary, by the relay.
pub const CHANNEL_SUMMARY: u16 = 40901;
/// A snapshot of presence, by the relay.
pub const PRESENCE_SNAPSHOT: u16 = 40902;
/// A direct conversation was opened, by the relay.
pub const DM_CREATED: u16 = 41001;
/// Opens a direct conversation.
pub const DM_OPEN: u16 = 41010;
/// Opens a larger direct conversation.
pub const DM_ADD: u16 = 41011;
/// Hides a direct conversation.
pub const DM_HIDE: u16 = 41012;
/// You were added to a channel, by the relay.
pub const MEMBER_ADDED: u16 = 44100;
/// You were removed from a channel, by the relay.
pub const MEMBER_REMOVED: u16 = 44101;
/// What an agent's turn cost.
pub const TURN_METRIC: u16 = 44200;
/// A forum post.
pub const FORUM_POST: u16 = 45001;
/// A vote on a forum post or comment.
pub const FORUM_VOTE: u16 = 45002;
/// A comment on a forum post.
pub const FORUM_COMMENT: u16 = 45003;
/// Starts a workflow.
pub const WORKFLOW_TRIGGER: u16 = 46020;
/// Approves a workflow's step.
pub const WORKFLOW_GRANT: u16 = 46030;
/// Denies a workflow's step.
pub const WORKFLOW_DENY: u16 = 46031;

/// How a relay keeps an event of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Each is kept.
    Regular,
    /// The newest of an author is kept.
    Replaceable,
    /// Passed on, never kept.
    Ephemeral,
    /// The newest of an author with a `d` value is kept.
    Addressable,
}

/// The class of a kind.
pub const fn class(kind: u16) -> Class {
    match kind {
        0 | 3 | 41 | 10_000..=19_999 => Class::Replaceable,
        20_000..=29_999 => Class::Ephemeral,
        30_000..=39_999 => Class::Addressable,
        _ => Class::Regular,
    }
}

/// Whether events of this kind are read only with `#p` naming the reader.
pub const fn is_p_gated(kind: u16) -> bool {
    matches!(kind, OBSERVER_FRAME | MEMBER_ADDED | MEMBER_REMOVED | GIFT_WRAP | DM_VISIBILITY | TURN_METRIC)
}

/// Whether each event of this kind is shown to the key in its `p` tag only, however it was asked for.
pub const fn is_result_gated(kind: u16) -> bool {
    matches!(kind, DM_VISIBILITY | TURN_METRIC)
}

/// Whether only the author reads events of this kind.
pub const fn is_author_only(kind: u16) -> bool {
    matches!(kind, REMINDER | PUSH_LEASE)
}

/// Whether others than the author read an event of this kind only if it is marked as shared.
pub const fn is_shared_gated(kind: u16) -> bool {
    matches!(kind, PERSONA | TEAM_CATALOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_the_class_of_its_range() {
        let expected = [
            (0, Class::Replaceable),
            (1, Class::Regular),
            (3, Class::Replaceable),
            (41, Class::Replaceable),
            (9_999, Class::Regular),
            (10_000, Class::Replaceable),
            (19_999, Class::Replaceable),
            (20_000, Class::Ephemeral),
            (29_999, Class::Ephemeral),
            (30_000, Class::Addressable),
            (39_999, Class::Addressable),
            (40_000, Class::Regular),
            (65_535, Class::Regular),
        ];
        for (kind, wanted) in expected {
            assert_eq!(class(kind), wanted, "kind {kind}");
        }
    }
}
