use async_std::net::{TcpListener, TcpStream};
use async_std::task::{block_on, spawn, JoinHandle};
use async_tungstenite::accept_async;
use futures_lite::AsyncWriteExt;

use super::*;
use crate::auth::check_answer;
use crate::frame::RelayFrame;
use crate::owner::OwnerTag;
use crate::{Draft, EventId, Keys, Signature};

/// The relay's end of one connection, which does what a test says.
struct Relay {
    stream: WebSocketStream<TcpStream>,
    url: String,
}

struct Host {
    listener: TcpListener,
    url: String,
}

impl Host {
    async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    async fn accept(&self) -> Relay {
        let (tcp, _) = self.listener.accept().await.unwrap();
        Relay { stream: accept_async(tcp).await.unwrap(), url: self.url.clone() }
    }

    async fn accept_logged_in(&self) -> Relay {
        let mut relay = self.accept().await;
        relay.log_in("c1").await;
        relay
    }
}

impl Relay {
    async fn say(&mut self, frame: RelayFrame) {
        self.stream.send(Message::text(frame.to_json())).await.unwrap();
    }

    async fn hear(&mut self) -> ClientFrame {
        loop {
            match self.stream.next().await.unwrap().unwrap() {
                Message::Text(text) => return ClientFrame::parse(&text).unwrap(),
                Message::Close(why) => panic!("closed: {why:?}"),
                _ => {}
            }
        }
    }

    /// Challenges, checks the answer and lets in.
    async fn log_in(&mut self, challenge: &str) -> Event {
        self.say(RelayFrame::Auth(challenge.into())).await;
        let ClientFrame::Auth(answer) = self.hear().await else { panic!("no answer") };
        assert_eq!(check_answer(&answer, challenge, std::slice::from_ref(&self.url), now()), Ok(()));
        self.say(RelayFrame::Ok(answer.id, true, String::new())).await;
        answer
    }

    /// Reads until the client is gone.
    async fn wait_for_end(mut self) {
        while let Some(Ok(_)) = self.stream.next().await {}
    }
}

fn login(url: &str) -> Login {
    Login { relay: url.to_owned(), keys: Keys::generate(), owner: None }
}

fn quick() -> Limits {
    Limits { backoff_unit_ms: 1, ..Limits::default() }
}

async fn connect(url: &str) -> Socket {
    Socket::connect(login(url), quick()).await.unwrap()
}

/// Runs a test to its end. One in which both sides wait for each other fails instead of hanging.
fn run(test: impl Future<Output = ()>) {
    block_on(timeout(Duration::from_secs(30), test)).unwrap();
}

/// Runs a relay beside a client.
fn beside<R: Send + 'static>(relay: impl Future<Output = R> + Send + 'static) -> JoinHandle<R> {
    spawn(relay)
}

fn event() -> Event {
    Keys::generate().sign(Draft::new(9, "hello", now()))
}

fn notice(text: &str) -> RelayFrame {
    RelayFrame::Notice(text.to_owned())
}

#[test]
fn a_login_carries_the_owners_word_and_frames_before_it_are_kept() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move {
            let mut relay = host.accept().await;
            relay.say(notice("welcome")).await;
            let answer = relay.log_in("c1").await;
            relay.wait_for_end().await;
            answer
        });
        let (owner, agent) = (Keys::generate(), Keys::generate());
        let tag = OwnerTag::issue(&owner, &agent.public_key(), "").unwrap();
        let login = Login { relay: url, keys: agent, owner: Some(tag.clone()) };
        let mut socket = Socket::connect(login, quick()).await.unwrap();
        assert_eq!(socket.next().await.unwrap(), Incoming::Notice("welcome".into()));
        socket.close().await.unwrap();
        assert_eq!(OwnerTag::of_event(&relay.await), Some(tag));
    });
}

#[test]
fn a_relay_without_a_challenge_is_given_up() {
    run(async {
        let host = Host::bind().await;
        let limits = Limits { challenge: Duration::from_millis(20), ..quick() };
        let login = login(&host.url);
        let relay = beside(async move { host.accept().await.wait_for_end().await });
        let error = Socket::connect(login, limits).await.err().unwrap();
        assert_eq!(error.to_string(), "the relay's challenge did not come within 20 ms");
        assert!(!error.is_final());
        relay.await;
    });
}

