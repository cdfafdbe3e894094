//! Rules: which events become prompts, and what the prompt calls them.

use std::collections::BTreeSet;

use evalexpr::{
    build_operator_tree, ContextWithMutableFunctions, ContextWithMutableVariables, EvalexprError,
    EvalexprResult, Function, HashMapContext, Node, Value,
};
use waxlog_nostr::{kind, Event, PublicKey};

use crate::settings::{Rule, Subscribe};

/// How many rules there may be.
pub const RULES_MAX: usize = 100;
/// The longest filter, in bytes. Filters have no loops, so this bounds their work as well.
pub const FILTER_MAX_BYTES: usize = 4_096;
/// The kinds that a mention may have.
pub const MENTION_KINDS: [u16; 3] = [kind::MESSAGE, 46010, 40007];

type Tree = Node;

/// Why rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Too many.
    #[error("{0} rules, at most {RULES_MAX} are taken")]
    TooMany(usize),
    /// A rule without a name.
    #[error("rule {0} has no name; give each rule a name of its own")]
    Nameless(usize),
    /// Two rules of one name.
    #[error("two rules are called {0:?}; give each rule a name of its own")]
    Twice(String),
    /// A filter over the limit.
    #[error("the filter of rule {name:?} has {bytes} bytes, at most {FILTER_MAX_BYTES} are taken")]
    LongFilter {
        /// The rule.
        name: String,
        /// Its filter's length.
        bytes: usize,
    },
    /// A filter that cannot be read.
    #[error("the filter of rule {name:?} cannot be read: {reason}")]
    BadFilter {
        /// The rule.
        name: String,
        /// What the parser says.
        reason: String,
    },
}

/// Rules that are ready for use.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<(Rule, Option<Tree>)>,
}

/// What the rules say of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It becomes a prompt that calls it so.
    Prompt(String),
    /// No rule takes it.
    Nothing,
    /// A rule's filter failed; later rules are not asked.
    Failed {
        /// The rule.
        rule: String,
        /// Why.
        reason: String,
    },
}

impl Rules {
    /// The rules of these settings: built-in ones, or the operator's own.
    pub fn new(subscribe: &Subscribe) -> Result<Self, RuleError> {
        let built_in = |name: &str, kinds: Option<Vec<u16>>, require_mention| Rule {
            name: name.to_owned(),
            channels: None,
            kinds,
            require_mention,
            filter: None,
            prompt_tag: name.to_owned(),
        };
        match subscribe {
            Subscribe::Mentions { kinds, by_mention, .. } => {
                Self::compile(&[built_in("@mention", Some(kinds.clone()), *by_mention)])
            }
            Subscribe::All { kinds, .. } => Self::compile(&[built_in("all", kinds.clone(), false)]),
            Subscribe::Rules(rules) => Self::compile(rules),
        }
    }

    fn compile(rules: &[Rule]) -> Result<Self, RuleError> {
        if rules.len() > RULES_MAX {
            return Err(RuleError::TooMany(rules.len()));
        }
        let mut names = BTreeSet::new();
        for (at, rule) in rules.iter().enumerate() {
            if rule.name.trim().is_empty() {
                return Err(RuleError::Nameless(at + 1));
            }
            if !names.insert(&rule.name) {
                return Err(RuleError::Twice(rule.name.clone()));
            }
        }
        let compiled = |rule: &Rule| {
            let tree = rule.filter.as_deref().map(|filter| tree(&rule.name, filter)).transpose()?;
            Ok((rule.clone(), tree))
        };
        Ok(Self { rules: rules.iter().map(compiled).collect::<Result<_, _>>()? })
    }

    /// What the first rule that holds says of an event of a channel.
    pub fn verdict(&self, event: &Event, channel: &str, agent: &PublicKey) -> Verdict {
        let hex = agent.to_hex();
        let is_named = event.tag_values("p").any(|named| named == hex);
        for (rule, tree) in &self.rules {
            let fits = rule.holds_in(channel)
                && rule.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind))
                && (is_named || !rule.require_mention);
            if !fits {
                continue;
            }
            match tree.as_ref().map_or(Ok(true), |tree| holds(tree, event, channel)) {
                Ok(true) => return Verdict::Prompt(rule.prompt_tag.clone()),
                Ok(false) => {}
                Err(error) => return Verdict::Failed { rule: rule.name.clone(), reason: error.to_string() },
            }
        }
        Verdict::Nothing
    }
}

