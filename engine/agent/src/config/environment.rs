//! The environment as a value: read once, handed to whoever needs it, made up in tests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

/// A snapshot of environment variables. Those whose name or value is not UTF-8 count as absent.
///
/// It may hold keys, so it does not print its values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// The environment of this process, as it is now.
    pub fn of_process() -> Self {
        Self::from_os(std::env::vars_os())
    }

    /// The value of `name`, if it is set: an empty value is one.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The value of `name`, unless it is absent or nothing but white space.
    pub fn get_filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.trim().is_empty())
    }

    fn from_os(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self { variables: variables.filter_map(text).collect() }
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let text = |(name, value): (N, V)| (name.into(), value.into());
        Self { variables: variables.into_iter().map(text).collect() }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn an_empty_value_is_set_and_a_blank_one_is_not_filled() {
        let env: Environment = [("A", ""), ("B", " x ")].into_iter().collect();
        assert_eq!((env.get("A"), env.get_filled("A")), (Some(""), None));
        assert_eq!((env.get("B"), env.get_filled("B")), (Some(" x "), Some(" x ")));
        assert_eq!(env.get("C"), None);
    }

    #[test]
    fn a_value_that_is_not_utf8_counts_as_absent() {
        let os = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let env = Environment::from_os([(os(b"A"), os(b"f\xffo")), (os(b"B"), os(b"b"))].into_iter());
        assert_eq!((env.get("A"), env.get("B")), (None, Some("b")));
    }

    #[test]
    fn the_debug_form_has_names_only() {
        let env: Environment = [("OPENAI_COMPAT_API_KEY", "sk-canary")].into_iter().collect();
        assert_eq!(format!("{env:?}"), r#"{"OPENAI_COMPAT_API_KEY"}"#);
    }
}
