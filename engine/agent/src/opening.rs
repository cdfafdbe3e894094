//! Brings a session up, for the first time or again: what it is told, its servers, its first record.
//!
//! This runs beside the connection's task, so that a slow server holds nobody else up.

use std::path::Path;

use async_std::task;
use waxlog_core::acp::code;
use waxlog_core::acp::frame::Id;
use waxlog_core::acp::params::{env_of, NewSession};
use waxlog_core::acp::Profile;
use waxlog_core::connection::{prompt_too_long, SYSTEM_PROMPT_MAX_BYTES};
use waxlog_core::record::{Head, Record, SessionOpened, Skill, Source};
use waxlog_core::session::Session;
use waxlog_core::settings::Settings;
use waxlog_core::skills;
use waxlog_store::Log;

use crate::config::{Config, Environment, PromptSource};
use crate::leftovers::MARK_VARIABLE;
use crate::mcp::{ServerSettings, ServerSpec, Servers};
use crate::models::ModelList;
use crate::scrub::Scrubber;
use crate::secret::Secret;
use crate::{hints, ids, recovery};

/// What a session is brought up from.
#[derive(Clone)]
pub struct Site {
    /// The agent's environment.
    pub env: Environment,
    /// The agent's settings.
    pub config: Config,
    /// Their snapshot for the record.
    pub settings: Settings,
    /// Where the list of models comes from.
    pub models: ModelList,
    /// The log, to find sessions again.
    pub log: Log,
    /// What marks the processes of this agent.
    pub mark: String,
    /// Whose dialect the client speaks.
    pub profile: Profile,
    /// Whether the endpoint is known to want the Responses wire.
    pub upgraded: bool,
    /// Masks the secrets that the agent knows.
    pub scrubber: Scrubber,
}

/// A session that is asked for.
pub struct Wanted {
    /// The request.
    pub id: Id,
    /// What the client asked for.
    pub new: NewSession,
    /// The variables of each server, values included.
    pub envs: Vec<Vec<(String, String)>>,
    /// The session to go on with, and whether the client is told its history; `None` for a new one.
    pub again: Option<(String, bool)>,
}

/// A session that is up, its first new record not yet written.
pub struct Up {
    /// The session's id.
    pub session_id: String,
    /// The session as folded so far; `None` for a new one, which the record opens.
    pub session: Option<Session>,
    /// The record to append and fold first.
    pub record: Record,
    /// Its servers.
    pub servers: Servers,
    /// Masks what its servers were given.
    pub scrubber: Scrubber,
}

/// A refusal: the error code in the harness's numbers, and the text.
pub type Refusal = (i64, String);

/// The variables that a request gives to each server.
pub fn envs_of(params: &serde_json::Value) -> Vec<Vec<(String, String)>> {
    let servers = params.get("mcpServers").and_then(serde_json::Value::as_array);
    servers.into_iter().flatten().map(|server| env_of(server).unwrap_or_default()).collect()
}

/// Brings a session up.
pub async fn bring_up(site: Site, wanted: Wanted) -> Result<Up, Refusal> {
    let pairs = wanted.envs.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
    let scrubber = site.scrubber.with_variables(pairs);
    let found = match &wanted.again {
        Some((session, _)) => Some(find(&site.log, session)?),
        None => None,
    };
    let told = match &found {
        Some(session) => Told::again(session),
        None => Told::read(&site, &wanted.new)?,
    };
    let models = site.models.clone();
    // Beside the servers; nobody waits for it if they fail.
    let listing = task::spawn(async move { models.list().await });
    let servers = start_servers(&site, &wanted)
        .await
        .map_err(|message| (code::FAILED, scrubber.scrub_text(message)))?;
    let models = listing.await;
    let session_id = wanted.again.as_ref().map_or_else(|| ids::draw("ses"), |(session, _)| session.clone());
    let tells_history = wanted.again.as_ref().is_some_and(|(_, tells)| *tells);
    let system_prompt = told.system_prompt.clone();
    let opened = Box::new(opened(site, wanted, &session_id, &servers, Known { models, told }));
    let record = if found.is_some() {
        Record::bare(Head::SessionResumed { opened, tells_history })
    } else {
        Record { head: Head::SessionOpened(opened), raw: system_prompt.into_bytes() }
    };
    Ok(Up { session_id, session: found, record, servers, scrubber })
}

