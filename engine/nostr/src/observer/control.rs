//! What an owner may tell an agent, and what is answered.

use serde_json::{json, Value};

/// A command of the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Ends the turn of a channel.
    CancelTurn {
        /// The channel.
        channel_id: String,
    },
    /// Changes the model of a channel's session.
    SwitchModel {
        /// The channel.
        channel_id: String,
        /// The model.
        model_id: String,
    },
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlStatus {
    /// Passed on to the turn.
    Sent,
    /// There is nothing to act on.
    NoActiveTurn,
    /// The turn is about to end.
    TurnEnding,
    /// The model is changed.
    Switched,
    /// The agent does not have the model.
    UnsupportedModel,
}

impl Control {
    /// Reads a command; nothing for an unknown one, or one without its fields.
    pub fn parse(text: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(text).ok()?;
        let field = |name: &str| object.get(name)?.as_str().map(str::to_owned);
        let channel_id = field("channelId")?;
        match object.get("type")?.as_str()? {
            "cancel_turn" => Some(Self::CancelTurn { channel_id }),
            "switch_model" => Some(Self::SwitchModel { channel_id, model_id: field("modelId")? }),
            _ => None,
        }
    }

    /// The command as JSON.
    pub fn to_json(&self) -> String {
        let name = self.name();
        match self {
            Self::CancelTurn { channel_id } => json!({"type": name, "channelId": channel_id}),
            Self::SwitchModel { channel_id, model_id } => {
                json!({"type": name, "channelId": channel_id, "modelId": model_id})
            }
        }
        .to_string()
    }

    /// The command's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CancelTurn { .. } => "cancel_turn",
            Self::SwitchModel { .. } => "switch_model",
        }
    }

    /// The channel it is about.
    pub fn channel_id(&self) -> &str {
        match self {
            Self::CancelTurn { channel_id } | Self::SwitchModel { channel_id, .. } => channel_id,
        }
    }

    /// The payload of the telemetry `control_result` that answers this.
    pub fn answer(&self, status: ControlStatus) -> Value {
        let mut answer = json!({"type": self.name(), "status": status.as_str()});
        if let Self::SwitchModel { model_id, .. } = self {
            answer["modelId"] = model_id.as_str().into();
        }
        answer
    }
}

impl ControlStatus {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::NoActiveTurn => "no_active_turn",
            Self::TurnEnding => "turn_ending",
            Self::Switched => "switched",
            Self::UnsupportedModel => "unsupported_model",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_survives_its_json_and_is_answered_by_name() {
        let cancel = Control::CancelTurn { channel_id: "c".into() };
        let switch = Control::SwitchModel { channel_id: "c".into(), model_id: "m".into() };
        for control in [&cancel, &switch] {
            assert_eq!(Control::parse(&control.to_json()).as_ref(), Some(control));
            assert_eq!(control.channel_id(), "c");
        }
        let none = json!({"type": "cancel_turn", "status": "no_active_turn"});
        assert_eq!(cancel.answer(ControlStatus::NoActiveTurn), none);
        let switched = json!({"type": "switch_model", "status": "switched", "modelId": "m"});
        assert_eq!(switch.answer(ControlStatus::Switched), switched);
    }

    #[test]
    fn an_unknown_or_incomplete_command_is_none() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"type":"cancel_turn"}"#,
            r#"{"type":"switch_model","channelId":"c"}"#,
            r#"{"type":"reboot","channelId":"c"}"#,
            r#"{"type":"cancel_turn","channelId":7}"#,
        ] {
            assert_eq!(Control::parse(text), None, "{text}");
        }
    }
}
