//! Values that must not be seen: keys and tokens.

use std::fmt;

/// A value that prints as `***` and cannot be serialized, so that no log line, error text or record holds it
/// by accident. Code that needs it says so with [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides `value`.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. What is made of it must be a secret again, or leave the process at once.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_stars_in_every_form() {
        let key = Secret::new("sk-canary".to_owned());
        assert_eq!(format!("{key} {key:?} {key:#?}"), "*** *** ***");
        assert_eq!(format!("{:?}", Some(&key)), "Some(***)");
        assert_eq!(key.expose(), "sk-canary");
    }
}
