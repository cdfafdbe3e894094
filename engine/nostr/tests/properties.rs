//! What holds for any event, filter, text and input.

#![allow(clippy::unwrap_used)]

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use waxlog_nostr::auth::{check_authorization, relay_identity};
use waxlog_nostr::channel::{clean_name, ChannelId};
use waxlog_nostr::coordinate::Coordinate;
use waxlog_nostr::engram::{references, Body, Slug};
use waxlog_nostr::frame::{ClientFrame, RelayFrame};
use waxlog_nostr::mention::{blank_code, names, uris, Mentions};
use waxlog_nostr::nip44::ConversationKey;
use waxlog_nostr::observer::{Control, Merger, TelemetryFrame};
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::turn_metric::Payload;
use waxlog_nostr::{profile, project, thread, Draft, Event, EventId, Filter, Keys, PublicKey};

fn signer() -> Keys {
    Keys::parse(&format!("{:064x}", 7)).unwrap()
}

fn tags() -> impl Strategy<Value = Vec<Vec<String>>> {
    let name = prop_oneof![Just("e".to_owned()), Just("p".to_owned()), Just("a".to_owned()), any::<String>()];
    vec((option::of(name), vec(any::<String>(), 0..4)), 0..5).prop_map(|tags| {
        tags.into_iter().map(|(name, values)| name.into_iter().chain(values).collect()).collect()
    })
}

fn drafts() -> impl Strategy<Value = Draft> {
    (any::<u16>(), tags(), any::<String>(), any::<u64>())
        .prop_map(|(kind, tags, content, created_at)| Draft { kind, tags, content, created_at })
}

fn filters() -> impl Strategy<Value = Filter> {
    let ids = option::of(vec(any::<[u8; 32]>().prop_map(EventId::from_bytes), 0..3));
    let authors = option::of(vec(any::<[u8; 32]>().prop_map(PublicKey::from_bytes), 0..3));
    let letters = proptest::char::ranges(vec!['a'..='z', 'A'..='Z'].into());
    let tags = btree_map(letters, vec(any::<String>(), 0..3), 0..4);
    let kinds = option::of(vec(any::<u16>(), 0..3));
    let numbers = (option::of(any::<u64>()), option::of(any::<u64>()), option::of(any::<usize>()));
    let extensions = btree_map("[a-z_]{12,20}", any::<String>(), 0..3);
    (ids, authors, kinds, tags, numbers, option::of(any::<String>()), extensions).prop_map(
        |(ids, authors, kinds, tags, (since, until, limit), search, extensions)| {
            let extensions = extensions.into_iter().map(|(name, value)| (name, value.into())).collect();
            Filter { ids, authors, kinds, tags, since, until, limit, search, extensions }
        },
    )
}

/// Texts of the signs that mean something to one of the decoders, and any other texts.
fn inputs() -> impl Strategy<Value = String> {
    let sign = prop_oneof![
        Just("`"),
        Just("```"),
        Just("\n"),
        Just(" "),
        Just("@"),
        Just("nostr:npub1"),
        Just("é"),
        Just("[["),
        Just("]]"),
        Just("{"),
        Just("}"),
        Just("\""),
        Just("\\u"),
        Just(":"),
        Just(","),
        Just("["),
        Just("mem/"),
        Just("\"slug\":"),
        Just("\"EVENT\""),
        Just("Nostr "),
        Just("Ag=="),
        Just("ws://"),
    ];
    let signs = vec(prop_oneof![sign.prop_map(str::to_owned), any::<char>().prop_map(String::from)], 0..60);
    prop_oneof![signs.prop_map(|signs| signs.concat()), any::<String>()]
}

