//! Proposals: a sealed frame to the owner, which no relay keeps.

use std::time::SystemTime;

use serde_json::json;
use structopt::StructOpt;
use waxlog_nostr::build::agent_draft::{frame, plaintext, Fields, Proposal};
use waxlog_nostr::channel::ChannelId;

use crate::buzz::context::{text_or_stdin, Context};
use crate::buzz::failure::{as_usage, Failure};
use crate::buzz::output::Output;

const SENT: &str = "sent to your owner as a draft; nothing is saved before they save it";

// (A doc comment on these would become the help of the commands.)
#[derive(StructOpt)]
pub(crate) struct Create {
    /// Where the agent shall be
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// Its name
    #[structopt(long, value_name = "TEXT")]
    display_name: String,
    /// What it is told, or - for stdin
    #[structopt(long, value_name = "TEXT")]
    system_prompt: String,
    #[structopt(flatten)]
    more: More,
}

#[derive(StructOpt)]
pub(crate) struct Update {
    /// Where the agent is
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// What it is called now
    #[structopt(long, value_name = "TEXT")]
    agent_name: String,
    /// Its new name
    #[structopt(long, value_name = "TEXT")]
    display_name: Option<String>,
    /// What it is told from now on, or - for stdin
    #[structopt(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    #[structopt(flatten)]
    more: More,
}

#[derive(StructOpt)]
pub(crate) struct More {
    /// What it runs on
    #[structopt(long, value_name = "TEXT")]
    runtime: Option<String>,
    /// Whose model it uses
    #[structopt(long, value_name = "TEXT")]
    provider: Option<String>,
    /// Which model it uses
    #[structopt(long, value_name = "TEXT")]
    model: Option<String>,
    /// To whom it answers
    #[structopt(long, value_name = "TEXT")]
    respond_to: Option<String>,
}

impl More {
    fn with(self, display_name: Option<String>, system_prompt: Option<String>) -> Result<Fields, Failure> {
        Ok(Fields {
            display_name,
            system_prompt: system_prompt.map(text_or_stdin).transpose()?,
            runtime: self.runtime,
            provider: self.provider,
            model: self.model,
            respond_to: self.respond_to,
        })
    }
}

impl Create {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let fields = self.more.with(Some(self.display_name), Some(self.system_prompt))?;
        propose(context, &self.channel, &Proposal::Create(fields))
    }
}

impl Update {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let fields = self.more.with(self.display_name, self.system_prompt)?;
        propose(context, &self.channel, &Proposal::Update(self.agent_name, fields))
    }
}

fn propose(context: &Context, channel: &ChannelId, proposal: &Proposal) -> Result<Output, Failure> {
    let Some(owner) = context.owner() else {
        return Err(Failure::Auth(
            "a proposal goes to an owner: set BUZZ_AUTH_TAG or give --auth-tag".into(),
        ));
    };
    let request = proposal.request(channel).map_err(as_usage)?;
    let request_id = uuid::Uuid::new_v4().to_string();
    let timestamp = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let text = plaintext(proposal.action(), request, channel, &request_id, &timestamp);
    let draft = frame(context.keys(), &owner.owner, &text, context.now()).map_err(as_usage)?;
    let mut result = context.submit_over_socket(&context.keys().sign(draft))?;
    result["request_id"] = request_id.into();
    result["action"] = proposal.action().into();
    result["saved"] = false.into();
    result["message"] = json!(SENT);
    Ok(result.into())
}
