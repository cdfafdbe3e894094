//! `mem`: what an agent remembers, sealed for itself and its owner.

mod memory;
mod patch;

use std::path::PathBuf;

use structopt::StructOpt;
use waxlog_nostr::engram::{Slug, SlugError};
use waxlog_nostr::PublicKey;

use self::memory::Store;
use super::context::Context;
use super::failure::{as_usage, Failure};
use super::output::Output;

// Reads and writes an agent's memory. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog mem set notes/plan 'ship it'")]
pub(crate) enum Mem {
    /// Lists what is remembered, core aside.
    #[structopt(after_help = "EXAMPLE:\n    waxlog mem ls --json")]
    Ls {
        #[structopt(flatten)]
        reader: Reader,
        /// Prints JSON
        #[structopt(long)]
        json: bool,
    },
    /// Prints a memory as it is.
    #[structopt(after_help = "EXAMPLE:\n    waxlog mem get notes/plan")]
    Get {
        #[structopt(flatten)]
        at: ReadAt,
    },
    /// Prints the SHA-256 of a memory.
    #[structopt(after_help = "EXAMPLE:\n    waxlog mem hash notes/plan")]
    Hash {
        #[structopt(flatten)]
        at: ReadAt,
    },
    /// Remembers a text.
    #[structopt(after_help = "EXAMPLE:\n    waxlog mem set notes/plan - < plan.md")]
    Set {
        #[structopt(flatten)]
        at: WriteAt,
        /// The text, or - for stdin
        #[structopt(value_name = "VALUE")]
        value: String,
        /// Takes an empty stdin
        #[structopt(long)]
        allow_empty: bool,
    },
    /// Applies a unified diff, exactly where it says.
    #[structopt(after_help = "EXAMPLE:\n    waxlog mem patch notes/plan --base-hash HASH < plan.diff")]
    Patch {
        #[structopt(flatten)]
        at: WriteAt,
        #[structopt(flatten)]
        patch: PatchOptions,
    },
    /// Forgets a memory.
    #[structopt(after_help = "EXAMPLE:\n    waxlog mem rm notes/plan")]
    Rm {
        #[structopt(flatten)]
        at: WriteAt,
    },
}

// Whose memory is read. (A doc comment on these would become the help of the commands.)
#[derive(StructOpt)]
pub(crate) struct Reader {
    /// The owner, if there is no owner's tag
    #[structopt(long, value_name = "PUBKEY")]
    owner: Option<PublicKey>,
    /// The agent, whose owner you are
    #[structopt(long, value_name = "PUBKEY")]
    agent: Option<PublicKey>,
}

#[derive(StructOpt)]
pub(crate) struct ReadAt {
    /// What it is called: core, or a path like notes/plan
    #[structopt(value_name = "SLUG")]
    slug: String,
    #[structopt(flatten)]
    reader: Reader,
}

#[derive(StructOpt)]
pub(crate) struct WriteAt {
    /// What it is called: core, or a path like notes/plan
    #[structopt(value_name = "SLUG")]
    slug: String,
    /// The owner, if there is no owner's tag
    #[structopt(long, value_name = "PUBKEY")]
    owner: Option<PublicKey>,
}

#[derive(StructOpt)]
pub(crate) struct PatchOptions {
    /// The diff's file, or - for stdin
    #[structopt(long, value_name = "PATH")]
    patch_file: Option<PathBuf>,
    /// The SHA-256 of the memory that the diff was made for
    #[structopt(long, value_name = "HASH")]
    base_hash: Option<String>,
    /// Applies the diff to whatever is there
    #[structopt(long)]
    no_base_hash: bool,
    /// Checks, and writes nothing
    #[structopt(long)]
    dry_run: bool,
    /// Takes a result without any text
    #[structopt(long)]
    allow_empty: bool,
}

impl Mem {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Mem::Ls { reader, json } => Store::reading(context, &reader)?.list(json),
            Mem::Get { at } => {
                let (store, slug) = at.open(context)?;
                Ok(Output::Bytes(store.text(&slug)?.into_bytes()))
            }
            Mem::Hash { at } => {
                let (store, slug) = at.open(context)?;
                Ok(Output::Line(memory::hash(&store.text(&slug)?)))
            }
            Mem::Set { at, value, allow_empty } => {
                let (store, slug) = at.open(context)?;
                store.set(slug, memory::value(value, allow_empty)?)
            }
            Mem::Patch { at, patch } => {
                let (store, slug) = at.open(context)?;
                store.patch(slug, patch)
            }
            Mem::Rm { at } => {
                let (store, slug) = at.open(context)?;
                store.remove(slug)
            }
        }
    }
}

fn slug(text: &str) -> Result<Slug, Failure> {
    Slug::expand(text).map_err(|error: SlugError| as_usage(error))
}

impl ReadAt {
    fn open<'a>(&self, context: &'a Context) -> Result<(Store<'a>, Slug), Failure> {
        let slug = slug(&self.slug)?;
        Ok((Store::reading(context, &self.reader)?, slug))
    }
}

impl WriteAt {
    fn open<'a>(&self, context: &'a Context) -> Result<(Store<'a>, Slug), Failure> {
        let slug = slug(&self.slug)?;
        Ok((Store::of_agent(context, self.owner)?, slug))
    }
}
