//! The tools of a session: every server's, under names that are unique.

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use thiserror::Error;

use super::listing::ToolSpec;
use super::names::{check_bare_name, check_server_name, is_hook, qualify, NameError};

/// Most MCP servers in a session.
pub const SERVERS_MAX: usize = 16;

/// Most tools in a session, over all servers, hooks included.
pub const TOOLS_MAX: usize = 128;

/// The tools of a session as they were when it was opened: what a model is offered, and where each call goes.
///
/// Servers that are started again do not change it. It is part of the session's first record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// The servers, in the order in which the client named them.
    pub servers: Vec<String>,
    /// Their tools: by server, then as the server listed them.
    pub tools: Vec<Tool>,
}

/// One tool of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The name towards a model and a client.
    pub qualified: String,
    /// Whose it is: an index into [`Catalogue::servers`].
    pub server: usize,
    /// The name towards its server.
    pub bare: String,
    /// What it does, cut to its limit.
    pub description: String,
    /// The JSON schema of its arguments, or `{}` where that was too large.
    pub schema: Value,
    /// Called by the agent only, never offered to a model.
    pub hook: bool,
}

/// Why a session cannot have these servers and tools.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CatalogueError {
    /// More than [`SERVERS_MAX`].
    #[error("too many MCP servers: {count}, at most {SERVERS_MAX}; leave some out")]
    TooManyServers {
        /// How many the client named.
        count: usize,
    },
    /// More than [`TOOLS_MAX`].
    #[error(
        "too many tools: server {server:?} brings the session to {count}, at most {TOOLS_MAX}; \
         leave a server out"
    )]
    TooManyTools {
        /// Whose tools exceed the limit.
        server: String,
        /// How many there would be with them.
        count: usize,
    },
    /// A server's name is not legal.
    #[error("invalid MCP server name: {0}")]
    ServerName(NameError),
    /// Two servers have one name.
    #[error("duplicate MCP server {name:?}; give each its own name")]
    DuplicateServer {
        /// The name.
        name: String,
    },
    /// A tool's name is not legal.
    #[error("invalid tool name from server {server:?}: {error}")]
    ToolName {
        /// The server that lists it.
        server: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// Two tools have one qualified name.
    #[error("duplicate tool {qualified:?} from server {server:?}; rename the server or the tool")]
    DuplicateTool {
        /// The name.
        qualified: String,
        /// The server that lists it second.
        server: String,
    },
}

impl Catalogue {
    /// The catalogue of `servers`, each with the tools it lists.
    pub fn build(servers: Vec<(String, Vec<ToolSpec>)>) -> Result<Self, CatalogueError> {
        check_server_count(servers.len())?;
        let mut catalogue = Self::default();
        for (name, tools) in servers {
            catalogue.add(&name, tools)?;
        }
        Ok(catalogue)
    }

    /// Checks that a server of this name may be added: before it is started, for that has effects.
    pub fn check_server(&self, name: &str) -> Result<(), CatalogueError> {
        check_server_count(self.servers.len() + 1)?;
        check_server_name(name).map_err(CatalogueError::ServerName)?;
        if self.servers.iter().any(|server| server == name) {
            let name = name.to_owned();
            return Err(CatalogueError::DuplicateServer { name });
        }
        Ok(())
    }

    /// Adds a server and its tools; after an error, the catalogue is of no use.
    pub fn add(&mut self, server: &str, tools: Vec<ToolSpec>) -> Result<(), CatalogueError> {
        self.check_server(server)?;
        let count = self.tools.len() + tools.len();
        if count > TOOLS_MAX {
            let server = server.to_owned();
            return Err(CatalogueError::TooManyTools { server, count });
        }
        let index = self.servers.len();
        self.servers.push(server.to_owned());
        for spec in tools {
            let tool = self.admit(server, index, spec)?;
            self.tools.push(tool);
        }
        Ok(())
    }

    /// The tool that a model calls `qualified`, hooks included.
    pub fn find(&self, qualified: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.qualified == qualified)
    }

    /// The tools of server number `server`.
    pub fn of_server(&self, server: usize) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(move |tool| tool.server == server)
    }

    fn admit(&self, server: &str, index: usize, spec: ToolSpec) -> Result<Tool, CatalogueError> {
        let named = |error| CatalogueError::ToolName { server: server.to_owned(), error };
        check_bare_name(&spec.name).map_err(named)?;
        let qualified = qualify(server, &spec.name).map_err(named)?;
        if self.find(&qualified).is_some() {
            let server = server.to_owned();
            return Err(CatalogueError::DuplicateTool { qualified, server });
        }
        Ok(Tool {
            qualified,
            server: index,
            description: spec.clamped_description(),
            hook: is_hook(&spec.name),
            schema: if spec.schema_is_oversized() { json!({}) } else { spec.input_schema },
            bare: spec.name,
        })
    }
}

