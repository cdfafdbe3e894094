//! `emoji`: custom emoji, one set for each user and together everybody's palette.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use structopt::StructOpt;
use waxlog_nostr::build::emoji::{draft, merged, of_set, palette, with, Emoji, SET_ID};
use waxlog_nostr::build::reaction::shortcode;
use waxlog_nostr::kind::EMOJI_SET;
use waxlog_nostr::{Event, Filter};

use super::context::{note, Context};
use super::failure::{as_usage, Failure};
use super::input::file_or_stdin;
use super::output::Output;

/// The most sets that the palette is made of.
const MAX_SETS: usize = 10_000;

// Lists and changes custom emoji. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog emoji list")]
pub(crate) enum EmojiCommand {
    /// Lists the emoji of all users.
    #[structopt(after_help = "EXAMPLE:\n    waxlog emoji list")]
    List,
    /// Adds an emoji to your set, or gives it another picture.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog emoji set --shortcode cat --url https://example.org/cat.png"
    )]
    Set {
        /// Its name, with or without colons
        #[structopt(long, value_name = "NAME")]
        shortcode: String,
        /// Its picture
        #[structopt(long, value_name = "URL")]
        url: String,
    },
    /// Removes an emoji from your set.
    #[structopt(after_help = "EXAMPLE:\n    waxlog emoji rm --shortcode cat")]
    Rm {
        /// Its name, with or without colons
        #[structopt(long, value_name = "NAME")]
        shortcode: String,
    },
    /// Writes emoji to a file or to stdout.
    #[structopt(after_help = "EXAMPLE:\n    waxlog emoji export --scope workspace --file emoji.json")]
    Export {
        /// The file, or - for stdout [default: stdout]
        #[structopt(long, value_name = "PATH")]
        file: Option<PathBuf>,
        /// Whose: own, or workspace for those of all users
        #[structopt(long, value_name = "SCOPE", default_value = "own", possible_values = &["own", "workspace"])]
        scope: Scope,
    },
    /// Adds the emoji of a file or of stdin to your set.
    #[structopt(after_help = "EXAMPLE:\n    waxlog emoji import --file emoji.json --dry-run")]
    Import {
        /// The file, or - for stdin [default: stdin]
        #[structopt(long, value_name = "PATH")]
        file: Option<PathBuf>,
        /// Puts them in the place of your set
        #[structopt(long)]
        replace: bool,
        /// Prints what the set would be, and writes nothing
        #[structopt(long)]
        dry_run: bool,
    },
}

/// Whose emoji.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One's own.
    Own,
    /// Those of all users.
    Workspace,
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Scope, String> {
        match text {
            "own" => Ok(Scope::Own),
            "workspace" => Ok(Scope::Workspace),
            _ => Err(format!("unknown scope {text:?}: use own or workspace")),
        }
    }
}

/// Emoji as they are printed, exported and imported.
#[derive(Serialize, Deserialize)]
struct Exchange {
    emojis: Vec<Emoji>,
}

impl EmojiCommand {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            EmojiCommand::List => Ok(printed(all(context)?).into()),
            EmojiCommand::Set { shortcode, url } => {
                let emoji = Emoji::new(&shortcode, &url)?;
                let (set, head) = own(context)?;
                publish(context, &with(set, emoji), head.as_ref())
            }
            EmojiCommand::Rm { shortcode } => remove(context, &shortcode),
            EmojiCommand::Export { file, scope } => export(context, file.as_deref(), scope),
            EmojiCommand::Import { file, replace, dry_run } => {
                import(context, file.as_deref().unwrap_or(Path::new("-")), replace, dry_run)
            }
        }
    }
}

fn sets() -> Filter {
    Filter::new().kinds([EMOJI_SET]).tag('d', [SET_ID])
}

fn all(context: &Context) -> Result<Vec<Emoji>, Failure> {
    Ok(palette(&context.pages(&sets(), MAX_SETS)?))
}

/// One's own set, and the event that it is in.
fn own(context: &Context) -> Result<(Vec<Emoji>, Option<Event>), Failure> {
    let head = context.first(sets().authors([context.me()]))?;
    Ok((head.as_ref().map(of_set).unwrap_or_default(), head))
}

fn publish(context: &Context, set: &[Emoji], head: Option<&Event>) -> Result<Output, Failure> {
    context.publish(draft(set, context.time_after(head)))
}

fn remove(context: &Context, name: &str) -> Result<Output, Failure> {
    let code = shortcode(name)?;
    let (mut set, head) = own(context)?;
    let count = set.len();
    set.retain(|emoji| emoji.shortcode != code);
    match set.len() == count {
        true => Ok(json!({"accepted": true, "message": "not present"}).into()),
        false => publish(context, &set, head.as_ref()),
    }
}

fn export(context: &Context, file: Option<&Path>, scope: Scope) -> Result<Output, Failure> {
    let mut emojis = match scope {
        Scope::Own => own(context)?.0,
        Scope::Workspace => all(context)?,
    };
    emojis.sort();
    let count = emojis.len();
    let printed = printed(emojis);
    let Some(path) = file.filter(|path| *path != Path::new("-")) else { return Ok(printed.into()) };
    let cannot = |error| Failure::Other(format!("cannot write {}: {error}", path.display()));
    let mut file = std::fs::File::create(path).map_err(cannot)?;
    writeln!(file, "{printed:#}").map_err(cannot)?;
    note(&format!("{count} emoji written to {}", path.display()));
    Ok(Output::Nothing)
}

fn import(context: &Context, file: &Path, replace: bool, dry_run: bool) -> Result<Output, Failure> {
    let text = file_or_stdin(file)?;
    let given: Exchange = serde_json::from_str(&text).map_err(|error| {
        as_usage(format!("the emoji must be {{\"emojis\":[{{\"shortcode\",\"url\"}}]}}: {error}"))
    })?;
    let given: Vec<_> = given
        .emojis
        .iter()
        .map(|emoji| Emoji::new(&emoji.shortcode, &emoji.url))
        .collect::<Result<_, _>>()?;
    let (set, head) = own(context)?;
    let result = merged(if replace { Vec::new() } else { set }, given);
    if dry_run {
        note("nothing is written; this is what your set would be");
        return Ok(printed(result).into());
    }
    publish(context, &result, head.as_ref())
}

fn printed(emojis: Vec<Emoji>) -> Value {
    json!(Exchange { emojis })
}
