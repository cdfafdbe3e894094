//! Every limit of the server, in one place, with its default and the variable that sets it.

use std::time::Duration;

use super::rate::Quotas;

/// What the server takes at most. `Default` gives the values that the information document promises.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Connections at the same time, HTTP and sockets together. More wait in the kernel's line.
    pub connections: usize,
    /// Bytes of one frame of a socket.
    pub frame_bytes: usize,
    /// Subscriptions of one connection.
    pub subscriptions: usize,
    /// Bytes that the filters of one connection's subscriptions may take together.
    pub subscription_bytes: usize,
    /// Events, subscriptions and counts that are being worked on, of all connections.
    pub handlers_in_flight: usize,
    /// Frames that wait for one reader.
    pub queue_frames: usize,
    /// Bytes that wait for one reader.
    pub queue_bytes: usize,
    /// How many frames a reader may miss because its line is full before it is disconnected.
    pub full_queue_hits: u32,
    /// How long a connection may stay without an identity.
    pub auth_deadline: Duration,
    /// How long a reader may leave a write unfinished.
    pub write_stall: Duration,
    /// Time between two pings.
    pub ping_every: Duration,
    /// How many pings may stay unanswered.
    pub unanswered_pings: u32,
    /// How long a request may leave its connection silent, in its head, in its body or between requests.
    pub http_idle: Duration,
    /// Bytes of an HTTP request's head.
    pub http_head_bytes: usize,
    /// Bytes of an HTTP request's body, uploads apart.
    pub http_body_bytes: usize,
    /// Bytes of an uploaded image.
    pub image_bytes: usize,
    /// Bytes of an uploaded GIF.
    pub gif_bytes: usize,
    /// Bytes of an uploaded video.
    pub video_bytes: usize,
    /// Bytes of any other upload.
    pub file_bytes: usize,
    /// Bytes of one answer to a range request.
    pub range_bytes: u64,
    /// Uploads at the same time, of everyone.
    pub uploads: usize,
    /// Uploads at the same time of one key.
    pub uploads_per_key: usize,
    /// Proofs of requests that are remembered so that each counts once.
    pub replay_proofs: usize,
    /// Windows of quotas that are remembered.
    pub rate_windows: usize,
    /// How long a stop waits for what is under way.
    pub stop: Duration,
    /// How often a key may do what.
    pub quotas: Quotas,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            frame_bytes: 524_288,
            subscriptions: 1_024,
            subscription_bytes: 4 << 20,
            handlers_in_flight: 1_024,
            queue_frames: 1_000,
            queue_bytes: 8 << 20,
            full_queue_hits: 15,
            auth_deadline: Duration::from_secs(5),
            write_stall: Duration::from_secs(30),
            ping_every: Duration::from_secs(30),
            unanswered_pings: 3,
            http_idle: Duration::from_secs(30),
            http_head_bytes: 64 << 10,
            http_body_bytes: 1 << 20,
            image_bytes: 50 << 20,
            gif_bytes: 10 << 20,
            video_bytes: 500 << 20,
            file_bytes: 100 << 20,
            range_bytes: 16 << 20,
            uploads: 8,
            uploads_per_key: 2,
            replay_proofs: 200_000,
            rate_windows: 50_000,
            stop: Duration::from_secs(3),
            quotas: Quotas::default(),
        }
    }
}

/// A variable that holds what it must not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}={value:?} is not a whole number above 0; correct it or leave it out")]
pub struct LimitError {
    name: &'static str,
    value: String,
}

impl Limits {
    /// The defaults, changed by what `variable` gives for each name.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, LimitError> {
        let mut limits = Self::default();
        let number = |name: &'static str| match variable(name) {
            None => Ok(None),
            Some(value) => match value.trim().parse::<u32>() {
                Ok(number) if number > 0 => Ok(Some(number)),
                _ => Err(LimitError { name, value }),
            },
        };
        if let Some(bytes) = number("BUZZ_MAX_FRAME_BYTES")? {
            limits.frame_bytes = bytes as usize;
        }
        if let Some(connections) = number("BUZZ_MAX_CONNECTIONS")? {
            limits.connections = connections as usize;
        }
        let quotas = &mut limits.quotas;
        for (name, quota) in [
            ("BUZZ_RATE_LIMIT_HUMAN_MESSAGES_PER_MIN", &mut quotas.person.events_per_minute),
            ("BUZZ_RATE_LIMIT_HUMAN_API_CALLS_PER_MIN", &mut quotas.person.calls_per_minute),
            ("BUZZ_RATE_LIMIT_HUMAN_WS_EVENTS_PER_SEC", &mut quotas.person.frames_per_second),
            ("BUZZ_RATE_LIMIT_AGENT_STANDARD_MESSAGES_PER_MIN", &mut quotas.agent.events_per_minute),
            ("BUZZ_RATE_LIMIT_AGENT_STANDARD_API_CALLS_PER_MIN", &mut quotas.agent.calls_per_minute),
            ("BUZZ_RATE_LIMIT_AGENT_STANDARD_WS_EVENTS_PER_SEC", &mut quotas.agent.frames_per_second),
        ] {
            if let Some(wanted) = number(name)? {
                *quota = wanted;
            }
        }
        Ok(limits)
    }

    /// Whether `variable` names a quota of its own.
    pub fn names_a_quota(variable: impl Fn(&str) -> Option<String>) -> bool {
        ["HUMAN", "AGENT_STANDARD"].iter().any(|who| {
            ["MESSAGES_PER_MIN", "API_CALLS_PER_MIN", "WS_EVENTS_PER_SEC"]
                .iter()
                .any(|what| variable(&format!("BUZZ_RATE_LIMIT_{who}_{what}")).is_some())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_sets_its_limit_and_nothing_else() {
        let set = |name: &str| (name == "BUZZ_MAX_FRAME_BYTES").then(|| "1000".to_owned());
        let limits = Limits::from_variables(set).unwrap();
        assert_eq!(limits, Limits { frame_bytes: 1_000, ..Limits::default() });
        let set = |name: &str| name.ends_with("AGENT_STANDARD_API_CALLS_PER_MIN").then(|| "7".to_owned());
        let limits = Limits::from_variables(set).unwrap();
        assert_eq!(limits.quotas.agent.calls_per_minute, 7);
        assert_eq!(limits.quotas.person, Quotas::default().person);
        assert!(Limits::names_a_quota(set) && !Limits::names_a_quota(|_| None));
    }

    #[test]
    fn a_wrong_variable_is_named_with_its_value() {
        for value in ["", "0", "-1", "many", "99999999999"] {
            let set = |name: &str| (name == "BUZZ_MAX_CONNECTIONS").then(|| value.to_owned());
            let error = Limits::from_variables(set).unwrap_err().to_string();
            assert!(error.contains("BUZZ_MAX_CONNECTIONS") && error.contains(value), "{error}");
        }
    }
}
