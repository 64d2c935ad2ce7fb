//! The OpenAPI document of the API.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::api::ServerFacts;
use super::changes::{Changes, FilePatch};
use super::gates::GateEntry;
use super::listing::Overview;
use super::plans::{ListedPlan, PlanDetails, PlanRequestBody};
use super::stream::RunFacts;

use crate::event::{Command, Record};

/// The document, version 3.1. The schemas of records and commands are those of `ralph schema events`.
pub(super) fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let groups = [run_paths, record_paths, iteration_paths, other_paths];
    let paths: Map<String, Value> = groups
        .into_iter()
        .flat_map(|group| group(&mut generator))
        .collect();
    let command = generator.subschema_for::<Command>();
    let mut schemas: Map<String, Value> = generator.take_definitions(true);
    schemas.insert("CommandRequest".into(), command_request(&command.to_value()));
    schemas.insert(
        "Error".into(),
        json!({"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ralph serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The runs of all projects of a user. Every request needs the cookie that the sign-in address sets, and a host name that the server knows. Requests that change something need the page's own Origin.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// A path with its operation.
type PathItem = (String, Value);

fn get(path: &str, summary: &str, parameters: &[Value], content: &Value) -> PathItem {
    (
        format!("/api/v1{path}"),
        json!({"get": operation(summary, parameters, content)}),
    )
}

fn post(path: &str, summary: &str, parameters: &[Value], body: Option<&Value>) -> PathItem {
    (
        format!("/api/v1{path}"),
        json!({"post": change(summary, parameters, body)}),
    )
}

fn run_paths(generator: &mut SchemaGenerator) -> Vec<PathItem> {
    let id = [path_parameter("id", Kind::Text)];
    let filters = ["outcome", "project", "agent", "q"].map(|name| query_parameter(name, Kind::Text));
    let pages = ["limit", "offset"].map(|name| query_parameter(name, Kind::Number));
    let overview = "List runs, newest first, with totals by day, project and agent";
    let filters = [filters.as_slice(), pages.as_slice()].concat();
    let gates = list_of::<GateEntry>(generator, "gates");
    let command = json!({"$ref": "#/components/schemas/CommandRequest"});
    let command_summary = "Send a command to a running run; needs `--steer`";
    let continue_summary = "Resume a run that has ended; needs `--steer`";
    vec![
        get("/runs", overview, &filters, &json_of::<Overview>(generator)),
        get(
            "/runs/{id}",
            "A run with its iterations",
            &id,
            &json_of::<RunFacts>(generator),
        ),
        get(
            "/runs/{id}/gates",
            "The gates of a run with their failures and output",
            &id,
            &gates,
        ),
        get("/runs/{id}/receipt", "The receipt of a run", &id, &any_json()),
        post("/runs/{id}/commands", command_summary, &id, Some(&command)),
        post("/runs/{id}/continue", continue_summary, &id, None),
    ]
}

fn record_paths(generator: &mut SchemaGenerator) -> Vec<PathItem> {
    let (id, after) = (
        path_parameter("id", Kind::Text),
        query_parameter("after", Kind::Number),
    );
    let record = generator.subschema_for::<Record>().to_value();
    let page = json!({
        "type": "object",
        "required": ["records"],
        "properties": {"records": {"type": "array", "items": &record}, "next": {"type": "integer"}},
    });
    let limit = query_parameter("limit", Kind::Number);
    let seq = path_parameter("seq", Kind::Number);
    let events =
        "Follow the records of a run as server-sent events; the id of an event is the number of its record";
    let page_events = "Follow a run as HTML blocks and facts, as the page shows it";
    let followed = [id.clone(), after.clone()];
    vec![
        get(
            "/runs/{id}/records",
            "A part of the run's journal",
            &[id.clone(), after, limit],
            &json_content(&page),
        ),
        get(
            "/runs/{id}/records/{seq}",
            "One record of the run's journal",
            &[id, seq],
            &json_content(&record),
        ),
        get("/runs/{id}/events", events, &followed, &event_stream()),
        get("/runs/{id}/page", page_events, &followed, &event_stream()),
    ]
}

fn iteration_paths(generator: &mut SchemaGenerator) -> Vec<PathItem> {
    let id = path_parameter("id", Kind::Text);
    let iteration = query_parameter("iteration", Kind::Number);
    let file = path_parameter("file", Kind::Number);
    let attempt = ["iteration", "attempt"].map(|name| path_parameter(name, Kind::Number));
    let attempt = [std::slice::from_ref(&id), attempt.as_slice()].concat();
    let text = json!({"text/plain": {"schema": {"type": "string"}}});
    let changes = "The files that the run or one of its iterations changed";
    let patch = "The patch of the file at this position of the list of changes";
    vec![
        get(
            "/runs/{id}/iterations/{iteration}/attempts/{attempt}/prompt",
            "The prompt that an attempt sent",
            &attempt,
            &text,
        ),
        get(
            "/runs/{id}/changes",
            changes,
            &[id.clone(), iteration.clone()],
            &json_of::<Changes>(generator),
        ),
        get(
            "/runs/{id}/changes/{file}",
            patch,
            &[id, file, iteration],
            &json_of::<FilePatch>(generator),
        ),
    ]
}

fn other_paths(generator: &mut SchemaGenerator) -> Vec<PathItem> {
    let plan = ["project", "plan"].map(|name| path_parameter(name, Kind::Text));
    let plans = list_of::<ListedPlan>(generator, "plans");
    let body = generator.subschema_for::<PlanRequestBody>().to_value();
    vec![
        get(
            "/server",
            "Facts about the server",
            &[],
            &json_of::<ServerFacts>(generator),
        ),
        get("/plans", "The plans of all projects", &[], &plans),
        get(
            "/plans/{project}/{plan}",
            "A plan with its tasks and its last records",
            &plan,
            &json_of::<PlanDetails>(generator),
        ),
        post(
            "/plans/{project}/{plan}/commands",
            "Retry, skip or stop a task of a plan; needs `--steer`",
            &plan,
            Some(&body),
        ),
        get("/openapi.json", "This document", &[], &any_json()),
    ]
}

/// An object with one list.
fn list_of<T: JsonSchema>(generator: &mut SchemaGenerator, name: &str) -> Value {
    let item = generator.subschema_for::<T>().to_value();
    let mut properties = Map::new();
    properties.insert(name.to_owned(), json!({"type": "array", "items": item}));
    json_content(&json!({"type": "object", "required": [name], "properties": properties}))
}

fn any_json() -> Value {
    json_content(&json!({"type": "object"}))
}

fn json_content(schema: &Value) -> Value {
    json!({"application/json": {"schema": schema}})
}

fn json_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    json_content(&generator.subschema_for::<T>().to_value())
}

fn event_stream() -> Value {
    json!({"text/event-stream": {"schema": {"type": "string"}}})
}

fn command_request(command: &Value) -> Value {
    json!({"allOf": [
        command,
        {"type": "object", "properties": {"id": {
            "type": ["string", "null"],
            "pattern": "^[A-Za-z0-9-]{1,64}$",
            "description": "Given by the client; a repeated command with the same id is applied once.",
        }}},
    ]})
}

/// The type of a parameter.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
}

impl Kind {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Number => json!({"type": "integer", "minimum": 0, "maximum": i64::MAX}),
        }
    }
}

