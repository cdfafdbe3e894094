//! `channels members`, `add-member`, `remove-member` and `set-add-policy`.

use serde_json::{json, Value};
use structopt::StructOpt;
use waxlog_nostr::build::{channel, user};
use waxlog_nostr::channel::{AddPolicy, ChannelId, Role};
use waxlog_nostr::kind::{AGENT_PROFILE, CHANNEL_MEMBERS};
use waxlog_nostr::{Event, Filter, PublicKey};

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::output::Output;

/// The variable that limits the policies that may be set.
const ALLOWED_POLICIES: &str = "BUZZ_ACP_ALLOWED_CHANNEL_ADD_POLICIES";
/// The role of a member that has none.
const DEFAULT_ROLE: &str = "member";

// (Doc comments on these structs would replace those of the commands.)
#[derive(StructOpt)]
pub(crate) struct AddMember {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// Who
    #[structopt(long, value_name = "HEX")]
    pubkey: PublicKey,
    /// owner, admin, member, guest or bot
    #[structopt(long)]
    role: Option<Role>,
}

#[derive(StructOpt)]
pub(crate) struct RemoveMember {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// Who
    #[structopt(long, value_name = "HEX")]
    pubkey: PublicKey,
}

#[derive(StructOpt)]
pub(crate) struct SetAddPolicy {
    /// anyone, owner_only or nobody
    #[structopt(long)]
    policy: AddPolicy,
}

pub(super) fn list(context: &Context, channel: &ChannelId) -> Result<Output, Failure> {
    let filter = Filter::new().kinds([CHANNEL_MEMBERS]).tag('d', [channel.to_string()]);
    let list = context.first(filter)?;
    Ok(list.as_ref().map_or_else(|| json!([]), members).into())
}

fn members(list: &Event) -> Value {
    let item = |tag: &Vec<String>| {
        let role = tag.get(3).map(String::as_str).filter(|role| !role.is_empty());
        json!({"pubkey": tag.get(1), "role": role.unwrap_or(DEFAULT_ROLE)})
    };
    list.tags_named("p").filter(|tag| tag.len() > 1).map(item).collect()
}

impl AddMember {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        context.publish(channel::add_member(&self.channel, &self.pubkey, self.role, context.now()))
    }
}

impl RemoveMember {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        context.publish(channel::remove_member(&self.channel, &self.pubkey, context.now()))
    }
}

impl SetAddPolicy {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let allowed = std::env::var(ALLOWED_POLICIES).unwrap_or_default();
        check_allowed(self.policy, &allowed)?;
        let head = context.first(Filter::new().kinds([AGENT_PROFILE]).authors([context.me()]))?;
        let now = context.time_after(head.as_ref());
        context.publish(user::add_policy(head.as_ref(), self.policy, now))
    }
}

fn check_allowed(policy: AddPolicy, list: &str) -> Result<(), Failure> {
    let allowed: Vec<_> = list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    match allowed.is_empty() || allowed.contains(&policy.as_str()) {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "policy {policy} is not permitted here; {ALLOWED_POLICIES} allows {}",
            allowed.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    #[test]
    fn a_member_without_a_role_is_a_member() {
        let tags =
            [vec!["p", "a", "", "owner"], vec!["p", "b"], vec!["p", "c", "", ""], vec!["p"], vec!["h", "x"]];
        let draft = tags.into_iter().fold(Draft::new(CHANNEL_MEMBERS, "", 1), Draft::tag);
        let wanted = json!([
            {"pubkey": "a", "role": "owner"},
            {"pubkey": "b", "role": "member"},
            {"pubkey": "c", "role": "member"},
        ]);
        assert_eq!(members(&Keys::generate().sign(draft)), wanted);
    }

    #[test]
    fn a_policy_outside_the_list_is_not_permitted() {
        for list in ["", " , ", "nobody", "anyone, nobody"] {
            assert!(check_allowed(AddPolicy::Nobody, list).is_ok(), "{list}");
        }
        let error = check_allowed(AddPolicy::Nobody, "anyone, owner_only").unwrap_err().to_string();
        assert!(error.contains("not permitted"), "{error}");
    }
}
