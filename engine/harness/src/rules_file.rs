//! The file with the operator's rules.

use std::path::Path;

use serde::Deserialize;
use waxlog_harness_core::settings::Rule;

/// Largest file that is read, in bytes.
const FILE_MAX_BYTES: u64 = 1_048_576;

#[derive(Deserialize)]
struct RulesFile {
    #[serde(default)]
    rules: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    channels: Option<Channels>,
    kinds: Option<Vec<u16>>,
    #[serde(default)]
    require_mention: bool,
    filter: Option<String>,
    prompt_tag: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Channels {
    Word(String),
    List(Vec<String>),
}

/// Reads the rules of a file. The error names the file and what is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Vec<Rule>, String> {
    let named = |why: String| format!("{}: {why}", path.display());
    let length = std::fs::metadata(path).map_err(|error| named(error.to_string()))?.len();
    if length > FILE_MAX_BYTES {
        return Err(named(format!("{length} bytes, at most {FILE_MAX_BYTES} are read")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    let file: RulesFile = toml::from_str(&text).map_err(|error| named(error.to_string()))?;
    file.rules.into_iter().map(|written| written.rule().map_err(named)).collect()
}

impl Written {
    fn rule(self) -> Result<Rule, String> {
        let channels = match self.channels {
            None => None,
            Some(Channels::Word(word)) if word == "all" => None,
            Some(Channels::Word(word)) => {
                return Err(format!(
                    "rule {:?}: channels must be \"all\" or a list of UUIDs, got {word:?}",
                    self.name
                ))
            }
            Some(Channels::List(list)) => Some(list),
        };
        Ok(Rule {
            prompt_tag: self.prompt_tag.unwrap_or_else(|| self.name.clone()),
            name: self.name,
            channels,
            kinds: self.kinds,
            require_mention: self.require_mention,
            filter: self.filter,
        })
    }
}
