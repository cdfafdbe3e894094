//! The way to a relay: TCP, with TLS for `wss`. The only place that knows of either.

use std::io;
use std::sync::{Arc, OnceLock};

use async_std::net::TcpStream;
use futures_lite::{AsyncRead, AsyncWrite};
use futures_rustls::rustls::pki_types::ServerName;
use futures_rustls::rustls::{crypto::ring, ClientConfig, RootCertStore};
use futures_rustls::TlsConnector;
use url::{Host, Url};

/// A stream of bytes, plain or under TLS.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Opens the way to the host of a `ws` or `wss` URL. Certificates are checked against the system's roots.
pub async fn open(url: &Url) -> io::Result<Box<dyn ByteStream>> {
    let no_host = || io::Error::new(io::ErrorKind::InvalidInput, "the URL names no host");
    let host = url.host().ok_or_else(no_host)?;
    let port = url.port_or_known_default().ok_or_else(no_host)?;
    let tcp = match host {
        Host::Domain(name) => TcpStream::connect((name, port)).await,
        Host::Ipv4(address) => TcpStream::connect((address, port)).await,
        Host::Ipv6(address) => TcpStream::connect((address, port)).await,
    }?;
    tcp.set_nodelay(true)?;
    if url.scheme() != "wss" {
        return Ok(Box::new(tcp));
    }
    let name = match host {
        Host::Domain(name) => ServerName::try_from(name.to_owned()).map_err(|_| no_host())?,
        Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(address)),
        Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(address)),
    };
    Ok(Box::new(TlsConnector::from(system_config()?).connect(name, tcp).await?))
}

/// The settings with the system's roots, read once. Roots that cannot be read are told in the log; without
/// any there is no TLS.
fn system_config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        log::warn!("a root certificate of the system cannot be read: {error}");
    }
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the system has no root certificates; install them, or name a file in SSL_CERT_FILE",
        ));
    }
    let config = client_config(roots)?;
    Ok(CONFIG.get_or_init(|| config).clone())
}

fn client_config(roots: RootCertStore) -> io::Result<Arc<ClientConfig>> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
