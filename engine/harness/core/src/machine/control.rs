//! What the owner orders by observer frames.

use waxlog_nostr::observer::{Control, ControlStatus};

use super::pool::SlotState;
use super::signals::Signal;
use super::Machine;
use crate::acp;
use crate::step::Step;

impl Machine {
    /// An order was opened: it is the owner's, fresh and whole.
    pub(super) fn control_opened(&mut self, step: &mut Step, text: &str) {
        let Some(control) = Control::parse(text) else { return };
        let status = match &control {
            Control::CancelTurn { channel_id } => match self.signal_channel(step, channel_id, Signal::Cancel)
            {
                true => ControlStatus::Sent,
                false => ControlStatus::NoActiveTurn,
            },
            Control::SwitchModel { channel_id, model_id } => self.switch_model(step, channel_id, model_id),
        };
        let (channel, answer) = (control.channel_id().to_owned(), control.answer(status));
        self.show_control(step, &channel, answer);
    }

    fn switch_model(&mut self, step: &mut Step, channel: &str, model: &str) -> ControlStatus {
        if let Some(at) = self.slot_of_channel(channel) {
            self.pool.slots[at].overridden = Some(model.to_owned());
            return match self.signal_slot(step, at, Signal::SwitchModel) {
                true => ControlStatus::Sent,
                false => ControlStatus::TurnEnding,
            };
        }
        let idle = self
            .pool
            .slots
            .iter_mut()
            .find(|slot| matches!(slot.state, SlotState::Idle(_)) && slot.sessions.contains_key(channel));
        let Some(slot) = idle else { return ControlStatus::NoActiveTurn };
        let catalog = slot.child().and_then(|child| child.catalog.clone()).unwrap_or_default();
        if acp::model_path(&catalog, model).is_none() {
            return ControlStatus::UnsupportedModel;
        }
        slot.overridden = Some(model.to_owned());
        slot.sessions.remove(channel);
        ControlStatus::Switched
    }
}
