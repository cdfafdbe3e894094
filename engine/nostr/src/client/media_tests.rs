//! What may be uploaded, what is sent, and which addresses are blobs.

use std::collections::HashSet;

use async_std::task::block_on;
use serde_json::json;
use waxlog_scripted::model_server::{Answer as Scripted, ModelServer, Request};

use super::*;
use crate::client::http::{Settings, DEFAULT_TIMEOUT};
use crate::{Event, Keys};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn client(relay: &str) -> RelayHttp {
    RelayHttp::new(Settings {
        relay: relay.to_owned(),
        keys: Keys::generate(),
        owner_tag: None,
        timeout: DEFAULT_TIMEOUT,
        connect_timeout: DEFAULT_TIMEOUT,
        watcher: None,
    })
    .unwrap()
}

fn serve(answers: Vec<Scripted>) -> ModelServer {
    ModelServer::start(answers).expect("a port on loopback")
}

fn proof(request: &Request) -> Event {
    let header = request.header("authorization").unwrap().strip_prefix("Nostr ").unwrap();
    let event: Event = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    event.verify().unwrap();
    event
}

fn descriptor() -> serde_json::Value {
    json!({"url": "http://r/media/x.png", "sha256": "x", "size": 12, "type": "image/png", "uploaded": 1})
}

#[test]
fn the_type_is_known_by_the_first_bytes() {
    for (start, wanted) in [
        (&b"\xff\xd8\xff\xe0"[..], Some("image/jpeg")),
        (PNG, Some("image/png")),
        (b"GIF89a", Some("image/gif")),
        (b"GIF87a", Some("image/gif")),
        (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
        (b"\0\0\0\x20ftypisom", Some("video/mp4")),
        (b"%PDF-1.4", None),
        (b"GIF88a", None),
        (b"", None),
    ] {
        assert_eq!(sniff(start), wanted);
        assert_eq!(Media::read(start).is_ok(), wanted.is_some());
    }
}

#[test]
fn a_picture_of_the_limit_is_taken_and_one_byte_more_is_not() {
    let sized = |bytes: u64| PNG.chain(io::repeat(0)).take(bytes);
    assert_eq!(Media::read(sized(MAX_IMAGE_BYTES)).unwrap().bytes(), MAX_IMAGE_BYTES);
    assert!(matches!(Media::read(sized(MAX_IMAGE_BYTES + 1)), Err(MediaError::TooLarge { .. })));
}

#[test]
fn an_upload_is_the_bytes_with_a_proof_of_their_hash_for_this_server() {
    let cut = Scripted::json("{").truncate(0);
    let server = serve(vec![cut, Scripted::json(descriptor().to_string())]);
    let client = client(&server.url());
    let blob = block_on(client.upload(&Media::read(PNG).unwrap())).unwrap();
    assert_eq!(blob.descriptor(), &descriptor());
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let hash = hex::encode(Sha256::digest(PNG));
    for request in &requests {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("PUT", "/upload"));
        assert_eq!(request.body, PNG);
        assert_eq!(request.header("content-type"), Some("image/png"));
        assert_eq!(request.header("x-sha-256"), Some(hash.as_str()));
        let proof = proof(request);
        assert_eq!((proof.kind, proof.content.as_str()), (24_242, "Upload file"));
        assert_eq!(proof.tags[..2], [["t", "upload"], ["x", &hash]]);
        assert_eq!(proof.tag_value("server"), server.url().strip_prefix("http://"));
        let expiration: u64 = proof.tag_value("expiration").unwrap().parse().unwrap();
        assert_eq!(expiration - proof.created_at, 600);
    }
}

#[test]
fn an_older_relay_gets_the_upload_at_its_other_address() {
    for status in [404, 405] {
        let server = serve(vec![Scripted::status(status, ""), Scripted::json(descriptor().to_string())]);
        block_on(client(&server.url()).upload(&Media::read(PNG).unwrap())).unwrap();
        let paths: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
        assert_eq!(paths, ["/upload", "/media/upload"]);
    }
    let server = serve(vec![Scripted::status(413, "too large")]);
    let error = block_on(client(&server.url()).upload(&Media::read(PNG).unwrap())).unwrap_err();
    assert!(matches!(error, HttpError::Status { status: 413, .. }), "{error}");
}

#[test]
fn a_download_is_tried_again_and_gives_the_bytes() {
    let server = serve(vec![Scripted::status(503, ""), Scripted::status(200, PNG)]);
    assert_eq!(block_on(client(&server.url()).download("x.png")).unwrap(), PNG);
    let requests = server.requests();
    let paths: HashSet<_> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!((requests.len(), paths), (2, HashSet::from(["/media/x.png"])));
    let proof = proof(&requests[1]);
    assert_eq!(
        (proof.content.as_str(), proof.tag_value("t"), proof.tag_value("x")),
        ("Get media", Some("get"), None)
    );
}

#[test]
fn a_redirect_of_a_download_is_not_followed() {
    let server = serve(vec![Scripted::status(302, "").header("location", "/elsewhere")]);
    let error = block_on(client(&server.url()).download("x")).unwrap_err();
    assert!(matches!(error, HttpError::Status { status: 302, .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_message_shows_what_the_relay_says_of_a_blob() {
    let blob = Blob(descriptor());
    assert_eq!(blob.imeta(), ["imeta", "url http://r/media/x.png", "m image/png", "x x", "size 12"]);
    assert_eq!(blob.markdown(), "![image](http://r/media/x.png)");
    let video = Blob(
        json!({"url": "u", "sha256": "x", "size": 1, "type": "video/mp4", "dim": "2x3", "duration": 1.5}),
    );
    assert_eq!(video.imeta()[5..], ["dim 2x3", "duration 1.5"]);
    assert_eq!(video.markdown(), "![video](u)");
}

#[test]
fn only_blobs_of_this_relay_are_downloaded() {
    let hash = "0".repeat(64);
    let base = "https://relay.example:443";
    for rest in ["", ".png", ".thumb.jpg", ".12345678"] {
        let name = format!("{hash}{rest}");
        for input in [
            name.clone(),
            format!("/media/{name}"),
            format!("https://relay.example/media/{name}"),
            format!("https://Relay.example:443/media/{name}"),
        ] {
            assert_eq!(segment(base, &input), Some(name.as_str()), "{input}");
        }
    }
    for input in [
        "".to_owned(),
        format!("http://relay.example/media/{hash}"),
        format!("https://other.example/media/{hash}"),
        format!("https://relay.example:444/media/{hash}"),
        format!("https://u@relay.example/media/{hash}"),
        format!("https://relay.example/other/{hash}"),
        format!("https://relay.example/media/../media/{hash}"),
        format!("https://relay.example/media/{hash}?x=1"),
        format!("https://relay.example/media/{hash}/x"),
        format!("/media/../{hash}"),
        format!("../{hash}"),
        format!("{hash}.PNG"),
        format!("{hash}.123456789"),
        format!("{hash}."),
        "F".repeat(64),
        "0".repeat(63),
        "é".repeat(64),
    ] {
        assert_eq!(segment(base, &input), None, "{input}");
    }
}

#[test]
fn a_usual_port_is_no_part_of_the_servers_name() {
    assert_eq!(server("https://relay.example:443"), "relay.example");
    assert_eq!(server("http://127.0.0.1:3000"), "127.0.0.1:3000");
}
