//! Ids that the agent makes up: a word and 16 hex digits of the system's randomness.

/// Draws an id that starts with `word` and an underscore.
pub fn draw(word: &str) -> String {
    let mut bytes = [0u8; 8];
    if getrandom::fill(&mut bytes).is_err() {
        // Uniqueness is all that is asked of an id, and the generator seeds itself from what it can get.
        fastrand::fill(&mut bytes);
    }
    format!("{word}_{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
}
