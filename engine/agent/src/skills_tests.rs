use super::*;
use std::path::PathBuf;
use tempfile::TempDir;

fn place(files: &[(&str, &str)]) -> (TempDir, Vec<Skill>) {
    let root = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = root.path().join("c/.agents/skills").join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, text).expect("a file");
    }
    let skills = crate::hints::read(&root.path().join("c"), None).skills;
    (root, skills)
}

fn brew() -> (TempDir, Vec<Skill>) {
    place(&[("brew/SKILL.md", "---\nname: brew\n---\nBoil water.\n"), ("brew/ref/t.md", "SECOND")])
}

#[test]
fn a_skill_is_its_body_with_its_files() {
    let (_root, skills) = brew();
    let text = load(&skills, Some("brew")).expect("loads");
    assert_eq!(
        text,
        "Boil water.\n\n## Supporting Files\n\n- ref/t.md (load_skill(name: \"brew/ref/t.md\"))\n"
    );
    let file = load(&skills, Some("brew/ref\\t.md")).expect("loads");
    assert!(file.starts_with("# Loaded: brew/ref/t.md\n\nSECOND\n\n---\n"), "{file}");
}

#[test]
fn what_cannot_be_loaded_is_named_with_what_can() {
    let (_root, skills) = brew();
    for (name, needles) in [
        (None, ["missing required argument", "name"]),
        (Some("stew"), ["not found", "brew"]),
        (Some("stew/x"), ["not found", "brew"]),
        (Some("brew/nope"), ["not found", "ref/t.md"]),
        (Some("brew/../../secret"), ["not found", "ref/t.md"]),
    ] {
        let error = load(&skills, name).expect_err("refused");
        assert!(needles.iter().all(|needle| error.contains(needle)), "{error}");
    }
    let (_root, bare) = place(&[("b/SKILL.md", "---\nname: b\n---\n")]);
    assert!(load(&bare, Some("b/x")).expect_err("refused").contains("no supporting files"));
    assert!(load(&[], Some("b")).expect_err("refused").contains("none"));
}

#[test]
fn a_link_that_leads_out_of_the_skill_is_refused() {
    let (root, _) = brew();
    fs::write(root.path().join("secret"), "SECRET").expect("a file");
    let link: PathBuf = root.path().join("c/.agents/skills/brew/out");
    std::os::unix::fs::symlink(root.path().join("secret"), link).expect("a link");
    let skills = crate::hints::read(&root.path().join("c"), None).skills;
    let error = load(&skills, Some("brew/out")).expect_err("refused");
    assert!(error.contains("resolves outside the skill directory") && !error.contains("SECRET"), "{error}");
}

#[test]
fn edits_count_and_new_files_do_not() {
    let (root, skills) = brew();
    let folder = root.path().join("c/.agents/skills/brew");
    fs::write(folder.join("SKILL.md"), "---\nname: brew\n---\nNew text.\n").expect("a file");
    fs::write(folder.join("new.md"), "x").expect("a file");
    assert!(load(&skills, Some("brew")).expect("loads").starts_with("New text."));
    assert!(load(&skills, Some("brew/new.md")).is_err());
}

#[test]
fn everything_together_stays_within_the_cap() {
    let (_root, skills) = place(&[
        ("big/SKILL.md", &format!("---\nname: big\n---\n{}", "\u{e9}".repeat(20_000))),
        ("big/more.md", &"y".repeat(65_536)),
    ]);
    assert!(load(&skills, Some("big")).expect("loads").len() <= SKILL_MAX_BYTES);
    let file = load(&skills, Some("big/more.md")).expect("loads");
    assert!(file.len() == SKILL_MAX_BYTES && file.starts_with("# Loaded: big/more.md"));
}

#[test]
fn text_without_front_matter_is_shown_whole() {
    let (root, skills) = brew();
    fs::write(root.path().join("c/.agents/skills/brew/SKILL.md"), "plain").expect("a file");
    assert!(load(&skills, Some("brew")).expect("loads").starts_with("plain"));
}
