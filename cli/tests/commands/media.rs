//! Pictures: up to the embedded relay, into a message, and back.

use serde_json::json;

use crate::stage::{Relay, NO_EVENT};

/// The smallest picture: one pixel.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

#[test]
fn a_picture_goes_up_is_shown_and_comes_back() {
    let relay = Relay::start();
    let ann = relay.person();
    std::fs::write(ann.path("dot.gif"), GIF).expect("written");
    let blob = ann.run(&["upload", "file", "--file", "dot.gif"]).ok();
    assert_eq!((&blob["type"], &blob["size"]), (&json!("image/gif"), &json!(GIF.len())));
    let url = blob["url"].as_str().expect("a url");
    let got = ann.run(&["media", "get", url, "-o", "back.gif"]);
    assert_eq!((got.code, got.out.as_str(), got.err.as_str()), (0, "", ""));
    assert_eq!(std::fs::read(ann.path("back.gif")).expect("there"), GIF);
    let channel = ann.channel("room", "open");
    let send = ["messages", "send", "--channel", &channel, "--content", "look", "--file", "dot.gif"];
    ann.run(&send).ok();
    let list = ann.run(&["messages", "get", "--channel", &channel]).ok();
    assert_eq!(list[0]["content"], format!("look\n![image]({url})"));
    assert_eq!(list[0]["tags"][1][1], format!("url {url}"));
}

#[test]
fn what_is_no_picture_is_refused_and_nothing_is_sent() {
    let relay = Relay::start();
    let ann = relay.person();
    std::fs::write(ann.path("text.png"), "text").expect("written");
    ann.run(&["upload", "file", "--file", "text.png"]).fails(1, "user_error");
    ann.run(&["upload", "file", "--file", "."]).fails(1, "user_error");
    ann.run(&["upload", "file", "--file", "missing.png"]).fails(4, "error");
    let channel = ann.channel("room", "open");
    let send = ["messages", "send", "--channel", &channel, "--content", "look", "--file", "text.png"];
    ann.run(&send).fails(4, "error");
    assert_eq!(ann.run(&["messages", "get", "--channel", &channel]).ok(), json!([]));
}

#[test]
fn only_this_relays_blobs_are_asked_for() {
    let relay = Relay::start();
    let ann = relay.person();
    ann.run(&["media", "get", &format!("http://other.example/media/{NO_EVENT}")]).fails(1, "user_error");
    ann.run(&["media", "get", NO_EVENT]).fails(2, "relay_error");
}
