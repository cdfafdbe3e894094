//! Observer frames (kind 24200, NIP-AO): what an agent shows its owner while it works, and what the owner may
//! tell it. Never stored.
//!
//! Telemetry goes from agent to owner, control from owner to agent. Before telemetry is sealed, chunks of one
//! text are merged ([`Merger`]), what is too large is elided ([`TelemetryFrame::to_fitting_json`]), and a
//! [`Pacer`] says when the next frame may go.

mod control;
mod elide;
mod merge;
mod pace;
mod telemetry;

pub use control::{Control, ControlStatus};
pub use merge::{Merger, FLUSH_AFTER_MS, MAX_MERGED_BYTES, MAX_OPEN_TEXTS};
pub use pace::{Pacer, FRAME_GAP_MS, MAX_FRAMES_PER_WINDOW, WINDOW_MS};
pub use telemetry::TelemetryFrame;

use crate::event::{Draft, Event, VerifyError};
use crate::filter::Filter;
use crate::id::PublicKey;
use crate::keys::Keys;
use crate::kind::OBSERVER_FRAME;
use crate::nip44::{looks_encrypted, ConversationKey, Nip44Error, MAX_PAYLOAD_CHARS};

/// How old or new a frame may be, in seconds.
pub const MAX_AGE_SECONDS: u64 = 300;

/// Which way a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From agent to owner.
    Telemetry,
    /// From owner to agent.
    Control,
}

/// What anybody can see of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The way, by its author and addressee.
    pub direction: Direction,
    /// The agent.
    pub agent: PublicKey,
    /// Who says to be its owner.
    pub owner: PublicKey,
    /// Whether the `frame` tag names that way too. If not, a relay acknowledges the frame and drops it.
    pub is_labelled: bool,
}

/// Why an event is no frame, or not for the reader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObserverError {
    /// The kind, the tags or the outer form of the content are not a frame's.
    #[error("not an observer frame: {0}")]
    Envelope(&'static str),
    /// Too old, or from the future.
    #[error("the observer frame's created_at {0} is more than {MAX_AGE_SECONDS} s from now")]
    Time(u64),
    /// Not from the other side, or not to this one.
    #[error("the observer frame is not between this agent and its owner")]
    Strange,
    /// Not signed by whom it names.
    #[error(transparent)]
    Event(#[from] VerifyError),
    /// Not to be encrypted or opened.
    #[error(transparent)]
    Cipher(#[from] Nip44Error),
    /// What is inside is not understood, and to be dropped.
    #[error("the observer frame's content is not understood: {0}")]
    Content(&'static str),
}

impl Direction {
    /// The word in the `frame` tag.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Telemetry => "telemetry",
            Self::Control => "control",
        }
    }
}

/// Checks what anybody can see of a frame at a time, as a relay does. The signature is not looked at.
pub fn check_envelope(event: &Event, now: u64) -> Result<Envelope, ObserverError> {
    let bad = |why| Err(ObserverError::Envelope(why));
    if event.kind != OBSERVER_FRAME {
        return bad("its kind is not 24200");
    }
    if event.created_at.abs_diff(now) > MAX_AGE_SECONDS {
        return Err(ObserverError::Time(event.created_at));
    }
    let key = |name| event.only_hex(name).and_then(|key| key.parse::<PublicKey>().ok());
    let (Some(to), Some(agent), Some(label)) = (key("p"), key("agent"), event.only_value("frame")) else {
        return bad("it needs exactly one p, agent and frame tag, with keys of 64 lower-case hex digits");
    };
    if event.content.len() > MAX_PAYLOAD_CHARS || !looks_encrypted(&event.content) {
        return bad("its content is no NIP-44 version 2 message");
    }
    let (direction, owner) = match (event.pubkey == agent, to == agent) {
        (true, false) => (Direction::Telemetry, to),
        (false, true) => (Direction::Control, event.pubkey),
        _ => return bad("it must go from the agent to its owner, or from the owner to the agent"),
    };
    Ok(Envelope { direction, agent, owner, is_labelled: label == direction.as_str() })
}

/// Seals telemetry for the owner. What is too large is elided.
pub fn build_telemetry(
    agent: &Keys,
    owner: &PublicKey,
    frame: &TelemetryFrame,
    created_at: u64,
) -> Result<Event, ObserverError> {
    let text = frame.to_fitting_json();
    seal(agent, owner, &agent.public_key(), Direction::Telemetry, &text, created_at)
}

/// Seals a command for an agent.
pub fn build_control(
    owner: &Keys,
    agent: &PublicKey,
    control: &Control,
    created_at: u64,
) -> Result<Event, ObserverError> {
    seal(owner, agent, agent, Direction::Control, &control.to_json(), created_at)
}

fn seal(
    from: &Keys,
    to: &PublicKey,
    agent: &PublicKey,
    direction: Direction,
    text: &str,
    created_at: u64,
) -> Result<Event, ObserverError> {
    let sealed = ConversationKey::new(from, to)?.encrypt(text)?;
    let draft = Draft::new(OBSERVER_FRAME, sealed, created_at)
        .tag(["p", &to.to_hex()])
        .tag(["agent", &agent.to_hex()])
        .tag(["frame", direction.as_str()]);
    Ok(from.sign(draft))
}

/// Opens telemetry with the owner's key after every check. Whether the agent is the owner's is for the caller
/// to know.
pub fn open_telemetry(owner: &Keys, event: &Event, now: u64) -> Result<TelemetryFrame, ObserverError> {
    let envelope = check_envelope(event, now)?;
    let text = unseal(owner, envelope, Direction::Telemetry, envelope.owner, event)?;
    TelemetryFrame::parse(&text)
}

/// Opens a command with the agent's key after every check: envelope, age, sender, signature, cipher, content.
pub fn open_control(
    agent: &Keys,
    owner: &PublicKey,
    event: &Event,
    now: u64,
) -> Result<Control, ObserverError> {
    let envelope = check_envelope(event, now)?;
    if envelope.owner != *owner {
        return Err(ObserverError::Strange);
    }
    let text = unseal(agent, envelope, Direction::Control, envelope.agent, event)?;
    Control::parse(&text).ok_or(ObserverError::Content("an unknown command or one without its fields"))
}

fn unseal(
    reader: &Keys,
    envelope: Envelope,
    wanted: Direction,
    addressee: PublicKey,
    event: &Event,
) -> Result<String, ObserverError> {
    if envelope.direction != wanted || !envelope.is_labelled || addressee != reader.public_key() {
        return Err(ObserverError::Strange);
    }
    event.verify()?;
    Ok(ConversationKey::new(reader, &event.pubkey)?.decrypt(&event.content)?)
}

/// What asks a relay for the frames to a reader from now on.
pub fn filter(reader: &PublicKey, now: u64) -> Filter {
    Filter::new().kinds([OBSERVER_FRAME]).tag('p', [reader.to_hex()]).since(now)
}

#[cfg(test)]
mod tests;
