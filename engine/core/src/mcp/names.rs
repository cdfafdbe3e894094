//! Names of servers and tools: which are legal, and how the two become the one name a model sees.

use thiserror::Error;

/// Longest name of a server, or of a tool as its server calls it, in bytes.
pub const NAME_MAX_BYTES: usize = 128;

/// Longest name a tool may have towards a model, in bytes: providers refuse more.
pub const QUALIFIED_NAME_MAX_BYTES: usize = 64;

/// Stands between server and tool in a qualified name.
pub const SEPARATOR: &str = "__";

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// There is nothing in it.
    #[error("name is empty; give it 1 to {NAME_MAX_BYTES} bytes")]
    Empty,
    /// It has more than [`NAME_MAX_BYTES`] bytes.
    #[error("name has {bytes} bytes, more than {NAME_MAX_BYTES}; shorten it")]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// A character is not allowed.
    #[error("name {name:?} has the character {character:?}; use letters, digits, `_` and `-`")]
    Character {
        /// The name.
        name: String,
        /// The first character at fault.
        character: char,
    },
    /// It contains the separator, so that the qualified name could be read in two ways.
    #[error("name {name:?} contains `{SEPARATOR}`, which separates server from tool; use one `_`")]
    Separator {
        /// The name.
        name: String,
    },
    /// Server and tool are legal, and together too long.
    #[error(
        "qualified name {name:?} has {bytes} bytes, more than {QUALIFIED_NAME_MAX_BYTES}; \
         shorten the name of the server or of the tool",
        bytes = name.len()
    )]
    QualifiedTooLong {
        /// The qualified name.
        name: String,
    },
}

/// Checks the name of a server.
pub fn check_server_name(name: &str) -> Result<(), NameError> {
    check(name)
}

/// Checks the name of a tool as its server calls it.
pub fn check_bare_name(name: &str) -> Result<(), NameError> {
    check(name)
}

/// The name of a tool towards a model: server, separator, tool.
///
/// It cannot be taken apart again by looking for the separator (`a_` and `b` give the same as `a` and
/// `_b`); [`super::Catalogue::find`] knows the parts.
pub fn qualify(server: &str, bare: &str) -> Result<String, NameError> {
    let name = format!("{server}{SEPARATOR}{bare}");
    if name.len() > QUALIFIED_NAME_MAX_BYTES {
        return Err(NameError::QualifiedTooLong { name });
    }
    Ok(name)
}

/// Whether `bare` names a hook: a tool that the agent calls and no model ever sees.
pub fn is_hook(bare: &str) -> bool {
    bare.starts_with('_')
}

fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NAME_MAX_BYTES {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if let Some(character) = name.chars().find(|&c| !legal(c)) {
        let name = name.to_owned();
        return Err(NameError::Character { name, character });
    }
    if name.contains(SEPARATOR) {
        let name = name.to_owned();
        return Err(NameError::Separator { name });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_digits_dash_and_single_underscores_are_legal() {
        for name in ["a-b_c", "A9", "_Stop", "a_", &"x".repeat(128)] {
            assert_eq!(check_server_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn other_names_are_refused_with_their_reason() {
        assert_eq!(check_server_name(""), Err(NameError::Empty));
        assert_eq!(check_server_name(&"x".repeat(129)), Err(NameError::TooLong { bytes: 129 }));
        for (name, character) in [("a b", ' '), ("a.b", '.'), ("\u{e9}", '\u{e9}')] {
            let name = name.to_owned();
            assert_eq!(check_bare_name(&name.clone()), Err(NameError::Character { name, character }));
        }
        assert!(matches!(check_bare_name("x__y"), Err(NameError::Separator { .. })));
    }

    #[test]
    fn a_qualified_name_may_have_64_bytes() {
        let server = "s".repeat(30);
        assert_eq!(qualify(&server, &"t".repeat(32)).map(|n| n.len()), Ok(64));
        let error = qualify(&server, &"t".repeat(33)).expect_err("65 bytes");
        assert!(error.to_string().contains("65 bytes"), "{error}");
    }

    #[test]
    fn a_leading_underscore_makes_a_hook() {
        assert!(is_hook("_Stop"));
        assert!(!is_hook("say_"));
        assert_eq!(qualify("fake", "_Stop").as_deref(), Ok("fake___Stop"));
    }
}