impl Rule {
    fn holds_in(&self, channel: &str) -> bool {
        self.channels
            .as_ref()
            .is_none_or(|channels| channels.iter().any(|one| one.eq_ignore_ascii_case(channel)))
    }
}

/// What a channel is subscribed with: the kinds, and whether only what names the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The kinds; none are all.
    pub kinds: Option<Vec<u16>>,
    /// Whether the relay filters by the agent's key.
    pub by_mention: bool,
}

impl Subscribe {
    /// What a channel is subscribed with; `None` if nothing of it is wanted.
    pub fn interest(&self, channel: &str) -> Option<Interest> {
        let in_list = |list: &Option<Vec<String>>| {
            list.as_ref().is_none_or(|list| list.iter().any(|one| one.eq_ignore_ascii_case(channel)))
        };
        match self {
            Self::Mentions { kinds, by_mention, channels } => {
                in_list(channels).then(|| Interest { kinds: Some(kinds.clone()), by_mention: *by_mention })
            }
            Self::All { kinds, channels } => {
                in_list(channels).then(|| Interest { kinds: kinds.clone(), by_mention: false })
            }
            Self::Rules(rules) => {
                let fitting: Vec<&Rule> = rules.iter().filter(|rule| rule.holds_in(channel)).collect();
                let kinds: Option<BTreeSet<u16>> = fitting
                    .iter()
                    .map(|rule| rule.kinds.clone())
                    .collect::<Option<Vec<_>>>()
                    .map(|lists| lists.into_iter().flatten().collect());
                let by_mention = fitting.iter().all(|rule| rule.require_mention);
                let kinds = kinds.map(|kinds| kinds.into_iter().collect());
                (!fitting.is_empty()).then_some(Interest { kinds, by_mention })
            }
        }
    }
}

fn tree(name: &str, filter: &str) -> Result<Tree, RuleError> {
    if filter.len() > FILTER_MAX_BYTES {
        return Err(RuleError::LongFilter { name: name.to_owned(), bytes: filter.len() });
    }
    build_operator_tree(filter)
        .map_err(|error| RuleError::BadFilter { name: name.to_owned(), reason: error.to_string() })
}

