use super::*;
use tempfile::TempDir;

struct Place {
    root: TempDir,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Place {
        let place = Place { root: tempfile::tempdir().expect("a folder") };
        for (path, text) in files {
            place.write(path, text);
        }
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    fn read(&self, cwd: &str, home: &str) -> Hints {
        fs::create_dir_all(self.path(cwd)).expect("cwd");
        read(&self.path(cwd), Some(&self.path(home)))
    }
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: about {name}\n---\nbody of {name}\n")
}

fn names(hints: &Hints) -> Vec<&str> {
    hints.skills.iter().map(|s| s.name.as_str()).collect()
}

#[test]
fn home_comes_first_then_the_repository_from_its_root_down() {
    let place = Place::new(&[
        ("home/AGENTS.md", "HOME"),
        ("repo/.git", "gitdir: elsewhere"),
        ("repo/AGENTS.md", "ROOT"),
        ("repo/a/b/AGENTS.md", "CWD"),
        ("AGENTS.md", "OUTSIDE"),
    ]);
    let hints = place.read("repo/a/b", "home");
    assert_eq!(hints.text, "HOME\n\nROOT\n\nCWD");
    assert_eq!(hints.sources.len(), 3);
    assert_eq!(hints.sources[0].bytes, 4);
    assert_eq!(hints.sources[0].sha256.len(), 64);
}

#[test]
fn without_a_repository_only_the_working_folder_counts() {
    let place = Place::new(&[("x/AGENTS.md", "UP"), ("x/y/AGENTS.md", "HERE")]);
    assert_eq!(place.read("x/y", "none").text, "HERE");
}

#[test]
fn a_home_inside_of_the_chain_is_read_once() {
    let place = Place::new(&[("r/.git/HEAD", ""), ("r/AGENTS.md", "ROOT")]);
    assert_eq!(place.read("r", "r").text, "ROOT");
}

#[test]
fn hints_are_cut_on_a_character_and_later_files_are_dropped() {
    let place = Place::new(&[("home/AGENTS.md", &"\u{e9}".repeat(100_000)), ("c/AGENTS.md", "LATE")]);
    let hints = place.read("c", "home");
    assert_eq!(hints.text.len(), HINTS_MAX_BYTES);
    assert!(!hints.text.contains("LATE"));
}

#[test]
fn a_file_that_is_not_text_is_passed_over() {
    let place = Place::new(&[("c/AGENTS.md", "HERE")]);
    place.write("home/x", "");
    fs::write(place.path("home/AGENTS.md"), b"\xff\xfe").expect("a file");
    assert_eq!(place.read("c", "home").text, "HERE");
}

#[test]
fn the_project_beats_the_home_and_the_first_root_the_others() {
    let place = Place::new(&[
        ("c/.agents/skills/z/SKILL.md", &skill("one")),
        ("c/.goose/skills/a/SKILL.md", &skill("one")),
        ("c/.claude/skills/b/SKILL.md", &skill("two")),
        ("home/.agents/skills/b/SKILL.md", &skill("two")),
        ("home/.agents/skills/c/SKILL.md", &skill("three")),
        ("home/.claude/skills/d/SKILL.md", &skill("never")),
    ]);
    let hints = place.read("c", "home");
    assert_eq!(names(&hints), ["one", "two", "three"]);
    assert!(hints.skills[0].folder.ends_with(".agents/skills/z"));
    assert_eq!(hints.skills[1].description, "about two");
}

#[test]
fn what_is_no_skill_is_passed_over() {
    let place = Place::new(&[
        ("c/.agents/skills/a/SKILL.md", "---\nname: 42\n---\nx"),
        ("c/.agents/skills/b/SKILL.md", "---\r\nname: crlf\r\n---\r\nx"),
        ("c/.agents/skills/c/SKILL.md", "---\nname: open\nx"),
        ("c/.agents/skills/d/SKILL.md", "---\ndescription: nameless\n---\n"),
        ("c/.agents/skills/e/SKILL.md", "---\nname: \"  ok \"\n---\nx"),
        ("c/.agents/skills/f/OTHER.md", "x"),
    ]);
    let hints = place.read("c", "home");
    assert_eq!(names(&hints), ["ok"]);
    assert_eq!(hints.skills[0].description, "");
}

#[test]
fn supporting_files_are_listed_once_and_nested_skills_are_left_out() {
    let place = Place::new(&[
        ("c/.agents/skills/a/SKILL.md", &skill("a")),
        ("c/.agents/skills/a/ref/b.md", "b"),
        ("c/.agents/skills/a/.hidden", "h"),
        ("c/.agents/skills/a/inner/SKILL.md", &skill("inner")),
        ("c/.agents/skills/a/inner/x.md", "x"),
    ]);
    std::os::unix::fs::symlink("..", place.path("c/.agents/skills/a/ref/loop")).expect("a link");
    assert_eq!(place.read("c", "home").skills[0].files, [".hidden", "ref/b.md"]);
}

#[test]
fn a_linked_skill_folder_is_found() {
    let place = Place::new(&[("elsewhere/s/SKILL.md", &skill("linked")), ("c/.agents/skills/x", "")]);
    let link = place.path("c/.agents/skills/l");
    std::os::unix::fs::symlink(place.path("elsewhere/s"), link).expect("a link");
    assert_eq!(names(&place.read("c", "home")), ["linked"]);
}
