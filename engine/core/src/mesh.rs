//! A relay mesh behind the model name `auto`: when requests go to the whole mesh instead, and when they come
//! back.
//!
//! The mesh is a model of its own, `mesh`, that needs at least two others. Whether they are there is read from
//! the endpoint's list of models before a request is made, never more often than every [`PROBE_FRESH_MS`]. All
//! sessions of a process share what was seen; what a session was told is a record of its own.

use std::collections::BTreeSet;

use serde_json::Value;

/// The model that the mesh may stand in for.
pub const AUTO: &str = "auto";
/// The mesh as a model.
pub const MESH: &str = "mesh";
/// How long a probe counts, in milliseconds.
pub const PROBE_FRESH_MS: u64 = 5_000;
/// How long the mesh is left alone after it failed or vanished, in milliseconds.
pub const COOLDOWN_MS: u64 = 30_000;
/// Probes in a row that must find the mesh before it is used.
const FOUND_MIN: u32 = 2;
/// Other models that the mesh needs.
const OTHERS_MIN: usize = 2;
/// What a mesh says that lost its models.
const TOO_FEW: &str = "MoA requires \u{2265}2 models available in the mesh";
/// The kind of error of a mesh that could not bring its models together.
const FAILURE_TYPE: &str = "moa_failure";
/// How the text begins of a model that wrote its calls as text.
const MARKUP: [&str; 3] = ["<|tool_call", "<tool_call", "[tool_call]"];

/// What a probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The mesh and enough models for it.
    Available,
    /// A list without them.
    Unavailable,
    /// No list.
    Unknown,
}

/// What a process knows of the mesh. Times are milliseconds of one clock, whatever its zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mesh {
    found: u32,
    chosen: bool,
    probed_ms: Option<u64>,
    cools_until_ms: u64,
}

impl Mesh {
    /// Whether requests go to the mesh, if that can be said without a probe.
    pub fn standing(&self, now_ms: u64) -> Option<bool> {
        if now_ms < self.cools_until_ms {
            return Some(false);
        }
        let fresh = self.probed_ms.is_some_and(|at| now_ms.saturating_sub(at) < PROBE_FRESH_MS);
        fresh.then_some(self.chosen)
    }

    /// Takes in what a probe found, and says whether requests go to the mesh.
    pub fn probed(&mut self, seen: Seen, now_ms: u64) -> bool {
        self.probed_ms = Some(now_ms);
        match seen {
            Seen::Available => {
                self.found = self.found.saturating_add(1);
                self.chosen = self.found >= FOUND_MIN;
            }
            Seen::Unavailable if self.chosen => self.failed(now_ms),
            Seen::Unavailable => self.found = 0,
            Seen::Unknown => {}
        }
        self.chosen
    }

    /// The mesh failed at a request, or is gone.
    pub fn failed(&mut self, now_ms: u64) {
        self.found = 0;
        self.chosen = false;
        self.cools_until_ms = now_ms.saturating_add(COOLDOWN_MS);
    }
}

/// What the body of a good answer to `GET /models` says. Total: what is no list is [`Seen::Unknown`].
pub fn seen(body: &[u8]) -> Seen {
    let Ok(list) = crate::json::from_outside::<Value>(body) else { return Seen::Unknown };
    let Some(models) = list.get("data").and_then(Value::as_array) else { return Seen::Unknown };
    let ids: BTreeSet<String> = models
        .iter()
        .filter_map(|model| model.get("id").and_then(Value::as_str))
        .map(|id| id.trim().replace("@main", ""))
        .collect();
    let others = ids.iter().filter(|id| !id.is_empty() && *id != AUTO && *id != MESH).count();
    if ids.contains(MESH) && others >= OTHERS_MIN {
        Seen::Available
    } else {
        Seen::Unavailable
    }
}

