//! Content blocks of prompts and steers, and the text they become.

use serde_json::Value;

use super::Profile;
use crate::content::Part;
use crate::history::Item;

/// Largest text of one prompt, in bytes.
pub const PROMPT_MAX_BYTES: usize = 1_048_576;

/// One content block, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Plain text.
    Text(String),
    /// A link: the model sees its URI.
    ResourceLink(String),
    /// A text file that came with the prompt: its URI and content.
    Resource(String, String),
    /// An image: base64 data and MIME type.
    Image(String, String),
    /// A kind that is not advertised.
    Unsupported,
}

/// Why blocks are no prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// A block of a kind that was not advertised.
    #[error("prompt: unsupported content block (only text and resource_link are advertised)")]
    Unsupported,
    /// More text than a prompt may have.
    #[error("prompt: exceeds {PROMPT_MAX_BYTES} bytes")]
    TooLong,
}

/// Decodes a list of blocks; the error names the block and what it lacks.
pub fn decode(value: Option<&Value>) -> Result<Vec<Block>, String> {
    let list = match value {
        None => return Err("missing field `prompt`".to_owned()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err("`prompt` must be a list of content blocks".to_owned()),
    };
    list.iter().enumerate().map(|(index, block)| decode_one(index, block)).collect()
}

fn decode_one(index: usize, block: &Value) -> Result<Block, String> {
    let word = |key: &str| block.get(key).and_then(Value::as_str).map(str::to_owned);
    let needed = |key: &str| word(key).ok_or_else(|| format!("prompt[{index}]: missing field `{key}`"));
    match needed("type")?.as_str() {
        "text" => needed("text").map(Block::Text),
        "resource_link" => needed("uri").map(Block::ResourceLink),
        "image" => Ok(match (word("data"), word("mimeType")) {
            (Some(data), Some(mime)) => Block::Image(data, mime),
            _ => Block::Unsupported,
        }),
        "resource" => Ok(resource(block).unwrap_or(Block::Unsupported)),
        _ => Ok(Block::Unsupported),
    }
}

/// An embedded text; binary content has no form that every model takes.
fn resource(block: &Value) -> Option<Block> {
    let word = |key: &str| block.get("resource")?.get(key)?.as_str().map(str::to_owned);
    Some(Block::Resource(word("uri")?, word("text")?))
}

/// The text of `blocks`, joined with one line feed. Embedded texts count as advertised to clients of the
/// public standard only.
pub fn text(blocks: &[Block], profile: Profile) -> Result<String, PromptError> {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        parts.push(match block {
            Block::Text(text) => text.clone(),
            Block::ResourceLink(uri) => format!("[resource: {uri}]"),
            Block::Resource(uri, text) if profile == Profile::Standard => {
                format!("[resource: {uri}]\n{text}")
            }
            Block::Resource(..) | Block::Image(..) | Block::Unsupported => {
                return Err(PromptError::Unsupported)
            }
        });
    }
    Ok(parts.join("\n"))
}

/// What a prompt becomes in the history: its text, or its texts and images where a client of the public
/// standard sends some.
pub fn prompt_item(blocks: &[Block], profile: Profile) -> Result<Item, PromptError> {
    let has_images = blocks.iter().any(|block| matches!(block, Block::Image(..)));
    if profile == Profile::Harness || !has_images {
        return prompt_text(blocks, profile).map(Item::User);
    }
    let texts: Vec<Block> = blocks.iter().filter(|b| !matches!(b, Block::Image(..))).cloned().collect();
    prompt_text(&texts, profile)?;
    let part = |block: &Block| match block {
        Block::Image(data, mime) => Ok(Part::Image { data: data.clone(), mime: mime.clone() }),
        other => text(std::slice::from_ref(other), profile).map(Part::Text),
    };
    blocks.iter().map(part).collect::<Result<_, _>>().map(Item::UserParts)
}

/// The text of a prompt: as [`text`], within the size limit.
pub fn prompt_text(blocks: &[Block], profile: Profile) -> Result<String, PromptError> {
    let text = text(blocks, profile)?;
    if text.len() > PROMPT_MAX_BYTES {
        return Err(PromptError::TooLong);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn blocks(value: Value) -> Vec<Block> {
        decode(Some(&value)).expect("blocks")
    }

    #[test]
    fn texts_and_links_are_joined_by_one_line_feed() {
        let list =
            blocks(json!([{"type": "text", "text": "see"}, {"type": "resource_link", "uri": "file:///x"}]));
        assert_eq!(prompt_text(&list, Profile::Harness), Ok("see\n[resource: file:///x]".to_owned()));
        assert_eq!(prompt_text(&[], Profile::Harness), Ok(String::new()));
    }

    #[test]
    fn a_prompt_of_exactly_one_mebibyte_is_accepted() {
        let of = |size: usize| prompt_text(&[Block::Text("x".repeat(size))], Profile::Harness);
        assert!(of(PROMPT_MAX_BYTES).is_ok());
        assert_eq!(of(PROMPT_MAX_BYTES + 1), Err(PromptError::TooLong));
    }

    #[test]
    fn what_a_block_lacks_is_named() {
        for (value, needle) in [
            (json!([{}]), "prompt[0]: missing field `type`"),
            (json!([{"type": "text"}]), "`text`"),
            (
                json!([{"type": "text", "text": ""}, {"type": "resource_link"}]),
                "prompt[1]: missing field `uri`",
            ),
            (json!("x"), "must be a list"),
        ] {
            assert!(decode(Some(&value)).expect_err("refused").contains(needle), "{value}");
        }
    }

    #[test]
    fn images_are_taken_in_order_from_clients_of_the_standard() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let list = blocks(json!([{"type": "text", "text": "see"}, image, {"type": "text", "text": "this"}]));
        let wanted = Item::UserParts(vec![
            Part::Text("see".into()),
            Part::Image { data: "AAAA".into(), mime: "image/png".into() },
            Part::Text("this".into()),
        ]);
        assert_eq!(prompt_item(&list, Profile::Standard), Ok(wanted));
        assert_eq!(prompt_item(&list, Profile::Harness), Err(PromptError::Unsupported));
    }

    #[test]
    fn an_embedded_text_is_taken_from_clients_of_the_standard() {
        let text = json!({"uri": "file:///a.rs", "text": "fn main() {}"});
        let list = blocks(json!([{"type": "resource", "resource": text}]));
        let wanted = "[resource: file:///a.rs]\nfn main() {}".to_owned();
        assert_eq!(prompt_text(&list, Profile::Standard), Ok(wanted));
        assert_eq!(prompt_text(&list, Profile::Harness), Err(PromptError::Unsupported));
        let blob =
            blocks(json!([{"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAAA"}}]));
        assert_eq!(prompt_text(&blob, Profile::Standard), Err(PromptError::Unsupported));
    }

    #[test]
    fn other_kinds_are_not_advertised() {
        let list = blocks(json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]));
        assert_eq!(prompt_text(&list, Profile::Harness), Err(PromptError::Unsupported));
    }
}
