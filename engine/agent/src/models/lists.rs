//! What Databricks lists of models look like, and which of their endpoints a conversation can use.

use serde_json::Value;

/// Tasks of endpoints that converse.
const TASKS: [&str; 2] = ["llm/v1/chat", "llm/v1/completions"];

/// The names in a list of serving endpoints, in its order: those that are ready and converse, as far as
/// they say.
pub(super) fn serving_endpoints(body: &[u8]) -> Result<Vec<String>, String> {
    let list: Value = serde_json::from_slice(body).map_err(|error| format!("json: {error}"))?;
    let usable = |endpoint: &&Value| {
        let ready = endpoint.pointer("/state/ready").and_then(Value::as_str);
        let task = endpoint.get("task").and_then(Value::as_str);
        ready.is_none_or(|ready| ready == "READY") && task.is_none_or(|task| TASKS.contains(&task))
    };
    Ok(endpoints(&list)?.iter().filter(usable).filter_map(name).collect())
}

/// One page of an AI gateway's list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Its endpoints.
    pub(super) endpoints: Vec<Endpoint>,
    /// What to ask for next, if there is more.
    pub(super) next: Option<String>,
}

/// An endpoint of an AI gateway.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    name: String,
    /// When it was made, in milliseconds since 1970, if that is known.
    created_ms: Option<i64>,
}

/// Reads one page.
pub(super) fn gateway_page(body: &[u8]) -> Result<Page, String> {
    let list: Value = serde_json::from_slice(body).map_err(|error| format!("json: {error}"))?;
    let endpoint = |value: &Value| {
        let created_ms = value.get("created_timestamp").and_then(millis);
        Some(Endpoint { name: name(value)?, created_ms })
    };
    let next = list.get("next_page_token").and_then(Value::as_str).filter(|token| !token.is_empty());
    Ok(Page {
        endpoints: endpoints(&list)?.iter().filter_map(endpoint).collect(),
        next: next.map(str::to_owned),
    })
}

/// The endpoints of all pages.
#[derive(Debug, Default)]
pub(super) struct Gateway {
    endpoints: Vec<Endpoint>,
}

impl Gateway {
    /// Takes the endpoints of a page that converse.
    pub(super) fn add(&mut self, page: Vec<Endpoint>) {
        self.endpoints.extend(page.into_iter().filter(|endpoint| converses(&endpoint.name)));
    }

    /// The names, newest first; those of unknown age last, those of one age by name.
    pub(super) fn into_names(mut self) -> Vec<String> {
        let newest_first = |a: &Endpoint, b: &Endpoint| b.created_ms.cmp(&a.created_ms);
        self.endpoints.sort_by(|a, b| newest_first(a, b).then_with(|| a.name.cmp(&b.name)));
        self.endpoints.into_iter().map(|endpoint| endpoint.name).collect()
    }
}

/// Whether a name is not that of an embedding model.
fn converses(name: &str) -> bool {
    let name = name.to_lowercase();
    !name.contains("embedding") && !name.split('-').any(|word| matches!(word, "bge" | "gte"))
}

fn endpoints(list: &Value) -> Result<&Vec<Value>, String> {
    list.get("endpoints").and_then(Value::as_array).ok_or_else(|| "missing 'endpoints' array".to_owned())
}

fn name(endpoint: &Value) -> Option<String> {
    endpoint.get("name")?.as_str().map(str::to_owned)
}

fn millis(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn serving(list: Value) -> Result<Vec<String>, String> {
        serving_endpoints(list.to_string().as_bytes())
    }

    fn page(list: &Value) -> Page {
        gateway_page(list.to_string().as_bytes()).expect("a page")
    }

    fn names(list: &Value) -> Vec<String> {
        let mut gateway = Gateway::default();
        gateway.add(page(list).endpoints);
        gateway.into_names()
    }

    #[test]
    fn serving_endpoints_are_dropped_for_what_they_say_not_for_what_they_leave_out() {
        let list = json!({"endpoints": [
            {"name": "z", "state": {"ready": "READY"}, "task": "llm/v1/chat"},
            {"name": "waking", "state": {"ready": "NOT_READY"}, "task": "llm/v1/chat"},
            {"name": "vectors", "state": {"ready": "READY"}, "task": "llm/v1/embeddings"},
            {"name": "a", "task": "llm/v1/completions"},
            {"name": "silent"},
            {"name": "odd", "state": {"ready": true}, "task": null},
            {"title": "nameless"},
        ]});
        assert_eq!(serving(list).expect("a list"), ["z", "a", "silent", "odd"]);
    }

    #[test]
    fn an_empty_list_is_one_and_a_missing_one_is_not() {
        assert_eq!(serving(json!({"endpoints": []})), Ok(Vec::new()));
        for none in [json!({}), json!({"endpoints": {}}), json!([])] {
            let missing = "missing 'endpoints' array".to_owned();
            assert_eq!(serving(none.clone()), Err(missing.clone()), "{none}");
            assert_eq!(gateway_page(none.to_string().as_bytes()), Err(missing));
        }
        assert!(serving_endpoints(b"<html>").expect_err("no json").starts_with("json: "));
    }

    #[test]
    fn a_page_tells_its_names_and_what_comes_next() {
        let read = page(&json!({"endpoints": [{"name": "a"}], "next_page_token": "t"}));
        assert_eq!(read.endpoints, [Endpoint { name: "a".to_owned(), created_ms: None }]);
        assert_eq!(read.next.as_deref(), Some("t"));
        assert_eq!(page(&json!({"endpoints": [], "next_page_token": ""})).next, None);
        assert_eq!(page(&json!({"endpoints": []})).next, None);
    }

    #[test]
    fn embedding_models_are_left_out() {
        let all = ["an-EMBEDDING-3", "bge-large", "x-gte-y", "image", "budget", "gtex", "a-bget"];
        let list = json!({"endpoints": all.map(|name| json!({"name": name}))});
        assert_eq!(names(&list), ["a-bget", "budget", "gtex", "image"]);
    }

    #[test]
    fn the_newest_come_first_and_those_of_unknown_age_last() {
        let list = json!({"endpoints": [
            {"name": "junk", "created_timestamp": "yesterday"},
            {"name": "old", "created_timestamp": 1},
            {"name": "b", "created_timestamp": "1700000000000"},
            {"name": "a", "created_timestamp": 1_700_000_000_000_i64},
            {"name": "fraction", "created_timestamp": 1.5},
            {"name": "absent"},
        ]});
        assert_eq!(names(&list), ["a", "b", "old", "absent", "fraction", "junk"]);
    }
}
