//! A copy of a segment's store, kept while sled opens it.
//!
//! When sled meets bytes that it cannot read it takes the last sound place for the end of its
//! log: it overwrites what follows and deletes the larger values of later records. So the files
//! are copied first. Once all promised records were seen, the copy goes; otherwise it is put
//! back, and salvage finds what sled would have destroyed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files;

/// The store's folder inside a segment.
pub(crate) const STORE_DIR: &str = "sled";
const KEPT_DIR: &str = "sled.before-open";
const COPYING_DIR: &str = "sled.copying";

/// The copy. Unless it is discarded, dropping it puts the store back as it was.
pub(crate) struct Evidence {
    segment: PathBuf,
    discarded: bool,
}

impl Evidence {
    /// Puts the store of `segment` back as it was before an opening that was killed.
    pub(crate) fn recover(segment: &Path) -> io::Result<()> {
        files::remove(&segment.join(COPYING_DIR))?;
        if segment.join(KEPT_DIR).exists() {
            put_back(segment)?;
        }
        Ok(())
    }

    /// Copies the store of `segment`, recovered if an opening before was killed.
    pub(crate) fn secure(segment: &Path) -> io::Result<Evidence> {
        Evidence::recover(segment)?;
        if segment.join(STORE_DIR).exists() {
            files::copy_dir(&segment.join(STORE_DIR), &segment.join(COPYING_DIR))?;
            fs::rename(segment.join(COPYING_DIR), segment.join(KEPT_DIR))?;
        }
        Ok(Evidence { segment: segment.to_path_buf(), discarded: false })
    }

    /// The store turned out whole: the copy is not needed.
    pub(crate) fn discard(mut self) -> io::Result<()> {
        self.discarded = true;
        // Renamed first: a copy that a kill leaves half removed must never be put back.
        let kept = self.segment.join(KEPT_DIR);
        if kept.exists() {
            fs::rename(&kept, self.segment.join(COPYING_DIR))?;
        }
        files::remove(&self.segment.join(COPYING_DIR))
    }
}

impl Drop for Evidence {
    fn drop(&mut self) {
        if self.discarded {
            return;
        }
        if let Err(error) = put_back(&self.segment) {
            log::warn!("the store in {} could not be put back: {error}", self.segment.display());
        }
    }
}

/// The folder with the store as no opening has changed it.
pub(crate) fn untouched(segment: &Path) -> PathBuf {
    let kept = segment.join(KEPT_DIR);
    if kept.exists() {
        kept
    } else {
        segment.join(STORE_DIR)
    }
}

fn put_back(segment: &Path) -> io::Result<()> {
    files::remove(&segment.join(STORE_DIR))?;
    let kept = segment.join(KEPT_DIR);
    if kept.exists() {
        fs::rename(kept, segment.join(STORE_DIR))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("temp dir");
        fs::create_dir(dir.path().join(STORE_DIR)).expect("create");
        fs::write(dir.path().join(STORE_DIR).join("db"), b"whole").expect("write");
        dir
    }

    fn store(dir: &Path) -> Vec<u8> {
        fs::read(dir.join(STORE_DIR).join("db")).expect("read")
    }

    #[test]
    fn what_an_opening_changed_is_put_back() {
        let dir = segment();
        let evidence = Evidence::secure(dir.path()).expect("secure");
        fs::write(dir.path().join(STORE_DIR).join("db"), b"cut").expect("write");
        drop(evidence);
        assert_eq!(store(dir.path()), b"whole");
    }

    #[test]
    fn the_next_opening_puts_back_what_a_killed_one_changed() {
        let dir = segment();
        std::mem::forget(Evidence::secure(dir.path()).expect("secure"));
        fs::write(dir.path().join(STORE_DIR).join("db"), b"cut").expect("write");
        Evidence::secure(dir.path()).expect("again").discard().expect("discard");
        assert_eq!(store(dir.path()), b"whole");
    }
}
