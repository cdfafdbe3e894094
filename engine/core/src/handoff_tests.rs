use super::*;
use crate::content::Part;
use crate::history::{Assistant, Call, ToolResult};
use crate::session::tests::rig;

fn settings(window: u64, output: u32, history_bytes: u64) -> Settings {
    Settings {
        max_context_tokens: window,
        max_output_tokens: output,
        max_history_bytes: history_bytes,
        ..rig::settings()
    }
}

fn history(items: Vec<Item>) -> History {
    let mut history = History::default();
    items.into_iter().for_each(|item| history.push(item));
    history
}

fn user(text: &str) -> Item {
    Item::User(text.to_owned())
}

fn prompt(items: Vec<Item>, window: u64) -> String {
    let history = history(items);
    summary_prompt(&Handoff {
        count: 0,
        original_task: Some("task"),
        tools: &[],
        history: &history,
        max_context_tokens: window,
    })
}

/// The window that leaves `budget` bytes for snippets.
fn window_for(budget: usize) -> u64 {
    (prompt(vec![], 0).len() + budget) as u64 + u64::from(SUMMARY_MAX_OUTPUT_TOKENS)
}

/// The part between the history's title and the instructions.
fn shown(items: Vec<Item>, budget: usize) -> String {
    let prompt = prompt(items, window_for(budget));
    let (_, rest) = prompt.split_once("# Session History (oldest first)\n").expect("a title");
    rest.split_once("\n# Instructions\n").expect("instructions").0.to_owned()
}

#[test]
fn the_table_of_thresholds() {
    for (window, output, tokens) in [
        (200_000, 1000, 180_000),
        (100_000, 40_000, 60_000),
        (1000, 5000, 0),
        (200_000, 32_768, 167_232),
        (19, 1, 9),
    ] {
        assert_eq!(threshold_tokens(&settings(window, output, 1 << 24)), tokens);
    }
}

#[test]
fn before_any_report_the_history_budget_counts_as_well() {
    assert_eq!(threshold_bytes(&settings(200_000, 1000, 16 << 20)), 180_000);
    assert_eq!(threshold_bytes(&settings(200_000, 1000, 8192)), 7371);
    assert_eq!(threshold_bytes(&settings(200_000, 32_768, 16 << 20)), 167_232);
}

#[test]
fn the_whole_history_is_shown_if_it_fits() {
    let call = Call {
        id: "a".into(),
        name: "t__say".into(),
        arguments: serde_json::Map::new(),
        extra: serde_json::Map::new(),
    };
    let twice = Assistant { text: "look".into(), calls: vec![call.clone(), call], reasoning_details: None };
    let image = Part::Image { data: "AAAA".into(), mime: "image/png".into() };
    let result = |is_error, parts| Item::ToolResult(ToolResult { id: "a".into(), parts, is_error });
    let items = vec![
        user("one"),
        Item::Assistant(twice),
        result(false, vec![Part::Text("x".into()), image]),
        result(true, vec![Part::Text("no".into())]),
        Item::Assistant(Assistant::default()),
    ];
    let whole =
        "[user] one\n[assistant] look tool:t__say tool:t__say\n[tool] x\n[image: image/png, 4 base64 \
                 bytes]\n[tool_err] no\n[assistant] \n";
    assert_eq!(shown(items.clone(), whole.len()), whole);
    assert_ne!(shown(items, whole.len() - 1), whole);
}

#[test]
fn what_does_not_fit_is_counted_oldest_first() {
    let items = vec![user("1111"), user("2222"), user("3333")];
    let line = "[user] 3333\n".len();
    assert_eq!(
        shown(items.clone(), 2 * line),
        "(\u{2026} 1 older items omitted)\n[user] 2222\n[user] 3333\n"
    );
    assert_eq!(shown(items, 2 * line - 1), "(\u{2026} 2 older items omitted)\n[user] 3333\n");
}

