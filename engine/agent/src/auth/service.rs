//! The workspace's login service: where it is, and what it grants.

use std::time::Duration;

use serde_json::Value;

use super::surroundings::Surroundings;
use super::tokens::Tokens;
use super::AuthError;
use crate::http::{without_user, Answer, ModelClient, Outcome};
use crate::secret::Secret;

/// How long one call to the service may take, from connecting to the last byte.
pub(super) const CALL_MAX: Duration = Duration::from_secs(15);
/// The public client that Databricks has for tools on a user's machine; it has no secret.
pub(super) const CLIENT_ID: &str = "databricks-cli";
/// What tokens are good for: the workspace's interfaces, and being renewed without the user.
pub(super) const SCOPES: [&str; 2] = ["all-apis", "offline_access"];
/// Where the service describes itself, below the workspace.
const DISCOVERY_PATH: &str = "/oidc/.well-known/oauth-authorization-server";
/// Longest error word that is passed on, in bytes.
const ERROR_WORD_MAX_BYTES: usize = 64;

/// Where a workspace describes its service.
pub(super) fn discovery_url(host: &str) -> String {
    format!("{}{DISCOVERY_PATH}", host.trim_end_matches('/'))
}

/// The addresses of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    /// Where the user logs in.
    pub(super) authorization_endpoint: String,
    /// Where tokens are granted.
    pub(super) token_endpoint: String,
}

/// What tokens are granted for.
pub(super) enum Grant<'a> {
    /// The token that came with the last ones.
    Refresh {
        /// It.
        token: &'a Secret<String>,
    },
    /// What the user's browser brought back.
    Code {
        /// The code.
        code: &'a Secret<String>,
        /// Where it was brought.
        redirect_uri: &'a str,
        /// The proof that it was us who asked.
        verifier: &'a Secret<String>,
    },
}

impl Grant<'_> {
    fn name(&self) -> &'static str {
        match self {
            Grant::Refresh { .. } => "renewing the login",
            Grant::Code { .. } => "the login",
        }
    }

    fn fields(&self) -> Vec<(&'static str, Secret<String>)> {
        let plain = |value: &str| Secret::new(value.to_owned());
        let mut fields = match self {
            Grant::Refresh { token } => {
                vec![("grant_type", plain("refresh_token")), ("refresh_token", (*token).clone())]
            }
            Grant::Code { code, redirect_uri, verifier } => vec![
                ("grant_type", plain("authorization_code")),
                ("code", (*code).clone()),
                ("redirect_uri", plain(redirect_uri)),
                ("code_verifier", (*verifier).clone()),
            ],
        };
        fields.push(("client_id", plain(CLIENT_ID)));
        fields
    }
}

impl Service {
    /// Asks the service where it is.
    pub(super) async fn discover(
        client: &ModelClient,
        url: &str,
        call_max: Duration,
    ) -> Result<Service, AuthError> {
        const WHAT: &str = "finding the login service";
        let failed = |reason| AuthError::Failed { what: WHAT, reason };
        let answer = answered(WHAT, client.get(url, &[], call_max).await)?;
        if !(200..300).contains(&answer.status) {
            return Err(failed(format!(
                "{} answered {} {}",
                without_user(url),
                answer.status,
                answer.reason
            )));
        }
        let shown = without_user(url);
        let found: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let address = |name: &str| {
            let address = found.get(name).and_then(Value::as_str).map(str::to_owned);
            address.ok_or_else(|| failed(format!("the answer of {shown} has no `{name}`")))
        };
        Ok(Service {
            authorization_endpoint: address("authorization_endpoint")?,
            token_endpoint: address("token_endpoint")?,
        })
    }

    /// Asks for tokens.
    pub(super) async fn grant(
        &self,
        client: &ModelClient,
        grant: &Grant<'_>,
        surroundings: &dyn Surroundings,
        call_max: Duration,
    ) -> Result<Tokens, AuthError> {
        let (what, url) = (grant.name(), &self.token_endpoint);
        // What the service counts from is later, so the token is taken for a little older than it is.
        let asked_at_secs = surroundings.now_secs();
        let answer = answered(what, client.post_form(url, &grant.fields(), call_max).await)?;
        match answer.status {
            200..=299 => {}
            400 | 401 | 403 => return Err(AuthError::Refused { what, answer: refusal(&answer) }),
            _ => return Err(AuthError::Failed { what, reason: refusal(&answer) }),
        }
        let reply = serde_json::from_slice(&answer.body).unwrap_or_default();
        let granted = tokens(&reply, asked_at_secs).ok_or_else(|| AuthError::Failed {
            what,
            reason: format!("{} answered without an `access_token`", without_user(url)),
        })?;
        Ok(match grant {
            Grant::Refresh { token } if granted.refresh.is_none() => {
                Tokens { refresh: Some((*token).clone()), ..granted }
            }
            _ => granted,
        })
    }
}

fn answered(what: &'static str, outcome: Outcome) -> Result<Answer, AuthError> {
    match outcome {
        Outcome::Answered(answer) => Ok(answer),
        Outcome::Failed(failure) => Err(AuthError::Failed { what, reason: failure.text }),
    }
}

/// What a grant's answer says against it: the status and the standard's error word. Anything else in it
/// may repeat what was sent, so it is left out.
fn refusal(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let is_word = |word: &&str| {
        word.len() <= ERROR_WORD_MAX_BYTES && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    let word = body.get("error").and_then(Value::as_str).filter(is_word).unwrap_or("no reason given");
    format!("{} {} ({word})", answer.status, answer.reason)
}

/// The tokens in a reply, if it has an access token. Without a whole number of seconds, they never expire.
fn tokens(reply: &Value, asked_at_secs: u64) -> Option<Tokens> {
    let token = |name: &str| {
        let token = reply.get(name)?.as_str()?;
        (!token.is_empty()).then(|| Secret::new(token.to_owned()))
    };
    let expires_in_secs = reply.get("expires_in").and_then(Value::as_i64);
    Some(Tokens {
        access: token("access_token")?,
        refresh: token("refresh_token"),
        expires_at: expires_in_secs.map(|secs| asked_at_secs.saturating_add_signed(secs)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reply_counts_by_its_access_token_and_whole_seconds() {
        let expiry = |expires_in| {
            let reply = json!({"access_token": "a", "expires_in": expires_in});
            tokens(&reply, 1000).expect("tokens").expires_at
        };
        assert_eq!(expiry(json!(3600)), Some(4600));
        assert_eq!(expiry(json!(-5)), Some(995));
        for never in [json!("3600"), json!(1.5), json!(null)] {
            assert_eq!(expiry(never), None);
        }
        for none in [json!({}), json!({"access_token": ""}), json!({"access_token": 1}), json!([])] {
            assert_eq!(tokens(&none, 0), None, "{none}");
        }
    }

    #[test]
    fn a_refusal_passes_on_nothing_but_the_standard_word() {
        let told = |body: Value| {
            let body = body.to_string().into_bytes();
            refusal(&Answer { status: 400, reason: "Bad Request", headers: Vec::new(), body })
        };
        assert_eq!(
            told(json!({"error": "invalid_grant", "error_description": "canary"})),
            "400 Bad Request (invalid_grant)"
        );
        assert_eq!(told(json!({"error": "CANARY-0"})), "400 Bad Request (no reason given)");
        assert_eq!(told(json!("canary")), "400 Bad Request (no reason given)");
    }
}
