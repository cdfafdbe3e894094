//! Mutations of an input: of its bytes, of its lines, and of the JSON that it holds.

use serde_json::{json, Map, Value};

use crate::dice::Dice;

/// Largest input that a mutation makes, in bytes.
const INPUT_MAX_BYTES: usize = 65_536;
/// Mutations of one input.
const STEPS_MAX: usize = 6;
/// Pieces that decoders look for.
const WORDS: [&[u8]; 12] = [
    b"null",
    b"\"\"",
    b"-1",
    b"18446744073709551616",
    b"1e400",
    b"\\ud800",
    b"\xff",
    b"\xef\xbb\xbf",
    b"[[[[[[",
    b"\n",
    b"{}",
    b"\x00",
];

/// A mutation of `input`; `other` lends pieces.
pub fn mutate(input: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..dice.size(1..STEPS_MAX + 1) {
        if dice.chance(600) {
            bytes = mutate_json(&bytes, dice).unwrap_or(bytes);
        } else {
            mutate_bytes(&mut bytes, other, dice);
        }
    }
    bytes.truncate(INPUT_MAX_BYTES);
    bytes
}

fn mutate_bytes(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let at = dice.size(0..bytes.len() + 1);
    let end = (at + dice.size(0..17)).min(bytes.len());
    match dice.size(0..6) {
        0 if at < bytes.len() => bytes[at] = dice.byte(),
        1 => drop(bytes.drain(at..end)),
        2 => drop(bytes.splice(at..at, dice.pick(&WORDS).iter().copied())),
        3 => {
            let twice = bytes[at..end].to_vec();
            bytes.splice(at..at, twice);
        }
        4 if !other.is_empty() => {
            let from = dice.size(0..other.len());
            let piece = &other[from..(from + dice.size(0..65)).min(other.len())];
            bytes.splice(at..end, piece.iter().copied());
        }
        _ => bytes.truncate(at),
    }
}

/// Changes one value in the JSON of one line; nothing if the line is none.
fn mutate_json(bytes: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = dice.size(0..lines.len());
    if lines.len() > 1 && dice.chance(200) {
        let with = dice.size(0..lines.len());
        lines.swap(at, with);
        return Some(lines.join(&b'\n'));
    }
    let mut value: Value = serde_json::from_slice(&lines[at]).ok()?;
    change(&mut value, dice);
    lines[at] = value.to_string().into_bytes();
    Some(lines.join(&b'\n'))
}

/// Walks down by chance and changes what it ends at.
fn change(value: &mut Value, dice: &mut Dice) {
    if dice.chance(750) {
        match value {
            Value::Array(list) if !list.is_empty() => {
                let at = dice.size(0..list.len());
                return change(&mut list[at], dice);
            }
            Value::Object(map) if !map.is_empty() => {
                let at = dice.size(0..map.len());
                if let Some(inner) = map.values_mut().nth(at) {
                    return change(inner, dice);
                }
            }
            _ => {}
        }
    }
    match value {
        Value::Array(list) if dice.chance(500) => change_list(list, dice),
        Value::Object(map) if dice.chance(500) => change_keys(map, dice),
        _ => *value = odd(value, dice),
    }
}

fn change_list(list: &mut Vec<Value>, dice: &mut Dice) {
    match list.is_empty() {
        true => list.push(Value::Null),
        false => {
            let at = dice.size(0..list.len());
            if dice.chance(500) {
                list.remove(at);
            } else {
                list.insert(at, list[at].clone());
            }
        }
    }
}

fn change_keys(map: &mut Map<String, Value>, dice: &mut Dice) {
    let key = map.keys().nth(dice.size(0..map.len().max(1))).cloned().unwrap_or_default();
    let value = map.remove(&key).unwrap_or_default();
    match dice.size(0..3) {
        0 => {}
        1 => drop(map.insert(format!("{key}x"), value)),
        _ => {
            map.insert(key, odd(&value, dice));
            map.insert("extra".to_owned(), value);
        }
    }
}

/// A value that decoders may not expect.
fn odd(value: &Value, dice: &mut Dice) -> Value {
    match dice.size(0..12) {
        0 => Value::Null,
        1 => json!(u64::MAX),
        2 => json!(-1),
        3 => json!(0.5),
        4 => json!(""),
        5 => json!("\u{0}\u{1f41d}\n"),
        6 => json!([]),
        7 => json!({}),
        8 => json!(true),
        9 => json!([value, value]),
        10 => json!("x".repeat(dice.size(0..3_000))),
        _ => json!(dice.within(0..100)),
    }
}
