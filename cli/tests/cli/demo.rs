//! The demo holds, and leaves nothing behind.

use crate::answers::Dialect;
use crate::stage::{Done, Stage, WAXLOG};

#[test]
fn the_demo_holds_and_leaves_no_process_and_no_file() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let temporary = stage.path("tmp");
    std::fs::create_dir(&temporary).expect("made");
    // `output` reads stderr to its end: whatever still ran would hold it open.
    let done = Done::of(stage.waxlog().arg("demo").env("TMPDIR", &temporary).output().expect("runs")).ok();
    for held in ["interrupted", "> ", "all that the model was paid", "request 6", "2 passed, 0 failed"] {
        assert!(done.out.contains(held), "{held} is not in {}", done.out);
    }
    assert_eq!(done.err, "");
    assert_eq!(std::fs::read_dir(temporary).expect("listed").count(), 0);
    let left = std::fs::read_dir("/proc").into_iter().flatten().flatten().filter(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let folder = stage.path("tmp").to_string_lossy().into_owned();
        command.starts_with(WAXLOG.as_bytes()) && contains(&environment, folder.as_bytes())
    });
    assert_eq!(left.count(), 0, "a process of the demo still runs");
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_kept_demo_can_be_looked_at() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let kept = stage.path("kept");
    let kept = kept.to_str().expect("utf-8");
    stage.run(&["demo", "--keep", kept]).ok();
    let turns = stage.run(&["usage", "--json", "--home", kept]).ok().json();
    assert_eq!(turns[0]["stop"], "interrupted");
    stage.run(&["demo", "--keep", kept]).fails(2, "not empty");
}
