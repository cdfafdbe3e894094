//! Prompts, behaviour by behaviour.

use waxlog_nostr::{Event, EventId, PublicKey, Signature};

use super::context::{assemble, Wanted};
use super::*;

const GENERAL: &str = "11111111-1111-4111-8111-111111111111";

fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

fn agent() -> PublicKey {
    key(1)
}

fn event(number: u8, author: u8, tags: &[&[&str]]) -> Event {
    Event {
        id: EventId::from_bytes([number; 32]),
        pubkey: key(author),
        created_at: u64::from(number),
        kind: 9,
        tags: tags.iter().map(|tag| tag.iter().map(|part| (*part).to_owned()).collect()).collect(),
        content: format!("text {number}"),
        sig: Signature::from_bytes([0; 64]),
    }
}

fn hex(number: u8) -> String {
    EventId::from_bytes([number; 32]).to_hex()
}

fn batch(events: Vec<Event>) -> Batch {
    Batch { channel: GENERAL.into(), events: queued(events), cancelled: vec![], why: None }
}

fn queued(events: Vec<Event>) -> Vec<Queued> {
    events.into_iter().map(|event| Queued { event, tag: "@mention".into(), received_ms: 0 }).collect()
}

fn place(kind: ChannelKind) -> Place<'static> {
    Place { id: GENERAL, name: Some("general"), kind }
}

fn ask(batch: &Batch, kind: ChannelKind, people: &People) -> Vec<String> {
    blocks(&Asked { agent: agent(), batch, place: place(kind), people, context: None, legacy: None })
}

fn people(agents: &[u8]) -> People {
    agents.iter().map(|number| (key(*number), Person { label: None, is_agent: true })).collect()
}

#[test]
fn a_single_event_is_a_context_and_an_event() {
    let blocks = ask(&batch(vec![event(5, 2, &[])]), ChannelKind::Stream, &People::default());
    assert_eq!(blocks.len(), 2);
    assert!(blocks[0].starts_with("[Context]\nScope: channel\nChannel: general (#1111"));
    assert!(blocks[1].starts_with("[Buzz event: @mention]\nEvent ID: 0505"));
    assert!(!blocks[1].contains("--- Event"));
}

#[test]
fn several_events_are_counted_and_numbered() {
    let blocks =
        ask(&batch(vec![event(5, 2, &[]), event(6, 2, &[])]), ChannelKind::Stream, &People::default());
    assert!(
        blocks[1].starts_with("[Buzz events \u{2014} 2 events]\n\n--- Event 1 (@mention) ---\nEvent ID: 05")
    );
    assert!(blocks[1].contains("\n\n--- Event 2 (@mention) ---\n"));
}

