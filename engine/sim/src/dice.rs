//! Chance: every choice of a run comes from its seed, so that the seed is all there is to repeat it.

use std::ops::Range;

/// A source of choices.
#[derive(Clone, Debug)]
pub struct Dice(fastrand::Rng);

impl Dice {
    /// The choices of `seed`.
    pub fn new(seed: u64) -> Dice {
        Dice(fastrand::Rng::with_seed(seed))
    }

    /// True in `permille` of a thousand cases.
    pub fn chance(&mut self, permille: u32) -> bool {
        self.0.u32(0..1000) < permille
    }

    /// A number of `range`, which must not be empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        self.0.u64(range)
    }

    /// The same for sizes.
    pub fn size(&mut self, range: Range<usize>) -> usize {
        self.0.usize(range)
    }

    /// One of `list`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.0.usize(0..list.len())]
    }

    /// A wait in milliseconds whose order of magnitude is chosen first: most are short, a few are long.
    pub fn wait_ms(&mut self, max_ms: u64) -> u64 {
        let magnitude = self.0.u32(0..=max_ms.max(1).ilog2());
        self.0.u64(0..=(1 << magnitude)).min(max_ms)
    }

    /// An id as a driver draws it: `prefix`, an underscore and 16 hex digits.
    pub fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}_{:016x}", self.0.u64(..))
    }

    /// The back-off's share of chance, 0 to 999.
    pub fn permille(&mut self) -> u16 {
        self.0.u16(0..1000)
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.0.u8(..)
    }
}
