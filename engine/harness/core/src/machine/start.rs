//! A process begins: agents are started, the relay is joined, channels are found.

use serde_json::{json, Map, Value};
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::{kind, Event};

use super::queries::{Answer, Purpose};
use super::Machine;
use crate::effect::{Effect, Level};
use crate::link::{SubKey, Subscription};
use crate::rules::Rules;
use crate::settings::Settings;
use crate::step::Step;

impl Machine {
    pub(super) fn process_started(&mut self, step: &mut Step, settings: &Settings, before_ms: u64) {
        let alive_until_secs = (before_ms > 0).then_some(before_ms / 1000);
        match Rules::new(&settings.subscribe) {
            Ok(rules) => self.rules = rules,
            Err(error) => step.tell(Level::Error, error.to_string()),
        }
        self.queue.configure(settings.max_turn_ms, settings.drop_busy);
        self.link.restart(alive_until_secs, settings.catch_up_secs, step.now_secs());
        self.channels.restart();
        self.gate = Default::default();
        self.queries.restart();
        self.inbox.restart();
        self.settings = Some(settings.clone());
        self.stopping = None;
        self.beats.restart(step.now_ms);
        self.take_over_interrupted(step, before_ms);
        self.resume_metrics(step);
        self.start_view(step);
        self.pool.restart(settings.agents, step.now_ms);
        match settings.lazy_pool {
            true => self.join(step),
            false => self.start_next_agent(step),
        }
    }

    /// All agents have had their start: goes on with the relay, if one of them lives.
    pub(super) fn pool_started(&mut self, step: &mut Step) {
        if self.pool.alive() == 0 {
            step.tell(Level::Error, "no agent could be started; check the agent's command");
            step.act(Effect::Exit { code: 1 });
            return;
        }
        self.join(step);
    }

    fn join(&mut self, step: &mut Step) {
        self.show_lifecycle(step, "listening", None);
        self.link.start(step);
    }

    /// The relay knows who we are.
    pub(super) fn link_up(&mut self, step: &mut Step) {
        if std::mem::replace(&mut self.beats.is_joined, true) {
            return;
        }
        let (agent, observed) = (self.set().agent, self.set().observer && self.set().owner.is_some());
        let floor_secs = self.beats.started_ms / 1000;
        let filter = object(json!({"kinds": [kind::MEMBER_ADDED, kind::MEMBER_REMOVED], "#p": [agent]}));
        self.link.subscribe(step, SubKey::Membership, Subscription { filter, floor_secs });
        if observed {
            let filter = object(json!({"kinds": [kind::OBSERVER_FRAME], "#p": [agent]}));
            self.link.subscribe(step, SubKey::Control, Subscription { filter, floor_secs });
        }
        self.query_memberships(step);
    }

    pub(super) fn memberships_found(&mut self, step: &mut Step, answer: Answer) {
        if let Some(reason) = &answer.failure {
            return self.unusable(step, &format!("the agent's channels could not be asked for: {reason}"));
        }
        let mut channels: Vec<String> = answer
            .events()
            .iter()
            .filter(|event| event.kind == kind::CHANNEL_MEMBERS)
            .map(|event| event.identifier().to_owned())
            .filter(|id| id.parse::<ChannelId>().is_ok())
            .collect();
        channels.sort();
        channels.dedup();
        if channels.is_empty() {
            return self.discovered(step);
        }
        let filter = json!({"kinds": [kind::CHANNEL_METADATA], "#d": channels, "limit": channels.len()});
        self.query(step, Purpose::Descriptions(channels), vec![filter]);
    }

    pub(super) fn descriptions_found(&mut self, step: &mut Step, channels: Vec<String>, answer: Answer) {
        if let Some(reason) = &answer.failure {
            step.tell(Level::Warn, format!("the channels' descriptions could not be read: {reason}"));
        }
        let described = self.learn_channels(answer.events());
        for channel in channels {
            let is_archived = described.iter().any(|(id, is_archived)| *id == channel && *is_archived);
            if !is_archived {
                self.join_channel(step, &channel, self.beats.started_ms / 1000);
            }
        }
        self.discovered(step);
    }

    fn discovered(&mut self, step: &mut Step) {
        self.beats.is_ready = true;
        self.recover_interrupted(step);
        self.announce(step);
        self.decide_inbox(step);
    }

    /// Subscribes to a channel if anything of it is wanted.
    pub(super) fn join_channel(&mut self, step: &mut Step, channel: &str, floor_secs: u64) {
        let Some(interest) = self.set().subscribe.interest(channel) else { return };
        if !self.channels.join(channel) {
            return;
        }
        let mut filter = Map::new();
        if let Some(kinds) = interest.kinds {
            filter.insert("kinds".into(), json!(kinds));
        }
        filter.insert("#h".into(), json!([channel]));
        if interest.by_mention {
            filter.insert("#p".into(), json!([self.set().agent]));
        }
        self.link.subscribe(step, SubKey::Channel(channel.to_owned()), Subscription { filter, floor_secs });
    }

    pub(super) fn membership_event(&mut self, step: &mut Step, event: &Event) {
        let Some(channel) = ChannelId::of(event).map(|id| id.to_string()) else { return };
        if !self.channels.is_news(&channel, event.created_at) {
            return;
        }
        match event.kind {
            kind::MEMBER_ADDED => {
                self.join_channel(step, &channel, event.created_at);
                self.query_channel(step, &channel);
            }
            kind::MEMBER_REMOVED => self.leave_channel(step, &channel),
            _ => {}
        }
    }

    fn leave_channel(&mut self, step: &mut Step, channel: &str) {
        self.link.unsubscribe(step, channel);
        self.forget_channel(step, channel);
        self.channels.remove(channel);
    }

    /// The relay has ended our reading of a channel.
    pub(super) fn channel_denied(&mut self, step: &mut Step, channel: &str, why: &str) {
        step.tell(Level::Warn, format!("channel {channel} cannot be read any more: {why}"));
        self.channels.deny(channel);
    }

    fn forget_channel(&mut self, step: &mut Step, channel: &str) {
        self.inbox.drain(channel);
        for event in self.queue.drain(channel) {
            self.unmark_waiting(step, &event);
        }
        self.pool.forget_idle_sessions(channel);
    }

    /// The relay cannot be used: there is nothing to live for.
    pub(super) fn unusable(&mut self, step: &mut Step, reason: &str) {
        step.tell(Level::Error, reason);
        self.kill_all(step);
        step.act(Effect::Exit { code: 1 });
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
