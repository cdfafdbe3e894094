//! `git-credential-nostr`: shows a relay who asks for a repository, by an event for each request (NIP-98).

use std::io::{BufRead, Write};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use waxlog_nostr::{kind, Draft, Event, Keys};

use super::key::{self, KeyError};

/// The variable with the owner's attestation, which goes along if it is set.
pub(crate) const AUTH_TAG_VARIABLE: &str = "BUZZ_AUTH_TAG";
/// The longest request of git that is read, in bytes.
const REQUEST_MAX_BYTES: u64 = 64 * 1024;
/// The parts of an address that belong to git's protocol: a proof is for the repository.
const PROTOCOL_PARTS: [&str; 3] = ["/info/refs", "/git-upload-pack", "/git-receive-pack"];
/// How long the random part of an event is, in bytes.
const NONCE_BYTES: usize = 16;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// There is no key to sign with.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// git cannot be talked to, or the machine has no randomness.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Answers git's question on `input`. Any other operation than `get` has nothing to do here, and a request that
/// asks for another kind of proof is left to the next helper.
pub fn run(
    operation: Option<&str>,
    input: impl BufRead,
    mut output: impl Write,
    now: u64,
) -> Result<(), CredentialError> {
    if operation.is_some_and(|operation| operation != "get") {
        return Ok(());
    }
    let Some(asked) = Asked::read(input)? else { return Ok(()) };
    let keys = key::load(None)?;
    let event = asked.proof(&keys, auth_tag(), now)?;
    let credential = STANDARD.encode(event.to_json());
    write!(
        output,
        "capability[]=authtype\nauthtype=Nostr\ncredential={credential}\nephemeral=true\nquit=true\n"
    )?;
    Ok(())
}

/// The attestation, if it is a tag.
pub(crate) fn auth_tag() -> Option<Vec<String>> {
    let text = std::env::var(AUTH_TAG_VARIABLE).ok()?;
    serde_json::from_str(&text).ok()
}

/// What git wants a proof for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    url: String,
    method: String,
}

impl Asked {
    /// Reads git's request; nothing if a proof of ours is not what it needs.
    fn read(input: impl BufRead) -> std::io::Result<Option<Self>> {
        let (mut protocol, mut host, mut path) = (None, None, None);
        let (mut has_capability, mut method) = (false, None);
        for line in input.take(REQUEST_MAX_BYTES).lines() {
            let line = line?;
            let Some((name, value)) = line.split_once('=') else { continue };
            match name {
                "protocol" => protocol = Some(value.to_owned()),
                "host" => host = Some(value.to_owned()),
                "path" => path = Some(value.to_owned()),
                "capability[]" => has_capability |= value == "authtype",
                "wwwauth[]" => method = method.or_else(|| challenged_method(value)),
                _ => {}
            }
        }
        let parts = protocol.zip(host).zip(path).zip(method).filter(|_| has_capability);
        Ok(parts.map(|(((protocol, host), path), method)| {
            let path = PROTOCOL_PARTS
                .iter()
                .filter_map(|part| path.find(part))
                .min()
                .map_or(&*path, |at| &path[..at]);
            Self { url: format!("{protocol}://{host}/{path}"), method }
        }))
    }

    fn proof(&self, keys: &Keys, tag: Option<Vec<String>>, now: u64) -> std::io::Result<Event> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|error| std::io::Error::other(error.to_string()))?;
        let draft = Draft::new(kind::HTTP_AUTH, "", now)
            .tag(["u", &self.url])
            .tag(["method", &self.method])
            .tag(["nonce", &hex::encode(nonce)]);
        Ok(keys.sign(match tag {
            Some(tag) => draft.tag(tag),
            None => draft,
        }))
    }
}

/// The method that a challenge of ours names: `Nostr ... method="GET"`.
fn challenged_method(challenge: &str) -> Option<String> {
    let (scheme, parameters) = challenge.split_once(' ')?;
    let (_, rest) = parameters.split_once("method=\"").filter(|_| scheme.eq_ignore_ascii_case("nostr"))?;
    Some(rest.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = "capability[]=authtype\nprotocol=https\nhost=relay.example:8443\n\
                           path=git/abc/repo.git/info/refs?service=git-upload-pack\n\
                           wwwauth[]=Basic realm=\"x\"\nwwwauth[]=Nostr realm=\"r\", method=\"GET\"\n\n";

    fn read(request: &str) -> Option<Asked> {
        Asked::read(request.as_bytes()).expect("memory can be read")
    }

    #[test]
    fn a_proof_is_for_the_repository_and_the_method_of_the_challenge() {
        let asked = read(REQUEST).expect("a proof is wanted");
        assert_eq!(asked.url, "https://relay.example:8443/git/abc/repo.git");
        assert_eq!(asked.method, "GET");
        let (keys, tag) = (Keys::generate(), vec!["auth".to_owned(), "owner".to_owned()]);
        let event = asked.proof(&keys, Some(tag), 7).expect("signed");
        event.verify().expect("valid");
        assert_eq!((event.kind, event.created_at, event.pubkey), (kind::HTTP_AUTH, 7, keys.public_key()));
        assert_eq!(event.tag_value("u"), Some(asked.url.as_str()));
        assert_eq!(event.tag_value("method"), Some("GET"));
        assert_eq!(event.tag_value("auth"), Some("owner"));
    }

    #[test]
    fn what_asks_for_no_proof_of_ours_is_left_to_the_next_helper() {
        for part in [
            "capability[]=authtype\n",
            "wwwauth[]=Nostr realm=\"r\", method=\"GET\"\n",
            "host=relay.example:8443\n",
        ] {
            assert_eq!(read(&REQUEST.replace(part, "")), None, "without {part}");
        }
        let mut out = Vec::new();
        for operation in [Some("store"), Some("erase")] {
            run(operation, REQUEST.as_bytes(), &mut out, 7).expect("nothing to do");
        }
        run(Some("get"), "protocol=https\nhost=example.org\n\n".as_bytes(), &mut out, 7).expect("declined");
        assert!(out.is_empty());
    }
}
