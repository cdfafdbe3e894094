//! Events, queries and counts over HTTP, each authorised by a signed proof (NIP-98).

use std::sync::Arc;

use serde_json::{json, Value};
use url::form_urlencoded;
use waxlog_nostr::auth::check_authorization;
use waxlog_nostr::kind::PROFILE;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Event, Filter, PublicKey};

use super::clerk;
use super::http::{header, unknown_host, Answer, BodyError, HttpConn, RequestBody};
use super::pool::NotDone;
use super::rate::Use;
use super::replay::ReplayError;
use super::{now_seconds, Relay};
use crate::asker::Asker;
use crate::reply::Refusal;

/// The most filters of one request.
const MAX_FILTERS: usize = 100;
const INTERNAL: &str = "internal server error";

fn internal() -> Answer {
    Answer::error(500, INTERNAL)
}

/// A request that may be answered.
struct Authorized {
    asker: Asker,
    body: Vec<u8>,
}

/// Reads the body and finds out who asks, in the order in which refusals are told.
async fn authorize(relay: &Relay, conn: &mut HttpConn) -> Result<Authorized, Answer> {
    let host = header(conn, "host").and_then(|host| relay.names.host(host)).ok_or_else(unknown_host)?;
    let body = read_body(relay, conn).await?;
    let url = relay.names.http_url(&host, conn.path_and_query());
    let now = now_seconds();
    let (pubkey, proof, body) = match (header(conn, "authorization"), trusted_key(relay, conn)) {
        (Some(given), _) => {
            let (given, method) = (given.to_owned(), conn.method().to_string());
            let check = move || (check_authorization(&given, &method, &url, &body, now), body);
            let (checked, body) = relay.checks.run(check).await.map_err(|NotDone| internal())?;
            let proof = checked.map_err(|error| Answer::error(401, format!("NIP-98: {error}")))?;
            (proof.pubkey, Some(proof), body)
        }
        (None, Some(pubkey)) => (pubkey, None, body),
        (None, None) => return Err(Answer::error(401, "missing Nostr auth")),
    };
    let spent = relay.rates.spend(&pubkey, false, Use::Call, now);
    spent.map_err(|exceeded| Answer::error(429, exceeded))?;
    if let Some(proof) = &proof {
        relay.replays.spend(proof.id, now).map_err(|error| match error {
            ReplayError::Used => Answer::error(401, error),
            ReplayError::Full => Answer::error(503, error),
        })?;
    }
    let created_at = proof.map_or(now, |proof| proof.created_at);
    let owner = attested(relay, conn, pubkey, created_at).await?;
    Ok(Authorized { asker: Asker { owner, ..Asker::http(pubkey) }, body })
}

async fn read_body(relay: &Relay, conn: &mut HttpConn) -> Result<Vec<u8>, Answer> {
    let max_bytes = relay.limits.http_body_bytes;
    let told = |error| match error {
        BodyError::TooLong => Answer::error(413, format!("the body has more than {max_bytes} bytes")),
        BodyError::Broken => Answer::error(400, "the body ended early"),
    };
    let mut body = RequestBody::of(conn, max_bytes).await.map_err(told)?;
    body.all().await.map_err(told)
}

/// The key that a request names without a proof, where that is allowed.
fn trusted_key(relay: &Relay, conn: &HttpConn) -> Option<PublicKey> {
    let key = header(conn, "x-pubkey").filter(|_| relay.trusts_x_pubkey)?;
    key.parse().ok()
}

/// Keeps whose agent the asker is, if the request says so. A tag that does not hold is as none.
async fn attested(
    relay: &Relay,
    conn: &HttpConn,
    pubkey: PublicKey,
    created_at: u64,
) -> Result<Option<PublicKey>, Answer> {
    let Some(tag) = header(conn, "x-auth-tag").and_then(|tag| OwnerTag::from_json(tag).ok()) else {
        return Ok(None);
    };
    let desk = relay.desk.clone();
    let attest = move || match tag.verify(&pubkey) {
        Ok(()) => desk.attest(&pubkey, &tag, created_at),
        Err(_) => Ok(None),
    };
    match relay.reads.run(attest).await {
        Ok(Ok(owner)) => Ok(owner),
        Ok(Err(error)) => {
            log::error!("the owner of {pubkey} could not be kept: {error}");
            Err(internal())
        }
        Err(NotDone) => Err(internal()),
    }
}

/// `POST /events`
pub(crate) async fn events(relay: &Relay, conn: &mut HttpConn) -> Answer {
    match submitted(relay, conn).await {
        Ok(answer) | Err(answer) => answer,
    }
}

async fn submitted(relay: &Relay, conn: &mut HttpConn) -> Result<Answer, Answer> {
    let Authorized { asker, body } = authorize(relay, conn).await?;
    let event: Event = serde_json::from_slice(&body)
        .map_err(|error| Answer::error(400, format!("invalid event JSON: {error}")))?;
    let id = event.id;
    let _entered = relay
        .in_flight
        .try_enter()
        .ok_or_else(|| Answer::error(503, "rate-limited: too many concurrent requests"))?;
    let (waiting, answered) = async_channel::bounded(1);
    let submit = relay.clerk.submit(&relay.checks, event, asker, clerk::Answer::Http(waiting));
    submit.await.map_err(|NotDone| internal())?;
    let reply = answered.recv().await.map_err(|_| internal())?;
    Ok(match reply.status {
        200 => {
            let answer = json!({"event_id": id, "accepted": reply.accepted, "message": reply.message});
            Answer::json(200, &answer)
        }
        500.. => internal(),
        status => Answer::error(status, reply.message),
    })
}

