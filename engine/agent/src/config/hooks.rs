//! Which MCP servers may run hooks.

use std::collections::BTreeSet;

use super::environment::Environment;

/// The servers named by `MCP_HOOK_SERVERS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookServers {
    /// No server.
    None,
    /// Every server: the list is a single `*`.
    All,
    /// These. A `*` among other names is a name like any other.
    Named(BTreeSet<String>),
}

impl HookServers {
    /// Whether the server `name` may run hooks.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            HookServers::None => false,
            HookServers::All => true,
            HookServers::Named(names) => names.contains(name),
        }
    }

    /// Reads the list; it is never wrong, at most empty.
    pub(super) fn read(env: &Environment) -> Self {
        let list = env.get("MCP_HOOK_SERVERS").unwrap_or_default();
        let entries: Vec<&str> = list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
        match entries.as_slice() {
            [] => HookServers::None,
            ["*"] => HookServers::All,
            names => HookServers::Named(names.iter().map(|name| (*name).to_owned()).collect()),
        }
    }
}
