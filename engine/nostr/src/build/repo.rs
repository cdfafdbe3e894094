//! Announcements of repositories: kind 30617, and how one is rewritten.

pub mod protect;

use super::git::RepoId;
use super::{check_bytes, check_http_url, BuildError};
use crate::channel::ChannelId;
use crate::event::{Draft, Event};
use crate::kind::REPO;

/// Longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 128;
/// Longest description, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 1024;
/// Most clone URLs.
pub const MAX_CLONE_URLS: usize = 5;
/// Longest clone or web URL, in bytes.
pub const MAX_URL_BYTES: usize = 512;
/// Most relays.
pub const MAX_RELAYS: usize = 10;
/// Longest relay URL, in bytes.
pub const MAX_RELAY_URL_BYTES: usize = 256;
/// How old a relay lets a new event be, in seconds, less a minute for clocks that differ.
pub const MAX_REWRITE_AGE_SECONDS: u64 = 840;
/// The tag that binds a repository to the channel whose members may use it.
pub const CHANNEL_TAG: &str = "buzz-channel";

/// What an announcement says.
#[derive(Debug, Clone)]
pub struct Announcement {
    /// What the repository is called in addresses.
    pub id: RepoId,
    /// Its name, up to [`MAX_NAME_BYTES`].
    pub name: Option<String>,
    /// What it is, up to [`MAX_DESCRIPTION_BYTES`].
    pub description: Option<String>,
    /// Where it is cloned from.
    pub clone: Vec<String>,
    /// Where it is looked at.
    pub web: Option<String>,
    /// Where its issues and patches are sent.
    pub relays: Vec<String>,
    /// Whose members may use it.
    pub channel: Option<ChannelId>,
}

impl Announcement {
    /// The event: `d`, `name`, `description`, `clone`, `web`, `relays`, `buzz-channel`.
    pub fn draft(self, now: u64) -> Result<Draft, BuildError> {
        self.check()?;
        let mut draft = Draft::new(REPO, "", now).tag(["d", self.id.as_str()]);
        for (name, value) in [("name", &self.name), ("description", &self.description)] {
            draft = value.iter().fold(draft, |draft, value| draft.tag([name, value]));
        }
        draft = with_list(draft, "clone", self.clone);
        draft = self.web.iter().fold(draft, |draft, url| draft.tag(["web", url]));
        draft = with_list(draft, "relays", self.relays);
        Ok(match self.channel {
            Some(channel) => draft.tag([CHANNEL_TAG, &channel.to_string()]),
            None => draft,
        })
    }

    fn check(&self) -> Result<(), BuildError> {
        check_bytes("the name", self.name.as_deref().unwrap_or_default(), MAX_NAME_BYTES)?;
        let description = self.description.as_deref().unwrap_or_default();
        check_bytes("the description", description, MAX_DESCRIPTION_BYTES)?;
        check_count("the list of clone URLs", self.clone.len(), MAX_CLONE_URLS)?;
        check_count("the list of relays", self.relays.len(), MAX_RELAYS)?;
        for url in &self.clone {
            check_bytes("a clone URL", url, MAX_URL_BYTES)?;
            if url.is_empty() {
                return Err(BuildError::invalid("a clone URL", "1 to 512 bytes long", url));
            }
        }
        self.web.as_ref().map_or(Ok(()), |url| check_http_url("the web URL", url, MAX_URL_BYTES))?;
        self.relays.iter().try_for_each(|url| check_relay_url(url))
    }
}

fn check_count(what: &'static str, got: usize, limit: usize) -> Result<(), BuildError> {
    match got > limit {
        true => Err(BuildError::TooLong { what, got, limit, unit: "entries" }),
        false => Ok(()),
    }
}

fn check_relay_url(text: &str) -> Result<(), BuildError> {
    check_bytes("a relay URL", text, MAX_RELAY_URL_BYTES)?;
    match url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "ws" | "wss")) {
        true => Ok(()),
        false => Err(BuildError::invalid("a relay URL", "a ws or wss URL", text)),
    }
}

/// One tag for a list, none for an empty one.
fn with_list(draft: Draft, name: &str, values: Vec<String>) -> Draft {
    match values.is_empty() {
        true => draft,
        false => draft.tag([name.to_owned()].into_iter().chain(values)),
    }
}

/// The announcement as it is, ready for a change: `d` first, without the owner's word, which is signed anew.
pub fn rewrite(old: &Event, now: u64) -> Draft {
    let mut draft = Draft { content: old.content.clone(), ..Draft::new(REPO, "", rewrite_time(old, now)) };
    draft.tags.push(vec!["d".into(), old.identifier().to_owned()]);
    let is_kept = |name: &str| !matches!(name, "d" | "auth");
    let kept = old.tags.iter().filter(|tag| tag.first().is_none_or(|name| is_kept(name)));
    draft.tags.extend(kept.cloned());
    draft
}