fn path_parameter(name: &str, kind: Kind) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": kind.schema()})
}

fn query_parameter(name: &str, kind: Kind) -> Value {
    json!({"name": name, "in": "query", "required": false, "schema": kind.schema()})
}

fn operation(summary: &str, parameters: &[Value], content: &Value) -> Value {
    let mut responses = errors(&["400", "401", "403", "404"]);
    responses["200"] = json!({"description": "OK", "content": content});
    json!({"summary": summary, "parameters": parameters, "responses": responses})
}

fn change(summary: &str, parameters: &[Value], body: Option<&Value>) -> Value {
    let mut responses = errors(&["400", "401", "403", "404", "409", "413", "415", "422"]);
    responses["202"] = json!({"description": "Accepted"});
    let mut operation = json!({"summary": summary, "parameters": parameters, "responses": responses});
    if let Some(schema) = body {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

fn errors(statuses: &[&str]) -> Value {
    let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}});
    let responses = statuses.iter().map(|status| {
        let response = json!({"description": "See the message in the body.", "content": content});
        ((*status).to_owned(), response)
    });
    Value::Object(responses.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::api::api_routes;

    #[test]
    fn every_route_is_documented_and_every_reference_resolves() {
        let document = document();
        let mut documented: Vec<(String, String)> = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for method in operations.as_object().unwrap().keys() {
                documented.push((method.clone(), path.clone()));
            }
        }
        documented.sort();
        let mut routes: Vec<(String, String)> = api_routes()
            .into_iter()
            .map(|(method, path, _)| (method.to_owned(), format!("/api/v1{path}")))
            .collect();
        routes.sort();
        assert_eq!(documented, routes);
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
    }
}
