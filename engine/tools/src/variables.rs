//! The variables that commands get: those of the server without its secrets, with the shim folder first on
//! `PATH` and git's settings.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use waxlog_core::provider::Provider;

/// The variable that holds the key for git; see [`crate::shims`].
pub(crate) const GIT_KEY_VARIABLE: &str = "NOSTR_PRIVATE_KEY";

/// Whether the value of a variable is none of a command's business: the key for git, which goes to a file, and
/// the keys of model providers, which no command needs.
pub(crate) fn is_withheld(name: &OsStr) -> bool {
    name == GIT_KEY_VARIABLE || Provider::all().any(|provider| name == provider.spec().key_variable)
}

/// A set of variables. It may hold keys, so it does not print its values.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    values: BTreeMap<OsString, OsString>,
}

impl Variables {
    /// The variables of this process that a command may see.
    pub(crate) fn of_process() -> Self {
        std::env::vars_os().filter(|(name, _)| !is_withheld(name)).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.values.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The value of `name` if it is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.to_str()
    }

    pub(crate) fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.values.insert(name.into(), value.into());
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<OsString> {
        self.values.remove(OsStr::new(name))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.values.iter()
    }
}

impl FromIterator<(OsString, OsString)> for Variables {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self { values: variables.into_iter().collect() }
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_providers_and_of_git_are_withheld_and_nothing_else() {
        for name in ["ANTHROPIC_API_KEY", "OPENAI_COMPAT_API_KEY", "OPENROUTER_API_KEY", "DATABRICKS_TOKEN"] {
            assert!(is_withheld(OsStr::new(name)), "{name}");
        }
        assert!(is_withheld(OsStr::new("NOSTR_PRIVATE_KEY")));
        for name in ["BUZZ_PRIVATE_KEY", "BUZZ_AUTH_TAG", "PATH", "PROJECT_API_KEY"] {
            assert!(!is_withheld(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn values_are_not_printed() {
        let variables: Variables = [("A".into(), "canary".into())].into_iter().collect();
        assert_eq!(format!("{variables:?}"), r#"{"A"}"#);
    }
}