/// Just past the old one: whoever has changed it in between has the same time or a later one, and the relay
/// refuses this write instead of losing theirs. Where no relay would take a time that old, it is now.
fn rewrite_time(old: &Event, now: u64) -> u64 {
    match old.created_at.saturating_add(1) {
        next if now.saturating_sub(next) <= MAX_REWRITE_AGE_SECONDS => next,
        _ => now,
    }
}

/// Binds the repository to one channel.
#[must_use]
pub fn bind(mut draft: Draft, channel: &ChannelId) -> Draft {
    draft.tags.retain(|tag| tag.first().is_none_or(|name| name != CHANNEL_TAG));
    draft.tag([CHANNEL_TAG, &channel.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    const CHANNEL: &str = "00112233-4455-4677-8899-aabbccddeeff";

    fn bare() -> Announcement {
        Announcement {
            id: "tool".parse().unwrap(),
            name: None,
            description: None,
            clone: Vec::new(),
            web: None,
            relays: Vec::new(),
            channel: None,
        }
    }

    fn urls(count: usize) -> Vec<String> {
        vec!["wss://r.example".to_owned(); count]
    }

    #[test]
    fn an_announcement_has_its_tags_in_order_and_one_for_all_clone_urls() {
        let full = Announcement {
            name: Some("Tool".into()),
            description: Some("does things".into()),
            clone: vec!["https://a.example".into(), "https://b.example".into()],
            web: Some("https://w.example".into()),
            relays: vec!["wss://r.example".into()],
            channel: Some(CHANNEL.to_uppercase().parse().unwrap()),
            ..bare()
        };
        let draft = full.draft(5).unwrap();
        let wanted = [
            vec!["d", "tool"],
            vec!["name", "Tool"],
            vec!["description", "does things"],
            vec!["clone", "https://a.example", "https://b.example"],
            vec!["web", "https://w.example"],
            vec!["relays", "wss://r.example"],
            vec!["buzz-channel", CHANNEL],
        ];
        assert_eq!((draft.kind, draft.content.as_str()), (30_617, ""));
        assert_eq!(draft.tags, wanted);
        assert_eq!(bare().draft(5).unwrap().tags, [["d", "tool"]]);
    }

    #[test]
    fn an_announcement_keeps_its_limits() {
        let good = [
            Announcement { name: Some("n".repeat(128)), ..bare() },
            Announcement { description: Some("d".repeat(1024)), ..bare() },
            Announcement { clone: urls(5), ..bare() },
            Announcement { relays: urls(10), ..bare() },
        ];
        assert!(good.into_iter().all(|announcement| announcement.draft(5).is_ok()));
        let bad = [
            Announcement { name: Some("n".repeat(129)), ..bare() },
            Announcement { description: Some("d".repeat(1025)), ..bare() },
            Announcement { clone: urls(6), ..bare() },
            Announcement { clone: vec![String::new()], ..bare() },
            Announcement { clone: vec!["x".repeat(513)], ..bare() },
            Announcement { web: Some("ftp://w.example".into()), ..bare() },
            Announcement { web: Some(format!("https://w.example/{}", "x".repeat(512))), ..bare() },
            Announcement { relays: urls(11), ..bare() },
            Announcement { relays: vec!["https://r.example".into()], ..bare() },
            Announcement { relays: vec![format!("wss://r.example/{}", "x".repeat(256))], ..bare() },
        ];
        for announcement in bad {
            assert!(announcement.clone().draft(5).is_err(), "{announcement:?}");
        }
    }

    #[test]
    fn binding_leaves_one_channel_and_everything_else() {
        let old = Keys::generate().sign(
            Draft::new(REPO, "text", 100)
                .tag(["buzz-channel", "a"])
                .tag(["d", "tool"])
                .tag(["auth", "x", "", "y"])
                .tag(["future", "1", "2"])
                .tag(["buzz-channel", "b"])
                .tag(["buzz-protect", "refs/heads/main", "no-delete"]),
        );
        let draft = bind(rewrite(&old, 101), &CHANNEL.parse().unwrap());
        let wanted = [
            vec!["d", "tool"],
            vec!["future", "1", "2"],
            vec!["buzz-protect", "refs/heads/main", "no-delete"],
            vec!["buzz-channel", CHANNEL],
        ];
        assert_eq!(draft.tags, wanted);
        assert_eq!((draft.content.as_str(), draft.created_at), ("text", 101));
    }

    #[test]
    fn a_rewrite_is_just_past_the_old_one_unless_no_relay_would_take_it() {
        let old = Keys::generate().sign(Draft::new(REPO, "", 1_000).tag(["d", "tool"]));
        for (now, wanted) in [(1_000, 1_001), (900, 1_001), (1_841, 1_001), (1_842, 1_842)] {
            assert_eq!(rewrite(&old, now).created_at, wanted, "{now}");
        }
    }
}
