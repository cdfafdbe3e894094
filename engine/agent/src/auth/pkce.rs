//! The secrets of one login: proof key (RFC 7636), state, and the address that carries them.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine;
use sha2::{Digest, Sha256};
use surf::http::Url;

use super::service::{CLIENT_ID, SCOPES};
use super::surroundings::Surroundings;
use crate::secret::Secret;

/// Randomness in a verifier, in bytes: 64 characters, of which the standard wants at least 43.
const VERIFIER_BYTES: usize = 48;
/// Randomness in a state, in bytes.
const STATE_BYTES: usize = 16;

/// What one login is known by.
#[derive(Debug)]
pub(super) struct Proof {
    /// Shown when the code is exchanged; only its hash is in the address.
    pub(super) verifier: Secret<String>,
    /// Comes back with the code.
    pub(super) state: String,
}

impl Proof {
    /// Draws both, or says why they cannot be drawn.
    pub(super) fn draw(surroundings: &dyn Surroundings) -> Result<Proof, String> {
        let mut verifier = [0; VERIFIER_BYTES];
        let mut state = [0; STATE_BYTES];
        surroundings.fill(&mut verifier)?;
        surroundings.fill(&mut state)?;
        let verifier = Secret::new(URL_SAFE_NO_PAD.encode(verifier));
        Ok(Proof { verifier, state: URL_SAFE_NO_PAD.encode(state) })
    }

    /// The hash of the verifier, by method S256.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose()))
    }

    /// Where the user logs in, or what is wrong with `authorization_endpoint`.
    pub(super) fn address(&self, authorization_endpoint: &str, redirect_uri: &str) -> Result<String, String> {
        let malformed = |error| format!("authorization_endpoint {authorization_endpoint:?}: {error}");
        let mut address = Url::parse(authorization_endpoint).map_err(|e| malformed(e.to_string()))?;
        // The address is handed to a program that opens whatever it is given.
        if !matches!(address.scheme(), "http" | "https") {
            return Err(malformed("use http or https".to_owned()));
        }
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", CLIENT_ID)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", &SCOPES.join(" "))
            .append_pair("state", &self.state)
            .append_pair("code_challenge", &self.challenge())
            .append_pair("code_challenge_method", "S256");
        Ok(address.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_one_of_rfc_7636() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        let proof = Proof { verifier, state: String::new() };
        assert_eq!(proof.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn an_address_keeps_the_query_it_has_and_is_http() {
        let proof = Proof { verifier: Secret::new("v".to_owned()), state: "st".to_owned() };
        let address = proof.address("https://h/authorize?o=1", "http://localhost:9").expect("an address");
        let wanted = "https://h/authorize?o=1&response_type=code&client_id=databricks-cli\
             &redirect_uri=http%3A%2F%2Flocalhost%3A9&scope=all-apis+offline_access&state=st&code_challenge=";
        assert!(address.starts_with(wanted), "{address}");
        assert!(address.ends_with("&code_challenge_method=S256"), "{address}");
        for bad in ["file:///etc/passwd", "javascript:alert(1)", "no url"] {
            assert!(proof.address(bad, "http://localhost:9").is_err(), "{bad}");
        }
    }
}
