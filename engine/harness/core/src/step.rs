//! One step of the fold: the time and the chance of the record at hand, and where effects go.

use sha2::{Digest, Sha256};

use crate::effect::{Effect, Level, Unsigned};
use waxlog_nostr::Draft;

/// Bytes of the trail that are kept. The log's own hashes guard against forgery; these only have to tell two
/// effects apart.
const TRAIL_BYTES: usize = 4;

/// What a part of the machine is given while one record is folded.
pub struct Step<'a> {
    /// The record's time, in milliseconds since 1970.
    pub now_ms: u64,
    seed: u64,
    draws: u64,
    effects: &'a mut Effects,
}

/// The effects that wait for the driver, and the digest of all that ever were.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    waiting: Vec<Effect>,
    trail: [u8; TRAIL_BYTES],
}

impl Effects {
    /// Takes what waits.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.waiting)
    }

    /// The digest of all effects so far, in hex.
    pub fn trail(&self) -> String {
        hex::encode(self.trail)
    }

    fn push(&mut self, effect: Effect) {
        let mut hash = Sha256::new();
        hash.update(self.trail);
        hash.update(serde_json::to_vec(&effect).unwrap_or_default());
        self.trail.copy_from_slice(&hash.finalize()[..TRAIL_BYTES]);
        self.waiting.push(effect);
    }
}

impl<'a> Step<'a> {
    /// The step for a record of this time and seed.
    pub fn new(now_ms: u64, seed: u64, effects: &'a mut Effects) -> Self {
        Self { now_ms, seed, draws: 0, effects }
    }

    /// The record's time, in seconds since 1970.
    pub fn now_secs(&self) -> u64 {
        self.now_ms / 1000
    }

    /// Adds an effect.
    pub fn act(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Says something to the operator.
    pub fn tell(&mut self, level: Level, text: impl Into<String>) {
        self.act(Effect::Tell { level, text: text.into() });
    }

    /// An event that is signed now.
    pub fn draft(&self, kind: u16, content: impl Into<String>) -> Draft {
        Draft::new(kind, content, self.now_secs())
    }

    /// Signs and submits an event over HTTP, best effort.
    pub fn submit(&mut self, draft: Draft, budget_ms: u64) {
        self.act(Effect::Submit { draft: Unsigned::from(draft), budget_ms });
    }

    /// The next draw of this step: 32 bytes that no other draw of the log gives.
    fn draw(&mut self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [self.seed, self.now_ms, self.draws] {
            hash.update(part.to_be_bytes());
        }
        self.draws += 1;
        hash.finalize().into()
    }

    /// A random UUID (version 4).
    pub fn uuid(&mut self) -> String {
        let draw = self.draw();
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&draw[..16]);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let text = hex::encode(bytes);
        [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
    }

    /// `base_ms` times a factor between 0.8 and 1.2.
    pub fn jittered(&mut self, base_ms: u64) -> u64 {
        let draw = self.draw();
        let part = u64::from(u16::from_be_bytes([draw[0], draw[1]]));
        let spread_ms = base_ms / 5 * 2;
        base_ms - base_ms / 5 + spread_ms * part / u64::from(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_of_one_record_are_the_same_each_time_and_differ_among_themselves() {
        let draw = |seed| {
            let mut effects = Effects::default();
            let mut step = Step::new(5, seed, &mut effects);
            [step.uuid(), step.uuid()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let [first, second] = draw(1);
        assert_ne!(first, second);
        assert_eq!((first.len(), &first[14..15]), (36, "4"));
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        for seed in 0..200 {
            let mut effects = Effects::default();
            let jittered = Step::new(0, seed, &mut effects).jittered(1000);
            assert!((800..=1200).contains(&jittered), "{jittered}");
        }
    }

    #[test]
    fn the_trail_tells_effects_and_their_order_apart() {
        let trail = |codes: &[i32]| {
            let mut effects = Effects::default();
            for code in codes {
                Step::new(0, 0, &mut effects).act(Effect::Exit { code: *code });
            }
            effects.trail()
        };
        assert_eq!(trail(&[0, 1]), trail(&[0, 1]));
        assert_ne!(trail(&[0, 1]), trail(&[1, 0]));
    }
}