/// Whether an error is the mesh's own: asking it again would not help.
pub fn is_failure(status: u16, body: &str) -> bool {
    let Ok(body) = crate::json::from_outside::<Value>(body.as_bytes()) else { return false };
    let says = |field: &str, words: &str| body.pointer(field).and_then(Value::as_str) == Some(words);
    (status == 503 && says("/error/message", TOO_FEW))
        || ((500..600).contains(&status) && says("/error/type", FAILURE_TYPE))
}

/// Whether a text without calls is a call that was written as text.
pub fn is_call_markup(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(16).collect::<String>().to_lowercase();
    MARKUP.iter().any(|markup| start.starts_with(markup))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(ids: &[&str]) -> Vec<u8> {
        let models: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        json!({"data": models}).to_string().into_bytes()
    }

    #[test]
    fn the_mesh_needs_itself_and_two_other_models() {
        assert_eq!(seen(&list(&["mesh", "a", "b"])), Seen::Available);
        assert_eq!(seen(&list(&[" mesh ", "a", "b@main", "auto"])), Seen::Available);
        for too_few in
            [&["mesh", "a"][..], &["a", "b", "c"], &["mesh", "a", "a@main"], &["mesh", "auto", "a"], &[]]
        {
            assert_eq!(seen(&list(too_few)), Seen::Unavailable, "{too_few:?}");
        }
        for none in [&b"not json"[..], b"{}", b"[]", b"{\"data\":7}", b""] {
            assert_eq!(seen(none), Seen::Unknown);
        }
    }

    #[test]
    fn it_is_used_after_two_probes_in_a_row_and_left_for_a_while_when_it_vanishes() {
        use Seen::{Available, Unavailable, Unknown};
        let mut mesh = Mesh::default();
        let mut now_ms = 0;
        let mut ask = |seen: Seen, after_ms: u64| {
            now_ms += after_ms;
            mesh.standing(now_ms).unwrap_or_else(|| mesh.probed(seen, now_ms))
        };
        let steps = [
            (Unavailable, 6_000, false),
            (Available, 6_000, false),
            (Unavailable, 6_000, false),
            (Available, 6_000, false),
            (Available, 6_000, true),
            (Unavailable, 1_000, true),
            (Unknown, 6_000, true),
            (Unavailable, 6_000, false),
            (Available, 29_999, false),
            (Available, 1, false),
            (Available, 6_000, true),
        ];
        for (at, (seen, after_ms, used)) in steps.into_iter().enumerate() {
            assert_eq!(ask(seen, after_ms), used, "step {at}");
        }
    }

    #[test]
    fn after_a_failure_it_is_not_even_probed_for_a_while() {
        let mut mesh = Mesh::default();
        mesh.probed(Seen::Available, 0);
        assert!(mesh.probed(Seen::Available, 6_000));
        mesh.failed(7_000);
        assert_eq!(mesh.standing(7_000 + COOLDOWN_MS - 1), Some(false));
        assert_eq!(mesh.standing(7_000 + COOLDOWN_MS), None);
        assert!(!mesh.probed(Seen::Available, 40_000), "it starts from nothing");
    }

    #[test]
    fn only_the_meshs_own_errors_are_its_failures() {
        let error = |fields: Value| json!({"error": fields}).to_string();
        assert!(is_failure(503, &error(json!({"message": TOO_FEW}))));
        assert!(is_failure(502, &error(json!({"type": "moa_failure", "message": "x"}))));
        assert!(!is_failure(502, &error(json!({"message": TOO_FEW}))));
        assert!(!is_failure(400, &error(json!({"type": "moa_failure"}))));
        assert!(!is_failure(503, &error(json!({"message": "busy"}))));
        assert!(!is_failure(503, "busy"));
    }

    #[test]
    fn calls_that_were_written_as_text_are_known_by_their_beginning() {
        for markup in ["<|tool_call|>", "  <TOOL_CALL>{}", "\n[tool_call] x"] {
            assert!(is_call_markup(markup), "{markup}");
        }
        for text in ["I use <tool_call>", "", "[tool]"] {
            assert!(!is_call_markup(text), "{text}");
        }
    }
}
