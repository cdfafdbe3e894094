//! `agents`: identities that are put away, and proposals to an owner.

mod draft;

use async_std::task::block_on;
use serde_json::json;
use structopt::StructOpt;
use waxlog_nostr::build::archive::{archive, consent_of, unarchive, Request};
use waxlog_nostr::kind::PROFILE;
use waxlog_nostr::{Draft, Filter, PublicKey};

use self::draft::{Create, Update};
use super::archived::archived;
use super::context::Context;
use super::failure::{as_usage, Failure};
use super::output::Output;

// Archives identities, proposes agents to an owner. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog agents archived")]
pub(crate) enum Agents {
    /// Proposes a new agent to your owner.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog agents draft-create --channel UUID --display-name Bee --system-prompt 'Be brief.'"
    )]
    DraftCreate(Create),
    /// Proposes a change of an agent to your owner.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog agents draft-update --channel UUID --agent-name Bee --model MODEL"
    )]
    DraftUpdate(Update),
    /// Puts an identity away, so that nobody is offered it any more.
    #[structopt(after_help = "EXAMPLE:\n    waxlog agents archive HEX --reason rebuilt --replaced-by HEX")]
    Archive {
        #[structopt(flatten)]
        why: Why,
        /// Who takes its place
        #[structopt(long, value_name = "PUBKEY")]
        replaced_by: Option<PublicKey>,
    },
    /// Brings an identity back.
    #[structopt(after_help = "EXAMPLE:\n    waxlog agents unarchive HEX")]
    Unarchive {
        #[structopt(flatten)]
        why: Why,
    },
    /// Lists the identities that are put away.
    #[structopt(after_help = "EXAMPLE:\n    waxlog agents archived")]
    Archived,
}

// (A doc comment here would become the help of the commands.)
#[derive(StructOpt)]
pub(crate) struct Why {
    /// The identity
    #[structopt(value_name = "PUBKEY")]
    pubkey: PublicKey,
    /// Why, as a word for programs
    #[structopt(long, value_name = "WORD")]
    reason: Option<String>,
    /// Why, in words
    #[structopt(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    content: String,
}

impl Agents {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Agents::DraftCreate(create) => create.run(context),
            Agents::DraftUpdate(update) => update.run(context),
            Agents::Archive { why, replaced_by } => {
                let target = why.pubkey;
                let request = why.request(context, replaced_by)?;
                let draft = archive(&target, request, context.now()).map_err(as_usage)?;
                send(context, "archive", &target, draft)
            }
            Agents::Unarchive { why } => {
                let target = why.pubkey;
                let request = why.request(context, None)?;
                let draft = unarchive(&target, request, context.now()).map_err(as_usage)?;
                send(context, "unarchive", &target, draft)
            }
            Agents::Archived => Ok(json!({ "archived": archived(context)? }).into()),
        }
    }
}

impl Why {
    /// The request, with the proof that the identity is the signer's if its profile has one.
    fn request(self, context: &Context, replaced_by: Option<PublicKey>) -> Result<Request, Failure> {
        let request = Request { reason: self.reason, replaced_by, content: self.content, consent: None };
        // What cannot be built is told before the relay is asked for the profile.
        archive(&self.pubkey, request.clone(), context.now()).map_err(as_usage)?;
        let profile = context.first(Filter::new().kinds([PROFILE]).authors([self.pubkey]))?;
        let consent = profile.and_then(|profile| consent_of(&profile, &context.me()));
        Ok(Request { consent, ..request })
    }
}

/// Signs a request as it is: it may name the signer, and the only owner's tag that it may have is its target's.
fn send(context: &Context, action: &str, target: &PublicKey, draft: Draft) -> Result<Output, Failure> {
    let event = context.keys().sign(draft);
    let answer = block_on(context.relay().publish(&event))?;
    match answer["accepted"].as_bool() {
        Some(true) => {
            Ok(json!({"ok": true, "event_id": event.id, "action": action, "target": target}).into())
        }
        _ => Err(Failure::Other(format!("the relay did not accept the request: {}", answer["message"]))),
    }
}
