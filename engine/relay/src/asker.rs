//! Who asks: the identity of a connection or request, and the way it came.

use waxlog_nostr::PublicKey;

/// How a request reached the relay. Some kinds and fields belong to one way only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A WebSocket connection.
    Socket,
    /// The HTTP bridge.
    Http,
}

/// An authenticated identity and the way it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// Who it is.
    pub pubkey: PublicKey,
    /// The owner that attested this session (NIP-OA), if one did.
    pub owner: Option<PublicKey>,
    /// How it came.
    pub via: Via,
}

impl Asker {
    /// An identity on a socket, without an owner.
    pub fn socket(pubkey: PublicKey) -> Self {
        Self { pubkey, owner: None, via: Via::Socket }
    }

    /// An identity over HTTP, without an owner.
    pub fn http(pubkey: PublicKey) -> Self {
        Self { pubkey, owner: None, via: Via::Http }
    }
}
