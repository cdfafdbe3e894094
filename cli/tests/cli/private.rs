//! What an agent leaves on disk is for its owner alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::answers::{script, Cost, Dialect};
use crate::stage::Stage;

/// Everything below `folder` with its mode and the one that it should have.
fn modes(folder: &Path) -> Vec<(PathBuf, u32, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry")) {
        let metadata = entry.metadata().expect("metadata");
        let wanted = if metadata.is_dir() { 0o700 } else { 0o600 };
        found.push((entry.path(), metadata.permissions().mode() & 0o777, wanted));
        if metadata.is_dir() {
            found.extend(modes(&entry.path()));
        }
    }
    found
}

#[test]
fn whatever_an_agent_leaves_in_its_home_is_private() {
    let stage = Stage::new(Dialect::Chat, vec![Dialect::Chat.answer("Hello.", &[], Cost::number(1))]);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&script(Vec::new())));
    assert_eq!(agent.turn(&session, "Hi."), "end_turn");
    agent.close();
    let found = modes(&stage.home());
    assert!(found.len() > 5, "{found:?}");
    let open: Vec<_> = found.iter().filter(|(_, mode, wanted)| mode != wanted).collect();
    assert!(open.is_empty(), "{open:?}");
}