#[test]
fn the_last_event_decides_on_the_scope() {
    let (root, plain) = (hex(9), event(6, 2, &[]));
    let reply = event(5, 2, &[&["e", &root, "", "reply"]]);
    let scope = |events: Vec<Event>, kind| {
        let text = ask(&batch(events), kind, &People::default())[0].clone();
        text.lines().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(scope(vec![reply.clone(), plain.clone()], ChannelKind::Stream), "Scope: channel");
    assert_eq!(scope(vec![plain, reply.clone()], ChannelKind::Stream), "Scope: thread");
    assert_eq!(scope(vec![reply], ChannelKind::Dm), "Scope: dm");
}

#[test]
fn a_person_is_answered_at_the_root_and_agents_among_themselves_are_not_anchored() {
    let (root, parent) = (hex(8), hex(9));
    let tags: [&[&str]; 2] = [&["e", &root, "", "root"], &["e", &parent, "", "reply"]];
    let anchor =
        |event: &Event, people: &People| place::reply_anchor(&place(ChannelKind::Stream), event, people);
    assert_eq!(anchor(&event(5, 2, &tags), &People::default()).as_deref(), Some(root.as_str()));
    assert_eq!(anchor(&event(5, 2, &[]), &People::default()), Some(hex(5)));
    assert_eq!(anchor(&event(5, 2, &[]), &people(&[2])), None);
    assert_eq!(anchor(&event(5, 2, &tags), &people(&[2])), None);
    let names_a_person = event(5, 2, &[&["p", &key(3).to_hex()]]);
    assert_eq!(anchor(&names_a_person, &people(&[2])), Some(hex(5)));
    let names_the_agent = event(5, 2, &[&["p", &agent().to_hex()]]);
    assert_eq!(anchor(&names_the_agent, &people(&[2])), Some(hex(5)), "nobody says that it is one");
    assert_eq!(anchor(&names_the_agent, &people(&[1, 2])), None);
}

#[test]
fn a_direct_message_is_anchored_only_as_a_reply() {
    let root = hex(8);
    let anchor = |event: &Event| place::reply_anchor(&place(ChannelKind::Dm), event, &People::default());
    assert_eq!(anchor(&event(5, 2, &[])), None);
    assert_eq!(anchor(&event(5, 2, &[&["e", &root, "", "reply"]])), Some(hex(5)));
}

#[test]
fn the_parent_is_named_only_beside_another_root() {
    let (root, parent) = (hex(8), hex(9));
    let context = |tags: &[&[&str]]| {
        ask(&batch(vec![event(5, 2, tags)]), ChannelKind::Stream, &People::default())[0].clone()
    };
    let nested = context(&[&["e", &root, "", "root"], &["e", &parent, "", "reply"]]);
    assert!(nested.contains(&format!("Thread root: {root}\nParent: {parent}\n")));
    assert!(!context(&[&["e", &root, "", "reply"]]).contains("Parent:"));
}

#[test]
fn a_merged_batch_has_both_parts_and_a_note() {
    let mut merged = batch(vec![event(6, 2, &[]), event(7, 2, &[])]);
    merged.cancelled = queued(vec![event(5, 2, &[])]);
    let headings = |why| {
        let merged = Batch { why, ..merged.clone() };
        let blocks = ask(&merged, ChannelKind::Stream, &People::default());
        blocks[1..]
            .iter()
            .map(|block| block.lines().next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let steer = headings(Some(Why::Steer));
    assert_eq!(steer[0], "[What you were working on]");
    assert_eq!(steer[1], "[New messages \u{2014} arrived while you were working \u{2014} 2 events]");
    assert!(steer[2].starts_with("Note:"));
    assert_eq!(headings(None), steer);
    let interrupt = headings(Some(Why::Interrupt));
    assert_eq!(interrupt[0], "[Previous request \u{2014} interrupted before completion]");
    assert_eq!(interrupt[1], "[New request \u{2014} supersedes previous \u{2014} 2 events]");
}

#[test]
fn an_agent_without_a_system_prompt_gets_its_parts_first() {
    let batch = batch(vec![event(5, 2, &[])]);
    let prompts =
        Prompts { base: Some("be\n\n".into()), system: Some("brief".into()), team: Some(" ".into()) };
    let legacy = Legacy { prompts: &prompts, core: Some("[Agent Memory]\nx"), canvas: None };
    let asked = Asked {
        agent: agent(),
        batch: &batch,
        place: place(ChannelKind::Stream),
        people: &People::default(),
        context: None,
        legacy: Some(legacy),
    };
    assert_eq!(blocks(&asked)[..3], ["[Base]\nbe", "[System]\nbrief", "[Agent Memory]\nx"]);
}

#[test]
fn a_slash_command_comes_first_whoever_is_named_before_it() {
    let mut known = People::default();
    known.insert(key(4), Person { label: Some("Eva Two".into()), is_agent: true });
    let command = |content: &str| {
        let mut one = event(5, 2, &[]);
        one.content = content.into();
        let blocks = ask(&batch(vec![one]), ChannelKind::Stream, &known);
        (blocks.len() == 3).then(|| blocks[0].clone())
    };
    for (content, wanted) in [
        ("/init", "/init"),
        ("@Eva /goal x", "/goal x"),
        ("@eva two @b /goal", "/goal"),
        ("nostr:npub1abc /x y", "/x y"),
    ] {
        assert_eq!(command(content).as_deref(), Some(wanted), "{content}");
    }
    for content in ["say /x", "/", "//x", "/.x", "@ /x", "a@b.c /x"] {
        assert_eq!(command(content), None, "{content}");
    }
}

#[test]
fn a_label_has_no_control_characters_and_an_end() {
    let mut profile = event(5, 2, &[&["auth", "a", "", "b"]]);
    profile.kind = 0;
    profile.content = format!(r#"{{"display_name":"A\nnn{}","nip05":"a@b"}}"#, "x".repeat(80));
    let person = Person::of(&profile);
    assert_eq!(person.label.map(|label| label.chars().count()), Some(64));
    assert!(person.is_agent);
    profile.content = r#"{"display_name":" ","name":"n","nip05":"a@b"}"#.into();
    assert_eq!(Person::of(&profile).label.as_deref(), Some("a@b"));
}

fn thread(replies: &[(u8, u8)], limit: usize) -> Context {
    let root = event(1, 2, &[]);
    let found = replies.iter().map(|(number, author)| event(*number, *author, &[])).chain([root]).collect();
    assemble(Wanted::Thread(EventId::from_bytes([1; 32])), found, agent(), limit)
        .expect("something was found")
}

#[test]
fn a_long_thread_keeps_the_root_the_newest_and_the_agents_own() {
    let mut context = thread(&[(2, 1), (3, 2), (4, 2), (5, 2)], 2);
    assert_eq!(context.uncounted(), Some(&EventId::from_bytes([1; 32])));
    let text = context.section(&People::default());
    assert!(text.starts_with("[Thread Context (3 of 5 messages, truncated)]"), "{text}");
    assert!(text.contains("text 1") && text.contains("text 2") && text.contains("text 5"));
    context.counted(9);
    assert!(context.section(&People::default()).contains("3 of 10"));
    context.counted(3);
    assert!(context.section(&People::default()).contains("3 of 10"));
}

#[test]
fn a_short_thread_is_whole() {
    let context = thread(&[(2, 2), (2, 2), (3, 2)], 2);
    assert_eq!(context.uncounted(), None);
    assert!(context.section(&People::default()).starts_with("[Thread Context (3 of 3 messages)]"));
}

#[test]
fn a_direct_conversation_shows_the_latest() {
    let found = |count: u8| (0..count).map(|number| event(number, 2, &[])).collect();
    let heading = |count, limit| {
        assemble(Wanted::Conversation, found(count), agent(), limit)
            .map(|context| context.section(&People::default()).lines().next().unwrap_or_default().to_owned())
    };
    assert_eq!(heading(2, 3).as_deref(), Some("[Conversation Context (2 of 2 messages)]"));
    assert_eq!(heading(3, 3).as_deref(), Some("[Conversation Context (3 of 4 messages, truncated)]"));
    assert_eq!(heading(0, 3), None);
}

#[test]
fn a_canvas_is_told_in_four_lines() {
    let mut canvas = event(5, 2, &[&["h", GENERAL]]);
    canvas.kind = 40100;
    let section = canvas_section(std::slice::from_ref(&canvas), GENERAL).unwrap();
    assert_eq!(section.lines().count(), 4);
    assert!(section.contains("Last modified: 1970-01-01T00:00:05Z\n"), "{section}");
    let none = |change: &dyn Fn(&mut Event)| {
        let mut changed = canvas.clone();
        change(&mut changed);
        canvas_section(&[changed], GENERAL)
    };
    assert_eq!(none(&|canvas| canvas.content = " \n".into()), None);
    assert_eq!(none(&|canvas| canvas.kind = 9), None);
    assert_eq!(none(&|canvas| canvas.tags.clear()), None);
    assert_eq!(none(&|canvas| canvas.created_at = u64::MAX), None);
    assert_eq!(canvas_section(&[], GENERAL), None);
}

#[test]
fn the_workspace_is_told_of_for_a_real_folder_and_with_a_base_only() {
    let prompts = |base: Option<&str>| Prompts { base: base.map(str::to_owned), system: None, team: None };
    let prompt =
        |cwd, base| system_prompt(&SystemParts { cwd, prompts: &prompts(base), core: None, canvas: None });
    assert!(prompt("/home/a", Some("b")).unwrap().starts_with("[Workspace]\n"));
    assert_eq!(prompt("/", Some("b")).as_deref(), Some("[Base]\nb"));
    assert_eq!(prompt("a", Some("b")).as_deref(), Some("[Base]\nb"));
    assert_eq!(prompt("/home/a", None), None);
}

#[test]
fn the_base_prompt_teaches_what_an_agent_must_know() {
    let commands = [
        "BUZZ_RELAY_URL",
        "BUZZ_PRIVATE_KEY",
        "BUZZ_AUTH_TAG",
        "`buzz <group> --help`",
        "--content -",
        "--mention <hex-or-npub>",
        "mention_pubkeys",
        "buzz messages send",
        "buzz channels add-member",
        "buzz agents draft-create",
        "buzz agents draft-update",
        "buzz feed get",
        "buzz messages search --query",
        "buzz messages get --channel <UUID> --since <ts>",
        "mem/<topic>",
        "RESEARCH/",
        "OUTBOX/",
        ".scratch/",
        "git rev-parse HEAD",
        "--channel <current-channel-uuid>",
    ];
    for command in commands {
        assert!(BASE.contains(command), "{command}");
    }
}

#[test]
fn a_steer_is_one_text_with_its_heading_and_its_note() {
    let text = steer_text(GENERAL, &queued(vec![event(5, 2, &[])])[0]);
    assert!(text.starts_with(
        "[New message \u{2014} arrived while you were working]\n\n[Buzz event: @mention]\nEvent ID: 05"
    ));
    assert!(text.contains(&format!("Channel: {GENERAL}\n")));
    assert!(text.contains("\n\nNote: "));
}