fn opened(site: Site, wanted: Wanted, session: &str, servers: &Servers, known: Known) -> SessionOpened {
    let Known { models, told } = known;
    let hooks = &site.config.hook_servers;
    SessionOpened {
        id: wanted.id,
        session: session.to_owned(),
        profile: site.profile,
        cwd: wanted.new.cwd,
        settings: site.settings,
        servers: wanted.new.servers,
        catalogue: servers.catalogue.clone(),
        upgraded: site.upgraded,
        models,
        sources: told.sources,
        skills: told.skills,
        hook_servers: (0..servers.list.len()).filter(|&i| hooks.allows(servers.list[i].name())).collect(),
        prompt_source: told.prompt_source,
    }
}

async fn start_servers(site: &Site, wanted: &Wanted) -> Result<Servers, String> {
    let specs = wanted.new.servers.iter().zip(&wanted.envs).map(|(server, env)| ServerSpec {
        name: server.name.clone(),
        command: server.command.clone(),
        args: server.args.clone(),
        env: env
            .iter()
            .cloned()
            .chain([(MARK_VARIABLE.to_owned(), site.mark.clone())])
            .map(|(name, value)| (name, Secret::new(value)))
            .collect(),
        cwd: wanted.new.cwd.clone().into(),
    });
    let settings = ServerSettings {
        env: site.env.clone(),
        init_timeout: site.config.limits.mcp_init_timeout,
        restart: site.config.limits.mcp_restart,
    };
    Servers::start(specs.collect(), &settings).await.map_err(|error| error.to_string())
}

/// Folds a session of the log again, as far as it was when its last process ended.
fn find(log: &Log, session: &str) -> Result<Session, Refusal> {
    match recovery::refold(log, session) {
        Ok(Some(found)) if !found.is_busy() && !found.is_deleted() => Ok(found),
        Ok(Some(found)) if found.is_busy() => {
            let text = format!("session {session} has a turn that is still running; wait for its end");
            Err((code::INVALID_PARAMS, text))
        }
        Ok(Some(_)) => {
            let text = format!(
                "session {session} was deleted by its client; its records are still in the log, for \
                 `waxlog log show {session}`"
            );
            Err((code::NO_SESSION, text))
        }
        Ok(None) => {
            let text = format!(
                "session {session} is not in this agent's log ({}); session/list shows those that are",
                log.dir().display()
            );
            Err((code::NO_SESSION, text))
        }
        Err(error) => Err((code::FAILED, format!("log: {error}"))),
    }
}

/// What was found out for a session before its first record.
struct Known {
    models: Vec<String>,
    told: Told,
}

/// What a session is told at its beginning, and what that was made of.
struct Told {
    system_prompt: String,
    prompt_source: String,
    sources: Vec<Source>,
    skills: Vec<Skill>,
}

impl Told {
    /// A session that comes back keeps its prompt, and the skills that the prompt lists.
    fn again(session: &Session) -> Told {
        let opened = session.opened();
        Told {
            system_prompt: session.system_prompt().to_owned(),
            prompt_source: opened.prompt_source.clone(),
            sources: opened.sources.clone(),
            skills: opened.skills.clone(),
        }
    }

    fn read(site: &Site, new: &NewSession) -> Result<Told, Refusal> {
        let (base, prompt_source) = base_prompt(&site.config, new);
        let home = site.env.get("HOME").map(Path::new);
        let found = if site.config.limits.hints {
            hints::read(Path::new(&new.cwd), home)
        } else {
            hints::Hints::default()
        };
        let section = skills::prompt_section(&found.text, &found.skills);
        let system_prompt = if section.is_empty() { base } else { format!("{base}\n\n{section}") };
        if system_prompt.len() > SYSTEM_PROMPT_MAX_BYTES {
            let text = format!("session/new: {}", prompt_too_long(system_prompt.len()));
            return Err((code::INVALID_PARAMS, text));
        }
        Ok(Told { system_prompt, prompt_source, sources: found.sources, skills: found.skills })
    }
}

/// The client's own prompt, or the configured one, and where it came from.
fn base_prompt(config: &Config, new: &NewSession) -> (String, String) {
    if let Some(own) = &new.system_prompt {
        return (own.clone(), "client".to_owned());
    }
    let prompt = &config.system_prompt;
    let source = match &prompt.source {
        PromptSource::BuiltIn => "built-in".to_owned(),
        PromptSource::Variable => "variable".to_owned(),
        PromptSource::File(path) => format!("file {}", path.display()),
    };
    (prompt.text.clone(), source)
}
