//! Who is there, and what the harness and its agents are told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use waxlog_agent::config::{read_home, Environment};
use waxlog_harness::{Config, Options, Surroundings};
use waxlog_nostr::client::http::socket_url;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Keys, Secret};
use waxlog_scripted::model_server::ModelServer;

use crate::failure::Failure;
use crate::{keys, relay};

/// Where in the home the agent's secret key is kept.
const AGENT_KEY: &str = "up/agent-key";
/// How an agent is told to use a recording. A key is asked for, but a recording has none.
const RECORDED: [(&str, &str); 4] = [
    ("BUZZ_AGENT_PROVIDER", "openai"),
    ("OPENAI_COMPAT_API", "chat"),
    ("OPENAI_COMPAT_API_KEY", "none"),
    ("OPENAI_COMPAT_MODEL", "recorded-model"),
];
/// What would send it elsewhere.
const NOT_RECORDED: [&str; 2] = ["BUZZ_AGENT_MODEL", "BUZZ_ACP_MODEL"];

/// A model that answers from a recording.
pub(super) struct Model {
    pub(super) server: ModelServer,
}

/// A person, the person's agent, and what surrounds them.
pub(super) struct Crew {
    /// Whose agent it is.
    pub(super) person: Keys,
    /// The agent.
    pub(super) agent: Keys,
    /// The person's word for it.
    pub(super) owner_tag: OwnerTag,
    home: PathBuf,
    env: Environment,
    /// What the agent gets in place of this process's variables.
    overrides: BTreeMap<String, Option<Secret<String>>>,
}

impl Crew {
    /// Reads who is there, and makes who is not. Fails early if the agent could not start.
    pub(super) fn of(home: &Path, env: &Environment, model: Option<&Model>) -> Result<Crew, Failure> {
        check_agent(env, model)?;
        let person = match relay::secret(env, "BUZZ_PRIVATE_KEY")? {
            Some(keys) => keys,
            None => keys::kept(&home.join(keys::IDENTITY_FILE))?,
        };
        let agent = keys::kept(&home.join(AGENT_KEY))?;
        let owner_tag = OwnerTag::issue(&person, &agent.public_key(), "")
            .map_err(|error| Failure::SetUp(error.to_string()))?;
        let mut overrides = BTreeMap::new();
        for (name, value) in model.into_iter().flat_map(Model::variables) {
            overrides.insert(name, Some(Secret::new(value)));
        }
        for name in NOT_RECORDED.iter().filter(|_| model.is_some()) {
            overrides.insert((*name).to_owned(), None);
        }
        Ok(Crew { person, agent, owner_tag, home: home.to_owned(), env: env.clone(), overrides })
    }

    /// What the harness is told: the variables as they are, but for who it is and where.
    pub(super) fn config(&self, url: &str) -> Result<Config, Failure> {
        let mut fixed = self.identity(url);
        // What happens is shown from the frames that this switches on.
        fixed.insert("BUZZ_ACP_RELAY_OBSERVER".to_owned(), Some(Secret::new("true".to_owned())));
        let defaults = self.own_programs()?;
        let value = |name: &str| match fixed.get(name).or(self.overrides.get(name)) {
            Some(fixed) => fixed.as_ref().map(|value| value.expose().clone()),
            None => self.env.get(name).map(str::to_owned).or_else(|| defaults.get(name).cloned()),
        };
        let cwd =
            std::env::current_dir().map_err(|error| Failure::io("the working folder is gone", &error))?;
        let around = Surroundings {
            env: &value,
            cwd,
            home: self.home.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let mut config = Config::read(&Options::default(), &around)
            .map_err(|error| Failure::SetUp(format!("waxlog: {error}")))?;
        config.agent_overrides = self.overrides.clone();
        config.agent_overrides.extend(self.identity(url));
        Ok(config)
    }

    /// What another terminal's commands need to be the person, at this relay. A key that came from a variable is
    /// not shown.
    pub(super) fn variables(&self, url: &str) -> Vec<(&'static str, String)> {
        let mut variables = Vec::new();
        if url != format!("http://{}", relay::DEFAULT_LISTEN) {
            variables.push(("BUZZ_RELAY_URL", url.to_owned()));
        }
        let usual =
            ["XDG_STATE_HOME", "HOME"].into_iter().filter_map(|name| Some((name, self.env.get(name)?)));
        if read_home(&usual.collect()).ok().as_ref() != Some(&self.home) {
            variables.push(("WAXLOG_HOME", self.home.display().to_string()));
        }
        variables
    }

    /// Who the agent is, where it speaks, and where its log lies.
    fn identity(&self, url: &str) -> BTreeMap<String, Option<Secret<String>>> {
        let set = |name: &str, value: String| (name.to_owned(), Some(Secret::new(value)));
        BTreeMap::from([
            set("BUZZ_RELAY_URL", socket_url(url)),
            set("BUZZ_PRIVATE_KEY", self.agent.nsec().expose().clone()),
            set("BUZZ_AUTH_TAG", self.owner_tag.to_json()),
            set("WAXLOG_HOME", self.home.display().to_string()),
        ])
    }

    /// This program as the agent and as its tools, where no other was named.
    fn own_programs(&self) -> Result<BTreeMap<&'static str, String>, Failure> {
        let program =
            std::env::current_exe().map_err(|error| Failure::io("cannot find this program", &error))?;
        let program = program.display().to_string();
        let mut defaults = BTreeMap::new();
        if !has_other_agent(&self.env) {
            defaults.extend([
                ("BUZZ_ACP_AGENT_COMMAND", program.clone()),
                ("BUZZ_ACP_AGENT_ARGS", "agent".to_owned()),
            ]);
        }
        if self.env.get("BUZZ_ACP_MCP_COMMAND").is_none() {
            defaults.extend([("BUZZ_ACP_MCP_COMMAND", program), ("WAXLOG_MCP_ARGS", "mcp".to_owned())]);
        }
        Ok(defaults)
    }
}

impl Model {
    fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let url = ("OPENAI_COMPAT_BASE_URL".to_owned(), self.server.url());
        RECORDED.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().chain([url])
    }
}

fn has_other_agent(env: &Environment) -> bool {
    env.get("BUZZ_ACP_AGENT_COMMAND").is_some()
}

/// Tells at once what else would be known only when the agent does not start.
fn check_agent(env: &Environment, model: Option<&Model>) -> Result<(), Failure> {
    if model.is_some() || has_other_agent(env) {
        return Ok(());
    }
    waxlog_agent::config::Config::read(env).map(drop).map_err(|error| {
        Failure::SetUp(format!(
            "{error}; name a provider, its model and its key, or give --model FILE to answer from a recording"
        ))
    })
}