#[test]
fn a_refused_login_is_final_unless_the_relay_itself_failed() {
    for (why, is_final) in [("restricted: not a relay member", true), ("error: store", false)] {
        run(async {
            let host = Host::bind().await;
            let login = login(&host.url);
            let relay = beside(async move {
                let mut relay = host.accept().await;
                relay.say(RelayFrame::Auth("c".into())).await;
                let ClientFrame::Auth(answer) = relay.hear().await else { panic!("no answer") };
                relay.say(RelayFrame::Ok(answer.id, false, why.into())).await;
                relay.wait_for_end().await;
            });
            let error = Socket::connect(login, quick()).await.err().unwrap();
            assert_eq!(error.to_string(), format!("the relay refused the login: {why}"));
            assert_eq!(error.is_final(), is_final);
            relay.await;
        });
    }
}

#[test]
fn an_event_is_published_while_other_frames_are_kept_in_order() {
    run(async {
        let host = Host::bind().await;
        let (url, known) = (host.url.clone(), event());
        let stored = known.clone();
        let relay = beside(async move {
            let mut relay = host.accept_logged_in().await;
            let ClientFrame::Req(id, _) = relay.hear().await else { panic!("no REQ") };
            let ClientFrame::Event(published) = relay.hear().await else { panic!("no EVENT") };
            relay.say(RelayFrame::Event(id.clone(), stored)).await;
            relay.say(RelayFrame::Ok(EventId::from_bytes([0; 32]), true, "other".into())).await;
            relay.say(RelayFrame::Eose(id)).await;
            relay.say(RelayFrame::Ok(published.id, false, "invalid: x".into())).await;
            relay.wait_for_end().await;
        });
        let mut socket = connect(&url).await;
        socket.subscribe("s", vec![Filter::new()]).await.unwrap();
        let receipt = socket.publish(&event()).await.unwrap();
        assert_eq!(receipt, Receipt { is_accepted: false, message: "invalid: x".into() });
        assert_eq!(socket.next().await.unwrap(), Incoming::Event("s".into(), known));
        assert!(matches!(socket.next().await.unwrap(), Incoming::Ok(_, true, _)));
        assert_eq!(socket.next().await.unwrap(), Incoming::Eose("s".into()));
        socket.close().await.unwrap();
        relay.await;
    });
}

#[test]
fn a_relay_that_only_says_that_there_is_too_much_ends_the_wait() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move {
            let mut relay = host.accept_logged_in().await;
            relay.hear().await;
            relay.say(notice("rate-limited: quota exceeded; retry in 4s")).await;
            relay.wait_for_end().await;
        });
        let mut socket = connect(&url).await;
        let refused = socket.publish(&event()).await.unwrap_err();
        assert!(matches!(refused, SocketError::RateLimited(text) if text.ends_with("retry in 4s")));
        socket.close().await.unwrap();
        relay.await;
    });
}

#[test]
fn a_forged_event_does_not_come_and_is_counted() {
    run(async {
        let host = Host::bind().await;
        let (url, good) = (host.url.clone(), event());
        let sent = good.clone();
        let relay = beside(async move {
            let mut relay = host.accept_logged_in().await;
            relay.hear().await;
            let forged = Event { sig: Signature::from_bytes([0; 64]), ..sent.clone() };
            let changed = Event { content: "x".into(), ..sent.clone() };
            for event in [forged, changed, sent] {
                relay.say(RelayFrame::Event("s".into(), event)).await;
            }
            relay.wait_for_end().await;
        });
        let mut socket = connect(&url).await;
        socket.subscribe("s", vec![Filter::new()]).await.unwrap();
        assert_eq!(socket.next().await.unwrap(), Incoming::Event("s".into(), good));
        assert_eq!(socket.dropped(), Dropped { forged: 2, malformed: 0 });
        socket.close().await.unwrap();
        relay.await;
    });
}

