//! A picture from the web. Media of the configured relay are asked for in the agent's name, if it has one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_channel::Receiver;
use async_std::task;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine;
use futures_lite::FutureExt;
use url::Url;
use waxlog_http::{Client, FailureKind, Limits, Outcome};
use waxlog_nostr::{kind, Draft, Keys, Secret};

use super::SOURCE_MAX_BYTES;
use crate::server::Stop;
use crate::tool::ToolError;
use crate::variables::Variables;

/// How long it may take to reach the server, and again how long the whole may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Redirects that are followed.
const REDIRECTS_MAX: u32 = 10;
/// How much is read of a refusal, in bytes. Nothing of it is shown.
const REFUSAL_MAX_BYTES: usize = 1024;
/// How long a proof counts, in seconds.
const PROOF_SECONDS: u64 = 600;
/// Where a relay keeps its media.
const MEDIA_PATH: &str = "/media/";
/// The statuses that say that a proof is missing.
const REFUSED: [u16; 2] = [401, 403];

/// The bytes behind an address.
pub(super) fn fetch(url: &str, variables: &Variables, stop: &Receiver<Stop>) -> Result<Vec<u8>, ToolError> {
    let parsed = Url::parse(url).map_err(|error| ToolError::of_image(format!("malformed URL: {error}")))?;
    let limits = Limits {
        connect_timeout: FETCH_TIMEOUT,
        silence_max: FETCH_TIMEOUT,
        success_body_max_bytes: SOURCE_MAX_BYTES,
        error_body_max_bytes: REFUSAL_MAX_BYTES,
        keeps_connections: false,
    };
    let client = Client::with_limits(limits).map_err(|error| ToolError::Trouble(error.to_string()))?;
    let headers = proof_headers(&parsed, variables);
    let fetched = async {
        Ok(match headers.is_empty() {
            true => client.get_following(url, REDIRECTS_MAX, FETCH_TIMEOUT).await,
            // The headers are for the relay only, so nothing is followed.
            false => client.get(url, &headers, FETCH_TIMEOUT).await,
        })
    };
    let stopped = async {
        match stop.recv().await {
            Ok(Stop::Cancelled) => Err(ToolError::cancelled()),
            Ok(Stop::Closing) => Err(ToolError::Closing),
            Err(_) => std::future::pending().await,
        }
    };
    let outcome = task::block_on(stopped.or(fetched))?;
    body(outcome, headers.is_empty() && relay_media(&parsed, variables))
}

fn body(outcome: Outcome, lacks_proof: bool) -> Result<Vec<u8>, ToolError> {
    match outcome {
        Outcome::Answered(answer) if (200..300).contains(&answer.status) => Ok(answer.body),
        Outcome::Answered(answer) => {
            let hint = match lacks_proof && REFUSED.contains(&answer.status) {
                true => "; this is the relay's: set BUZZ_RELAY_URL and BUZZ_PRIVATE_KEY to ask in the agent's name",
                false => "",
            };
            Err(ToolError::of_image(format!("the server answered {} {}{hint}", answer.status, answer.reason)))
        }
        Outcome::Failed(failure) if matches!(failure.kind, FailureKind::TooLarge | FailureKind::Request) => {
            Err(ToolError::of_image(failure.text))
        }
        Outcome::Failed(failure) => {
            Err(ToolError::Trouble(format!("the picture cannot be fetched: {}", failure.text)))
        }
    }
}

/// What proves who asks, for media of the relay; nothing for all else, and without a key.
fn proof_headers(url: &Url, variables: &Variables) -> Vec<(&'static str, Secret<String>)> {
    let key = variables.text("BUZZ_PRIVATE_KEY").map(|key| Secret::new(key.trim().to_owned()));
    let keys = key.filter(|_| relay_media(url, variables)).and_then(|key| Keys::parse(key.expose()).ok());
    let Some(keys) = keys else { return Vec::new() };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut headers = vec![("authorization", authorization(&keys, url, now))];
    let tag = variables.text("BUZZ_AUTH_TAG").filter(|tag| !tag.trim().is_empty());
    headers.extend(tag.map(|tag| ("x-auth-tag", Secret::new(tag.to_owned()))));
    headers
}

fn authorization(keys: &Keys, url: &Url, now: u64) -> Secret<String> {
    let host = url.host_str().unwrap_or_default();
    let server = url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
    let event = keys.sign(
        Draft::new(kind::BLOB_AUTH, "Get buzz-media", now)
            .tag(["t", "get"])
            .tag(["expiration", &(now + PROOF_SECONDS).to_string()])
            .tag(["server", &server]),
    );
    Secret::new(format!("Nostr {}", URL_SAFE_NO_PAD.encode(event.to_json())))
}

