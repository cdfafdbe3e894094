//! `channels create`: a channel, plain or from a template with a canvas and agents.

use std::path::PathBuf;

use serde_json::{json, Value};
use structopt::StructOpt;
use uuid::Uuid;
use waxlog_nostr::build::channel::{self, check_ttl, New};
use waxlog_nostr::channel::{ChannelId, ChannelType, Role, Visibility};

use super::super::context::{progress, Context};
use super::super::failure::{as_usage, Failure};
use super::super::output::{with_accepted, Output};
use super::roster::{self, Agent, Roster};
use super::template::{self, Template};

// (A doc comment here would replace that of the command.)
#[derive(StructOpt)]
pub(crate) struct Create {
    /// The name
    #[structopt(long, value_name = "TEXT")]
    name: String,
    /// stream or forum
    #[structopt(long = "type", required_unless = "template", possible_values = &["stream", "forum"])]
    channel_type: Option<ChannelType>,
    /// open or private
    #[structopt(long, required_unless = "template", possible_values = &["open", "private"])]
    visibility: Option<Visibility>,
    /// What it is about
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// How long it lives without messages
    #[structopt(long, value_name = "SECONDS")]
    ttl: Option<u32>,
    /// A template to make it by
    #[structopt(long, value_name = "NAME")]
    template: Option<String>,
    /// The file with the templates
    #[structopt(long, value_name = "PATH")]
    templates_file: Option<PathBuf>,
}

impl Create {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        if let Some(seconds) = self.ttl {
            check_ttl(seconds).map_err(as_usage)?;
        }
        let channel = ChannelId::from_bytes(Uuid::new_v4().into_bytes());
        let Some(name) = &self.template else {
            let mut answer = self.create(context, channel, None)?;
            answer["channel_id"] = json!(channel.to_string());
            return Ok(answer.into());
        };
        let template = template::find(self.templates_file.as_deref(), name)?;
        // Before anything is created, so that a wrong roster leaves nothing behind.
        let roster = roster::resolve(context, &template)?;
        self.create(context, channel, Some(&template))?;
        let canvas = self.canvas(context, channel, &template);
        let (added, failures) = add_agents(context, channel, &roster.live);
        Ok(report(channel, &template, &canvas, &roster, &added, &failures).into())
    }

    fn create(
        &self,
        context: &Context,
        channel: ChannelId,
        template: Option<&Template>,
    ) -> Result<Value, Failure> {
        let new = New {
            channel,
            name: &self.name,
            visibility: self.visibility.or(template.map(|template| template.visibility)),
            channel_type: self.channel_type.or(template.map(|template| template.channel_type)),
            about: self
                .description
                .as_deref()
                .or(template.and_then(|template| template.description.as_deref())),
            ttl_seconds: self.ttl,
        };
        Ok(with_accepted(context.send(channel::create(&new, context.now())?)?))
    }

    /// Whether the template's canvas stands in the channel, or why not; nothing if it has none.
    fn canvas(
        &self,
        context: &Context,
        channel: ChannelId,
        template: &Template,
    ) -> Option<Result<(), String>> {
        let text = template.canvas(&self.name)?;
        Some(accepted(context.send(channel::canvas(&channel, &text, context.now()))))
    }
}

/// Adds the agents one by one. Gives those that are in and those that are not, with the reason.
fn add_agents<'a>(
    context: &Context,
    channel: ChannelId,
    agents: &'a [Agent],
) -> (Vec<&'a Agent>, Vec<(&'a Agent, String)>) {
    let (mut added, mut failures) = (Vec::new(), Vec::new());
    for (number, agent) in agents.iter().enumerate() {
        progress(&format!("adding agent {} of {}", number + 1, agents.len()));
        let draft = channel::add_member(&channel, &agent.pubkey, Some(Role::Bot), context.now());
        match accepted(context.send(draft)) {
            Ok(()) => added.push(agent),
            Err(error) => failures.push((agent, error)),
        }
    }
    (added, failures)
}

/// A write that the relay did not accept is a failure here, with its reason.
fn accepted(answer: Result<Value, Failure>) -> Result<(), String> {
    match answer {
        Ok(answer) if answer["accepted"] == false => {
            Err(answer["message"].as_str().unwrap_or("not accepted").to_owned())
        }
        Ok(_) => Ok(()),
        Err(failure) => Err(failure.to_string()),
    }
}

fn report(
    channel: ChannelId,
    template: &Template,
    canvas: &Option<Result<(), String>>,
    roster: &Roster,
    added: &[&Agent],
    failures: &[(&Agent, String)],
) -> Value {
    let is_partial = matches!(canvas, Some(Err(_))) || !failures.is_empty();
    let agent = |agent: &Agent| json!({"persona_id": agent.persona, "pubkey": agent.pubkey});
    let skipped = |(persona, reason): &(String, &str)| json!({"persona_id": persona, "reason": reason});
    let mut report = json!({
        "status": if is_partial { "partial" } else { "ok" },
        "channel_id": channel.to_string(),
        "template": template.name,
        "canvas_applied": matches!(canvas, Some(Ok(()))),
        "members_added": added.iter().map(|one| agent(one)).collect::<Vec<_>>(),
        "skipped": roster.skipped.iter().map(skipped).collect::<Vec<_>>(),
        "archived_excluded": roster.archived.iter().map(agent).collect::<Vec<_>>(),
        "member_failures": failures.iter().map(|(one, error)| {
            json!({"persona_id": one.persona, "pubkey": one.pubkey, "error": error})
        }).collect::<Vec<_>>(),
    });
    if let Some(Err(error)) = canvas {
        report["canvas_error"] = json!(error);
    }
    if let Some(warning) = &roster.warning {
        report["archive_state_warning"] = json!(warning);
    }
    report
}
