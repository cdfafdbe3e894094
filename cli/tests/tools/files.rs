//! `read_file`, `str_replace` and `view_image`.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};

use serde_json::{json, Value};

use crate::client::{text_of, Stage};

const MIB: usize = 1024 * 1024;

fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_str": old, "new_str": new})
}

#[test]
fn a_file_is_read_from_anywhere_the_user_may_go() {
    let stage = Stage::new();
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("o.txt"), "out\n").expect("written");
    symlink(outside.path(), stage.path("dir")).expect("a link");
    fs::create_dir(stage.path("sub")).expect("a folder");
    stage.write("sub/one.txt", "only\n");
    let mut server = stage.server();
    let absolute = outside.path().join("o.txt").display().to_string();
    for (path, workdir, line) in [
        (absolute.as_str(), Some("nowhere"), "1:out"),
        ("dir/o.txt", None, "1:out"),
        ("one.txt", Some("sub"), "1:only"),
        ("../work/sub/one.txt", None, "1:only"),
    ] {
        let text = server.text("read_file", json!({"path": path, "workdir": workdir}));
        assert_eq!(text, format!("{path} (lines 1-1 of 1)\n{line}"));
    }
}

#[test]
fn what_is_no_text_file_of_moderate_size_is_refused() {
    let stage = Stage::new();
    stage.write("big", vec![b'x'; 10 * MIB + 1]);
    stage.write("whole", vec![b'x'; 10 * MIB]);
    stage.write("latin", b"caf\xe9\n");
    symlink("loop", stage.path("loop")).expect("a link");
    let mut server = stage.server();
    for (path, word) in [
        ("nope.txt", "path not accessible"),
        ("loop", "path not accessible"),
        ("a\0b", "path not accessible"),
        (".", "not a regular file"),
        ("", "not a regular file"),
        ("big", "too large: big has 10485761 bytes, the limit is 10485760"),
    ] {
        let message = server.refused(-32602, "read_file", json!({"path": path}));
        assert!(message.contains(word), "{message}");
        let message = server.refused(-32602, "str_replace", replace(path, "a", "b"));
        assert!(message.contains(word), "{message}");
    }
    let message = server.refused(-32603, "read_file", json!({"path": "latin"}));
    assert!(message.contains("not valid UTF-8"), "{message}");
    server.text("read_file", json!({"path": "whole"}));
}

#[test]
fn one_place_is_replaced_and_the_change_is_shown() {
    let stage = Stage::new();
    stage.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    let mut server = stage.server();
    let text = server.text("str_replace", replace("a.txt", "one", "1"));
    let path = stage.path("a.txt").display().to_string();
    assert_eq!(
        text,
        format!(
            "Replaced 1 occurrence in {path}.\n\n--- a/{path}\n+++ b/{path}\n@@ -1,4 +1,4 @@\n-one\n+1\n two\n \
             three\n four\n"
        )
    );
    assert_eq!(stage.read("a.txt"), "1\ntwo\nthree\nfour\nfive\n");
    let unchanged = server.text("str_replace", replace("a.txt", "two", "two"));
    assert!(unchanged.ends_with(&format!("{path}.\n\n")), "{unchanged}");
}

#[test]
fn several_places_are_replaced_only_when_all_are_wanted() {
    let stage = Stage::new();
    stage.write("a.txt", "x x\nx\n");
    let mut server = stage.server();
    let message = server.refused(-32602, "str_replace", replace("a.txt", "x", "y"));
    assert!(message.contains("matched multiple locations (3)"), "{message}");
    assert_eq!(stage.read("a.txt"), "x x\nx\n");
    let mut all = replace("a.txt", "x", "y");
    all["replace_all"] = true.into();
    assert!(server.text("str_replace", all.clone()).starts_with("Replaced 3 occurrence(s) in"));
    assert!(server.refused(-32602, "str_replace", all).contains("not found"));
    let near = server.refused(-32602, "str_replace", replace("a.txt", "y z", "q"));
    assert!(near.contains("nearest line is 1"), "{near}");
}

