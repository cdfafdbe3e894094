//! Custom emoji.

use serde_json::json;
use waxlog_nostr::{Event, Keys};

use crate::scripted::{accepted, event, found, now, tags, Outcome, Stage};

fn set(keys: &Keys, emoji: &[(&str, &str)], created_at: u64) -> Event {
    let urls: Vec<_> = emoji.iter().map(|(code, url)| (*code, format!("https://e.example/{url}"))).collect();
    let tags: Vec<Vec<&str>> = urls.iter().map(|(code, url)| vec!["emoji", code, url]).collect();
    let tags: Vec<&[&str]> =
        [&["d", "buzz:custom-emoji"][..]].into_iter().chain(tags.iter().map(Vec::as_slice)).collect();
    event(keys, 30_030, &tags, "", created_at)
}

fn shown(emoji: &[(&str, &str)]) -> serde_json::Value {
    let list: Vec<_> = emoji
        .iter()
        .map(|(code, url)| json!({"shortcode": code, "url": format!("https://e.example/{url}")}))
        .collect();
    json!({ "emojis": list })
}

#[test]
fn a_second_emoji_in_a_second_comes_after_the_first() {
    let keys = Keys::generate();
    let head = set(&keys, &[("cat", "c")], now() + 1);
    let created_at = head.created_at + 1;
    let stage = Stage::of(keys, vec![found(&[head]), accepted()]);
    assert_eq!(stage.run(&["emoji", "set", "--shortcode", ":Dog:", "--url", "https://e.example/d"]).code, 0);
    let sent = stage.sent_one();
    let wanted = ["d|buzz:custom-emoji", "emoji|cat|https://e.example/c", "emoji|dog|https://e.example/d"];
    assert_eq!((sent.created_at, tags(&sent)), (created_at, wanted.map(String::from).to_vec()));
}

#[test]
fn the_palette_has_the_newest_picture_of_each_name() {
    let sets = [
        set(&Keys::generate(), &[("dog", "old"), ("cat", "c")], 5),
        set(&Keys::generate(), &[("dog", "new")], 6),
    ];
    let stage = Stage::new(vec![found(&sets)]);
    assert_eq!(stage.run(&["emoji", "list"]).json(), shown(&[("cat", "c"), ("dog", "new")]));
    assert_eq!(
        stage.run(&["emoji", "export", "--scope", "workspace"]).json(),
        shown(&[("cat", "c"), ("dog", "new")])
    );
}

#[test]
fn an_emoji_that_is_not_there_is_removed_without_a_write() {
    let stage = Stage::new(vec![found(&[])]);
    let run = stage.run(&["emoji", "rm", "--shortcode", "cat"]);
    assert_eq!(run.json(), json!({"accepted": true, "message": "not present"}));
    assert!(stage.sent().is_empty());
}

#[test]
fn an_import_merges_replaces_or_only_shows() {
    let keys = Keys::generate();
    let head = set(&keys, &[("dog", "d")], 5);
    let stage = Stage::of(keys, vec![found(std::slice::from_ref(&head)), found(&[head]), accepted()]);
    let file = stage.file("emoji.json", &shown(&[("dog", "other"), ("ant", "1"), ("ant", "2")]).to_string());
    let import = ["emoji", "import", "--file", file.to_str().unwrap()];
    let run = stage.run(&[&import[..], &["--dry-run"]].concat());
    assert_eq!(run.json(), shown(&[("dog", "d"), ("ant", "1")]));
    assert!(stage.sent().is_empty());
    assert_eq!(stage.run(&[&import[..], &["--replace"]].concat()).code, 0);
    let wanted =
        ["d|buzz:custom-emoji", "emoji|dog|https://e.example/other", "emoji|ant|https://e.example/1"];
    assert_eq!(tags(&stage.sent_one()), wanted);
}

#[test]
fn an_import_of_something_else_is_refused() {
    let stage = Stage::new(vec![found(&[])]);
    for (text, failure) in [
        ("nonsense", (1, "user_error")),
        ("{}", (1, "user_error")),
        (r#"{"emojis":[{"shortcode":"a b","url":"https://e.example"}]}"#, (4, "error")),
    ] {
        let run = stage.run_with(&["emoji", "import"], text);
        assert_eq!(run.failure(), (failure.0, failure.1.into()), "{text}");
    }
    assert!(stage.server.requests().is_empty());
}

#[test]
fn an_export_to_a_file_can_be_imported() {
    let keys = Keys::generate();
    let stage = Stage::of(keys.clone(), vec![found(&[set(&keys, &[("cat", "c"), ("ant", "a")], 5)])]);
    let run = stage.run(&["emoji", "export", "--file", "out.json"]);
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{run:?}");
    let run = stage.run(&["emoji", "import", "--file", "out.json", "--replace", "--dry-run"]);
    assert_eq!(run.json(), shown(&[("ant", "a"), ("cat", "c")]));
}
