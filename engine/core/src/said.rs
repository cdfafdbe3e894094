//! The digest of what was said to the client: a chain with a short link per line, so that replay can name
//! the first line that differs without the log holding every line twice.

use sha2::{Digest, Sha256};

use crate::acp::lines::Line;

/// Bytes of the chain that are kept per line. The log's own hashes guard against forgery; these only have
/// to tell two lines apart.
const LINK_BYTES: usize = 4;

/// The running digest.
#[derive(Clone, Debug, Default)]
pub struct Said {
    last: [u8; LINK_BYTES],
    since_decision: Vec<String>,
}

impl Said {
    /// Adds one line and gives its link in hex.
    pub fn add(&mut self, line: &Line) -> String {
        let mut hash = Sha256::new();
        hash.update(self.last);
        hash.update(line);
        self.last.copy_from_slice(&hash.finalize()[..LINK_BYTES]);
        let link = hex::encode(self.last);
        self.since_decision.push(link.clone());
        link
    }

    /// The links since the last decision, oldest first.
    pub fn since_decision(&self) -> Vec<String> {
        self.since_decision.clone()
    }

    /// A decision has been recorded with the links so far.
    pub fn settle(&mut self) {
        self.since_decision.clear();
    }
}
