//! The wire to the client: ACP as JSON-RPC 2.0, one object a line.

pub mod blocks;
pub mod frame;
pub mod lines;
pub mod params;
pub mod permission;

/// Error codes of the wire.
pub mod code {
    /// The line is not JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit, or the session cannot take the request now.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The model or a server failed (harness profile).
    pub const FAILED: i64 = -32000;
    /// The provider refused the credentials (harness profile).
    pub const AUTH: i64 = -32001;
    /// The provider does not know the model (harness profile).
    pub const MODEL_NOT_FOUND: i64 = -32002;
    /// There is no such session. Recorded as this and told as [`INVALID_PARAMS`] to the harness, as "resource
    /// not found" to clients of the public standard.
    pub const NO_SESSION: i64 = -32102;
    /// What clients of the public standard know as "resource not found".
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Any of the failures above towards clients of the public standard, where those numbers mean other things.
    pub const INTERNAL: i64 = -32603;
}

/// Whose dialect of ACP the peer speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// buzz-acp and whatever does not say who it is.
    #[default]
    Harness,
    /// An editor or SDK that gave its name: only what the public standard knows.
    Standard,
}

impl Profile {
    /// The code to tell the peer for `code`.
    pub fn code(self, code: i64) -> i64 {
        match (self, code) {
            (Profile::Standard, code::FAILED | code::AUTH | code::MODEL_NOT_FOUND) => code::INTERNAL,
            (Profile::Standard, code::NO_SESSION) => code::RESOURCE_NOT_FOUND,
            (Profile::Harness, code::NO_SESSION) => code::INVALID_PARAMS,
            _ => code,
        }
    }
}
