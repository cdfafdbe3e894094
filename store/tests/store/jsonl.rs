//! Export and import keep every byte, and say which line is wrong.

use std::path::Path;

use waxlog_store::jsonl::{export, import, read_rows, Imported, JsonlError};
use waxlog_store::{Log, NewRecord, Options, Reader};

use crate::common::{all, fill, folder, open, record};

fn exported(dir: &Path, stream: Option<&str>) -> Vec<u8> {
    let mut text = Vec::new();
    let _ = export(&Reader::open(dir).expect("open"), stream, &mut text).expect("export");
    text
}

fn import_text(dir: &Path, text: &[u8]) -> Result<Imported, JsonlError> {
    import(dir, read_rows(text))
}

/// Heads and raw bytes of every shape that a row writes differently.
fn awkward(log: &Log) {
    let heads: [&[u8]; 8] =
        [b"{\"b\":1,\"a\":1.0e5}", b"null", b"", b" {}", b"{\n}", b"\xff", b"\"\\u00e9\"", b"1 "];
    let raws: [&[u8]; 5] = [b"text\r\n\"quoted\"\x00", b"", b"\xff\xfe\x00", "é\u{2028}".as_bytes(), b"null"];
    for (n, head) in (0..).zip(heads) {
        for raw in raws {
            let record = NewRecord { head: head.to_vec(), ..record(&format!("s{}", n % 2), n, raw) };
            log.append(vec![record]).expect("append");
        }
    }
    log.flush_blocking().expect("flush");
}

#[test]
fn a_whole_log_comes_back_with_every_byte_and_hash() {
    let (folder, dir) = folder();
    let log = open(&dir);
    awkward(&log);
    let records = all(&log.reader());
    drop(log);
    let text = exported(&dir, None);
    let copy = folder.path().join("copy");
    let imported = import_text(&copy, &text).expect("import");
    assert_eq!(imported, Imported { records: 40, is_same_chain: true });
    assert_eq!(all(&Reader::open(&copy).expect("open")), records);
    assert_eq!(exported(&copy, None), text);
}

#[test]
fn one_stream_keeps_its_order_and_bytes_and_is_chained_anew() {
    let (folder, dir) = folder();
    let log = open(&dir);
    awkward(&log);
    drop(log);
    let text = exported(&dir, Some("s1"));
    let copy = folder.path().join("copy");
    assert_eq!(import_text(&copy, &text).expect("import"), Imported { records: 20, is_same_chain: false });
    let bytes = |dir: &Path| -> Vec<_> {
        let reader = Reader::open(dir).expect("open");
        reader
            .stream("s1")
            .expect("read")
            .map(|r| r.expect("sound"))
            .map(|r| (r.head, r.raw, r.time_ms))
            .collect()
    };
    assert_eq!(bytes(&copy), bytes(&dir));
}

#[test]
fn a_head_that_is_json_can_be_read_in_the_row() {
    let (_folder, dir) = folder();
    fill(&dir, Options::default(), 1, 4);
    let text = String::from_utf8(exported(&dir, None)).expect("text");
    assert!(text.contains("\"head\":{\"n\":1},\"raw"), "{text}");
}

#[test]
fn a_torn_last_line_is_named() {
    let (folder, dir) = folder();
    fill(&dir, Options::default(), 3, 50);
    let text = exported(&dir, None);
    let copy = folder.path().join("copy");
    let error = import_text(&copy, &text[..text.len() - 10]).expect_err("torn");
    assert!(matches!(error, JsonlError::Torn { line: 3, .. }), "{error}");
    assert!(!copy.exists(), "an import that fails leaves no log");
}

#[test]
fn a_changed_byte_a_lost_row_and_a_swapped_row_are_named() {
    let (folder, dir) = folder();
    fill(&dir, Options::default(), 5, 50);
    let text = String::from_utf8(exported(&dir, None)).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let copy = folder.path().join("copy");
    let import_lines =
        |lines: &[&str]| import_text(&copy, (lines.join("\n") + "\n").as_bytes()).expect_err("refused");

    let changed = lines[2].replace("{\"n\":3}", "{\"n\":4}");
    let error = import_lines(&[lines[0], lines[1], &changed]);
    assert!(matches!(error, JsonlError::Invalid { line: 3, .. }), "{error}");
    let error = import_lines(&[lines[0], lines[1], lines[3]]);
    assert!(matches!(error, JsonlError::Order { line: 3, .. }), "{error}");
    let error = import_lines(&[lines[0], lines[2], lines[1]]);
    assert!(matches!(error, JsonlError::Order { line: 2, .. }), "{error}");
}

#[test]
fn an_import_does_not_touch_a_log_that_is_there() {
    let (_folder, dir) = folder();
    let records = fill(&dir, Options::default(), 2, 10);
    let text = exported(&dir, None);
    assert!(import_text(&dir, &text).is_err());
    assert_eq!(all(&Reader::open(&dir).expect("open")), records);
}
