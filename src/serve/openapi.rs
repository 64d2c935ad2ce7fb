//! The OpenAPI document of the API.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::event::{Command, Record};

/// The document, version 3.1. The schemas of records and commands are those of `ralph schema events`.
pub(super) fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let record = generator.subschema_for::<Record>();
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
        "paths": paths(&record.to_value()),
        "components": {"schemas": schemas},
    })
}

fn paths(record: &Value) -> Value {
    let (id, after) = (
        path_parameter("id", "string"),
        query_parameter("after", "integer"),
    );
    let (any, text) = (json!({"type": "object"}), json!({"type": "string"}));
    let json_body = |schema: &Value| json!({"application/json": {"schema": schema}});
    let stream = json!({"text/event-stream": {"schema": text}});
    json!({
        "/api/v1/server": {"get": operation("Facts about the server", &[], &json_body(&any))},
        "/api/v1/runs": {"get": operation(
            "List runs, newest first, with totals by day, project and agent",
            &[
                query_parameter("outcome", "string"),
                query_parameter("project", "string"),
                query_parameter("agent", "string"),
                query_parameter("q", "string"),
                query_parameter("limit", "integer"),
                query_parameter("offset", "integer"),
            ],
            &json_body(&any),
        )},
        "/api/v1/runs/{id}": {"get": operation("A run with its iterations", std::slice::from_ref(&id), &json_body(&any))},
        "/api/v1/runs/{id}/records": {"get": operation(
            "A part of the run's journal",
            &[id.clone(), after.clone(), query_parameter("limit", "integer")],
            &json_body(&json!({
                "type": "object",
                "required": ["records"],
                "properties": {"records": {"type": "array", "items": record}, "next": {"type": "integer"}},
            })),
        )},
        "/api/v1/runs/{id}/records/{seq}": {"get": operation(
            "One record of the run's journal",
            &[id.clone(), path_parameter("seq", "integer")],
            &json_body(record),
        )},
        "/api/v1/runs/{id}/events": {"get": operation(
            "Follow the records of a run as server-sent events; the id of an event is the number of its record",
            &[id.clone(), after.clone()],
            &stream,
        )},
        "/api/v1/runs/{id}/page": {"get": operation(
            "Follow a run as HTML blocks and facts, as the page shows it",
            &[id.clone(), after],
            &stream,
        )},
        "/api/v1/runs/{id}/iterations/{iteration}/attempts/{attempt}/prompt": {"get": operation(
            "The prompt that an attempt sent",
            &[id.clone(), path_parameter("iteration", "integer"), path_parameter("attempt", "integer")],
            &json!({"text/plain": {"schema": text}}),
        )},
        "/api/v1/runs/{id}/commands": {"post": change(
            "Send a command to a running run; needs `--steer`",
            std::slice::from_ref(&id),
            Some(&json!({"$ref": "#/components/schemas/CommandRequest"})),
        )},
        "/api/v1/runs/{id}/continue": {"post": change("Resume a run that has ended; needs `--steer`", &[id], None)},
        "/api/v1/openapi.json": {"get": operation("This document", &[], &json_body(&any))},
    })
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

fn path_parameter(name: &str, kind: &str) -> Value {
    let mut schema = json!({"type": kind});
    if kind == "integer" {
        schema["minimum"] = json!(0);
    }
    json!({"name": name, "in": "path", "required": true, "schema": schema})
}

fn query_parameter(name: &str, kind: &str) -> Value {
    let mut schema = json!({"type": kind});
    if kind == "integer" {
        schema["minimum"] = json!(0);
    }
    json!({"name": name, "in": "query", "required": false, "schema": schema})
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
