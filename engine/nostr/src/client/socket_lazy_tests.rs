//! Relays that ask for a login when something needs one, or never.

use super::*;

const WANTED: &str = "auth-required: log in to publish";

async fn connect_lazily(url: &str, limits: Limits) -> Socket {
    Socket::connect_lazily(login(url), limits).await.unwrap()
}

fn is_taken(receipt: &Receipt) -> bool {
    receipt.is_accepted
}

impl Relay {
    async fn hear_event(&mut self) -> Event {
        let ClientFrame::Event(event) = self.hear().await else { panic!("no EVENT") };
        event
    }

    async fn answer(&mut self, event: &Event, is_accepted: bool, why: &str) {
        self.say(RelayFrame::Ok(event.id, is_accepted, why.into())).await;
    }
}

#[test]
fn a_relay_that_never_asks_takes_an_event() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move {
            let mut relay = host.accept().await;
            let published = relay.hear_event().await;
            relay.answer(&published, true, "").await;
            relay.wait_for_end().await;
        });
        let mut socket = connect_lazily(&url, quick()).await;
        assert!(is_taken(&socket.publish(&event()).await.unwrap()));
        socket.close().await.unwrap();
        relay.await;
    });
}

#[test]
fn an_event_that_needs_a_login_is_sent_again_after_it_whichever_frame_comes_first() {
    for is_asked_first in [true, false] {
        run(async {
            let host = Host::bind().await;
            let url = host.url.clone();
            let relay = beside(async move {
                let mut relay = host.accept().await;
                let first = relay.hear_event().await;
                if is_asked_first {
                    relay.log_in("c1").await;
                    relay.answer(&first, false, WANTED).await;
                } else {
                    relay.answer(&first, false, WANTED).await;
                    relay.log_in("c1").await;
                }
                let second = relay.hear_event().await;
                assert_eq!(second, first);
                relay.answer(&second, true, "").await;
                relay.wait_for_end().await;
            });
            let mut socket = connect_lazily(&url, quick()).await;
            assert!(is_taken(&socket.publish(&event()).await.unwrap()));
            socket.close().await.unwrap();
            relay.await;
        });
    }
}

#[test]
fn an_event_is_sent_no_third_time() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move {
            let mut relay = host.accept().await;
            let first = relay.hear_event().await;
            relay.log_in("c1").await;
            relay.answer(&first, false, WANTED).await;
            let second = relay.hear_event().await;
            relay.answer(&second, false, WANTED).await;
            relay.wait_for_end().await;
        });
        let mut socket = connect_lazily(&url, quick()).await;
        let receipt = socket.publish(&event()).await.unwrap();
        assert_eq!(receipt, Receipt { is_accepted: false, message: WANTED.into() });
        socket.close().await.unwrap();
        relay.await;
    });
}

#[test]
fn a_refusal_without_a_challenge_is_the_answer() {
    run(async {
        let host = Host::bind().await;
        let url = host.url.clone();
        let relay = beside(async move {
            let mut relay = host.accept().await;
            let refused = relay.hear_event().await;
            relay.answer(&refused, false, WANTED).await;
            relay.wait_for_end().await;
        });
        let limits = Limits { login: Duration::from_millis(20), ..quick() };
        let mut socket = connect_lazily(&url, limits).await;
        assert!(!is_taken(&socket.publish(&event()).await.unwrap()));
        socket.close().await.unwrap();
        relay.await;
    });
}
