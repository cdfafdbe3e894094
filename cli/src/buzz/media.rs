//! `media`: pictures and videos from the relay.

use std::io::Write;
use std::path::{Path, PathBuf};

use async_std::task::block_on;
use structopt::StructOpt;
use waxlog_nostr::client::media::segment;

use super::context::Context;
use super::failure::Failure;
use super::output::Output;

// Gets files from the relay. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog media get SHA256.png -o picture.png")]
pub(crate) enum Media {
    /// Downloads a picture or video of this relay.
    #[structopt(after_help = "EXAMPLE:\n    waxlog media get SHA256.png -o picture.png")]
    Get {
        /// Its URL on this relay, /media/NAME, or NAME
        input: String,
        /// Where to put it [default: stdout]
        #[structopt(short, long, value_name = "PATH")]
        output: Option<PathBuf>,
    },
}

impl Media {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        let Media::Get { input, output } = self;
        let relay = context.relay();
        let Some(segment) = segment(relay.base(), &input) else {
            return Err(Failure::Usage(format!(
                "{input:?} is no blob of {}: give its URL there, /media/NAME, or NAME (64 hex digits and perhaps \
                 an extension)",
                relay.shown()
            )));
        };
        let bytes = block_on(relay.download(segment))?;
        match output.filter(|path| path != Path::new("-")) {
            None => Ok(Output::Bytes(bytes)),
            Some(path) => put(&path, &bytes).map(|()| Output::Nothing),
        }
    }
}

/// Puts the whole file in place, or nothing.
fn put(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Other(format!("cannot write {}: {error}", path.display()));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any file that a program makes: what the user's mask leaves.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut draft = tempfile::Builder::new().permissions(mode).tempfile_in(folder).map_err(failed)?;
    draft.write_all(bytes).map_err(failed)?;
    draft.persist(path).map(drop).map_err(|refused| failed(refused.error))
}
