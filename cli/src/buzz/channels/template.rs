//! Templates of channels: where they lie and what they say.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use waxlog_nostr::channel::{ChannelType, Visibility};

use super::super::failure::Failure;

/// Where the templates lie below the user's folder for data.
const STORE: &str = "xyz.block.buzz.app/templates/channel-templates.json";

/// A channel to be made again and again.
#[derive(Debug)]
pub(super) struct Template {
    /// What it is found by.
    pub(super) name: String,
    /// What the channel is about.
    pub(super) description: Option<String>,
    /// What it is for.
    pub(super) channel_type: ChannelType,
    /// Who sees it.
    pub(super) visibility: Visibility,
    /// The personas whose agents join, in order.
    pub(super) personas: Vec<String>,
    /// The teams whose personas join too.
    pub(super) teams: Vec<String>,
    canvas_template: Option<String>,
}

impl Template {
    /// The canvas of a channel of this name, if the template has one.
    pub(super) fn canvas(&self, channel_name: &str) -> Option<String> {
        let text = self.canvas_template.as_ref().filter(|text| !text.is_empty())?;
        Some(text.replace("{channel.name}", channel_name).replace("{template.name}", &self.name))
    }
}

/// A template as it is in the file: snake case outside, camel case within `agents`.
#[derive(Deserialize)]
struct Entry {
    name: String,
    description: Option<String>,
    channel_type: Option<String>,
    visibility: Option<String>,
    canvas_template: Option<String>,
    #[serde(default)]
    agents: Agents,
}

#[derive(Default, Deserialize)]
struct Agents {
    #[serde(default)]
    personas: Vec<PersonaRef>,
    #[serde(default)]
    teams: Vec<TeamRef>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PersonaRef {
    persona_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TeamRef {
    team_id: String,
}

/// The template of a name, in any case, from a file or the user's store.
pub(super) fn find(file: Option<&Path>, name: &str) -> Result<Template, Failure> {
    let path = match file {
        Some(file) => file.to_path_buf(),
        None => data_folder()
            .ok_or_else(|| {
                Failure::NotFound("there is no folder for templates; give --templates-file".to_owned())
            })?
            .join(STORE),
    };
    let shown = path.display();
    let text = fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::NotFound(format!("there are no templates at {shown}; give --templates-file"))
        }
        _ => Failure::Other(format!("cannot read {shown}: {error}")),
    })?;
    let entries: Vec<Entry> = serde_json::from_slice(&text)
        .map_err(|error| Failure::Other(format!("{shown} is no list of templates: {error}")))?;
    let known: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
    match entries.into_iter().find(|entry| entry.name.eq_ignore_ascii_case(name)) {
        Some(entry) => read(entry).map_err(|error| Failure::Other(format!("{shown}: {error}"))),
        None => Err(Failure::NotFound(format!(
            "no template {name:?} in {shown}; there are: {}",
            known.join(", ")
        ))),
    }
}

fn read(entry: Entry) -> Result<Template, waxlog_nostr::channel::ChannelError> {
    let channel_type = entry.channel_type.as_deref().map(str::parse).transpose()?;
    let visibility = entry.visibility.as_deref().map(str::parse).transpose()?;
    Ok(Template {
        name: entry.name,
        description: entry.description,
        channel_type: channel_type.unwrap_or(ChannelType::Stream),
        visibility: visibility.unwrap_or(Visibility::Open),
        personas: entry.agents.personas.into_iter().map(|persona| persona.persona_id).collect(),
        teams: entry.agents.teams.into_iter().map(|team| team.team_id).collect(),
        canvas_template: entry.canvas_template,
    })
}

/// The user's folder for data, as the platform has it.
fn data_folder() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    match cfg!(target_os = "macos") {
        true => folder("HOME").map(|home| home.join("Library/Application Support")),
        false => folder("XDG_DATA_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/share"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn a_template_is_found_in_any_case_and_has_its_defaults() {
        let file = store(
            r#"[{"name":"Other"},{"name":"Team Room","canvas_template":"{channel.name} by {template.name}",
            "agents":{"personas":[{"personaId":"p"}],"teams":[{"teamId":"t"}]}}]"#,
        );
        let template = find(Some(file.path()), "team ROOM").unwrap();
        assert_eq!(template.name, "Team Room");
        assert_eq!((template.channel_type, template.visibility), (ChannelType::Stream, Visibility::Open));
        assert_eq!(
            (template.personas.clone(), template.teams.clone()),
            (vec!["p".to_owned()], vec!["t".to_owned()])
        );
        assert_eq!(template.canvas("bees").as_deref(), Some("bees by Team Room"));
        let other = find(Some(file.path()), "other").unwrap();
        assert_eq!(other.canvas("bees"), None);
    }

    #[test]
    fn what_is_not_there_is_not_found_and_what_is_wrong_is_an_error() {
        let file = store(r#"[{"name":"One"},{"name":"Two"}]"#);
        let missing = find(Some(file.path()), "three").unwrap_err();
        assert!(matches!(&missing, Failure::NotFound(text) if text.contains("One, Two")), "{missing}");
        let nowhere = find(Some(Path::new("/nowhere/templates.json")), "one");
        assert!(matches!(nowhere, Err(Failure::NotFound(_))));
        let broken = store("{");
        assert!(matches!(find(Some(broken.path()), "one"), Err(Failure::Other(_))));
        let odd = store(r#"[{"name":"One","visibility":"secret"}]"#);
        assert!(matches!(find(Some(odd.path()), "one"), Err(Failure::Other(_))));
    }
}
