//! git's settings for commands, passed by its own variables so that no file is changed.

use std::ffi::OsString;
use std::path::Path;

use waxlog_nostr::PublicKey;

use crate::shims::GIT_LINKS;
use crate::variables::Variables;

/// The variable that names the agent.
const NAME_VARIABLE: &str = "BUZZ_ACP_DISPLAY_NAME";
/// The variable that names the relay.
pub(crate) const RELAY_VARIABLE: &str = "BUZZ_RELAY_URL";
/// git's own variable: how many settings follow.
const COUNT_VARIABLE: &str = "GIT_CONFIG_COUNT";
/// Longest name of an author, in characters.
const NAME_MAX_CHARS: usize = 80;
/// The host of mail addresses without a relay that others can reach.
const HOST_DEFAULT: &str = "buzz";
/// What a name must have more than: git takes none that is made of these alone.
const NO_NAME: [char; 8] = ['"', '\'', ',', ':', ';', '<', '>', '\\'];

/// Adds the settings of an identity to those that are there.
pub(crate) fn settings(variables: &mut Variables, key_file: &Path, identity: &PublicKey) {
    let hex = identity.to_hex();
    let name = variables.text(NAME_VARIABLE).and_then(clean_name).unwrap_or_else(|| identity.to_npub());
    let email = format!("{hex}@{}", host(variables.text(RELAY_VARIABLE).unwrap_or_default()));
    let settings: [(&str, OsString); 10] = [
        ("user.name", name.into()),
        ("user.email", email.into()),
        ("credential.helper", "nostr".into()),
        ("credential.useHttpPath", "true".into()),
        ("nostr.keyfile", key_file.into()),
        ("gpg.format", "x509".into()),
        ("gpg.x509.program", GIT_LINKS[1].into()),
        ("commit.gpgSign", "true".into()),
        ("tag.gpgSign", "true".into()),
        ("user.signingkey", hex.into()),
    ];
    let before = variables.text(COUNT_VARIABLE).and_then(|count| count.parse().ok()).unwrap_or(0_usize);
    variables.set(COUNT_VARIABLE, (before + settings.len()).to_string());
    for (number, (key, value)) in (before..).zip(settings) {
        variables.set(format!("GIT_CONFIG_KEY_{number}"), key);
        variables.set(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
}

/// A name as git and people can take it, if anything is left of it.
fn clean_name(name: &str) -> Option<String> {
    let clean = |word: &str| word.chars().filter(|c| !is_dropped(*c)).collect::<String>();
    let words: Vec<_> = name.split_whitespace().map(clean).filter(|word| !word.is_empty()).collect();
    let name: String = words.join(" ").chars().take(NAME_MAX_CHARS).collect();
    let name = name.trim_end();
    name.chars().any(|c| c > ' ' && !NO_NAME.contains(&c)).then(|| name.to_owned())
}

fn is_dropped(c: char) -> bool {
    c.is_control() || is_format(c) || matches!(c, '<' | '>')
}

/// Unicode's category Cf: characters that change how others look and are not seen themselves.
fn is_format(c: char) -> bool {
    matches!(
        u32::from(c),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0x180e | 0x200b..=0x200f
            | 0x202a..=0x202e | 0x2060..=0x2064 | 0x2066..=0x206f | 0xfeff | 0xfff9..=0xfffb | 0x110bd | 0x110cd
            | 0x13430..=0x1343f | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0001 | 0xe0020..=0xe007f
    )
}

/// The host of a relay's URL, or a word in its place if nobody else could reach it.
fn host(relay: &str) -> &str {
    let rest = relay.split_once("://").map_or(relay, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = host.split(':').next().unwrap_or_default();
    match host.is_empty() || host.starts_with("localhost") || host.starts_with("127.") {
        true => HOST_DEFAULT,
        false => host,
    }
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::Keys;

    use super::*;

    fn identity() -> PublicKey {
        Keys::parse("0000000000000000000000000000000000000000000000000000000000000003")
            .expect("a key")
            .public_key()
    }

    fn set(given: &[(&str, &str)]) -> Variables {
        let mut variables: Variables =
            given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        settings(&mut variables, Path::new("/shims/.nostr-key"), &identity());
        variables
    }

    fn value<'a>(variables: &'a Variables, key: &str) -> &'a str {
        let at = variables
            .iter()
            .find(|(name, value)| name.to_string_lossy().starts_with("GIT_CONFIG_KEY_") && *value == key);
        let name = at.expect("set").0.to_string_lossy().replace("_KEY_", "_VALUE_");
        variables.text(&name).expect("a value")
    }

    #[test]
    fn a_name_is_cleaned_for_git() {
        for (given, expected) in [
            ("Robin", Some("Robin")),
            ("Duncan <evil@x.com>", Some("Duncan evil@x.com")),
            ("a\n\tb", Some("a b")),
            ("a\0b", Some("ab")),
            ("a\u{202e}b\u{200b}c", Some("abc")),
            ("O'Brien", Some("O'Brien")),
            ("<>", None),
            (";;", None),
            ("\u{200b}", None),
            ("", None),
        ] {
            assert_eq!(clean_name(given).as_deref(), expected, "{given:?}");
        }
        let long = clean_name(&format!("{} {}", "\u{e9}".repeat(79), "x".repeat(200))).expect("a name");
        assert_eq!(long, "\u{e9}".repeat(79), "80 characters, and no space at the end");
    }

    #[test]
    fn without_a_usable_name_it_is_the_key() {
        let npub = identity().to_npub();
        assert_eq!(value(&set(&[]), "user.name"), npub);
        assert_eq!(value(&set(&[(NAME_VARIABLE, "<>")]), "user.name"), npub);
        assert_eq!(value(&set(&[(NAME_VARIABLE, " R  B ")]), "user.name"), "R B");
        assert_eq!(value(&set(&[]), "user.signingkey"), identity().to_hex());
    }

    #[test]
    fn the_mail_address_has_the_relays_host_if_others_can_reach_it() {
        for (relay, expected) in [
            ("wss://relay.example:8443/x", "relay.example"),
            ("relay.example", "relay.example"),
            ("ws://localhost:3000", "buzz"),
            ("ws://127.0.0.1:9/", "buzz"),
            ("", "buzz"),
        ] {
            assert_eq!(host(relay), expected, "{relay}");
        }
        let email = format!("{}@relay.example", identity().to_hex());
        assert_eq!(value(&set(&[(RELAY_VARIABLE, "wss://relay.example/")]), "user.email"), email);
    }

    #[test]
    fn settings_that_are_there_stay() {
        let variables =
            set(&[("GIT_CONFIG_COUNT", "2"), ("GIT_CONFIG_KEY_0", "a.b"), ("GIT_CONFIG_KEY_1", "c.d")]);
        assert_eq!(variables.text("GIT_CONFIG_COUNT"), Some("12"));
        assert_eq!(variables.text("GIT_CONFIG_KEY_0"), Some("a.b"));
        assert_eq!(variables.text("GIT_CONFIG_KEY_2"), Some("user.name"));
        assert_eq!(variables.text("GIT_CONFIG_KEY_11"), Some("user.signingkey"));
        assert_eq!(set(&[("GIT_CONFIG_COUNT", "x")]).text("GIT_CONFIG_COUNT"), Some("10"));
    }
}
