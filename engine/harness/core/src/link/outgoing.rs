//! What goes out on a connection: subscriptions, signs of life, observer frames, each at its pace.

use waxlog_nostr::frame::ClientFrame;
use waxlog_nostr::Draft;

use super::{Link, Sent, SubKey, Subscription, OBSERVER_PENDING_MAX, PACE_MS, UNANSWERED_MAX};
use crate::effect::{Effect, Unsigned};
use crate::step::Step;

impl Link {
    /// Subscribes, now or as soon as there is a connection.
    pub fn subscribe(&mut self, step: &mut Step, key: SubKey, subscription: Subscription) {
        self.subscriptions.add(key.clone(), subscription);
        if self.is_up() && !self.is_limited(step.now_ms) {
            self.ask(step, &key);
        }
    }

    /// Ends the subscription of a channel and forgets where it was.
    pub fn unsubscribe(&mut self, step: &mut Step, channel: &str) {
        let key = SubKey::Channel(channel.to_owned());
        if self.is_up() && self.subscriptions.is_active(&key) {
            let frame = ClientFrame::Close(key.id()).to_json();
            step.act(Effect::Send { link: self.number, frame });
        }
        self.forget(channel);
    }

    pub(super) fn forget(&mut self, channel: &str) {
        self.subscriptions.remove(&SubKey::Channel(channel.to_owned()));
        self.cursors.forget(channel);
    }

    fn ask(&mut self, step: &mut Step, key: &SubKey) {
        let since =
            |subscription: &Subscription| self.cursors.since(key, subscription.floor_secs, step.now_secs());
        if let Some(frame) = self.subscriptions.ask(key, since) {
            step.act(Effect::Send { link: self.number, frame });
        }
    }

    /// Signs and sends an event that nobody misses when it cannot be sent now.
    pub fn publish(&mut self, step: &mut Step, draft: Draft) {
        if self.is_up() && !self.is_limited(step.now_ms) {
            self.remember(Sent::Passing);
            step.act(Effect::PublishFrame { link: self.number, draft: Unsigned::from(draft) });
        }
    }

    /// Sends an observer frame, or keeps it until it can be sent. The oldest gives way.
    pub fn observe(&mut self, step: &mut Step, frame: String) {
        if self.observer.len() >= OBSERVER_PENDING_MAX {
            self.observer.pop_front();
            self.observer_dropped += 1;
        }
        self.observer.push_back(frame);
        if self.observer.len() == 1 {
            self.pace(step);
        }
    }

    fn remember(&mut self, sent: Sent) {
        if self.sent.len() >= UNANSWERED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(sent);
    }

    pub(super) fn requeue_observer(&mut self) {
        for sent in std::mem::take(&mut self.sent).into_iter().rev() {
            if let Sent::Observer(frame) = sent {
                self.observer.push_front(frame);
            }
        }
        self.observer.truncate(OBSERVER_PENDING_MAX);
    }

    /// Sends the next of what waits, one frame at a time.
    pub(super) fn pace(&mut self, step: &mut Step) {
        while self.is_up() && !self.is_limited(step.now_ms) && self.next_paced_ms <= step.now_ms {
            if let Some(key) = self.subscriptions.next_parked(step.now_ms) {
                self.ask(step, &key);
            } else if let Some(frame) = self.observer.pop_front() {
                self.remember(Sent::Observer(frame.clone()));
                step.act(Effect::Observe { link: self.number, frame });
            } else {
                return;
            }
            self.next_paced_ms = step.now_ms + PACE_MS;
        }
    }
}
