//! Who comes into a channel and goes (kinds 9000, 9001, 9021, 9022), and who lets others add them (10100).

use serde_json::{json, Value};
use waxlog_nostr::channel::{AddPolicy, Role, Visibility};
use waxlog_nostr::{Event, PublicKey};

use super::{invalid, refused, Effect, Facts, Judged};
use crate::channel::{is_elevated, Channel};
use crate::live::Whom;

/// 9000: a member comes in, or has another role.
pub(crate) fn put(event: &Event, channel: &Channel, facts: &Facts<'_>) -> Judged<Vec<Effect>> {
    let target = target(event)?;
    let role = match event.tag_value("role") {
        Some(text) => Some(text.parse().map_err(|_| invalid(format!("invalid role: {text}")))?),
        None => None,
    };
    match channel.role(&target) {
        Some(current) => change_role(event, channel, target, current, role.unwrap_or(current)),
        None => add(event, channel, target, role.unwrap_or(Role::Member), facts),
    }
}

fn change_role(
    event: &Event,
    channel: &Channel,
    target: PublicKey,
    current: Role,
    role: Role,
) -> Judged<Vec<Effect>> {
    if role == current {
        return Ok(Vec::new());
    }
    if !channel.is_manager(&event.pubkey) {
        return Err(invalid("only owners/admins may change an active member's role"));
    }
    if channel.is_last_owner(&target) {
        return Err(invalid("cannot demote the last owner; make another member an owner first"));
    }
    Ok(enter(channel, target, role, event.pubkey))
}

fn add(
    event: &Event,
    channel: &Channel,
    target: PublicKey,
    role: Role,
    facts: &Facts<'_>,
) -> Judged<Vec<Effect>> {
    let actor = event.pubkey;
    allows_adding(&target, &actor, facts)?;
    if is_elevated(role) && !channel.is_manager(&actor) {
        return match channel.visibility {
            Visibility::Private => Err(invalid("only owners/admins may grant elevated roles")),
            // The event is taken and nothing follows, as clients of the reference know it.
            Visibility::Open => Ok(Vec::new()),
        };
    }
    Ok(enter(channel, target, role, actor))
}

/// Whether the target's policy lets the actor add it.
fn allows_adding(target: &PublicKey, actor: &PublicKey, facts: &Facts<'_>) -> Judged<()> {
    match facts.state.policy(target) {
        _ if target == actor => Ok(()),
        AddPolicy::Anyone => Ok(()),
        AddPolicy::OwnerOnly if facts.state.owns(actor, target) => Ok(()),
        AddPolicy::OwnerOnly => {
            Err(invalid("policy:owner_only: only the owner of this agent may add it to channels"))
        }
        AddPolicy::Nobody => Err(invalid("policy:nobody: this key is not added to channels by others")),
    }
}

fn enter(channel: &Channel, target: PublicKey, role: Role, actor: PublicKey) -> Vec<Effect> {
    let mut changed = channel.clone();
    changed.members.insert(target, role);
    vec![
        Effect::Channel(Box::new(changed)),
        Effect::Describe(channel.id),
        Effect::Tell(channel.id, json!({"type": "member_joined", "actor": actor, "target": target})),
        Effect::Added { channel: channel.id, target, actor },
    ]
}

/// 9001: a member goes, by itself or by another's will.
pub(crate) fn remove(event: &Event, channel: &Channel, facts: &Facts<'_>) -> Judged<Vec<Effect>> {
    let (actor, target) = (event.pubkey, target(event)?);
    if actor == target {
        return leave(event, channel);
    }
    let is_agents_owner = channel.is_member(&actor) && facts.state.owns(&actor, &target);
    if !channel.is_manager(&actor) && !is_agents_owner {
        return Err(invalid("actor not authorized"));
    }
    // Taken without effect, as clients of the reference know it.
    if !channel.is_member(&target) || channel.is_last_owner(&target) {
        return Ok(Vec::new());
    }
    let said = json!({"type": "member_removed", "actor": actor, "target": target});
    Ok(exit(channel, target, actor, said))
}

/// 9022: a member goes by itself.
pub(crate) fn leave(event: &Event, channel: &Channel) -> Judged<Vec<Effect>> {
    let actor = event.pubkey;
    if !channel.is_member(&actor) {
        return Err(invalid("not a member"));
    }
    if channel.is_last_owner(&actor) {
        return Err(invalid("cannot remove the last owner; make another member an owner first"));
    }
    Ok(exit(channel, actor, actor, json!({"type": "member_left", "actor": actor})))
}

fn exit(channel: &Channel, target: PublicKey, actor: PublicKey, said: Value) -> Vec<Effect> {
    let mut changed = channel.clone();
    changed.members.remove(&target);
    changed.hidden_by.remove(&target);
    vec![
        Effect::Channel(Box::new(changed)),
        Effect::Describe(channel.id),
        Effect::Tell(channel.id, said),
        Effect::Removed { channel: channel.id, target, actor },
        Effect::Revoke(channel.id, Whom::One(target)),
    ]
}

/// 9021: a key comes in by itself.
pub(crate) fn join(event: &Event, channel: &Channel) -> Judged<Vec<Effect>> {
    let actor = event.pubkey;
    if channel.is_member(&actor) {
        return Ok(Vec::new());
    }
    match channel.visibility {
        Visibility::Private => Err(refused("restricted: channel is private")),
        Visibility::Open => Ok(enter(channel, actor, Role::Member, actor)),
    }
}

/// 10100: who may add the author to channels. A profile that does not say it changes nothing.
pub(crate) fn policy(event: &Event) -> Option<Effect> {
    let content: Value = serde_json::from_str(&event.content).ok()?;
    let policy = content.get("channel_add_policy")?.as_str()?.parse().ok()?;
    Some(Effect::Policy(event.pubkey, policy))
}

fn target(event: &Event) -> Judged<PublicKey> {
    let named = event.tag_values("p").find_map(|value| value.parse().ok());
    named.ok_or_else(|| invalid("a p tag with the member's key is required"))
}
