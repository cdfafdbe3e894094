//! Loads a skill for the model: its instructions, or one of its files. Files are read at the time of the
//! call, but only those that were there when the session was opened.

use std::fs;
use std::path::Path;

use waxlog_core::record::Skill;
use waxlog_core::skills::TOOL;

use crate::hints::split_front_matter;

/// Cap of what one load shows, in bytes, headers and footers included.
pub const SKILL_MAX_BYTES: usize = 32_768;

/// Loads what `name` asks for: a skill's name, or a name, a slash and a file of the skill. The error is
/// for the model to read.
pub fn load(skills: &[Skill], name: Option<&str>) -> Result<String, String> {
    let name = name.ok_or_else(|| format!("{TOOL}: missing required argument `name` (a string)"))?;
    let text = match name.split_once('/') {
        None => load_skill(find(skills, name)?)?,
        Some((skill, file)) => load_file(find(skills, skill)?, &file.replace('\\', "/"))?,
    };
    Ok(text[..text.floor_char_boundary(SKILL_MAX_BYTES)].to_owned())
}

fn find<'a>(skills: &'a [Skill], name: &str) -> Result<&'a Skill, String> {
    skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        format!("{TOOL}: skill `{name}` not found; available skills: {}", or_none(&names))
    })
}

fn load_skill(skill: &Skill) -> Result<String, String> {
    let path = Path::new(&skill.folder).join("SKILL.md");
    let text = read(&path)?;
    let mut out = split_front_matter(&text).map_or(text.as_str(), |(_, body)| body).to_owned();
    if !skill.files.is_empty() {
        out.push_str("\n## Supporting Files\n\n");
        for file in &skill.files {
            out.push_str(&format!("- {file} ({TOOL}(name: \"{}/{file}\"))\n", skill.name));
        }
    }
    Ok(out)
}

/// Only an exact match with the list counts, and it must still lie inside of the skill.
fn load_file(skill: &Skill, file: &str) -> Result<String, String> {
    let name = &skill.name;
    if skill.files.is_empty() {
        return Err(format!("{TOOL}: skill `{name}` has no supporting files"));
    }
    if !skill.files.iter().any(|known| known == file) {
        let files: Vec<&str> = skill.files.iter().map(String::as_str).collect();
        return Err(format!(
            "{TOOL}: file `{file}` not found in skill `{name}`; its files: {}",
            or_none(&files)
        ));
    }
    let folder = Path::new(&skill.folder);
    let path = folder.join(file);
    let inside = match (fs::canonicalize(&path), fs::canonicalize(folder)) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        (Err(e), _) => return Err(format!("{TOOL}: {}: {e}", path.display())),
        (_, Err(_)) => false,
    };
    if !inside {
        return Err(format!("{TOOL}: `{name}/{file}` resolves outside the skill directory and is refused"));
    }
    let content = read(&path)?;
    Ok(format!("# Loaded: {name}/{file}\n\n{content}\n\n---\nThe file {name}/{file} was loaded.\n"))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{TOOL}: {}: {e}", path.display()))
}

fn or_none(names: &[&str]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
#[path = "skills_tests.rs"]
mod tests;
