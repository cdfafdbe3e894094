//! What a project and its user have written down for agents: `AGENTS.md` files and skills, read once when a
//! session is opened.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use waxlog_core::record::{Skill, Source};

/// Largest text of all hints together, in bytes.
pub const HINTS_MAX_BYTES: usize = 131_072;
/// The file that holds hints.
const HINTS_FILE: &str = "AGENTS.md";
/// The file that makes a folder a skill.
const SKILL_FILE: &str = "SKILL.md";
/// Where skills lie below the working folder, in order of precedence.
const PROJECT_ROOTS: [&str; 3] = [".agents/skills", ".goose/skills", ".claude/skills"];
/// Where skills lie below the home folder.
const HOME_ROOT: &str = ".agents/skills";

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The hints, joined.
    pub text: String,
    /// The files that they came from.
    pub sources: Vec<Source>,
    /// The skills, in order of discovery.
    pub skills: Vec<Skill>,
}

/// Reads the hints and finds the skills for a session in `cwd`. What cannot be read is passed over.
pub fn read(cwd: &Path, home: Option<&Path>) -> Hints {
    let (text, sources) = read_hints(&hint_folders(cwd, home));
    Hints { text, sources, skills: find_skills(cwd, home) }
}

/// The home folder, then from the repository's root down to `cwd`; without a repository `cwd` alone.
fn hint_folders(cwd: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let root = cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(cwd);
    let mut chain: Vec<PathBuf> =
        cwd.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect();
    if let Some(home) = home.filter(|home| !chain.iter().any(|folder| folder == home)) {
        chain.push(home.to_owned());
    }
    chain.reverse();
    chain
}

fn read_hints(folders: &[PathBuf]) -> (String, Vec<Source>) {
    let (mut text, mut sources) = (String::new(), Vec::new());
    for folder in folders {
        let path = folder.join(HINTS_FILE);
        let Ok(content) = fs::read_to_string(&path) else { continue };
        sources.push(source(&path, &content));
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let room = HINTS_MAX_BYTES.saturating_sub(text.len());
        let fits = content.floor_char_boundary(room);
        text.push_str(&content[..fits]);
        if fits < content.len() {
            log::warn!(
                "hints: {} is cut at {fits} of {} bytes, the limit of all hints is {HINTS_MAX_BYTES}; shorten it",
                path.display(),
                content.len()
            );
            break;
        }
    }
    (text, sources)
}

fn source(path: &Path, content: &str) -> Source {
    let sha256 = hex::encode(Sha256::digest(content));
    Source { path: path.display().to_string(), bytes: content.len() as u64, sha256 }
}

/// The skills of the project, then those of the user; of two with one name the first counts.
fn find_skills(cwd: &Path, home: Option<&Path>) -> Vec<Skill> {
    let roots = PROJECT_ROOTS.iter().map(|root| cwd.join(root)).chain(home.map(|h| h.join(HOME_ROOT)));
    let mut skills: Vec<Skill> = Vec::new();
    for skill in roots.flat_map(|root| folders_of(&root)).filter_map(|folder| read_skill(&folder)) {
        if !skills.iter().any(|known| known.name == skill.name) {
            skills.push(skill);
        }
    }
    skills
}

/// The folders in `root`, sorted; links to folders count.
fn folders_of(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn read_skill(folder: &Path) -> Option<Skill> {
    let text = fs::read_to_string(folder.join(SKILL_FILE)).ok()?;
    let (front, _) = split_front_matter(&text)?;
    let front = yaml_rust2::YamlLoader::load_from_str(front).ok()?;
    let word = |key: &str| front.first().and_then(|doc| doc[key].as_str()).map(|s| s.trim().to_owned());
    let name = word("name").filter(|name| !name.is_empty())?;
    let mut files = Vec::new();
    collect_files(folder, folder, &mut BTreeSet::new(), &mut files);
    files.sort();
    let folder = folder.display().to_string();
    Some(Skill { name, description: word("description").unwrap_or_default(), folder, files })
}

/// A skill file's front matter and what follows it; `None` where it has none.
pub fn split_front_matter(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---\n")?;
    let end = rest.find("\n---")?;
    let body = &rest[end + "\n---".len()..];
    Some((&rest[..end], body.strip_prefix('\n').unwrap_or(body)))
}

/// All regular files of a skill but skill files; folders that are skills of their own are left out, and
/// each folder is visited once, wherever links lead.
fn collect_files(skill: &Path, folder: &Path, seen: &mut BTreeSet<PathBuf>, files: &mut Vec<String>) {
    if !fs::canonicalize(folder).is_ok_and(|real| seen.insert(real)) {
        return;
    }
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            if !path.join(SKILL_FILE).is_file() {
                collect_files(skill, &path, seen, files);
            }
        } else if path.is_file() && path.file_name().is_some_and(|name| name != SKILL_FILE) {
            let relative = path.strip_prefix(skill).ok().and_then(Path::to_str);
            files.extend(relative.map(str::to_owned));
        }
    }
}

#[cfg(test)]
#[path = "hints_tests.rs"]
mod tests;
