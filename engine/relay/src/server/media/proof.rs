//! The proof that allows an upload (Blossom).

use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use base64::Engine;
use waxlog_nostr::kind::BLOB_AUTH;
use waxlog_nostr::Event;

/// How far a proof's time may be ahead, in seconds.
const MAX_AHEAD_SECONDS: u64 = 5;
/// How old the proof of a video may be, in seconds.
pub(super) const MAX_VIDEO_AGE_SECONDS: u64 = 3_600;
/// How old any other proof may be, in seconds.
pub(super) const MAX_AGE_SECONDS: u64 = 600;

/// The event of an `Authorization` header whose base64 may be of either alphabet. Nothing is checked.
fn read(header: &str) -> Option<Event> {
    let encoded = header.strip_prefix("Nostr ")?.trim();
    let json =
        STANDARD.decode(encoded).or_else(|_| URL_SAFE_NO_PAD.decode(encoded.trim_end_matches('='))).ok()?;
    serde_json::from_slice(&json).ok()
}

/// The proof that allows the upload of the blob with this hash to `host`. Its age is the caller's to judge,
/// up to the oldest that is allowed at all.
pub(super) fn check(header: &str, sha256: &str, host: &str, now: u64) -> Option<Event> {
    let event = read(header)?;
    let expires: u64 = event.tag_value("expiration")?.parse().ok()?;
    let is_current = event.created_at <= now + MAX_AHEAD_SECONDS
        && now.saturating_sub(event.created_at) <= MAX_VIDEO_AGE_SECONDS
        && expires > now;
    let is_meant = event.kind == BLOB_AUTH
        && !event.content.is_empty()
        && event.tag_value("t") == Some("upload")
        && event.tag_values("x").any(|x| x == sha256);
    let names_us = event.tag_values("server").any(|server| server.eq_ignore_ascii_case(host))
        || event.tags_named("server").next().is_none();
    (is_current && is_meant && names_us && event.verify().is_ok()).then_some(event)
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn draft() -> Draft {
        let draft = Draft::new(BLOB_AUTH, "Upload file", NOW).tag(["t", "upload"]).tag(["x", "ab"]);
        draft.tag(["expiration", &(NOW + 600).to_string()]).tag(["server", "localhost:1"])
    }

    fn passes(draft: Draft) -> bool {
        let json = Keys::generate().sign(draft).to_json();
        let padded = format!("Nostr {}", STANDARD.encode(&json));
        let url_safe = format!("Nostr {}", URL_SAFE_NO_PAD.encode(&json));
        let [a, b] = [padded, url_safe].map(|header| check(&header, "ab", "localhost:1", NOW).is_some());
        assert_eq!(a, b);
        a
    }

    fn without(name: &str) -> Draft {
        let mut draft = draft();
        draft.tags.retain(|tag| tag[0] != name);
        draft
    }

    #[test]
    fn a_proof_counts_for_its_blob_host_and_time() {
        assert!(passes(draft()));
        assert!(passes(without("server")));
        for wrong in [
            Draft { kind: 27235, ..draft() },
            Draft { content: String::new(), ..draft() },
            Draft { created_at: NOW + 6, ..draft() },
            Draft { created_at: NOW - 3_601, ..draft() },
            without("t"),
            without("x"),
            without("expiration"),
            without("expiration").tag(["expiration", &NOW.to_string()]),
            without("server").tag(["server", "elsewhere.example"]),
        ] {
            assert!(!passes(wrong.clone()), "{wrong:?}");
        }
    }
}
