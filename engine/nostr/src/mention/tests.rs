use super::*;
use crate::Keys;

fn keys(count: usize) -> Vec<PublicKey> {
    (0..count).map(|_| Keys::generate().public_key()).collect()
}

fn named(key: PublicKey, name: &str) -> Named {
    (key, Some(name.to_owned()))
}

#[test]
fn a_text_without_sign_or_key_needs_no_look_up() {
    let plain = Mentions::read("hello `@a`\n```\n@b\n```", &[]).unwrap();
    assert!(!plain.needs_members() && !plain.needs_names());
    let by_key = Mentions::read("hello", &keys(1)).unwrap();
    assert!(by_key.needs_members() && !by_key.needs_names());
    let by_name = Mentions::read("mail a@b", &[]).unwrap();
    assert!(by_name.needs_members() && by_name.needs_names());
}

#[test]
fn keys_come_first_then_uris_then_names_each_once() {
    let all = keys(3);
    let [explicit, by_uri, by_name] = all[..] else { unreachable!() };
    let text = format!("@Ann hi nostr:{} nostr:{} @ann", by_uri.to_npub(), explicit.to_npub());
    let mentions = Mentions::read(&text, &[explicit, explicit]).unwrap();
    let profiles = [named(by_name, "Ann"), (explicit, None)];
    assert_eq!(mentions.resolve(&all, &profiles), Ok(vec![explicit, by_uri, by_name]));
}

#[test]
fn code_calls_nobody() {
    let all = keys(1);
    let text = format!("`@Ann` `nostr:{}`\n```\n@Ann nostr:{}\n```\n", all[0].to_npub(), all[0].to_npub());
    let mentions = Mentions::read(&text, &[]).unwrap();
    assert_eq!(mentions.resolve(&all, &[named(all[0], "Ann")]), Ok(vec![]));
}

#[test]
fn an_unknown_name_is_an_error_unless_a_key_is_given() {
    let all = keys(2);
    let profiles = [named(all[0], "Will Pfleger")];
    let alone = Mentions::read("@Will hi", &[]).unwrap().resolve(&all, &profiles);
    assert_eq!(alone, Err(MentionError::Unknown("will".to_owned())));
    let beside = Mentions::read("@Will hi", &all[1..]).unwrap().resolve(&all, &profiles);
    assert_eq!(beside, Ok(vec![all[1]]));
}

#[test]
fn a_shared_name_lists_both_members_unless_a_key_is_given() {
    let all = keys(3);
    let profiles = [named(all[0], "Sam"), named(all[1], "sam"), named(all[2], "Ann")];
    let error = Mentions::read("@SAM hi", &[]).unwrap().resolve(&all, &profiles).unwrap_err();
    assert_eq!(error, MentionError::Ambiguous { name: "sam".to_owned(), candidates: all[..2].to_vec() });
    assert!(all[..2].iter().all(|key| error.to_string().contains(&key.to_hex())));
    let beside = Mentions::read("@Sam hi", &all[2..]).unwrap().resolve(&all, &profiles);
    assert_eq!(beside, Ok(vec![all[2]]));
}

#[test]
fn one_member_listed_twice_is_one_member() {
    let all = keys(1);
    let profiles = [named(all[0], "Sam"), named(all[0], "Sam")];
    let mentions = Mentions::read("@Sam", &[]).unwrap();
    assert_eq!(mentions.resolve(&all, &profiles), Ok(all));
}

#[test]
fn a_profile_of_no_member_gives_no_name() {
    let all = keys(2);
    let mentions = Mentions::read("@Sam", &[]).unwrap();
    let resolved = mentions.resolve(&all[..1], &[named(all[1], "Sam")]);
    assert_eq!(resolved, Err(MentionError::Unknown("sam".to_owned())));
}

#[test]
fn only_those_who_are_no_members_are_listed() {
    let all = keys(3);
    let mentions = Mentions::read("hi", &all).unwrap();
    assert_eq!(mentions.resolve(&all[..1], &[]), Err(MentionError::NotMembers(all[1..].to_vec())));
}

#[test]
fn fifty_mentions_pass_and_one_more_is_refused_however_it_is_made() {
    let all = keys(51);
    let fifty = Mentions::read("", &all[..50]).unwrap();
    assert_eq!(fifty.resolve(&all, &[]).map(|keys| keys.len()), Ok(50));
    assert_eq!(Mentions::read("", &all), Err(MentionError::TooMany(51)));
    let by_name = Mentions::read("@Ann", &all[..50]).unwrap();
    assert_eq!(by_name.resolve(&all, &[named(all[50], "Ann")]), Err(MentionError::TooMany(51)));
    assert_eq!(by_name.resolve(&all, &[named(all[0], "Ann")]).map(|keys| keys.len()), Ok(50));
    assert_eq!(tags(&all, None), Err(MentionError::TooMany(51)));
}

#[test]
fn the_tags_name_each_key_once_in_lower_case_without_the_sender() {
    let key: PublicKey = Keys::generate().public_key().to_hex().to_uppercase().parse().unwrap();
    let sender = Keys::generate().public_key();
    let made = tags(&[key, sender, key], Some(&sender)).unwrap();
    assert_eq!(made, [["p".to_owned(), key.to_hex().to_lowercase()]]);
    assert_eq!(tags(&[key, sender], None).unwrap().len(), 2);
}