#[test]
fn a_challenge_in_mid_session_is_answered_and_waiting_subscriptions_are_asked_again() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move {
            let mut relay = host.accept_logged_in().await;
            relay.hear().await;
            relay.say(RelayFrame::Auth("c2".into())).await;
            relay.say(RelayFrame::Closed("s".into(), "auth-required: again".into())).await;
            let ClientFrame::Auth(answer) = relay.hear().await else { panic!("no answer") };
            assert_eq!(answer.tag_value("challenge"), Some("c2"));
            relay.say(RelayFrame::Ok(answer.id, true, String::new())).await;
            assert_eq!(relay.hear().await, ClientFrame::Req("s".into(), vec![Filter::new()]));
            relay.say(RelayFrame::Eose("s".into())).await;
            relay.wait_for_end().await;
        });
        let mut socket = connect(&url).await;
        socket.subscribe("s", vec![Filter::new()]).await.unwrap();
        assert_eq!(socket.next().await.unwrap(), Incoming::Eose("s".into()));
        socket.close().await.unwrap();
        relay.await;
    });
}

#[test]
fn a_ping_is_answered() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move {
            let mut relay = host.accept_logged_in().await;
            relay.stream.send(Message::Ping("life".into())).await.unwrap();
            let pong = relay.stream.next().await.unwrap().unwrap();
            assert_eq!(pong, Message::Pong("life".into()));
            relay.say(notice("alive")).await;
            relay.wait_for_end().await;
        });
        let mut socket = connect(&url).await;
        assert_eq!(socket.next().await.unwrap(), Incoming::Notice("alive".into()));
        socket.close().await.unwrap();
        relay.await;
    });
}

fn impatient() -> Limits {
    let soon = Duration::from_millis(30);
    Limits { quiet: soon, sign_of_life: soon, ..quick() }
}

#[test]
fn a_relay_that_is_silent_when_asked_counts_as_lost() {
    run(async {
        let host = Host::bind().await;
        let login = login(&host.url);
        let (gone, is_gone) = async_std::channel::bounded::<()>(1);
        let relay = beside(async move {
            let relay = host.accept_logged_in().await;
            assert!(is_gone.recv().await.is_err());
            relay
        });
        let limits = Limits { sign_of_life: Duration::from_millis(600), ..impatient() };
        let mut socket = Socket::connect(login, limits).await.unwrap();
        let error = socket.next().await.unwrap_err();
        assert!(matches!(error, SocketError::Timeout { what: "a sign of life of the relay", .. }), "{error}");
        drop(gone);
        relay.await;
    });
}

#[test]
fn a_quiet_relay_that_answers_pings_is_kept() {
    run(async {
        let host = Host::bind().await;
        let login = login(&host.url);
        let relay = beside(async move {
            let mut relay = host.accept_logged_in().await;
            for _ in 0..3 {
                let asked = relay.stream.next().await.unwrap().unwrap();
                assert!(matches!(asked, Message::Ping(_)));
            }
            relay.say(notice("still here")).await;
            relay.wait_for_end().await;
        });
        let limits = Limits { sign_of_life: Duration::from_secs(10), ..impatient() };
        let mut socket = Socket::connect(login, limits).await.unwrap();
        assert_eq!(socket.next().await.unwrap(), Incoming::Notice("still here".into()));
        socket.close().await.unwrap();
        relay.await;
    });
}

#[test]
fn after_a_loss_the_subscriptions_are_asked_for_from_the_last_logged_time() {
    run(async {
        let host = Host::bind().await;
        let (url, missed) = (host.url.clone(), event());
        let sent = missed.clone();
        let relay = beside(async move {
            let mut first = host.accept_logged_in().await;
            assert_eq!(first.hear().await, ClientFrame::Req("s".into(), vec![Filter::new().since(90)]));
            first.say(notice("last word")).await;
            drop(first);
            drop(host.listener.accept().await.unwrap());
            let mut second = host.accept_logged_in().await;
            assert_eq!(second.hear().await, ClientFrame::Req("s".into(), vec![Filter::new().since(100)]));
            second.say(RelayFrame::Event("s".into(), sent)).await;
            second.wait_for_end().await;
        });
        let mut socket = connect(&url).await;
        socket.subscribe("s", vec![Filter::new().since(90)]).await.unwrap();
        assert_eq!(socket.next().await.unwrap(), Incoming::Notice("last word".into()));
        assert!(!socket.next().await.unwrap_err().is_final());
        let once = socket.reconnect(1, |_| Some(100), || 0.5).await;
        assert!(!once.unwrap_err().is_final());
        socket.reconnect(5, |_| Some(100), || 0.5).await.unwrap();
        assert_eq!(socket.next().await.unwrap(), Incoming::Event("s".into(), missed));
        socket.close().await.unwrap();
        relay.await;
    });
}

