//! Proofs of identity: the answer to a relay's challenge (NIP-42) and the header of a request (NIP-98).

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use sha2::{Digest, Sha256};
use url::{Host, Url};

use crate::event::{Draft, Event, VerifyError};
use crate::keys::Keys;
use crate::kind::{HTTP_AUTH, RELAY_AUTH};
use crate::owner::OwnerTag;

/// How far a proof's time may be from the verifier's, in seconds.
pub const MAX_SKEW_SECONDS: u64 = 60;
/// The scheme of the NIP-98 header.
const SCHEME: &str = "Nostr ";

/// Why a proof does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// Not signed by whom it names.
    #[error(transparent)]
    Event(#[from] VerifyError),
    /// Another kind of event.
    #[error("wrong kind: a proof of this sort has kind {wanted}, got {got}")]
    Kind {
        /// The kind that counts.
        wanted: u16,
        /// The event's.
        got: u16,
    },
    /// Too old, or from the future.
    #[error("created_at {0} is more than {MAX_SKEW_SECONDS} s from the server's clock")]
    Time(u64),
    /// A tag that must agree does not.
    #[error("the {0} tag does not match the request")]
    Tag(&'static str),
    /// Not base64 of an event's JSON behind `Nostr `.
    #[error("the Authorization header is not `Nostr` and the base64 of an event")]
    Header,
}

/// The answer to a relay's challenge. `relay` is the URL the client connected to.
pub fn answer_challenge(
    keys: &Keys,
    relay: &str,
    challenge: &str,
    owner: Option<&OwnerTag>,
    now: u64,
) -> Event {
    let draft = Draft::new(RELAY_AUTH, "", now).tag(["relay", relay]).tag(["challenge", challenge]);
    keys.sign(match owner {
        Some(owner) => draft.tag(owner.to_tag()),
        None => draft,
    })
}

/// Checks an answer to `challenge` at a relay whose own URLs are `relays`: see [`relay_identity`].
pub fn check_answer(event: &Event, challenge: &str, relays: &[String], now: u64) -> Result<(), ProofError> {
    check_kind_and_time(event, RELAY_AUTH, now)?;
    event.verify()?;
    if event.tag_value("challenge") != Some(challenge) {
        return Err(ProofError::Tag("challenge"));
    }
    let named = event.tag_value("relay").and_then(relay_identity);
    let is_ours =
        named.is_some_and(|named| relays.iter().any(|own| relay_identity(own).as_ref() == Some(&named)));
    if is_ours {
        Ok(())
    } else {
        Err(ProofError::Tag("relay"))
    }
}

fn check_kind_and_time(event: &Event, wanted: u16, now: u64) -> Result<(), ProofError> {
    if event.kind != wanted {
        return Err(ProofError::Kind { wanted, got: event.kind });
    }
    match event.created_at.abs_diff(now) <= MAX_SKEW_SECONDS {
        true => Ok(()),
        false => Err(ProofError::Time(event.created_at)),
    }
}

/// The `Authorization` header of one request. `nonce` makes two equal requests of a second differ; a new one
/// is needed for each attempt. `body` is absent for requests that have none.
pub fn http_authorization(
    keys: &Keys,
    method: &str,
    url: &str,
    body: Option<&[u8]>,
    nonce: &str,
    now: u64,
) -> String {
    let draft = Draft::new(HTTP_AUTH, "", now).tag(["u", url]).tag(["method", method]).tag(["nonce", nonce]);
    let event = keys.sign(match body {
        Some(body) => draft.tag(["payload", &body_hash(body)]),
        None => draft,
    });
    format!("{SCHEME}{}", STANDARD.encode(event.to_json()))
}

/// Checks the header of a request to `url` and gives its event: whose request it is, and the id that must
/// not be used twice. Loopback names are different hosts here.
pub fn check_authorization(
    header: &str,
    method: &str,
    url: &str,
    body: &[u8],
    now: u64,
) -> Result<Event, ProofError> {
    let encoded = header.strip_prefix(SCHEME).ok_or(ProofError::Header)?;
    let json = STANDARD.decode(encoded.trim()).map_err(|_| ProofError::Header)?;
    let event: Event = serde_json::from_slice(&json).map_err(|_| ProofError::Header)?;
    check_kind_and_time(&event, HTTP_AUTH, now)?;
    event.verify()?;
    let named = event.tag_value("u").and_then(|named| Url::parse(named).ok());
    let same_url = named
        .is_some_and(|named| Url::parse(url).is_ok_and(|url| without_slash(&named) == without_slash(&url)));
    if !same_url {
        return Err(ProofError::Tag("u"));
    }
    if !event.tag_value("method").is_some_and(|named| named.eq_ignore_ascii_case(method)) {
        return Err(ProofError::Tag("method"));
    }
    match event.tag_value("payload") {
        Some(payload) if !payload.eq_ignore_ascii_case(&body_hash(body)) => Err(ProofError::Tag("payload")),
        _ => Ok(event),
    }
}

fn without_slash(url: &Url) -> &str {
    url.as_str().strip_suffix('/').unwrap_or(url.as_str())
}

fn body_hash(body: &[u8]) -> String {
    hex::encode(Sha256::digest(body))
}

/// What a relay's URL comes down to: `ws` or `wss` only, no credentials or fragment, the host in lower case,
/// all names of the loopback as `127.0.0.1`, no default port, no slash at the end of an empty path.
pub fn relay_identity(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok()?;
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if !plain || !matches!(url.scheme(), "ws" | "wss") {
        return None;
    }
    let is_loopback = match url.host()? {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    if is_loopback {
        url.set_host(Some("127.0.0.1")).ok()?;
    }
    Some(match url.path() {
        "/" => without_slash(&url).to_owned(),
        _ => url.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Signature;

    const NOW: u64 = 1_700_000_000;
    const RELAY: &str = "ws://127.0.0.1:3000";

    fn answer(relay: &str, challenge: &str, now: u64) -> Event {
        answer_challenge(&Keys::generate(), relay, challenge, None, now)
    }

    fn check(event: &Event) -> Result<(), ProofError> {
        check_answer(event, "c1", &[RELAY.to_owned()], NOW)
    }

    #[test]
    fn an_answer_counts_for_its_challenge_relay_and_minute() {
        assert_eq!(check(&answer("ws://localhost:3000/", "c1", NOW - 60)), Ok(()));
        assert_eq!(check(&answer(RELAY, "c2", NOW)), Err(ProofError::Tag("challenge")));
        assert_eq!(check(&answer("ws://other:3000", "c1", NOW)), Err(ProofError::Tag("relay")));
        assert_eq!(check(&answer("ws://127.0.0.1:3001", "c1", NOW)), Err(ProofError::Tag("relay")));
        assert_eq!(check(&answer(RELAY, "c1", NOW + 61)), Err(ProofError::Time(NOW + 61)));
        let forged = Event { sig: Signature::from_bytes([1; 64]), ..answer(RELAY, "c1", NOW) };
        assert!(matches!(check(&forged), Err(ProofError::Event(VerifyError::Signature(_)))));
        let other = Keys::generate().sign(Draft::new(1, "", NOW));
        assert_eq!(check(&other), Err(ProofError::Kind { wanted: RELAY_AUTH, got: 1 }));
    }

    #[test]
    fn one_relay_has_one_identity_however_it_is_spelt() {
        for url in ["ws://LOCALHOST:3000", "ws://[::1]:3000/", "ws://127.0.0.1:3000/"] {
            assert_eq!(relay_identity(url).as_deref(), Some(RELAY), "{url}");
        }
        assert_eq!(relay_identity("wss://Relay.Example:443/").as_deref(), Some("wss://relay.example"));
        assert_eq!(relay_identity("wss://relay.example/a/?b").as_deref(), Some("wss://relay.example/a/?b"));
        for url in ["https://relay.example", "ws://u@relay.example", "ws://relay.example/#a", "relay"] {
            assert_eq!(relay_identity(url), None, "{url}");
        }
    }

    #[test]
    fn a_header_counts_for_its_request_only() {
        let keys = Keys::generate();
        let header = http_authorization(&keys, "POST", "http://a:1/query", Some(b"[]"), "n", NOW);
        let check = |method, url, body, now| check_authorization(&header, method, url, body, now);
        let event = check("post", "http://a:1/query/", b"[]", NOW + 60).unwrap();
        assert_eq!(event.pubkey, keys.public_key());
        assert_eq!(check("GET", "http://a:1/query", b"[]", NOW), Err(ProofError::Tag("method")));
        assert_eq!(check("POST", "http://b:1/query", b"[]", NOW), Err(ProofError::Tag("u")));
        assert_eq!(check("POST", "http://a:1/query?x=1", b"[]", NOW), Err(ProofError::Tag("u")));
        assert_eq!(check("POST", "http://a:1/query", b"[1]", NOW), Err(ProofError::Tag("payload")));
        assert_eq!(check("POST", "http://a:1/query", b"[]", NOW + 61), Err(ProofError::Time(NOW)));
        let bare = check_authorization("Nostr x", "POST", "http://a", b"", NOW);
        assert_eq!(bare, Err(ProofError::Header));
    }

    #[test]
    fn loopback_names_are_different_hosts_in_a_header() {
        let header = http_authorization(&Keys::generate(), "GET", "http://localhost:1/", None, "n", NOW);
        let checked = check_authorization(&header, "GET", "http://127.0.0.1:1/", b"", NOW);
        assert_eq!(checked, Err(ProofError::Tag("u")));
    }
}
