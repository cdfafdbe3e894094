//! How far each channel was read, and from where a subscription goes on.

use std::collections::BTreeMap;

use super::SubKey;

/// How much of what was seen is asked for again after a loss, in seconds.
const OVERLAP_SECS: u64 = 5;
/// The same after a restart: as far off as a relay lets an author's clock be.
const RESTART_OVERLAP_SECS: u64 = 900;

/// Newest times, in seconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct Cursors {
    channels: BTreeMap<String, u64>,
    membership_secs: Option<u64>,
    /// From where on what came before this process is asked for.
    catch_up_from_secs: Option<u64>,
}

impl Cursors {
    /// A new process: all goes on from where the one before was, but not from longer ago than `catch_up_secs`.
    pub(super) fn restarted(self, alive_until_secs: Option<u64>, catch_up_secs: u64, now_secs: u64) -> Self {
        let bound = |secs: u64| secs.max(now_secs.saturating_sub(catch_up_secs));
        Self {
            catch_up_from_secs: alive_until_secs
                .map(|secs| bound(secs.saturating_sub(RESTART_OVERLAP_SECS)).min(now_secs)),
            ..Self::default()
        }
    }

    /// An event of a channel was taken.
    pub(super) fn saw(&mut self, channel: &str, created_at: u64) {
        let newest = self.channels.entry(channel.to_owned()).or_default();
        *newest = created_at.max(*newest);
    }

    /// A membership event was taken.
    pub(super) fn saw_membership(&mut self, created_at: u64) {
        self.membership_secs = Some(created_at.max(self.membership_secs.unwrap_or(0)));
    }

    /// Forgets a channel.
    pub(super) fn forget(&mut self, channel: &str) {
        self.channels.remove(channel);
    }

    /// From when on a subscription asks. `floor_secs` stands for what was not seen yet.
    pub(super) fn since(&self, key: &SubKey, floor_secs: u64, now_secs: u64) -> u64 {
        let floor_secs = self.catch_up_from_secs.map_or(floor_secs, |from_secs| from_secs.min(floor_secs));
        let from_secs = match key {
            SubKey::Control => return now_secs,
            SubKey::Membership => self.membership_secs.unwrap_or(floor_secs),
            SubKey::Channel(channel) => self.channels.get(channel).copied().unwrap_or(floor_secs),
        };
        from_secs.saturating_sub(OVERLAP_SECS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel() -> SubKey {
        SubKey::Channel("a".into())
    }

    #[test]
    fn c54_a_subscription_goes_on_from_the_newest_event_of_its_channel() {
        let mut cursors = Cursors::default();
        assert_eq!(cursors.since(&channel(), 100, 200), 95);
        cursors.saw("a", 150);
        cursors.saw("a", 140);
        assert_eq!(cursors.since(&channel(), 100, 200), 145);
        cursors.saw_membership(190);
        assert_eq!(cursors.since(&channel(), 100, 200), 145);
        assert_eq!(cursors.since(&SubKey::Membership, 100, 200), 185);
        assert_eq!(cursors.since(&SubKey::Control, 100, 200), 200);
    }

    #[test]
    fn c55_after_a_restart_what_came_meanwhile_is_asked_for_within_the_bound() {
        let restarted = |alive_until, catch_up| Cursors::default().restarted(alive_until, catch_up, 10_000);
        assert_eq!(restarted(Some(9_000), 86_400).since(&channel(), 10_000, 10_000), 8_095);
        assert_eq!(restarted(Some(9_000), 500).since(&channel(), 10_000, 10_000), 9_495);
        assert_eq!(restarted(Some(9_000), 0).since(&channel(), 10_000, 10_000), 9_995);
        assert_eq!(restarted(None, 86_400).since(&channel(), 10_000, 10_000), 9_995);
    }
}