fn holds(tree: &Tree, event: &Event, channel: &str) -> EvalexprResult<bool> {
    let mut context = HashMapContext::new();
    let mut set = |name: &str, value: Value| context.set_value(name.to_owned(), value);
    set("content", Value::from(event.content.clone()))?;
    set("author", Value::from(event.pubkey.to_hex()))?;
    set("kind", Value::Int(i64::from(event.kind)))?;
    set("channel_id", Value::from(channel.to_owned()))?;
    set("timestamp", Value::Int(i64::try_from(event.created_at).unwrap_or(i64::MAX)))?;
    let two = |test: fn(&str, &str) -> bool| {
        Function::new(move |argument: &Value| {
            let [text, part] = argument
                .as_fixed_len_tuple(2)?
                .try_into()
                .map_err(|_| EvalexprError::CustomMessage("two texts are needed".to_owned()))?;
            Ok(Value::Boolean(test(&text.as_string()?, &part.as_string()?)))
        })
    };
    context.set_function("str_contains".into(), two(|text, part| text.contains(part)))?;
    context.set_function("str_starts_with".into(), two(|text, part| text.starts_with(part)))?;
    context.set_function("str_ends_with".into(), two(|text, part| text.ends_with(part)))?;
    let length = Function::new(|argument: &Value| {
        Ok(Value::Int(i64::try_from(argument.as_string()?.len()).unwrap_or(i64::MAX)))
    });
    context.set_function("str_len".into(), length)?;
    tree.eval_boolean_with_context(&context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use waxlog_nostr::{EventId, Signature};

    const GENERAL: &str = "11111111-1111-4111-8111-111111111111";

    fn event(content: &str, names_agent: bool) -> Event {
        Event {
            id: EventId::from_bytes([1; 32]),
            pubkey: PublicKey::from_bytes([2; 32]),
            created_at: 5,
            kind: 9,
            tags: if names_agent { vec![vec!["p".into(), agent().to_hex()]] } else { vec![] },
            content: content.into(),
            sig: Signature::from_bytes([0; 64]),
        }
    }

    fn agent() -> PublicKey {
        PublicKey::from_bytes([1; 32])
    }

    fn rule(name: &str, filter: Option<&str>) -> Rule {
        Rule {
            name: name.into(),
            channels: None,
            kinds: None,
            require_mention: false,
            filter: filter.map(str::to_owned),
            prompt_tag: format!("tag of {name}"),
        }
    }

    fn verdict(rules: &[Rule], content: &str) -> Verdict {
        let rules = Rules::new(&Subscribe::Rules(rules.to_vec())).expect("sound rules");
        rules.verdict(&event(content, false), GENERAL, &agent())
    }

    #[test]
    fn the_first_rule_that_holds_names_the_event() {
        let rules = [rule("a", Some("str_contains(content, \"deploy\")")), rule("b", None)];
        assert_eq!(verdict(&rules, "please deploy"), Verdict::Prompt("tag of a".into()));
        assert_eq!(verdict(&rules, "hello"), Verdict::Prompt("tag of b".into()));
    }

    #[test]
    fn filters_know_the_event_and_four_functions() {
        for filter in [
            "kind == 9 && timestamp == 5 && str_len(content) == 3",
            "str_starts_with(content, \"a\") && str_ends_with(content, \"c\")",
            &format!("channel_id == \"{GENERAL}\""),
            &format!("author == \"{}\"", "02".repeat(32)),
        ] {
            assert_eq!(
                verdict(&[rule("a", Some(filter))], "abc"),
                Verdict::Prompt("tag of a".into()),
                "{filter}"
            );
        }
    }

    #[test]
    fn a_filter_that_fails_hides_what_comes_after_it() {
        let rules = [rule("a", Some("nonsense > 1")), rule("b", None)];
        assert!(matches!(verdict(&rules, "x"), Verdict::Failed { rule, .. } if rule == "a"));
    }

    #[test]
    fn unsound_rules_are_refused_with_their_name() {
        let refused = |rules: &[Rule]| Rules::new(&Subscribe::Rules(rules.to_vec())).unwrap_err();
        assert_eq!(refused(&[rule(" ", None)]), RuleError::Nameless(1));
        assert_eq!(refused(&[rule("a", None), rule("a", None)]), RuleError::Twice("a".into()));
        assert!(matches!(refused(&[rule("a", Some("(("))]), RuleError::BadFilter { .. }));
        let long = "1 ".repeat(3000);
        assert!(matches!(refused(&[rule("a", Some(&long))]), RuleError::LongFilter { bytes: 6000, .. }));
        let many: Vec<Rule> = (0..101).map(|n| rule(&n.to_string(), None)).collect();
        assert_eq!(refused(&many), RuleError::TooMany(101));
    }

    #[test]
    fn mentions_mode_wants_the_agent_named() {
        let subscribe = Subscribe::Mentions { kinds: vec![9], by_mention: true, channels: None };
        let rules = Rules::new(&subscribe).unwrap();
        let verdict = |event: &Event| rules.verdict(event, GENERAL, &agent());
        assert_eq!(verdict(&event("x", true)), Verdict::Prompt("@mention".into()));
        assert_eq!(verdict(&event("x", false)), Verdict::Nothing);
    }

    #[test]
    fn a_channel_is_subscribed_with_what_its_rules_need_together() {
        let kinds = |kinds: Option<Vec<u16>>, require_mention| Rule {
            kinds,
            require_mention,
            ..rule(&format!("{require_mention}"), None)
        };
        let interest = |rules: &[Rule]| Subscribe::Rules(rules.to_vec()).interest(GENERAL);
        let both = interest(&[kinds(Some(vec![9]), true), kinds(Some(vec![7]), false)]).unwrap();
        assert_eq!(both, Interest { kinds: Some(vec![7, 9]), by_mention: false });
        let wild = interest(&[kinds(Some(vec![9]), true), kinds(None, false)]).unwrap();
        assert_eq!(wild.kinds, None);
        let elsewhere = Rule { channels: Some(vec!["other".into()]), ..rule("a", None) };
        assert_eq!(interest(&[elsewhere]), None);
    }
}
