//! The way to a relay: TCP, with TLS for `wss`. The only place that knows of either.

use std::io;
use std::sync::{Arc, OnceLock};

use async_std::net::TcpStream;
use futures_lite::{AsyncRead, AsyncWrite};
use futures_rustls::rustls::pki_types::ServerName;
use futures_rustls::rustls::{crypto::ring, ClientConfig, Error as TlsError, RootCertStore};
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

/// Whether an error of [`open`] will come again: the other side's certificate or TLS version will not do.
pub(super) fn is_final(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<TlsError>());
    matches!(
        cause,
        Some(
            TlsError::InvalidCertificate(_)
                | TlsError::InvalidCertRevocationList(_)
                | TlsError::NoCertificatesPresented
                | TlsError::UnsupportedNameType
                | TlsError::PeerIncompatible(_)
        )
    )
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

#[cfg(test)]
mod tests {
    use async_std::net::TcpListener;
    use async_std::task::block_on;
    use futures_lite::{AsyncReadExt, AsyncWriteExt};
    use futures_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use futures_rustls::rustls::ServerConfig;
    use futures_rustls::TlsAcceptor;

    use super::*;

    /// Says one word under TLS to one client, with a certificate that it signed itself, for `localhost`.
    async fn serve_one_word() -> (u16, CertificateDer<'static>, async_std::task::JoinHandle<io::Result<()>>) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.der().clone(), made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], PrivateKeyDer::Pkcs8(key.into()))
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = async_std::task::spawn(async move {
            let (tcp, _) = listener.accept().await?;
            let mut stream = TlsAcceptor::from(Arc::new(config)).accept(tcp).await?;
            stream.write_all(b"word").await?;
            stream.close().await
        });
        (port, certificate, served)
    }

    #[test]
    fn a_host_with_a_known_root_is_spoken_to_under_tls() {
        block_on(async {
            let (port, certificate, served) = serve_one_word().await;
            let mut roots = RootCertStore::empty();
            roots.add(certificate).unwrap();
            let tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let connector = TlsConnector::from(client_config(roots).unwrap());
            let mut stream = connector.connect("localhost".try_into().unwrap(), tcp).await.unwrap();
            let mut word = String::new();
            stream.read_to_string(&mut word).await.unwrap();
            assert_eq!(word, "word");
            served.await.unwrap();
        });
    }

    #[test]
    fn a_host_that_vouches_for_itself_is_refused_for_good() {
        block_on(async {
            let (port, _, served) = serve_one_word().await;
            let url = Url::parse(&format!("wss://localhost:{port}")).unwrap();
            let Err(error) = open(&url).await else { panic!("connected") };
            assert!(is_final(&error), "{error}");
            assert!(served.await.is_err());
        });
    }

    #[test]
    fn a_port_that_nobody_listens_at_may_be_tried_again() {
        block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            drop(listener);
            let url = Url::parse(&format!("ws://127.0.0.1:{port}")).unwrap();
            let Err(error) = open(&url).await else { panic!("connected") };
            assert!(!is_final(&error), "{error}");
        });
    }
}