fn refused(refusal: &Refusal) -> Answer {
    match refusal.status {
        500.. => internal(),
        status => Answer::error(status, &refusal.message),
    }
}

fn read_filters(body: &[u8]) -> Result<Vec<Filter>, Answer> {
    let invalid = |why: String| Answer::error(400, format!("invalid filters: {why}"));
    let values: Vec<Value> = serde_json::from_slice(body).map_err(|error| invalid(error.to_string()))?;
    if values.len() > MAX_FILTERS {
        return Err(invalid(format!("{} filters, at most {MAX_FILTERS} are taken", values.len())));
    }
    let filters: Result<_, _> = values.iter().map(Filter::from_json).collect();
    filters.map_err(|error| invalid(error.to_string()))
}

/// `POST /query`
pub(crate) async fn query(relay: &Relay, conn: &mut HttpConn) -> Answer {
    let found = async {
        let Authorized { asker, body } = authorize(relay, conn).await?;
        let filters = read_filters(&body)?;
        let desk = relay.desk.clone();
        let query = move || {
            let rows = desk.query(&filters, &asker, now_seconds())?;
            let rows: Vec<String> = rows.iter().map(|row| row.event.to_json()).collect();
            Ok(format!("[{}]", rows.join(",")))
        };
        match relay.reads.run(query).await {
            Ok(Ok(rows)) => Ok(Answer::json_text(200, rows)),
            Ok(Err(refusal)) => Err(refused(&refusal)),
            Err(NotDone) => Err(internal()),
        }
    };
    match found.await {
        Ok(answer) | Err(answer) => answer,
    }
}

/// `POST /count`
pub(crate) async fn count(relay: &Relay, conn: &mut HttpConn) -> Answer {
    let counted = async {
        let Authorized { asker, body } = authorize(relay, conn).await?;
        let filters = read_filters(&body)?;
        let desk = relay.desk.clone();
        match relay.reads.run(move || desk.count(&filters, &asker)).await {
            Ok(Ok(count)) => Ok(Answer::json(200, &json!({"count": count}))),
            Ok(Err(refusal)) => Err(refused(&refusal)),
            Err(NotDone) => Err(internal()),
        }
    };
    match counted.await {
        Ok(answer) | Err(answer) => answer,
    }
}

/// `GET /_readiness`: whether the store answers.
pub(crate) async fn readiness(relay: &Arc<Relay>) -> Answer {
    let (desk, asker) = (relay.desk.clone(), Asker::http(relay.relay_key));
    let probe = move || desk.query(&[Filter::new().kinds([0]).limit(1)], &asker, now_seconds()).is_ok();
    match relay.reads.run(probe).await {
        Ok(true) => Answer::json(200, &json!({"status": "ready"})),
        Ok(false) | Err(NotDone) => Answer::error(503, "the store does not answer"),
    }
}

/// `GET /.well-known/nostr.json`: who a name of this host is (NIP-05).
pub(crate) async fn names(relay: &Arc<Relay>, conn: &mut HttpConn) -> Answer {
    let asked = form_urlencoded::parse(conn.querystring().as_bytes());
    let name = asked.into_iter().find(|(key, _)| key == "name").map(|(_, name)| name.to_lowercase());
    let host = header(conn, "host").and_then(|host| relay.names.host(host));
    let (Some(name), Some(host)) = (name.filter(|name| !name.is_empty()), host) else {
        return with_names(json!({}));
    };
    let (desk, asker) = (relay.desk.clone(), Asker::http(relay.relay_key));
    let find = move || {
        let filter = Filter::new().kinds([PROFILE]).search(name.as_str());
        let rows = desk.query(&[filter], &asker, now_seconds())?;
        let known = rows.iter().filter(|row| has_address(&row.event.content, &name, &host));
        let oldest = known.min_by_key(|row| (row.event.created_at, row.event.id));
        Ok(oldest.map_or(json!({}), |row| json!({name: row.event.pubkey})))
    };
    match relay.reads.run(find).await {
        Ok(Ok(names)) => with_names(names),
        Ok(Err(refusal)) => refused(&refusal),
        Err(NotDone) => internal(),
    }
}

fn with_names(names: Value) -> Answer {
    Answer::json(200, &json!({"names": names, "relays": {}})).header("access-control-allow-origin", "*")
}

/// Whether a profile claims `name` at `host`, with its port or without.
fn has_address(profile: &str, name: &str, host: &str) -> bool {
    let profile: Value = serde_json::from_str(profile).unwrap_or_default();
    let address = profile["nip05"].as_str().unwrap_or_default().to_lowercase();
    let Some((claimed, domain)) = address.split_once('@') else { return false };
    let bare = host.rsplit_once(':').map_or(host, |(bare, _)| bare);
    claimed == name && (domain == host || domain == bare)
}
