//! Blobs: uploads, downloads and events that name them.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use serde_json::json;
use sha2::{Digest, Sha256};
use waxlog_nostr::{Draft, Keys};
use waxlog_relay::server::limits::Limits;

use crate::client::{limits, now, TestRelay};
use crate::requests::{post, request, Answer};

/// A PNG of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn png() -> Vec<u8> {
    STANDARD.decode(PNG).unwrap()
}

async fn upload(relay: &TestRelay, path: &str, bytes: &[u8]) -> Answer {
    let hash = hex::encode(Sha256::digest(bytes));
    let draft = Draft::new(24242, "Upload file", now()).tag(["t", "upload"]).tag(["x", &hash]);
    let proof = Keys::generate().sign(draft.tag(["expiration", &(now() + 600).to_string()]));
    let header = format!("Nostr {}", STANDARD.encode(proof.to_json()));
    request(relay, "PUT", path, &[("authorization", &header), ("x-sha-256", &hash)], bytes).await
}

#[async_std::test]
async fn the_same_bytes_have_one_descriptor_and_come_back_as_they_were() {
    let relay = TestRelay::start().await;
    let first = upload(&relay, "/upload", &png()).await;
    assert_eq!(first.status, 200, "{}", first.json());
    let descriptor = first.json();
    assert_eq!((&descriptor["type"], &descriptor["dim"]), (&json!("image/png"), &json!("1x1")));
    assert_eq!(upload(&relay, "/media/upload", &png()).await.json(), descriptor);
    let url = descriptor["url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", relay.server.address())).unwrap();
    let whole = request(&relay, "GET", path, &[], b"").await;
    assert_eq!((whole.status, &whole.body), (200, &png()));
    assert!(whole.head.contains("content-type: image/png"), "{}", whole.head);
    let part = request(&relay, "GET", path, &[("range", "bytes=1-3")], b"").await;
    assert_eq!((part.status, part.body.as_slice()), (206, &b"PNG"[..]));
    assert!(part.head.contains(&format!("content-range: bytes 1-3/{}", png().len())), "{}", part.head);
    assert_eq!(request(&relay, "GET", path, &[("range", "bytes=900-")], b"").await.status, 416);
    let head = request(&relay, "HEAD", path, &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert!(head.head.contains(&format!("content-length: {}", png().len())), "{}", head.head);
    let unknown = format!("/media/{}.png", "0".repeat(64));
    assert_eq!(request(&relay, "GET", &unknown, &[], b"").await.status, 404);
    assert_eq!(request(&relay, "GET", "/media/..%2Fkey", &[], b"").await.status, 404);
}

#[async_std::test]
async fn an_upload_without_its_proof_is_refused() {
    let relay = TestRelay::start().await;
    let none = request(&relay, "PUT", "/upload", &[], &png()).await;
    assert_eq!((none.status, none.json()), (401, json!({"error": "authentication failed"})));
    let hash = hex::encode(Sha256::digest(b"other bytes"));
    let draft = Draft::new(24242, "Upload file", now()).tag(["t", "upload"]).tag(["x", &hash]);
    let proof = Keys::generate().sign(draft.tag(["expiration", &(now() + 600).to_string()]));
    let header = format!("Nostr {}", STANDARD.encode(proof.to_json()));
    let headers = [("authorization", header.as_str()), ("x-sha-256", hash.as_str())];
    let other = request(&relay, "PUT", "/upload", &headers, &png()).await;
    assert_eq!((other.status, other.json()), (401, json!({"error": "authentication failed"})));
    let without_hash = request(&relay, "PUT", "/upload", &headers[..1], b"other bytes").await;
    assert_eq!(without_hash.status, 401);
}

#[async_std::test]
async fn files_of_any_sort_are_taken_but_no_sound_and_no_file_as_a_picture() {
    let relay = TestRelay::start().await;
    for (bytes, ending) in [
        (&b"%PDF-1.7\n"[..], "pdf"),
        (&b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>"[..], "xml"),
        (&b""[..], "bin"),
        (&[0_u8, 159, 146, 150][..], "bin"),
    ] {
        let answer = upload(&relay, "/upload", bytes).await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        assert!(answer.json()["url"].as_str().unwrap().ends_with(&format!(".{ending}")), "{}", answer.json());
        assert_eq!(upload(&relay, "/media/upload", bytes).await.status, 415);
    }
    assert_eq!(upload(&relay, "/upload", b"ID3\x03\0\0\0\0\0\0 sound").await.status, 415);
    assert_eq!(upload(&relay, "/upload", b"\x89PNG\r\n\x1a\n and no more").await.status, 422);
}

#[async_std::test]
async fn a_blob_over_the_limit_of_its_sort_is_refused_and_leaves_nothing() {
    let limits = Limits { image_bytes: 50, file_bytes: 100_000, video_bytes: 1, gif_bytes: 1, ..limits() };
    let relay = TestRelay::with(limits).await;
    assert_eq!(upload(&relay, "/upload", &png()).await.status, 413);
    assert_eq!(upload(&relay, "/upload", &[0; 100_000]).await.status, 200);
    assert_eq!(upload(&relay, "/upload", &[0; 100_001]).await.status, 413);
}

#[async_std::test]
async fn a_message_may_name_a_blob_that_is_here_and_no_other() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let channel = "0d4e86e4-5d4c-4f0a-8a7f-0a7d3a3b1f01";
    let create = Draft::new(9007, "", now()).tag(["h", channel]).tag(["name", "pictures"]);
    assert_eq!(post(&relay, &keys, "/events", &json!(keys.sign(create))).await.0, 200);
    let blob = upload(&relay, "/upload", &png()).await.json();
    let (url, hash) = (blob["url"].as_str().unwrap(), blob["sha256"].as_str().unwrap());
    let size = png().len().to_string();
    let elsewhere = url.replace("127.0.0.1", "elsewhere.example");
    let unknown = url.replace(hash, &"0".repeat(64));
    for (url, status) in [(url, 200), (elsewhere.as_str(), 400), (unknown.as_str(), 400)] {
        let draft = Draft::new(9, "look", now()).tag(["h", channel]).tag([
            "imeta".to_owned(),
            format!("url {url}"),
            "m image/png".to_owned(),
            format!("x {hash}"),
            format!("size {size}"),
        ]);
        let (got, answer) = post(&relay, &keys, "/events", &json!(keys.sign(draft))).await;
        assert_eq!(got, status, "{url} {answer}");
    }
}
