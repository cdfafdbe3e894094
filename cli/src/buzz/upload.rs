//! `upload`: pictures and videos to the relay.

use std::fs::File;
use std::path::{Path, PathBuf};

use async_std::task::block_on;
use structopt::StructOpt;
use waxlog_nostr::client::media::{Blob, Media, MediaError};

use super::context::{progress, Context};
use super::failure::Failure;
use super::output::Output;

/// From which size on an upload is announced, in bytes.
const ANNOUNCED_BYTES: u64 = 1024 * 1024;

// Sends files to the relay. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog upload file --file picture.png")]
pub(crate) enum Upload {
    /// Uploads a picture or video and prints what the relay says of it.
    #[structopt(after_help = "EXAMPLE:\n    waxlog upload file --file picture.png")]
    File {
        /// A JPEG, PNG, GIF or WebP picture, or an MP4 video
        #[structopt(long, value_name = "PATH")]
        file: PathBuf,
    },
}

impl Upload {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        let Upload::File { file } = self;
        Ok(Output::Pretty(send_file(context, &file)?.descriptor().clone()))
    }
}

/// Uploads a file.
pub(crate) fn send_file(context: &Context, path: &Path) -> Result<Blob, Failure> {
    let shown = path.display();
    let unreadable = |error| Failure::Other(format!("{shown}: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(Failure::Usage(format!("{shown} is not a regular file")));
    }
    let media = Media::read(file).map_err(|error| match error {
        MediaError::Read(error) => unreadable(error),
        error => Failure::Usage(format!("{shown}: {error}")),
    })?;
    if media.bytes() >= ANNOUNCED_BYTES {
        progress(&format!("uploading {shown} ({} MiB)", media.bytes() / ANNOUNCED_BYTES));
    }
    Ok(block_on(context.relay().upload(&media))?)
}