#[test]
fn a_smaller_older_item_is_kept_after_a_bigger_one_was_left_out() {
    let items = vec![user("a"), user(&"b".repeat(100)), user("c")];
    assert_eq!(shown(items, 20), "(\u{2026} 1 older items omitted)\n[user] a\n[user] c\n");
}

#[test]
fn the_newest_item_is_kept_cut_if_it_must_be() {
    let cut = shown(vec![user("a"), user(&"b".repeat(100))], 20);
    assert_eq!(cut, "(\u{2026} 2 older items omitted)\n[user] bbbbbbbbbb\u{2026}");
    let none = shown(vec![user("a"), user(&"b".repeat(100))], 0);
    assert_eq!(none, "(\u{2026} 2 older items omitted)\n");
}

#[test]
fn the_budget_is_what_window_answer_and_frame_leave() {
    let frame = prompt(vec![], 0).len() as u64;
    for (window, budget) in [(25_000, 25_000 - 8192 - frame), (1000, 0)] {
        let prompt = prompt(vec![user(&"x".repeat(100_000))], window);
        let marker = "(\u{2026} 1 older items omitted)\n".len() as u64;
        assert_eq!(prompt.len() as u64, frame + marker + budget);
    }
}

#[test]
fn c35_cuts_fall_between_characters() {
    for (text, max, expected) in [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "ab\u{2026}"),
        ("abcdef", 4, "a\u{2026}"),
        ("abcdef", 3, "abc"),
        ("abcdef", 0, ""),
        ("\u{20ac}\u{20ac}\u{20ac}", 8, "\u{20ac}\u{2026}"),
        ("\u{20ac}\u{20ac}\u{20ac}", 5, "\u{2026}"),
        ("\u{20ac}\u{20ac}\u{20ac}", 3, "\u{20ac}"),
        ("\u{20ac}\u{20ac}\u{20ac}", 2, ""),
    ] {
        assert_eq!(cut(text, max), expected, "{text} {max}");
    }
}

#[test]
fn the_head_of_the_prompt() {
    let empty = History::default();
    let with = |count, original_task, tools: &[&str]| {
        let handoff = Handoff { count, original_task, tools, history: &empty, max_context_tokens: 100_000 };
        summary_prompt(&handoff).split("# Session History").next().expect("a head").to_owned()
    };
    assert_eq!(
        with(4, None, &[]),
        "[Internal handoff #5 \u{2014} context reset]\n\n# Original Task\n(unknown)\n\n# Available Tools\n(none)\n\n"
    );
    let names: Vec<String> = (0..23).map(|n| format!("t__{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(with(0, Some("x"), &names[..20]).ends_with(", t__18, t__19\n\n"));
    assert!(with(0, Some("x"), &names).ends_with(", t__18, t__19, \u{2026} (+3 more)\n\n"));
    let long = "y".repeat(20_000);
    let task = with(0, Some(&long), &[]);
    assert!(task.contains(&format!("# Original Task\n{}\u{2026}\n\n", "y".repeat(TASK_MAX_BYTES - 3))));
}

#[test]
fn the_replacement_quotes_hooks_under_their_servers() {
    assert_eq!(replacement(" s ", &[]), "[Context Handoff]\n s ");
    let outputs = [("t".to_owned(), "one".to_owned()), ("u".to_owned(), "two\n".to_owned())];
    assert_eq!(
        replacement("s", &outputs),
        "[Context Handoff]\ns\n\n[Post-compact hook output \u{2014} untrusted]\n[t]\none\n\n[u]\ntwo\n"
    );
}

#[test]
fn the_model_is_told_what_a_summary_must_hold() {
    for needed in
        ["original task", "accomplished", "decisions", "remains", "next step", "plain text", "8192 tokens"]
    {
        assert!(SUMMARY_SYSTEM_PROMPT.contains(needed), "{needed}");
    }
}
