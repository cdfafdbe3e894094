//! Thinking effort: the seven words a user may choose from, and what each model family makes of them.

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use crate::dialect::Dialect;

/// How hard a model should think, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as the model knows.
    Minimal,
    /// A little.
    Low,
    /// The middle.
    Medium,
    /// A lot.
    High,
    /// More than a lot.
    Xhigh,
    /// All that the model has.
    Max,
}

impl Effort {
    /// All words, in order.
    pub const ALL: [Effort; 7] = [
        Effort::None,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::Xhigh,
        Effort::Max,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Xhigh => "xhigh",
            Effort::Max => "max",
        }
    }
}

/// What an Anthropic request says of thinking.
#[derive(Clone, Debug, PartialEq)]
pub struct Thinking {
    /// The `thinking` field.
    pub field: Value,
    /// The `output_config.effort` word, for families that adapt.
    pub output_effort: Option<&'static str>,
}

/// Smallest thinking budget that Anthropic takes, in tokens, and what must stay for the answer.
const THINKING_MIN_TOKENS: u32 = 1024;

/// What an Anthropic request to `model` says for `effort`; `None` where it says nothing.
pub fn anthropic(model: &str, effort: Effort, max_output_tokens: u32) -> Option<Thinking> {
    if effort < Effort::Low {
        return None;
    }
    let name = family_name(model);
    let starts = |names: &[&str]| {
        name.strip_prefix("claude-").is_some_and(|rest| names.iter().any(|n| rest.starts_with(n)))
    };
    if name.starts_with("claude-3") || name == "claude-opus-4-5" {
        let wanted = match effort {
            Effort::Low => 1024,
            Effort::Medium => 8192,
            _ => 32_768,
        };
        let budget = wanted.min(max_output_tokens.saturating_sub(THINKING_MIN_TOKENS));
        return (budget >= THINKING_MIN_TOKENS).then(|| Thinking {
            field: json!({"type": "enabled", "budget_tokens": budget}),
            output_effort: None,
        });
    }
    let level = if starts(&["opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "fable-5", "mythos-5"]) {
        effort
    } else if starts(&["opus-4-6", "sonnet-4-6", "mythos-preview"]) {
        if effort == Effort::Xhigh {
            Effort::High
        } else {
            effort
        }
    } else {
        return None;
    };
    Some(Thinking { field: json!({"type": "adaptive"}), output_effort: Some(level.as_str()) })
}

/// What an operator should know of the effort that a turn with `model` asks for: that it is another one than
/// was chosen, or none at all. `None` where it is what was chosen.
pub fn replaced(dialect: Dialect, model: &str, effort: Effort, max_output_tokens: u32) -> Option<String> {
    let said = match dialect {
        Dialect::Openrouter => effort.as_str(),
        Dialect::Chat | Dialect::Responses => openai(model, effort).as_str(),
        Dialect::Anthropic => match anthropic(model, effort, max_output_tokens) {
            Some(thinking) => thinking.output_effort.unwrap_or(effort.as_str()),
            None => "nothing",
        },
    };
    let chosen = effort.as_str();
    (said != chosen)
        .then(|| format!("BUZZ_AGENT_THINKING_EFFORT={chosen} does not fit {model}: {said} is sent instead"))
}

/// The name from the first `claude-` or `gpt-` on: gateways put their own words before it.
fn family_name(model: &str) -> &str {
    let lower = model.to_ascii_lowercase();
    let at = ["claude-", "gpt-"].iter().filter_map(|word| lower.find(word)).min();
    &model[at.unwrap_or(0)..]
}

/// What an OpenAI-shaped request to `model` says for `effort`: the nearest level that the family has.
pub fn openai(model: &str, effort: Effort) -> Effort {
    use Effort::{High, Low, Max, Medium, Minimal, None, Xhigh};
    let levels: &[Effort] = match openai_family(&model.to_ascii_lowercase()) {
        Some(Family::Pro) => &[High],
        Some(Family::V56) => &[None, Low, Medium, High, Xhigh, Max],
        Some(Family::V54or55) => &[None, Low, Medium, High, Xhigh],
        Some(Family::V51) => &[None, Low, Medium, High],
        Some(Family::Base) => &[Minimal, Low, Medium, High],
        Option::None => return if effort == Max { Xhigh } else { effort },
    };
    nearest(levels, effort)
}

fn nearest(levels: &[Effort], wanted: Effort) -> Effort {
    let twin = match wanted {
        Effort::None => Effort::Minimal,
        Effort::Minimal => Effort::None,
        other => other,
    };
    for exact in [wanted, twin] {
        if levels.contains(&exact) {
            return exact;
        }
    }
    let distance = |level: &Effort| (*level as i32 - wanted as i32).abs();
    // Ties go up: of two levels equally far, the greater one.
    levels.iter().copied().min_by_key(|l| (distance(l), -(*l as i32))).unwrap_or(wanted)
}

#[derive(Clone, Copy)]
enum Family {
    Pro,
    V56,
    V54or55,
    V51,
    Base,
}

fn openai_family(name: &str) -> Option<Family> {
    let has = |token: &str| {
        name.match_indices(token).any(|(at, _)| {
            let rest = &name[at + token.len()..];
            rest.is_empty() || rest.starts_with('-')
        })
    };
    let version = |n: &str| ["gpt-5.", "gpt5.", "gpt-5-", "gpt5-"].iter().any(|p| has(&format!("{p}{n}")));
    if version("pro") {
        Some(Family::Pro)
    } else if version("6") {
        Some(Family::V56)
    } else if version("5") || version("4") {
        Some(Family::V54or55)
    } else if version("1") {
        Some(Family::V51)
    } else {
        ["gpt-5", "gpt5"].iter().any(|token| is_base(name, token)).then_some(Family::Base)
    }
}

/// Whether `token` stands in `name` as the plain model: alone, before a word, a date or a build number,
/// but not before a short version number.
fn is_base(name: &str, token: &str) -> bool {
    name.match_indices(token).any(|(at, _)| {
        let rest = &name[at + token.len()..];
        let Some(suffix) = rest.strip_prefix('-') else { return rest.is_empty() };
        let digits = suffix.bytes().take_while(u8::is_ascii_digit).count();
        match (digits, suffix.as_bytes().get(digits)) {
            (0, _) | (4.., _) => true,
            (_, Some(next)) => next.is_ascii_alphabetic(),
            (_, None) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(word: &str) -> Effort {
        Effort::ALL.into_iter().find(|e| e.as_str() == word).expect("a word")
    }

    fn budget(model: &str, word: &str, cap: u32) -> Option<Value> {
        anthropic(model, effort(word), cap).map(|t| t.field["budget_tokens"].clone())
    }

    #[test]
    fn manual_families_get_a_budget_that_leaves_room_for_the_answer() {
        assert_eq!(budget("claude-3-7-sonnet", "high", 4096), Some(json!(3072)));
        assert_eq!(budget("claude-3-7-sonnet", "high", 2048), Some(json!(1024)));
        assert_eq!(budget("claude-3-7-sonnet", "high", 2047), None);
        assert_eq!(budget("claude-3-7-sonnet", "high", 65_536), Some(json!(32_768)));
        assert_eq!(budget("claude-3-7-sonnet", "low", 2048), Some(json!(1024)));
        assert_eq!(budget("claude-opus-4-5", "max", 65_536), Some(json!(32_768)));
        assert_eq!(budget("claude-opus-4-5-20251101", "max", 65_536), None);
    }

    #[test]
    fn adaptive_families_get_both_fields() {
        for (model, asked, said) in [
            ("claude-opus-4-7", "xhigh", "xhigh"),
            ("team-x-claude-sonnet-5", "max", "max"),
            ("claude-opus-4-6", "xhigh", "high"),
            ("databricks-claude-sonnet-4-6", "max", "max"),
        ] {
            let thinking = anthropic(model, effort(asked), 1024).expect(model);
            assert_eq!(thinking.output_effort, Some(said), "{model}");
            assert_eq!(thinking.field, json!({"type": "adaptive"}));
        }
    }

    #[test]
    fn other_families_and_the_two_lowest_words_say_nothing() {
        for model in
            ["claude-haiku-4-5", "claude-opus-4-9", "gpt-4o", "goose-opus-5", "Databricks-Claude-Opus-5"]
        {
            assert_eq!(anthropic(model, Effort::High, 32_768), None, "{model}");
        }
        assert_eq!(anthropic("claude-opus-4-7", Effort::None, 32_768), None);
    }

    #[test]
    fn the_openai_substitution_table() {
        let table = [
            ("none", ["high", "none", "none", "none", "minimal"]),
            ("minimal", ["high", "none", "none", "none", "minimal"]),
            ("xhigh", ["high", "xhigh", "xhigh", "high", "high"]),
            ("max", ["high", "max", "xhigh", "high", "high"]),
        ];
        for (asked, said) in table {
            for (model, want) in
                ["gpt-5-pro", "gpt-5.6", "gpt5-5", "gpt-5.1-2025-04-01", "gpt-5"].into_iter().zip(said)
            {
                assert_eq!(openai(model, effort(asked)).as_str(), want, "{model} {asked}");
            }
        }
    }

    #[test]
    fn an_effort_that_is_replaced_is_told() {
        let told = |dialect, model: &str, word| replaced(dialect, model, effort(word), 32_768);
        assert_eq!(told(Dialect::Chat, "gpt-5.1", "high"), None);
        assert_eq!(told(Dialect::Openrouter, "x", "max"), None);
        assert_eq!(told(Dialect::Anthropic, "claude-opus-4-7", "xhigh"), None);
        let text = told(Dialect::Responses, "gpt-5.1", "max").expect("replaced");
        assert!(text.contains("=max does not fit gpt-5.1: high is sent"), "{text}");
        let text = told(Dialect::Anthropic, "claude-opus-4-6", "xhigh").expect("replaced");
        assert!(text.contains("high is sent"), "{text}");
        assert!(told(Dialect::Anthropic, "llama", "low").expect("replaced").contains("nothing is sent"));
    }

    #[test]
    fn dates_and_builds_are_base_and_short_numbers_are_unknown() {
        for base in ["gpt-5-1106", "gpt-5-1106-preview", "gpt-5-4o", "gpt-5-mini", "x/gpt-5"] {
            assert_eq!(openai(base, Effort::None), Effort::Minimal, "{base}");
        }
        for unknown in ["gpt-5.10", "gpt-5-10", "gpt-5-10-preview", "gpt-5.50", "gpt-4o"] {
            assert_eq!(openai(unknown, Effort::None), Effort::None, "{unknown}");
            assert_eq!(openai(unknown, Effort::Max), Effort::Xhigh, "{unknown}");
        }
        assert_eq!(openai("databricks-gpt-5-5", Effort::Minimal), Effort::None);
        assert_eq!(openai("gpt-5.6-sol", Effort::Max), Effort::Max);
    }
}