proptest! {
    #[test]
    fn any_event_that_was_signed_verifies_and_survives_json(draft in drafts()) {
        let event = signer().sign(draft);
        prop_assert_eq!(event.verify(), Ok(()));
        let read: Event = serde_json::from_str(&event.to_json()).unwrap();
        prop_assert_eq!(read, event);
    }

    #[test]
    fn an_event_with_any_byte_changed_does_not_verify(draft in drafts(), at: Index, byte in b' '..=b'~') {
        let event = signer().sign(draft);
        let mut json = event.to_json().into_bytes();
        let at = at.index(json.len());
        json[at] = byte;
        if let Ok(changed) = serde_json::from_slice::<Event>(&json) {
            prop_assert!(changed == event || changed.verify().is_err());
        }
    }

    #[test]
    fn any_filter_survives_json(filter in filters()) {
        let text = filter.to_json().to_string();
        prop_assert_eq!(Filter::from_json(&serde_json::from_str(&text).unwrap()), Ok(filter));
    }

    #[test]
    fn any_text_survives_encryption(text in ".{1,400}", other in 1_u64..) {
        let (agent, owner) = (signer(), Keys::parse(&format!("{other:064x}")).unwrap());
        let sealed = ConversationKey::new(&agent, &owner.public_key()).unwrap().encrypt(&text).unwrap();
        let opened = ConversationKey::new(&owner, &agent.public_key()).unwrap().decrypt(&sealed);
        prop_assert_eq!(opened, Ok(text));
    }

    #[test]
    fn a_sealed_text_with_any_character_changed_stays_closed(at: Index, sign in "[A-Za-z0-9+/=]") {
        let key = ConversationKey::new(&signer(), &signer().public_key()).unwrap();
        let sealed = key.encrypt_with("text", [9; 32]).unwrap();
        let at = at.index(sealed.len());
        let changed = format!("{}{sign}{}", &sealed[..at], &sealed[at + 1..]);
        prop_assert!(changed == sealed || key.decrypt(&changed).is_err());
    }

    #[test]
    fn blanked_code_has_the_length_and_the_lines_of_its_text(text in inputs()) {
        let blanked = blank_code(&text);
        prop_assert_eq!(blanked.len(), text.len());
        prop_assert_eq!(blanked.matches('\n').count(), text.matches('\n').count());
        prop_assert_eq!(blank_code(&blanked.replace('`', " ")), blanked.replace('`', " "));
    }

    #[test]
    fn no_decoder_panics(text in inputs(), known in vec(any::<String>(), 0..3)) {
        let _ = ClientFrame::parse(&text);
        let _ = RelayFrame::parse(&text);
        let _ = serde_json::from_str::<Event>(&text);
        let _ = (OwnerTag::from_json(&text), Body::parse(&text), Payload::parse(&text));
        let _ = (Control::parse(&text), TelemetryFrame::parse(&text), profile::name(&text));
        let _ = (text.parse::<Coordinate>(), text.parse::<ChannelId>(), text.parse::<Slug>());
        let _ = (Slug::expand(&text), references(&text), clean_name(&text), relay_identity(&text));
        let _ = (PublicKey::parse(&text), Keys::parse(&text), uris(&text));
        let _ = check_authorization(&text, &text, &text, text.as_bytes(), 0);
        let known: Vec<_> = known.iter().map(String::as_str).chain([text.as_str()]).collect();
        let _ = names(&text, &known);
        let _ = Mentions::read(&text, &[]).map(|mentions| mentions.resolve(&[], &[]));
        let key = ConversationKey::new(&signer(), &signer().public_key()).unwrap();
        let _ = key.decrypt(&text);
    }

    #[test]
    fn no_reader_of_tags_panics(draft in drafts()) {
        let event = signer().sign(draft);
        let _ = (thread::Thread::under(&event), thread::Thread::stored(&event), thread::Shown::of(&event));
        let _ = (thread::is_broadcast(&event), project::members(&event), ChannelId::of(&event));
        let _ = (waxlog_nostr::channel::Metadata::of(&event), waxlog_nostr::channel::members(&event));
        let _ = waxlog_nostr::observer::check_envelope(&event, event.created_at);
        let _ = waxlog_nostr::turn_metric::check_envelope(&event);
        let _ = waxlog_nostr::engram::check_envelope(&event);
    }

    #[test]
    fn a_telemetry_frame_of_any_payload_fits(texts in vec(("[a-é\"\\\\\n]{0,40}", 0_usize..4_000), 0..8)) {
        let payload: Vec<_> = texts.iter().map(|(text, times)| text.repeat(*times)).collect();
        let frame = TelemetryFrame::new(1, "t", "acp_read", payload.into());
        let json = frame.to_fitting_json();
        prop_assert!(json.len() <= waxlog_nostr::nip44::MAX_PLAINTEXT_BYTES);
        prop_assert!(json == frame.to_json() || frame.to_json().len() > waxlog_nostr::nip44::MAX_PLAINTEXT_BYTES);
        prop_assert!(TelemetryFrame::parse(&json).is_ok());
    }

    #[test]
    fn merging_loses_no_text_and_keeps_the_order(pieces in vec((0_u8..3, "[a-z]{0,4}"), 0..40)) {
        let mut merger = Merger::default();
        let mut out = Vec::new();
        for (seq, (message, text)) in pieces.iter().enumerate() {
            let update = serde_json::json!({"sessionUpdate": "agent_message_chunk", "messageId": message,
                "content": {"type": "text", "text": text}});
            let payload = serde_json::json!({"params": {"update": update}});
            let now = seq as u64 * 60;
            out.extend(merger.push(TelemetryFrame::new(seq as u64, "t", "acp_read", payload), now));
        }
        out.extend(merger.flush());
        prop_assert!(out.windows(2).all(|pair| pair[0].seq < pair[1].seq));
        for message in 0..3_u8 {
            let said: String = pieces.iter().filter(|piece| piece.0 == message).map(|piece| &*piece.1).collect();
            let update = |frame: &TelemetryFrame| frame.payload["params"]["update"].clone();
            let shown: String = out
                .iter()
                .map(update)
                .filter(|update| update["messageId"] == message)
                .map(|update| update["content"]["text"].as_str().unwrap_or_default().to_owned())
                .collect();
            prop_assert_eq!(shown, said);
        }
    }
}
