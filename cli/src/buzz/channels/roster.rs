//! Which agents a template brings into a channel: exactly one for each persona, and none that is archived.

use std::collections::BTreeSet;

use serde_json::Value;
use waxlog_nostr::kind::{MANAGED_AGENT, TEAM};
use waxlog_nostr::{Event, Filter, PublicKey};

use super::super::archived::archived;
use super::super::context::{warn, Context};
use super::super::failure::Failure;
use super::template::Template;

/// The most agents of one owner that are looked at.
const MAX_AGENTS: usize = 10_000;

/// An agent that a persona runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Agent {
    /// The persona.
    pub(super) persona: String,
    /// The agent's key.
    pub(super) pubkey: PublicKey,
}

/// What comes of a template's personas.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Roster {
    /// Those that join.
    pub(super) live: Vec<Agent>,
    /// Personas without an agent, and why.
    pub(super) skipped: Vec<(String, &'static str)>,
    /// Agents that are archived.
    pub(super) archived: Vec<Agent>,
    /// Why archived agents could not be told from others.
    pub(super) warning: Option<String>,
}

/// Finds the agents of a template's personas.
pub(super) fn resolve(context: &Context, template: &Template) -> Result<Roster, Failure> {
    let personas = personas(context, template)?;
    if personas.is_empty() {
        return Ok(Roster::default());
    }
    let filter = Filter::new().kinds([MANAGED_AGENT]).authors([context.effective_owner()]);
    let agents: Vec<_> = context.pages(&filter, MAX_AGENTS)?.iter().filter_map(agent).collect();
    let (gone, warning) = match archived(context) {
        Ok(gone) => (gone, None),
        Err(failure) => {
            let text =
                format!("the relay's list of archived identities is untrusted, none is left out: {failure}");
            warn(&text);
            (BTreeSet::new(), Some(text))
        }
    };
    pick(&personas, &agents, &gone, warning)
}

/// The template's personas, then those of its teams, each once.
fn personas(context: &Context, template: &Template) -> Result<Vec<String>, Failure> {
    let mut personas = template.personas.clone();
    for team in &template.teams {
        let filter = Filter::new().kinds([TEAM]).authors([context.effective_owner()]).tag('d', [team]);
        let Some(event) = context.first(filter)? else {
            return Err(Failure::Usage(format!("team {team:?} of the template is not on the relay")));
        };
        let content: Value = serde_json::from_str(&event.content).unwrap_or_default();
        let ids = content["persona_ids"].as_array().map(Vec::as_slice).unwrap_or_default();
        personas.extend(ids.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    let mut seen = BTreeSet::new();
    personas.retain(|persona| seen.insert(persona.clone()));
    Ok(personas)
}

fn agent(event: &Event) -> Option<Agent> {
    let content: Value = serde_json::from_str(&event.content).ok()?;
    Some(Agent {
        persona: content["persona_id"].as_str()?.to_owned(),
        pubkey: event.identifier().parse().ok()?,
    })
}

/// One live agent for each persona, or none with a reason; several are an error that lists them.
fn pick(
    personas: &[String],
    agents: &[Agent],
    gone: &BTreeSet<PublicKey>,
    warning: Option<String>,
) -> Result<Roster, Failure> {
    let mut roster = Roster { warning, ..Roster::default() };
    for persona in personas {
        let all = agents.iter().filter(|agent| agent.persona == *persona).cloned();
        let (archived, live): (Vec<_>, Vec<_>) = all.partition(|agent| gone.contains(&agent.pubkey));
        match live.as_slice() {
            [] if archived.is_empty() => roster.skipped.push((persona.clone(), "no live instances")),
            [] => roster.skipped.push((persona.clone(), "all instances archived")),
            [_] => {}
            several => return Err(too_many(persona, several, roster.warning.as_deref())),
        }
        roster.live.extend(live);
        roster.archived.extend(archived);
    }
    Ok(roster)
}

fn too_many(persona: &str, agents: &[Agent], warning: Option<&str>) -> Failure {
    let keys: Vec<_> = agents.iter().map(|agent| agent.pubkey.to_hex()).collect();
    let warning = warning.map(|warning| format!(" ({warning})")).unwrap_or_default();
    Failure::Usage(format!(
        "persona {persona:?} has {} agents, so nothing was created: {}; archive all but one{warning}",
        keys.len(),
        keys.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::Keys;

    use super::*;

    fn agent(persona: &str) -> Agent {
        Agent { persona: persona.to_owned(), pubkey: Keys::generate().public_key() }
    }

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn one_agent_joins_and_a_persona_without_one_is_skipped_with_its_reason() {
        let (one, old) = (agent("one"), agent("old"));
        let gone = BTreeSet::from([old.pubkey]);
        let roster = pick(&names(&["one", "none", "old"]), &[one.clone(), old.clone()], &gone, None).unwrap();
        assert_eq!(roster.live, [one]);
        assert_eq!(roster.archived, [old]);
        let skipped =
            [("none".to_owned(), "no live instances"), ("old".to_owned(), "all instances archived")];
        assert_eq!(roster.skipped, skipped);
        assert_eq!(roster.warning, None);
    }

    #[test]
    fn two_agents_are_an_error_that_lists_them_unless_one_is_archived() {
        let (first, second) = (agent("p"), agent("p"));
        let both = [first.clone(), second.clone()];
        let untrusted = Some("untrusted list".to_owned());
        let error = pick(&names(&["p"]), &both, &BTreeSet::new(), untrusted).unwrap_err().to_string();
        for part in [first.pubkey.to_hex(), second.pubkey.to_hex(), "untrusted list".to_owned()] {
            assert!(error.contains(&part), "{error}");
        }
        let gone = BTreeSet::from([second.pubkey]);
        assert_eq!(pick(&names(&["p"]), &both, &gone, None).unwrap().live, [first]);
    }
}