#[test]
fn texts_and_results_beyond_the_limits_change_nothing() {
    let stage = Stage::new();
    stage.write("a.txt", "a\n".repeat(11));
    let mut server = stage.server();
    let long = "x".repeat(MIB + 1);
    for (old, new, word) in [
        ("", "x", "old_str is empty"),
        ("a", long.as_str(), "new_str has 1048577 bytes"),
        (long.as_str(), "a", "old_str has 1048577 bytes"),
        ("a", &long[1..], "the limit is 10485760"),
    ] {
        let mut arguments = replace("a.txt", old, new);
        arguments["replace_all"] = true.into();
        let message = server.refused(-32602, "str_replace", arguments);
        assert!(message.contains(word), "{}", &message[..80]);
    }
    assert_eq!(stage.read("a.txt"), "a\n".repeat(11));
}

#[test]
fn mode_and_link_stay_and_no_other_file_is_left() {
    let stage = Stage::new();
    for (name, mode) in [("run", 0o755), ("own", 0o600), ("locked", 0o444)] {
        stage.write(name, "a\n");
        fs::set_permissions(stage.path(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    symlink("own", stage.path("link")).expect("a link");
    let mut server = stage.server();
    for name in ["run", "link", "locked"] {
        server.text("str_replace", replace(name, "a", "b"));
    }
    let mode = |name| fs::metadata(stage.path(name)).expect("there").permissions().mode() & 0o777;
    assert_eq!(["run", "own", "locked"].map(mode), [0o755, 0o600, 0o444]);
    assert!(stage.path("link").is_symlink());
    assert_eq!(stage.read("own"), "b\n");
    let refused = server.refused(-32602, "str_replace", replace("absent", "a", "b"));
    assert!(refused.contains("absent"), "{refused}");
    assert_eq!(fs::read_dir(stage.path("")).expect("there").count(), 4);
}

#[test]
fn edits_of_one_file_at_once_are_all_kept_and_in_their_order() {
    let stage = Stage::new();
    let lines: String = (10..60).map(|n| format!("<{n}>\n")).collect();
    stage.write("a.txt", &lines);
    stage.write("chain.txt", "0\n");
    let mut server = stage.server();
    let mut ids = Vec::new();
    for n in 10..60 {
        ids.push(server.begin("str_replace", replace("a.txt", &format!("<{n}>"), &format!("({n})"))));
        ids.push(
            server.begin("str_replace", replace("chain.txt", &format!("{}", n - 10), &format!("{}", n - 9))),
        );
    }
    let seen = server.begin("read_file", json!({"path": "chain.txt"}));
    for id in &ids {
        text_of(&server.answer(id));
    }
    assert!(text_of(&server.answer(&seen)).ends_with("1:50"));
    assert_eq!(stage.read("a.txt"), lines.replace('<', "(").replace('>', ")"));
}

#[test]
fn a_picture_is_shown_as_it_is_or_smaller() {
    let stage = Stage::new();
    // One white pixel.
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTjSoAAAAABJRU5ErkJggg==";
    let mut server = stage.server();
    let answer = server.call("view_image", json!({"source": format!("data:image/png;base64,{pixel}")}));
    assert_eq!(text_of(&answer), "1\u{d7}1, 67 B (image/png from a data URL)");
    let picture = json!({"type": "image", "data": pixel, "mimeType": "image/png"});
    assert_eq!(answer["result"]["content"][1], picture);
    stage.write("a.txt", "no picture");
    for (source, word) in [
        ("a.txt", "unsupported image format"),
        ("absent.png", "path not accessible"),
        ("ftp://example.org/a.png", "unsupported URL scheme"),
        ("data:text/plain;base64,AA==", "not an image"),
    ] {
        let message = server.refused(-32602, "view_image", json!({"source": source}));
        assert!(message.contains(word), "{message}");
    }
}