/// Checks how many servers a session names: before the first of them is started.
pub fn check_server_count(count: usize) -> Result<(), CatalogueError> {
    if count > SERVERS_MAX {
        return Err(CatalogueError::TooManyServers { count });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: "does".to_owned(),
            input_schema: json!({ "type": "object" }),
        }
    }

    fn tools(prefix: &str, count: usize) -> Vec<ToolSpec> {
        (0..count).map(|n| tool(&format!("{prefix}{n}"))).collect()
    }

    fn build(servers: &[(&str, &[&str])]) -> Result<Catalogue, CatalogueError> {
        Catalogue::build(
            servers
                .iter()
                .map(|(name, tools)| ((*name).to_owned(), tools.iter().map(|t| tool(t)).collect()))
                .collect(),
        )
    }

    #[test]
    fn c18_the_same_tool_of_two_servers_gets_two_names() {
        let catalogue = build(&[("s1", &["execute_sql"]), ("s2", &["execute_sql"])]).expect("legal");
        for (index, name) in ["s1__execute_sql", "s2__execute_sql"].iter().enumerate() {
            let tool = catalogue.find(name).expect("known");
            assert_eq!((tool.server, tool.bare.as_str()), (index, "execute_sql"));
        }
        assert_eq!(catalogue.find("execute_sql"), None);
    }

    #[test]
    fn tools_keep_the_order_of_servers_and_listings() {
        let catalogue = build(&[("z", &["b", "a"]), ("a", &["_Stop", "c"])]).expect("legal");
        let names: Vec<_> = catalogue.tools.iter().map(|t| t.qualified.as_str()).collect();
        assert_eq!(names, ["z__b", "z__a", "a___Stop", "a__c"]);
        let hooks: Vec<_> = catalogue.tools.iter().map(|t| t.hook).collect();
        assert_eq!(hooks, [false, false, true, false]);
        assert_eq!(catalogue.of_server(1).count(), 2);
    }

    #[test]
    fn a_session_has_at_most_16_servers() {
        let servers = |count| {
            let named = |n| (format!("s{n}"), Vec::new());
            Catalogue::build((0..count).map(named).collect())
        };
        assert!(servers(16).is_ok());
        let error = servers(17).expect_err("one too many");
        assert!(error.to_string().starts_with("too many MCP servers: 17"), "{error}");
    }

    #[test]
    fn a_session_has_at_most_128_tools_hooks_included() {
        let with = |first, second| {
            Catalogue::build(vec![("a".to_owned(), tools("t", first)), ("b".to_owned(), tools("_h", second))])
        };
        assert!(with(128, 0).is_ok());
        assert!(with(100, 28).is_ok());
        for (first, second) in [(200, 0), (100, 29)] {
            let error = with(first, second).expect_err("too many");
            assert!(error.to_string().starts_with("too many tools"), "{error}");
        }
    }

    #[test]
    fn one_bad_name_refuses_the_whole_session() {
        for (servers, words) in [
            (vec![("a b", &["t"] as &[&str])], "invalid MCP server name"),
            (vec![("a", &["t"]), ("a", &["u"])], "duplicate MCP server"),
            (vec![("a", &["t", "x__y"])], "invalid tool name"),
            (vec![("a", &["t", "t"])], "duplicate tool"),
            (vec![("a_", &["b"]), ("a", &["_b"])], "duplicate tool \"a___b\""),
        ] {
            let error = build(&servers).expect_err(words).to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }

    #[test]
    fn descriptions_and_schemas_are_cut_to_size() {
        let mut spec = tool("t");
        spec.description = "\u{e9}".repeat(2500);
        spec.input_schema = json!({ "type": "object", "description": "x".repeat(5000) });
        let catalogue = Catalogue::build(vec![("s".to_owned(), vec![spec])]).expect("legal");
        let tool = catalogue.find("s__t").expect("known");
        assert!(tool.description.len() <= 1024 && tool.description.ends_with("[truncated]"));
        assert_eq!(tool.schema, json!({}));
    }

    #[test]
    fn a_catalogue_survives_its_record() {
        let catalogue = build(&[("s", &["t", "_Stop"])]).expect("legal");
        let text = serde_json::to_string(&catalogue).expect("writes");
        assert_eq!(serde_json::from_str::<Catalogue>(&text).expect("reads"), catalogue);
    }
}
