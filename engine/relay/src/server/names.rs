//! Under which names the relay may be spoken to, and what its URLs are.

use std::net::SocketAddr;

use url::{Host, Url};

/// The relay's own names. A request that names another host is refused: neither a page that has pointed its
/// own name at this address nor a relay that passes on somebody's proof gets in.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    public: Option<Url>,
    takes_any: bool,
    is_secure: bool,
}

/// A public address that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("RELAY_URL={0:?} is no relay's address; give ws://host:port or wss://host")]
pub struct RelayUrlError(String);

impl Names {
    /// The names of a relay that listens at `address` and is known as `public`.
    pub(crate) fn new(address: SocketAddr, public: Option<&str>) -> Result<Self, RelayUrlError> {
        let read = |text: &str| {
            let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "ws" | "wss"));
            url.filter(|url| url.host().is_some()).ok_or_else(|| RelayUrlError(text.to_owned()))
        };
        let public = public.map(read).transpose()?;
        let is_secure = public.as_ref().is_some_and(|url| url.scheme() == "wss");
        Ok(Self { takes_any: public.is_none() && !address.ip().is_loopback(), public, is_secure })
    }

    /// The host of a request, if the relay answers to it: lower case, without a default port or a dot at the
    /// end. The loopback's names count on every relay.
    pub(crate) fn host(&self, header: &str) -> Option<String> {
        let url = Url::parse(&format!("http://{}", header.trim())).ok()?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
        let host = url.host()?;
        let text = host.to_string();
        let name = text.trim_end_matches('.');
        let is_loopback = match &host {
            Host::Domain(_) => name == "localhost" || name.ends_with(".localhost"),
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        let port = url.port().filter(|port| *port != 443);
        let public = self.public.as_ref();
        let is_public = public.and_then(Url::host_str).is_some_and(|public| public == name)
            && public.and_then(Url::port) == port;
        let is_ours = is_loopback || is_public || self.takes_any;
        (is_bare && is_ours).then(|| match port {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        })
    }

    /// The URLs that a proof on a socket to `host` may name.
    pub(crate) fn socket_urls(&self, host: &str) -> Vec<String> {
        let scheme = if self.is_secure { "wss" } else { "ws" };
        let mut urls = vec![format!("{scheme}://{host}")];
        urls.extend(self.public.as_ref().map(Url::to_string));
        urls
    }

    /// The URL of a request for `path` at `host`.
    pub(crate) fn http_url(&self, host: &str, path: &str) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{host}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(address: &str, public: Option<&str>) -> Names {
        Names::new(address.parse().unwrap(), public).unwrap()
    }

    #[test]
    fn a_relay_on_loopback_answers_to_the_loopback_alone() {
        let names = names("127.0.0.1:3000", None);
        for (header, host) in [
            ("LOCALHOST:3000", "localhost:3000"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("localhost.", "localhost"),
            ("[::1]:3000", "[::1]:3000"),
            ("a.localhost:443", "a.localhost"),
        ] {
            assert_eq!(names.host(header).as_deref(), Some(host), "{header}");
        }
        for header in ["evil.example", "127.0.0.1.evil.example", "", "localhost/x", "a@localhost", "a b"] {
            assert_eq!(names.host(header), None, "{header}");
        }
    }

    #[test]
    fn a_public_address_decides_name_and_scheme() {
        let names = names("0.0.0.0:3000", Some("wss://Relay.Example/"));
        assert_eq!(names.host("relay.example:443").as_deref(), Some("relay.example"));
        assert_eq!(names.host("other.example"), None);
        assert_eq!(names.http_url("relay.example", "/query"), "https://relay.example/query");
        assert!(names.socket_urls("localhost").contains(&"wss://relay.example/".to_owned()));
    }

    #[test]
    fn an_open_address_without_a_public_one_takes_any_name() {
        assert_eq!(names("0.0.0.0:1", None).host("box.lan:1").as_deref(), Some("box.lan:1"));
        assert!(Names::new("0.0.0.0:1".parse().unwrap(), Some("https://a")).is_err());
    }
}
