//! `repos`: repositories that are announced on a relay, and what protects their refs.

use serde_json::json;
use structopt::StructOpt;
use waxlog_nostr::build::git::RepoId;
use waxlog_nostr::build::repo::protect::{self, Pattern, Protection, Pusher};
use waxlog_nostr::build::repo::{self, Announcement};
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::coordinate::Coordinate;
use waxlog_nostr::kind::REPO;
use waxlog_nostr::{Draft, Event, Filter, PublicKey};

use super::context::Context;
use super::failure::{as_usage, Failure};
use super::output::{raw_list, written, Output};
use super::settled::settled;

// Announces repositories and protects their refs. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog repos list")]
pub(crate) enum Repos {
    /// Announces a repository, or announces it anew.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog repos create --id tool --name Tool --clone URL --channel UUID"
    )]
    Create(Box<Create>),
    /// Shows the announcements of a name.
    #[structopt(after_help = "EXAMPLE:\n    waxlog repos get --id tool --owner PUBKEY")]
    Get {
        /// What the repository is called
        #[structopt(long, value_name = "ID")]
        id: RepoId,
        /// Only by this owner
        #[structopt(long, value_name = "PUBKEY")]
        owner: Option<PublicKey>,
    },
    /// Lists repositories.
    #[structopt(after_help = "EXAMPLE:\n    waxlog repos list --owner PUBKEY --limit 10")]
    List {
        /// Whose [default: yours]
        #[structopt(long, value_name = "PUBKEY")]
        owner: Option<PublicKey>,
        /// At most so many
        #[structopt(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Gives a repository of yours to the members of a channel.
    #[structopt(after_help = "EXAMPLE:\n    waxlog repos bind --id tool --channel UUID")]
    Bind {
        /// What the repository is called
        #[structopt(long, value_name = "ID")]
        id: RepoId,
        /// The channel
        #[structopt(long, value_name = "UUID")]
        channel: ChannelId,
    },
    /// Shows and changes what protects refs.
    #[structopt(after_help = "EXAMPLE:\n    waxlog repos protect list --id tool")]
    Protect(Protect),
}

// (A doc comment on this would become the help of the command.)
#[derive(StructOpt)]
pub(crate) struct Create {
    /// What the repository is called in addresses
    #[structopt(long, value_name = "ID")]
    id: RepoId,
    /// Its name
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    name: Option<String>,
    /// What it is
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// Where it is cloned from; may be repeated
    #[structopt(long, value_name = "URL", number_of_values = 1)]
    clone: Vec<String>,
    /// Where it is looked at
    #[structopt(long, value_name = "URL")]
    web: Option<String>,
    /// Where issues and patches are sent; may be repeated
    #[structopt(long, value_name = "URL", number_of_values = 1)]
    nostr_relay: Vec<String>,
    /// Whose members may use it; without one nobody may
    #[structopt(long, value_name = "UUID")]
    channel: Option<ChannelId>,
}

// (A doc comment here would replace that of the command.)
#[derive(StructOpt)]
pub(crate) enum Protect {
    /// Lists the rules of a repository of yours.
    #[structopt(after_help = "EXAMPLE:\n    waxlog repos protect list --id tool")]
    List {
        /// What the repository is called
        #[structopt(long, value_name = "ID")]
        id: RepoId,
    },
    /// Sets the rules of a pattern, in place of those that it has.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog repos protect set --id tool --ref refs/heads/main --push admin --no-force-push"
    )]
    Set {
        /// What the repository is called
        #[structopt(long, value_name = "ID")]
        id: RepoId,
        /// Which refs: refs/..., with at most three *
        #[structopt(long = "ref", value_name = "PATTERN")]
        pattern: Pattern,
        /// Who may push: owner, admin or member
        #[structopt(long, value_name = "WHO")]
        push: Option<Pusher>,
        /// History cannot be replaced
        #[structopt(long)]
        no_force_push: bool,
        /// Refs cannot be deleted
        #[structopt(long)]
        no_delete: bool,
        /// Changes come as patches
        #[structopt(long)]
        require_patch: bool,
    },
    /// Removes all rules of a pattern.
    #[structopt(after_help = "EXAMPLE:\n    waxlog repos protect remove --id tool --ref refs/heads/main")]
    Remove {
        /// What the repository is called
        #[structopt(long, value_name = "ID")]
        id: RepoId,
        /// The pattern, as it was set
        #[structopt(long = "ref", value_name = "PATTERN")]
        pattern: String,
    },
}

