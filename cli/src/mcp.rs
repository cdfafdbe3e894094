//! `waxlog mcp`: the developer's tool server, and the programs that its commands find.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use structopt::StructOpt;
use waxlog_tools::git::{credential, sign};
use waxlog_tools::search::{rg, tree};
use waxlog_tools::{Served, GUARD_LINK};

use crate::failure::Failure;

/// What the binary is under the names of links that the tool server makes and knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The server itself.
    Server,
    /// The process that cleans up after a killed server.
    Guard,
    /// The search.
    Rg,
    /// The listing.
    Tree,
    /// git's helper for logins.
    Credential,
    /// git's helper for signatures.
    Sign,
}

impl Link {
    /// The link of this name.
    pub(crate) fn named(name: &OsStr) -> Option<Link> {
        let stem = Path::new(name).file_stem()?.to_str()?.to_ascii_lowercase();
        Some(match stem.as_str() {
            "buzz-dev-mcp" => Link::Server,
            GUARD_LINK => Link::Guard,
            "rg" => Link::Rg,
            "tree" => Link::Tree,
            "git-credential-nostr" => Link::Credential,
            "git-sign-nostr" => Link::Sign,
            _ => return None,
        })
    }

    /// Is that program.
    pub(crate) fn run(self, arguments: &[OsString]) -> Result<(), Failure> {
        let rest = arguments.get(1..).unwrap_or_default();
        match self {
            Link::Server => serve(arguments),
            Link::Guard => waxlog_tools::stand(rest)
                .map_err(|error| Failure::io("cannot clean up after the tool server", &error)),
            Link::Rg => coded(rg::run(rest, io::stdout().lock())?),
            Link::Tree => coded(tree::run(rest, io::stdout().lock())?),
            Link::Credential => {
                let operation = rest.first().map(|operation| operation.to_string_lossy());
                credential::run(operation.as_deref(), io::stdin().lock(), io::stdout().lock(), now())
                    .map_err(|error| Failure::Check(format!("git-credential-nostr: {error}")))
            }
            Link::Sign => {
                let words: Vec<_> = rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
                let is_well = sign::run(&words, io::stdin().lock(), io::stdout().lock(), now())
                    .map_err(|error| Failure::Check(format!("git-sign-nostr: {error}")))?;
                coded(u8::from(!is_well))
            }
        }
    }
}

/// Its settings are environment variables.
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    BUZZ_SHELL=zsh waxlog mcp")]
pub(crate) struct Mcp {}

impl Mcp {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        serve(&std::env::args_os().collect::<Vec<_>>())
    }
}

/// The operator's log goes to stderr at a fixed level: stdout belongs to the client.
fn serve(arguments: &[OsString]) -> Result<(), Failure> {
    env_logger::Builder::new()
        .filter_level(log::LevelFilter::Info)
        .format_target(false)
        .write_style(env_logger::WriteStyle::Never)
        .init();
    match waxlog_tools::serve(arguments) {
        Ok(Served::Whole) => Ok(()),
        Ok(Served::WithoutClient) => {
            Err(Failure::Check("mcp: the client did not begin with initialize".to_owned()))
        }
        Err(error) => Err(Failure::SetUp(format!("mcp: {error}"))),
    }
}

/// An exit code that says all there is to say: whatever is wrong stands on stderr already.
fn coded(code: u8) -> Result<(), Failure> {
    match code {
        0 => Ok(()),
        code => Err(Failure::Said(code)),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_known_by_its_name_without_folder_ending_and_case() {
        for (name, link) in [
            ("/a/b/buzz-dev-mcp", Some(Link::Server)),
            ("RG.exe", Some(Link::Rg)),
            ("tree", Some(Link::Tree)),
            ("git-credential-nostr", Some(Link::Credential)),
            ("waxlog", None),
            ("buzz", None),
        ] {
            assert_eq!(Link::named(OsStr::new(name)), link, "{name}");
        }
    }
}
