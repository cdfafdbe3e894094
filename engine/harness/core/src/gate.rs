//! The gate: whose messages are answered.

use std::collections::BTreeMap;

use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{kind, Event, PublicKey};

use crate::prompt::ChannelKind;
use crate::settings::{RespondTo, Settings};

/// How many verdicts on authors are remembered.
pub const AUTHORS_MAX: usize = 256;
/// How long looking an author up may take.
pub const LOOKUP_MS: u64 = 2_000;

/// What the gate says of an author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Answered.
    Pass,
    /// Not answered.
    Stop,
    /// It depends on what kind the channel is.
    NeedsChannel,
    /// It depends on whose agent the author is.
    NeedsAuthor,
}

/// What is remembered of authors.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    siblings: BTreeMap<PublicKey, bool>,
}

impl Gate {
    /// Whether an author is answered in a channel; `channel` is absent while it is not known.
    pub fn verdict(&self, settings: &Settings, author: &PublicKey, channel: Option<ChannelKind>) -> Verdict {
        if settings.respond_to == RespondTo::Nobody {
            return Verdict::Stop;
        }
        if settings.owner.as_ref() == Some(author) {
            return Verdict::Pass;
        }
        let is_open = match settings.respond_to {
            RespondTo::Anyone => true,
            RespondTo::Allowlist => settings.allowlist.contains(author),
            RespondTo::OwnerOnly | RespondTo::Nobody => false,
        };
        if is_open {
            match channel {
                None => return Verdict::NeedsChannel,
                Some(ChannelKind::Stream | ChannelKind::Private) => return Verdict::Pass,
                // Clients name everybody in a direct conversation: being named there means nothing.
                Some(ChannelKind::Dm | ChannelKind::Unknown) => {}
            }
        }
        match (settings.owner, self.siblings.get(author)) {
            (None, _) | (_, Some(false)) => Verdict::Stop,
            (_, Some(true)) => Verdict::Pass,
            (_, None) => Verdict::NeedsAuthor,
        }
    }

    /// An author was looked up: `profile` is their newest one.
    pub fn looked_up(&mut self, owner: Option<&PublicKey>, author: PublicKey, profile: Option<&Event>) {
        if self.siblings.len() >= AUTHORS_MAX {
            self.siblings.clear();
        }
        let attested = profile
            .filter(|profile| profile.pubkey == author && profile.kind == kind::PROFILE)
            .and_then(OwnerTag::of_event);
        let is_sibling = attested.is_some_and(|tag| owner == Some(&tag.owner));
        self.siblings.insert(author, is_sibling);
    }

    /// The answer to a lookup that failed: no for the event at hand, and asked again for the next.
    pub fn is_unknown(&self, author: &PublicKey) -> bool {
        !self.siblings.contains_key(author)
    }
}

/// What the owner may order by a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// End the process.
    Shutdown,
    /// End the channel's turn.
    Cancel,
    /// Begin the channel's session anew.
    Rotate,
}

/// The order that an event is, if it is one.
pub fn command(settings: &Settings, event: &Event) -> Option<Command> {
    let hex = settings.agent.to_hex();
    let is_order = event.kind == kind::MESSAGE
        && settings.owner == Some(event.pubkey)
        && event.tag_values("p").any(|named| named == hex);
    if !is_order {
        return None;
    }
    match event.content.trim() {
        "!shutdown" => Some(Command::Shutdown),
        "!cancel" => Some(Command::Cancel),
        "!rotate" => Some(Command::Rotate),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::settings;
    use waxlog_nostr::{Draft, Keys};

    fn gated(respond_to: RespondTo, author: &PublicKey, channel: Option<ChannelKind>) -> Verdict {
        let owner = Keys::parse(&"02".repeat(32)).unwrap().public_key();
        let listed = PublicKey::from_bytes([7; 32]);
        let settings = Settings { respond_to, owner: Some(owner), allowlist: vec![listed], ..settings() };
        let mut gate = Gate::default();
        gate.looked_up(Some(&owner), PublicKey::from_bytes([8; 32]), None);
        gate.verdict(&settings, author, channel)
    }

    #[test]
    fn each_mode_answers_whom_it_says() {
        let owner = Keys::parse(&"02".repeat(32)).unwrap().public_key();
        let (listed, stranger) = (PublicKey::from_bytes([7; 32]), PublicKey::from_bytes([8; 32]));
        use ChannelKind::{Dm, Stream, Unknown};
        use RespondTo::{Allowlist, Anyone, Nobody, OwnerOnly};
        use Verdict::{NeedsAuthor, NeedsChannel, Pass, Stop};
        for (mode, author, channel, wanted) in [
            (OwnerOnly, owner, Some(Stream), Pass),
            (OwnerOnly, stranger, Some(Stream), Stop),
            (OwnerOnly, listed, Some(Stream), NeedsAuthor),
            (Allowlist, listed, Some(Stream), Pass),
            (Allowlist, listed, Some(Dm), NeedsAuthor),
            (Allowlist, stranger, Some(Stream), Stop),
            (Anyone, stranger, Some(Stream), Pass),
            (Anyone, stranger, None, NeedsChannel),
            (Anyone, stranger, Some(Dm), Stop),
            (Anyone, stranger, Some(Unknown), Stop),
            (Anyone, owner, Some(Dm), Pass),
            (Nobody, owner, Some(Stream), Stop),
        ] {
            assert_eq!(gated(mode, &author, channel), wanted, "{mode:?} {channel:?}");
        }
    }

    #[test]
    fn a_sibling_shows_the_owners_attestation_of_itself() {
        let (owner, sibling, other) = (Keys::generate(), Keys::generate(), Keys::generate());
        let tag = OwnerTag::issue(&owner, &sibling.public_key(), "").unwrap();
        let profile = |keys: &Keys| keys.sign(Draft::new(0, "{}", 1).tag(tag.to_tag()));
        let settings = Settings { owner: Some(owner.public_key()), ..settings() };
        let mut gate = Gate::default();
        for keys in [&sibling, &other] {
            gate.looked_up(settings.owner.as_ref(), keys.public_key(), Some(&profile(keys)));
        }
        let verdict = |keys: &Keys| gate.verdict(&settings, &keys.public_key(), Some(ChannelKind::Dm));
        assert_eq!((verdict(&sibling), verdict(&other)), (Verdict::Pass, Verdict::Stop));
    }

    #[test]
    fn an_order_is_exact_and_the_owners() {
        let (owner, agent) = (Keys::generate(), Keys::generate());
        let settings = Settings { owner: Some(owner.public_key()), agent: agent.public_key(), ..settings() };
        let named = ["p", &agent.public_key().to_hex()];
        let order = |keys: &Keys, kind, content: &str| {
            command(&settings, &keys.sign(Draft::new(kind, content, 1).tag(named)))
        };
        assert_eq!(order(&owner, 9, " !cancel\n"), Some(Command::Cancel));
        assert_eq!(order(&owner, 9, "!cancel now"), None);
        assert_eq!(order(&owner, 1, "!cancel"), None);
        assert_eq!(order(&agent, 9, "!shutdown"), None);
        assert_eq!(command(&settings, &owner.sign(Draft::new(9, "!rotate", 1))), None);
    }
}