#[test]
fn attempts_to_reach_a_relay_that_is_gone_are_bounded() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move { drop(host.accept_logged_in().await) });
        let mut socket = connect(&url).await;
        relay.await;
        assert!(socket.next().await.is_err());
        let mut draws = 0;
        let error = socket.reconnect(
            3,
            |_| None,
            || {
                draws += 1;
                0.0
            },
        );
        assert!(matches!(error.await, Err(SocketError::Connect { .. })));
        assert_eq!(draws, 3);
    });
}

#[test]
fn more_than_is_kept_ends_the_connection_instead_of_losing_a_frame() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move {
            let mut relay = host.accept_logged_in().await;
            relay.hear().await;
            for _ in 0..=MAX_BUFFERED_FRAMES {
                let text = notice("x").to_json();
                relay.stream.send(Message::text(text)).await.unwrap();
            }
            relay.wait_for_end().await;
        });
        let mut socket = connect(&url).await;
        assert!(matches!(socket.publish(&event()).await, Err(SocketError::Overflow)));
        drop(socket);
        relay.await;
    });
}

#[test]
fn a_frame_that_is_too_long_breaks_the_connection() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move {
            let mut relay = host.accept_logged_in().await;
            let long = Message::text(notice(&"x".repeat(MAX_FRAME_BYTES)).to_json());
            let _ = relay.stream.send(long).await;
            relay.wait_for_end().await;
        });
        let mut socket = connect(&url).await;
        assert!(matches!(socket.next().await, Err(SocketError::Broken(_))));
        drop(socket);
        relay.await;
    });
}

#[test]
fn a_server_that_is_no_relay_is_named_with_its_status() {
    for (line, is_final) in [("404 Not Found", true), ("503 Service Unavailable", false)] {
        run(async {
            let host = Host::bind().await;
            let login = login(&host.url);
            let relay = beside(async move {
                let (mut tcp, _) = host.listener.accept().await.unwrap();
                let answer = format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n");
                tcp.write_all(answer.as_bytes()).await.unwrap();
                tcp
            });
            let error = Socket::connect(login, quick()).await.err().unwrap();
            assert!(error.to_string().contains(&line[..3]), "{error}");
            assert_eq!(error.is_final(), is_final);
            relay.await;
        });
    }
}

#[test]
fn what_is_no_relays_url_is_refused_before_anything_is_opened() {
    for url in ["http://127.0.0.1:1", "relay", "ws:", "wss://", ""] {
        let error = block_on(Socket::connect(login(url), quick())).err().unwrap();
        assert!(matches!(&error, SocketError::Url(named) if named == url), "{url}: {error}");
        assert!(error.is_final());
    }
}

#[test]
fn a_wait_that_is_dropped_loses_nothing() {
    run(async {
        let host = Host::bind().await;
        let (url, published) = (host.url.clone(), event());
        let id = published.id;
        let (ready, is_ready) = async_std::channel::bounded::<()>(1);
        let relay = beside(async move {
            let mut relay = host.accept_logged_in().await;
            relay.hear().await;
            is_ready.recv().await.unwrap();
            relay.say(RelayFrame::Ok(id, true, String::new())).await;
            relay.wait_for_end().await;
        });
        let mut socket = connect(&url).await;
        let dropped = timeout(Duration::from_millis(20), socket.publish(&published)).await;
        assert!(dropped.is_err());
        ready.send(()).await.unwrap();
        assert_eq!(socket.next().await.unwrap(), Incoming::Ok(id, true, String::new()));
        socket.close().await.unwrap();
        relay.await;
    });
}

#[path = "socket_lazy_tests.rs"]
mod lazy;
