//! curl as surf's client.
//!
//! The client that `http-client` ships panics at a status that is not registered (529 is common here) and at
//! a header that is not ASCII, and it cannot be configured far enough.

use std::time::Duration;

use http_client::{async_trait, http_types, HttpClient};
use isahc::config::{Configurable, RedirectPolicy, VersionNegotiation};
use isahc::http::StatusCode;

use super::{Limits, KEPT_HEADERS, READ_BYTES};

/// The status as the server sent it: the type that surf has for it knows registered ones only.
pub(super) struct TrueStatus(pub(super) StatusCode);

/// How long a request may take as a whole, if it carries this.
#[derive(Clone, Copy)]
pub(super) struct Within(pub(super) Duration);

/// How many redirects a request may follow, if it carries this.
#[derive(Clone, Copy)]
pub(super) struct Follows(pub(super) u32);

/// curl behind the interface that surf asks for.
#[derive(Debug)]
pub(super) struct Curl {
    client: isahc::HttpClient,
}

impl Curl {
    pub(super) fn new(limits: &Limits) -> Result<Self, isahc::Error> {
        let mut builder = isahc::HttpClient::builder();
        if !limits.keeps_connections {
            builder = builder.connection_cache_size(0);
        }
        let client = builder
            .connect_timeout(limits.connect_timeout)
            .version_negotiation(VersionNegotiation::http11())
            // Redirects are answers, unless a request says otherwise: one may carry the key to another host.
            .redirect_policy(RedirectPolicy::None)
            .automatic_decompression(false)
            .tcp_nodelay()
            .default_header("user-agent", concat!("waxlog/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client })
    }
}

#[async_trait]
impl HttpClient for Curl {
    async fn send(&self, mut request: http_types::Request) -> http_types::Result<http_types::Response> {
        let mut builder =
            isahc::http::Request::builder().method(request.method().as_ref()).uri(request.url().as_str());
        for (name, values) in request.iter() {
            builder = builder.header(name.as_str(), values.last().as_str());
        }
        if let Some(Within(limit)) = request.ext().get::<Within>() {
            builder = builder.timeout(*limit);
        }
        if let Some(Follows(most)) = request.ext().get::<Follows>() {
            builder = builder.redirect_policy(RedirectPolicy::Limit(*most));
        }
        let is_get = request.method() == http_types::Method::Get;
        let body = request.take_body();
        let body = match body.len() {
            // To curl even a body of no bytes is an upload, which is no way to GET.
            Some(0) if is_get => isahc::Body::empty(),
            Some(bytes) => isahc::Body::from_reader_sized(body, bytes as u64),
            None => isahc::Body::from_reader(body),
        };
        let request = builder.body(body).map_err(isahc::Error::from)?;
        let answer = self.client.send_async(request).await?;
        Ok(to_surf(answer))
    }
}

fn to_surf(answer: isahc::http::Response<isahc::Body>) -> http_types::Response {
    let (parts, body) = answer.into_parts();
    let stand_in = http_types::StatusCode::try_from(parts.status.as_u16())
        .unwrap_or(http_types::StatusCode::InternalServerError);
    let mut response = http_types::Response::new(stand_in);
    response.set_body(http_types::Body::from_reader(
        futures_lite::io::BufReader::with_capacity(READ_BYTES, body),
        None,
    ));
    response.remove_header("content-type");
    for name in KEPT_HEADERS.iter().copied().chain(["content-length"]) {
        if let Some(value) = parts.headers.get(name) {
            // Not ASCII is rare, and these are read by people or parsed again.
            let value: String = String::from_utf8_lossy(value.as_bytes())
                .chars()
                .map(|c| if c.is_ascii() { c } else { '?' })
                .collect();
            response.insert_header(name, value.as_str());
        }
    }
    response.ext_mut().insert(TrueStatus(parts.status));
    response
}
