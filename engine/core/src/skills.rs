//! Skills as the model meets them: the built-in tool that loads them, and the part of the system prompt
//! that lists them beside the project's hints.

use serde_json::json;

use crate::mcp::Tool;
use crate::record::Skill;

/// The name of the built-in tool. No server's tool can have it: theirs all hold a separator.
pub const TOOL: &str = "load_skill";

/// The tool as it is offered.
pub fn tool() -> Tool {
    Tool {
        qualified: TOOL.to_owned(),
        server: usize::MAX,
        bare: TOOL.to_owned(),
        description: "Loads the instructions of a skill. Call it before you use a skill. With a name of the \
                      form `skill/relative/path` it loads one of the skill's supporting files."
            .to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "a skill's name, or a skill's name, a slash and a file's path"},
            },
            "required": ["name"],
        }),
        hook: false,
    }
}

/// What follows the base of the system prompt: hints and the list of skills. Empty if there are neither.
pub fn prompt_section(hints: &str, skills: &[Skill]) -> String {
    if hints.is_empty() && skills.is_empty() {
        return String::new();
    }
    let mut section = String::from("# Additional Instructions\n");
    if !hints.is_empty() {
        section.push_str(&format!("\n## Project Hints\n{hints}\n"));
    }
    if !skills.is_empty() {
        section.push_str("\n## Available Skills\n");
        for skill in skills {
            section.push_str(&format!("- {}: {}\n", skill.name, skill.description));
        }
        section.push_str(&format!("\nRead a skill with `{TOOL}` before you use it.\n"));
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, description: &str) -> Skill {
        Skill { name: name.into(), description: description.into(), folder: "/s".into(), files: vec![] }
    }

    #[test]
    fn nothing_found_adds_nothing() {
        assert_eq!(prompt_section("", &[]), "");
    }

    #[test]
    fn hints_and_skills_stand_under_their_headings() {
        let section = prompt_section("be kind", &[skill("brew", "makes tea"), skill("bare", "")]);
        assert_eq!(
            section,
            "# Additional Instructions\n\n## Project Hints\nbe kind\n\n## Available Skills\n- brew: makes tea\n\
             - bare: \n\nRead a skill with `load_skill` before you use it.\n"
        );
        assert!(!prompt_section("be kind", &[]).contains("Available Skills"));
        assert!(!prompt_section("", &[skill("a", "b")]).contains("Project Hints"));
    }
}