impl Repos {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Repos::Create(create) => create.run(context),
            Repos::Get { id, owner } => {
                let mut filter = Filter::new().kinds([REPO]).tag('d', [id.as_str()]);
                filter.authors = owner.map(|owner| vec![owner]);
                Ok(raw_list(&context.query(&[filter])?).into())
            }
            Repos::List { owner, limit } => {
                let mut filter = Filter::new().kinds([REPO]).authors([owner.unwrap_or(context.me())]);
                filter.limit = limit;
                Ok(raw_list(&context.query(&[filter])?).into())
            }
            Repos::Bind { id, channel } => {
                let old = own(context, &id)?;
                rewrite(context, repo::bind(open(context, &old)?, &channel))
            }
            Repos::Protect(command) => command.run(context),
        }
    }
}

impl Create {
    fn run(self, context: &Context) -> Result<Output, Failure> {
        let address = address(context, &self.id);
        let announcement = Announcement {
            id: self.id,
            name: self.name,
            description: self.description,
            clone: self.clone,
            web: self.web,
            relays: self.nostr_relay,
            channel: self.channel,
        };
        // What cannot be built is told before the relay is asked for the version that it replaces.
        let draft = announcement.draft(context.now())?;
        let created_at = context.time_past(address.filter())?;
        Ok(context.send(Draft { created_at, ..draft })?.into())
    }
}

impl Protect {
    fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Protect::List { id } => Ok(listed(&id, &own(context, &id)?)),
            Protect::Set { id, pattern, push, no_force_push, no_delete, require_patch } => {
                let protection = Protection { pattern, push, no_force_push, no_delete, require_patch };
                protection.check().map_err(as_usage)?;
                let old = own(context, &id)?;
                rewrite(context, protect::set(open(context, &old)?, &protection).map_err(as_usage)?)
            }
            Protect::Remove { id, pattern } => {
                let old = own(context, &id)?;
                match protect::remove(open(context, &old)?, &pattern) {
                    (_, 0) => Err(Failure::NotFound(format!(
                        "{id} has no rules for {pattern:?}; `repos protect list --id {id}` shows what it has"
                    ))),
                    (draft, _) => rewrite(context, draft),
                }
            }
        }
    }
}

fn address(context: &Context, id: &RepoId) -> Coordinate {
    Coordinate::new(REPO, context.me(), id.as_str())
}

/// The identity's own announcement.
fn own(context: &Context, id: &RepoId) -> Result<Event, Failure> {
    context.first(address(context, id).filter())?.ok_or_else(|| {
        Failure::NotFound(format!("you have announced no repository {id}; `repos create --id {id}` does"))
    })
}

/// The announcement, ready for a change. One whose rules are malformed is left alone.
fn open(context: &Context, old: &Event) -> Result<Draft, Failure> {
    protect::check_stored(&protect::stored(&old.tags))?;
    Ok(repo::rewrite(old, context.now()))
}

fn rewrite(context: &Context, draft: Draft) -> Result<Output, Failure> {
    Ok(written(&settled(context.send(draft)?)?).into())
}

fn listed(id: &RepoId, announcement: &Event) -> Output {
    let stored = protect::stored(&announcement.tags);
    let protections = stored.iter().map(|entry| json!({"ref": entry.pattern, "rules": entry.rules}));
    let unknown = stored.iter().flat_map(|entry| {
        entry.unknown().map(|rule| json!({"ref": entry.pattern, "rule": rule})).collect::<Vec<_>>()
    });
    json!({
        "repo_id": id.as_str(),
        "protections": protections.collect::<Vec<_>>(),
        "unknown_rules": unknown.collect::<Vec<_>>(),
        "validation_error": protect::check_stored(&stored).err().map(|error| error.to_string()),
    })
    .into()
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::Keys;

    use super::*;

    #[test]
    fn a_list_shows_unknown_rules_and_what_is_malformed() {
        let announcement = |tag: &[&str]| {
            Keys::generate().sign(Draft::new(REPO, "", 1).tag(["d", "tool"]).tag(tag.iter().copied()))
        };
        let id = "tool".parse().unwrap();
        let odd = announcement(&["buzz-protect", "refs/heads/main", "push:admin", "later"]);
        let wanted = json!({
            "repo_id": "tool",
            "protections": [{"ref": "refs/heads/main", "rules": ["push:admin", "later"]}],
            "unknown_rules": [{"ref": "refs/heads/main", "rule": "later"}],
            "validation_error": null,
        });
        assert_eq!(listed(&id, &odd), Output::Json(wanted));
        let Output::Json(broken) = listed(&id, &announcement(&["buzz-protect", "main", "no-delete"])) else {
            panic!("no JSON")
        };
        assert!(broken["validation_error"].as_str().unwrap().contains("\"main\""), "{broken}");
    }
}