/// Whether an address is one of the relay's media: same host and port, and the right path.
fn relay_media(url: &Url, variables: &Variables) -> bool {
    let Some(relay) = variables.text("BUZZ_RELAY_URL").and_then(|relay| Url::parse(relay.trim()).ok()) else {
        return false;
    };
    let port = |url: &Url| match url.scheme() {
        "wss" => url.port().or(Some(443)),
        "ws" => url.port().or(Some(80)),
        _ => url.port_or_known_default(),
    };
    url.path().starts_with(MEDIA_PATH) && url.host() == relay.host() && port(url) == port(&relay)
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    use waxlog_nostr::Event;

    use super::*;

    const KEY: &str = "0000000000000000000000000000000000000000000000000000000000000003";

    fn variables(given: &[(&str, &str)]) -> Variables {
        given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn nobody() -> Receiver<Stop> {
        async_channel::bounded(1).1
    }

    /// A server that gives one answer after the other, and the heads of the requests at the end, in lower case.
    fn serve(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = thread::spawn(move || {
            answers
                .into_iter()
                .map(|answer| {
                    let (mut stream, _) = listener.accept().expect("a client");
                    let lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
                    let head: Vec<_> =
                        lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                    stream.write_all(answer.as_bytes()).expect("answered");
                    // An answer may promise more than it gives; then it is the client that hangs up.
                    io::copy(&mut stream, &mut io::sink()).expect("the client hangs up");
                    head.join("\n").to_lowercase().replace(": ", ":")
                })
                .collect()
        });
        (address, serving)
    }

    fn answer(status: &str, headers: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}")
    }

    #[test]
    fn media_of_the_relay_have_its_host_port_and_path() {
        for (relay, url, expected) in [
            ("wss://relay.example", "https://relay.example/media/a", true),
            ("wss://relay.example", "https://relay.example:443/media/a", true),
            ("wss://relay.example", "http://relay.example/media/a", false),
            ("ws://relay.example:3000/x", "http://relay.example:3000/media/a", true),
            ("ws://relay.example", "http://relay.example/mediafake/a", false),
            ("ws://relay.example", "http://relay.example/a/media/b", false),
            ("ws://relay.example", "http://other.example/media/a", false),
            ("", "http://relay.example/media/a", false),
        ] {
            let url = Url::parse(url).expect("a URL");
            assert_eq!(
                relay_media(&url, &variables(&[("BUZZ_RELAY_URL", relay)])),
                expected,
                "{relay} {url}"
            );
        }
    }

    #[test]
    fn a_proof_is_signed_for_the_server_and_some_minutes() {
        let keys = Keys::parse(KEY).expect("a key");
        let header = authorization(&keys, &Url::parse("http://a.example:81/media/x").expect("a URL"), 1000);
        let event = header.expose().strip_prefix("Nostr ").expect("the scheme");
        let event: Event =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(event).expect("base64")).expect("an event");
        event.verify().expect("valid");
        assert_eq!((event.kind, event.content.as_str()), (24242, "Get buzz-media"));
        assert_eq!(event.tag_value("t"), Some("get"));
        assert_eq!(event.tag_value("expiration"), Some("1600"));
        assert_eq!(event.tag_value("server"), Some("a.example:81"));
        assert_eq!(event.tag_value("x"), None);
    }

    #[test]
    fn the_relay_gets_a_proof_and_others_get_none() {
        let (relay, serving) = serve(vec![answer("200 OK", "", "a"), answer("200 OK", "", "b")]);
        let ours =
            variables(&[("BUZZ_RELAY_URL", &relay), ("BUZZ_PRIVATE_KEY", KEY), ("BUZZ_AUTH_TAG", "[1]")]);
        assert_eq!(fetch(&format!("{relay}/media/a"), &ours, &nobody()), Ok(b"a".to_vec()));
        assert_eq!(fetch(&format!("{relay}/elsewhere"), &ours, &nobody()), Ok(b"b".to_vec()));
        let heads = serving.join().expect("served");
        assert!(heads[0].contains("\nauthorization:nostr "), "{}", heads[0]);
        assert!(heads[0].contains("\nx-auth-tag:[1]"));
        assert!(!heads[1].contains("authorization") && !heads[1].contains("x-auth"), "{}", heads[1]);
    }

    #[test]
    fn redirects_are_followed_but_never_with_a_proof() {
        let (target, target_serving) = serve(vec![answer("200 OK", "", "there")]);
        let moved = || answer("302 Found", &format!("location: {target}/x\r\n"), "");
        let (relay, serving) = serve(vec![moved(), moved()]);
        let ours = variables(&[("BUZZ_RELAY_URL", &relay), ("BUZZ_PRIVATE_KEY", KEY)]);
        let error = fetch(&format!("{relay}/media/a"), &ours, &nobody()).expect_err("not followed");
        assert!(matches!(&error, ToolError::Invalid(text) if text.contains("302")), "{error:?}");
        assert_eq!(fetch(&format!("{relay}/a"), &ours, &nobody()), Ok(b"there".to_vec()));
        serving.join().expect("served");
        let heads = target_serving.join().expect("served");
        assert!(!heads[0].contains("authorization"));
    }

    #[test]
    fn a_refusal_names_the_status_and_what_to_set() {
        let (relay, serving) =
            serve(vec![answer("401 Unauthorized", "", ""), answer("404 Not Found", "", "")]);
        let without_key = variables(&[("BUZZ_RELAY_URL", &relay), ("BUZZ_PRIVATE_KEY", "nonsense")]);
        let refused = |path| fetch(&format!("{relay}{path}"), &without_key, &nobody()).expect_err("refused");
        assert!(refused("/media/a").to_string().contains("set BUZZ_RELAY_URL and BUZZ_PRIVATE_KEY"));
        assert_eq!(refused("/a"), ToolError::Invalid("the server answered 404 Not Found".to_owned()));
        serving.join().expect("served");
    }

    #[test]
    fn a_download_has_a_limit_and_a_cancel_ends_it() {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\nits first bytes", SOURCE_MAX_BYTES + 1);
        let (server, serving) = serve(vec![head]);
        let none = Variables::default();
        let refused = fetch(&server, &none, &nobody()).expect_err("refused");
        assert!(matches!(&refused, ToolError::Invalid(text) if text.contains("too large")), "{refused:?}");
        serving.join().expect("served");
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", silent.local_addr().expect("an address"));
        let (cancel, stop) = async_channel::bounded(1);
        cancel.try_send(Stop::Cancelled).expect("told");
        assert_eq!(fetch(&address, &none, &stop), Err(ToolError::cancelled()));
    }
}
