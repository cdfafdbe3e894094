//! Direct conversations.

use super::{in_channel, BuildError};
use crate::channel::{ChannelId, MAX_DM_OTHERS};
use crate::event::Draft;
use crate::id::PublicKey;
use crate::kind::{DM_ADD, DM_HIDE, DM_OPEN};

/// Opens the conversation with these others; the same set is the same conversation. `nonce` makes two equal
/// requests differ.
pub fn open(others: &[PublicKey], nonce: &str, now: u64) -> Result<Draft, BuildError> {
    if !(1..=MAX_DM_OTHERS).contains(&others.len()) {
        return Err(BuildError::invalid(
            "a direct conversation",
            "opened with 1 to 8 others",
            &others.len().to_string(),
        ));
    }
    let draft = Draft::new(DM_OPEN, "", now);
    let named = others.iter().fold(draft, |draft, other| draft.tag(["p", &other.to_hex()]));
    Ok(named.tag(["d", nonce]))
}

/// Opens the larger conversation of those in `channel` and one more.
pub fn add_member(channel: &ChannelId, member: &PublicKey, now: u64) -> Draft {
    in_channel(DM_ADD, channel, "", now).tag(["p", &member.to_hex()])
}

/// Keeps a conversation out of one's lists.
pub fn hide(channel: &ChannelId, now: u64) -> Draft {
    in_channel(DM_HIDE, channel, "", now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    #[test]
    fn a_conversation_has_1_to_8_others() {
        let others: Vec<_> = (0..9).map(|_| Keys::generate().public_key()).collect();
        assert!(open(&[], "n", 5).is_err());
        assert!(open(&others, "n", 5).is_err());
        let draft = open(&others[..8], "n", 5).unwrap();
        assert_eq!((draft.kind, draft.tags.len()), (41_010, 9));
        assert_eq!(draft.tags[8], ["d", "n"]);
    }

    #[test]
    fn members_and_hiding_name_the_conversation() {
        let channel: ChannelId = "99999999-9999-4999-8999-999999999999".parse().unwrap();
        let bob = Keys::generate().public_key();
        let draft = add_member(&channel, &bob, 5);
        assert_eq!(draft.tags, [["h", &channel.to_string()], ["p", &bob.to_hex()]]);
        assert_eq!((draft.kind, hide(&channel, 5).kind), (41_011, 41_012));
    }
}
