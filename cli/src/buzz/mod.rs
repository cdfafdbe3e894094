//! The groups of commands that people and agents use on a relay, in place of `buzz`.
//!
//! They stand beside Waxlog's own commands and alone under the name `buzz`. Whatever they are called by,
//! they print JSON, and a failure is one line of JSON on stderr: see [`failure`].

mod agents;
mod archived;
mod canvas;
mod channels;
mod context;
mod dms;
mod emoji;
mod failure;
mod feed;
mod git;
mod input;
mod issues;
mod media;
mod mem;
mod messages;
mod moderation;
mod notes;
mod output;
mod patches;
mod pr;
mod reactions;
mod repos;
mod settled;
mod social;
mod upload;
mod users;
mod workflows;

use std::ffi::OsString;
use std::io::{BufWriter, Write};

use structopt::clap::{AppSettings, ErrorKind};
use structopt::StructOpt;

pub(crate) use self::context::{Context, Options};
pub(crate) use self::failure::Failure;
use self::output::Output;

/// The name under which the binary is these groups and nothing else.
pub(crate) const LINK: &str = "buzz";

/// Messages, channels, people and memory on a relay.
#[derive(StructOpt)]
#[structopt(
    name = "buzz",
    settings = &[AppSettings::DisableVersion],
    global_settings = &[AppSettings::VersionlessSubcommands, AppSettings::DisableHelpSubcommand],
    after_help = "EXAMPLE:\n    buzz channels list"
)]
struct Linked {
    #[structopt(flatten)]
    options: Options,
    #[structopt(subcommand)]
    group: Group,
}

// The groups. (A doc comment here would become the help of the whole.)
#[derive(StructOpt)]
pub(crate) enum Group {
    /// Writes to channels and reads them.
    Messages(messages::Messages),
    /// Finds, creates and changes channels.
    Channels(channels::Channels),
    /// Reads and writes the document that a channel shares.
    Canvas(canvas::Canvas),
    /// Reacts to messages.
    Reactions(reactions::Reactions),
    /// Talks to a few people.
    Dms(dms::Dms),
    /// Shows profiles, presence and status, and sets yours.
    Users(users::Users),
    /// Lists what names you.
    Feed(feed::Feed),
    /// Sends pictures and videos to the relay.
    Upload(upload::Upload),
    /// Gets pictures and videos from the relay.
    Media(media::Media),
    /// Reads and writes what an agent remembers.
    Mem(mem::Mem),
    /// Publishes long texts and reads them.
    Notes(notes::Notes),
    /// Publishes short notes, contacts and lists.
    Social(social::Social),
    /// Lists and changes custom emoji.
    Emoji(emoji::EmojiCommand),
    /// Announces repositories and protects their refs.
    Repos(repos::Repos),
    /// Opens issues of a repository and says what became of them.
    Issues(issues::Issues),
    /// Opens pull requests and says what became of them.
    Pr(pr::Pr),
    /// Sends patches and says what became of them.
    Patches(patches::Patches),
    /// Defines, starts and decides workflows.
    Workflows(workflows::Workflows),
    /// Archives identities, and proposes agents to your owner.
    Agents(agents::Agents),
    /// Bans, silences, and handles reports.
    Moderation(moderation::Moderation),
}

impl Group {
    fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Group::Messages(command) => command.run(context),
            Group::Channels(command) => command.run(context),
            Group::Canvas(command) => command.run(context),
            Group::Reactions(command) => command.run(context),
            Group::Dms(command) => command.run(context),
            Group::Users(command) => command.run(context),
            Group::Feed(command) => command.run(context),
            Group::Upload(command) => command.run(context),
            Group::Media(command) => command.run(context),
            Group::Mem(command) => command.run(context),
            Group::Notes(command) => command.run(context),
            Group::Social(command) => command.run(context),
            Group::Emoji(command) => command.run(context),
            Group::Repos(command) => command.run(context),
            Group::Issues(command) => command.run(context),
            Group::Pr(command) => command.run(context),
            Group::Patches(command) => command.run(context),
            Group::Workflows(command) => command.run(context),
            Group::Agents(command) => command.run(context),
            Group::Moderation(command) => command.run(context),
        }
    }
}

/// Runs a command of these groups and prints what it has to say.
pub(crate) fn run(options: Options, group: Group) -> Result<(), Failure> {
    let output = group.run(&Context::new(options)?)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    output.print(&mut out)?;
    Ok(out.flush()?)
}

/// Everything under the link's name.
pub(crate) fn linked(arguments: &[OsString]) -> Result<(), Failure> {
    match Linked::from_iter_safe(arguments) {
        Ok(linked) => run(linked.options, linked.group),
        Err(error) if error.kind == ErrorKind::HelpDisplayed => {
            Ok(writeln!(std::io::stdout(), "{}", error.message)?)
        }
        Err(error) => Err(Failure::Usage(error.message)),
    }
}

/// The parser under the link's name, for completions.
pub(crate) fn parser<'a, 'b>() -> structopt::clap::App<'a, 'b> {
    Linked::clap()
}
