//! Waits on loopback for the browser to come back from a login.
//!
//! Anything on this machine can reach the port, so only a request that knows the state decides anything;
//! every other one gets a page that says what is wrong with it, and the wait goes on.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_channel::Sender;
use async_std::future::timeout;
use async_std::net::{TcpListener, TcpStream};
use async_std::task;
use futures_lite::future::or;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use surf::http::Url;

use crate::secret::Secret;

/// How long one request may take, in and out. Browsers open connections that they never use.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// Largest head of a request, in bytes; codes can be long.
const HEAD_MAX_BYTES: usize = 16 * 1024;
/// Connections at a time.
const CONNECTIONS_MAX: usize = 16;

/// What the browser brought back: a code, or the word with which the login was refused.
pub(super) type Brought = Result<Secret<String>, String>;

/// The open port. Dropping it closes the port.
#[derive(Debug)]
pub(super) struct Callback {
    listener: TcpListener,
    port: u16,
}

impl Callback {
    /// Opens a free port on loopback.
    pub(super) async fn open() -> io::Result<Callback> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Callback { listener, port })
    }

    /// The address that the browser is sent back to.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// Waits for a request that knows `state`.
    pub(super) async fn wait(&self, state: &str) -> io::Result<Brought> {
        let (brought, arrivals) = async_channel::bounded(1);
        let arrived = async {
            let closed = |_| io::Error::other("the port is closed");
            arrivals.recv().await.map_err(closed)
        };
        or(arrived, self.accept(state, brought)).await
    }

    /// Answers requests until it is dropped.
    async fn accept(&self, state: &str, brought: Sender<Brought>) -> io::Result<Brought> {
        let state: Arc<str> = state.into();
        let (enter, leave) = async_channel::bounded(CONNECTIONS_MAX);
        loop {
            let full = |_| io::Error::other("the port is closed");
            enter.send(()).await.map_err(full)?;
            let (stream, _) = self.listener.accept().await?;
            let (state, brought, leave) = (Arc::clone(&state), brought.clone(), leave.clone());
            task::spawn(async move {
                let served = timeout(REQUEST_MAX, serve(stream, &state, &brought)).await;
                if let Ok(Err(error)) = served {
                    log::debug!("a browser's connection broke: {error}");
                }
                // A place is free again; its own entry is there to be taken.
                let _ = leave.try_recv();
            });
        }
    }
}

/// Answers one request, then passes on what it brought, so that the page is out before the port closes.
async fn serve(mut stream: TcpStream, state: &str, brought: &Sender<Brought>) -> io::Result<()> {
    let head = read_head(&mut stream).await?;
    let (page, found) = judge(&head, state);
    let written = async {
        stream.write_all(page.as_bytes()).await?;
        stream.close().await
    }
    .await;
    if let Some(found) = found {
        // A second one comes too late: the first has decided.
        drop(brought.try_send(found));
    }
    written
}

async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    while head.len() < HEAD_MAX_BYTES && memchr::memmem::find(&head, b"\r\n\r\n").is_none() {
        match stream.read(&mut buffer).await? {
            0 => break,
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The answer to a request, and what it brought if it decides the login.
fn judge(head: &str, state: &str) -> (String, Option<Brought>) {
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let Some(address) = local_address(target).filter(|address| address.path() == "/") else {
        return (page("404 Not Found", "There is nothing here."), None);
    };
    if method != "GET" {
        return (page("405 Method Not Allowed", "Only GET is answered here."), None);
    }
    let field = |name: &str| {
        let found = address.query_pairs().find(|(known, _)| known == name);
        found.map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty())
    };
    let knows_state = field("state").as_deref() == Some(state);
    match (field("error"), field("code")) {
        (Some(error), _) => {
            let text = format!("The login was refused: {}. You can close this page.", escaped(&error));
            (page("400 Bad Request", &text), knows_state.then_some(Err(error)))
        }
        (None, _) if !knows_state => {
            let text =
                "This does not belong to the login that is under way (state mismatch). Use the address \
                        that was printed last.";
            (page("400 Bad Request", text), None)
        }
        (None, None) => (page("400 Bad Request", "The code is missing. Log in once more."), None),
        (None, Some(code)) => {
            let text = "You are logged in. You can close this page.";
            (page("200 OK", text), Some(Ok(Secret::new(code))))
        }
    }
}

fn local_address(target: &str) -> Option<Url> {
    // Joined as text: a target that starts with two slashes would otherwise name a host.
    target.starts_with('/').then(|| Url::parse(&format!("http://localhost{target}")).ok())?
}

/// A whole answer; `text` is HTML.
fn page(status: &str, text: &str) -> String {
    let body = format!("<!doctype html><meta charset=\"utf-8\"><title>Login</title><p>{text}</p>\n");
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         content-security-policy: default-src 'none'\r\ncache-control: no-store\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// `text` as HTML shows it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(target: &str) -> (String, Option<Brought>) {
        judge(&format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n"), "st")
    }

    #[test]
    fn only_a_code_with_the_right_state_logs_in() {
        let (page, brought) = judged("/?code=a%2Fb&state=st");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert_eq!(brought, Some(Ok(Secret::new("a/b".to_owned()))));
        for (target, said) in [
            ("/?code=c&state=other", "state mismatch"),
            ("/?code=c", "state mismatch"),
            ("/", "state mismatch"),
            ("/?state=st", "The code is missing"),
            ("/?state=st&code=", "The code is missing"),
            ("/favicon.ico", "404"),
            ("//evil/?code=c&state=st", "404"),
            ("http://localhost/?code=c&state=st", "404"),
        ] {
            let (page, brought) = judged(target);
            assert!(page.starts_with("HTTP/1.1 40") && page.contains(said), "{target}: {page}");
            assert_eq!(brought, None, "{target}");
        }
    }

    #[test]
    fn a_refusal_ends_the_login_only_if_it_knows_the_state() {
        let (page, brought) = judged("/?error=%3Cscript%3E%26%22%27&state=st");
        assert!(page.contains("refused: &lt;script&gt;&amp;&quot;&#39;."), "{page}");
        assert_eq!(brought, Some(Err("<script>&\"'".to_owned())));
        assert_eq!(judged("/?error=access_denied&state=other").1, None);
        assert_eq!(judged("/?error=access_denied").1, None);
    }

    #[test]
    fn other_methods_bring_nothing() {
        let (page, brought) = judge("POST /?code=c&state=st HTTP/1.1\r\n\r\n", "st");
        assert!(page.starts_with("HTTP/1.1 405"), "{page}");
        assert_eq!(brought, None);
        assert_eq!(judge("", "st").1, None);
    }
}
