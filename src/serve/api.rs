//! The routes of the server and their handlers.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{PathParameters, QueryParameters};
use super::listing::ListFilter;
use super::plans::PlanRequestBody;
use super::response::{ApiError, ApiResult, blocking, secured, text};
use super::steering::CommandBody;
use super::{Server, Steering, changes, gates, metrics, openapi, page, plans, steering, stream};
use crate::store::Journal;
use crate::ui::{RunSummary, local_time_zone};

const MAX_BODY_BYTES: usize = 64 * 1024;
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 20_000;
/// Maximum number of records in one answer.
const MAX_RECORDS: usize = 1000;

type Shared = State<Arc<Server>>;

/// The routes below `/api/v1` with their methods. `openapi.rs` documents them; a test compares the two.
pub(super) fn api_routes() -> Vec<(&'static str, &'static str, MethodRouter<Arc<Server>>)> {
    vec![
        ("get", "/server", get(describe_server)),
        ("get", "/runs", get(list_runs)),
        ("get", "/runs/{id}", get(show_run)),
        ("get", "/runs/{id}/records", get(list_records)),
        ("get", "/runs/{id}/records/{seq}", get(show_record)),
        ("get", "/runs/{id}/events", get(follow_records)),
        ("get", "/runs/{id}/page", get(follow_page)),
        (
            "get",
            "/runs/{id}/iterations/{iteration}/attempts/{attempt}/prompt",
            get(show_prompt),
        ),
        ("get", "/runs/{id}/changes", get(list_changes)),
        ("get", "/runs/{id}/changes/{file}", get(show_patch)),
        ("get", "/runs/{id}/gates", get(list_gates)),
        ("get", "/runs/{id}/receipt", get(show_receipt)),
        ("get", "/plans", get(list_plans)),
        ("get", "/plans/{project}/{plan}", get(show_plan)),
        (
            "post",
            "/plans/{project}/{plan}/commands",
            post(send_plan_command),
        ),
        ("post", "/runs/{id}/commands", post(send_command)),
        ("post", "/runs/{id}/continue", post(continue_run)),
        ("get", "/openapi.json", get(openapi_document)),
    ]
}

pub(super) fn router(server: Arc<Server>) -> axum::Router {
    let api = api_routes()
        .into_iter()
        .fold(axum::Router::new(), |api, (_, path, handler)| {
            api.route(path, handler)
        });
    axum::Router::new()
        .nest("/api/v1", api)
        .route("/", get(index))
        .route("/runs/{id}", get(subpage))
        .route("/plans", get(subpage))
        .route("/plans/{project}/{plan}", get(subpage))
        .route("/usage", get(subpage))
        .route("/assets/{name}", get(asset))
        .route("/metrics", get(prometheus))
        .fallback(|| async { ApiError::not_found("page") })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(&server), guard))
        .with_state(server)
}

/// Checks every request before its handler, and secures every response.
async fn guard(State(server): Shared, request: Request, next: Next) -> Response<Body> {
    let path = request.uri().path();
    let is_index = !path.starts_with("/api/") && !path.starts_with("/assets/");
    let checked = match path {
        "/" if request
            .uri()
            .query()
            .is_some_and(|query| query.contains("token=")) =>
        {
            server.access.check_host(request.headers())
        }
        // The page that explains how to sign in needs its style.
        "/assets/style.css" | "/assets/icon.svg" => server.access.check_host(request.headers()),
        _ => server.access.check(request.method(), request.headers()),
    };
    secured(match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) if is_index && refusal.status() == StatusCode::UNAUTHORIZED => {
            let mut response = page::sign_in();
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            response
        }
        Err(refusal) => ApiError::new(refusal.status(), refusal.to_string()).into_response(),
    })
}

#[derive(Deserialize)]
struct SignInQuery {
    token: Option<String>,
}

async fn index(
    State(server): Shared,
    QueryParameters(query): QueryParameters<SignInQuery>,
) -> Response<Body> {
    let Some(token) = query.token else {
        return page::index();
    };
    let Some(cookie) = server.access.sign_in(&token) else {
        let mut response = page::sign_in();
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return response;
    };
    let _ = server.signed_in.send(());
    let mut response = page::signed_in();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// The same page: its script reads the address.
async fn subpage() -> Response<Body> {
    page::index()
}

async fn asset(PathParameters(name): PathParameters<String>) -> ApiResult<Response<Body>> {
    page::asset(&name).ok_or_else(|| ApiError::not_found("file"))
}

/// What a client must know about the server.
#[derive(Serialize, JsonSchema)]
pub(super) struct ServerFacts {
    version: &'static str,
    /// Whether the page can send commands to runs.
    steering: bool,
    time_zone: String,
}

async fn describe_server(State(server): Shared) -> Json<ServerFacts> {
    let zone = local_time_zone();
    Json(ServerFacts {
        version: env!("CARGO_PKG_VERSION"),
        steering: server.steering == Steering::On,
        time_zone: zone.iana_name().unwrap_or("local").to_owned(),
    })
}

#[derive(Deserialize)]
struct ListQuery {
    outcome: Option<String>,
    project: Option<String>,
    agent: Option<String>,
    q: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
}

async fn list_runs(
    State(server): Shared,
    QueryParameters(query): QueryParameters<ListQuery>,
) -> ApiResult<Response<Body>> {
    let filter = ListFilter {
        outcome: query.outcome,
        project: query.project,
        agent: query.agent,
        text: query.q.filter(|text| !text.is_empty()),
        limit: query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT),
        offset: query.offset.unwrap_or(0),
    };
    blocking(move || {
        let overview = server
            .listing
            .overview(&server.state, &filter, &local_time_zone());
        Ok(Json(overview).into_response())
    })
    .await
}

async fn show_run(
    State(server): Shared,
    PathParameters(id): PathParameters<String>,
) -> ApiResult<Response<Body>> {
    blocking(move || {
        let run = server.find_run(&id)?;
        let records = Journal::read(&run.journal()).map_err(|_| ApiError::not_found("journal"))?;
        let mut summary = RunSummary::default();
        for record in records {
            summary.apply(&record);
        }
        let facts = stream::run_facts(&server, &run, &summary);
        Ok(Json(facts).into_response())
    })
    .await
}

#[derive(Deserialize)]
struct RecordsQuery {
    after: Option<u64>,
    limit: Option<usize>,
}

/// A part of a journal.
#[derive(Serialize)]
struct RecordsPage {
    records: Vec<crate::event::Record>,
    /// The `after` of the next part; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

async fn list_records(
    State(server): Shared,
    PathParameters(id): PathParameters<String>,
    QueryParameters(query): QueryParameters<RecordsQuery>,
) -> ApiResult<Json<RecordsPage>> {
    let (after, limit) = (
        query.after.unwrap_or(0),
        query.limit.unwrap_or(MAX_RECORDS).clamp(1, MAX_RECORDS),
    );
    blocking(move || {
        let run = server.find_run(&id)?;
        let records = Journal::read(&run.journal()).map_err(|_| ApiError::not_found("journal"))?;
        let mut records: Vec<_> = records
            .filter(|record| record.seq > after)
            .take(limit + 1)
            .collect();
        let more = records.len() > limit;
        records.truncate(limit);
        let next = records.last().map(|record| record.seq).filter(|_| more);
        Ok(Json(RecordsPage { records, next }))
    })
    .await
}

async fn show_record(
    State(server): Shared,
    PathParameters((id, seq)): PathParameters<(String, u64)>,
) -> ApiResult<Json<crate::event::Record>> {
    blocking(move || {
        let run = server.find_run(&id)?;
        let mut records = Journal::read(&run.journal()).map_err(|_| ApiError::not_found("journal"))?;
        let record = records.find(|record| record.seq == seq);
        record.map(Json).ok_or_else(|| ApiError::not_found("record"))
    })
    .await
}

#[derive(Deserialize)]
struct FollowQuery {
    after: Option<u64>,
}

async fn follow_records(
    State(server): Shared,
    PathParameters(id): PathParameters<String>,
    QueryParameters(query): QueryParameters<FollowQuery>,
    headers: HeaderMap,
) -> ApiResult<Response<Body>> {
    let after = last_event_id(&headers).or(query.after).unwrap_or(0);
    blocking(move || stream::records(&server.find_run(&id)?, after)).await
}

async fn follow_page(
    State(server): Shared,
    PathParameters(id): PathParameters<String>,
    QueryParameters(query): QueryParameters<FollowQuery>,
    headers: HeaderMap,
) -> ApiResult<Response<Body>> {
    let after = last_event_id(&headers).or(query.after).unwrap_or(0);
    blocking(move || stream::page(&server, &server.find_run(&id)?, after)).await
}

/// The last event that a browser received before it reconnected.
fn last_event_id(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}

async fn show_prompt(
    State(server): Shared,
    PathParameters((id, iteration, attempt)): PathParameters<(String, u64, u64)>,
) -> ApiResult<Response<Body>> {
    blocking(move || {
        let prompt = server.find_run(&id)?.prompt(iteration, attempt)?;
        Ok(text("text/plain; charset=utf-8", prompt))
    })
    .await
}

#[derive(Deserialize)]
struct ChangesQuery {
    /// The whole run if absent.
    iteration: Option<u64>,
}

async fn list_changes(
    State(server): Shared,
    PathParameters(id): PathParameters<String>,
    QueryParameters(query): QueryParameters<ChangesQuery>,
) -> ApiResult<Response<Body>> {
    blocking(move || {
        let run = server.find_run(&id)?;
        Ok(Json(changes::list(&server, &run, query.iteration)?).into_response())
    })
    .await
}

async fn show_patch(
    State(server): Shared,
    PathParameters((id, file)): PathParameters<(String, usize)>,
    QueryParameters(query): QueryParameters<ChangesQuery>,
) -> ApiResult<Response<Body>> {
    blocking(move || {
        let run = server.find_run(&id)?;
        Ok(Json(changes::patch(&server, &run, query.iteration, file)?).into_response())
    })
    .await
}

async fn list_gates(
    State(server): Shared,
    PathParameters(id): PathParameters<String>,
) -> ApiResult<Response<Body>> {
    blocking(move || {
        let gates = gates::list(&server.find_run(&id)?)?;
        Ok(Json(serde_json::json!({ "gates": gates })).into_response())
    })
    .await
}

async fn show_receipt(
    State(server): Shared,
    PathParameters(id): PathParameters<String>,
) -> ApiResult<Response<Body>> {
    blocking(move || {
        let receipt = server.find_run(&id)?.receipt()?;
        Ok(text("application/json", receipt))
    })
    .await
}

async fn list_plans(State(server): Shared) -> ApiResult<Response<Body>> {
    blocking(move || {
        let plans = plans::list(&server);
        Ok(Json(serde_json::json!({ "plans": plans })).into_response())
    })
    .await
}

async fn show_plan(
    State(server): Shared,
    PathParameters((project, plan)): PathParameters<(String, String)>,
) -> ApiResult<Response<Body>> {
    blocking(move || Ok(Json(plans::show(&server, &project, &plan)?).into_response())).await
}

async fn send_plan_command(
    State(server): Shared,
    PathParameters((project, plan)): PathParameters<(String, String)>,
    body: Result<Json<PlanRequestBody>, JsonRejection>,
) -> ApiResult<StatusCode> {
    require_steering(&server)?;
    let Json(body) = body.map_err(|rejection| ApiError::new(rejection.status(), rejection.body_text()))?;
    blocking(move || {
        plans::send(&server, &project, &plan, &body)?;
        Ok(StatusCode::ACCEPTED)
    })
    .await
}

async fn send_command(
    State(server): Shared,
    PathParameters(id): PathParameters<String>,
    body: Result<Json<CommandBody>, JsonRejection>,
) -> ApiResult<Response<Body>> {
    require_steering(&server)?;
    let Json(body) = body.map_err(|rejection| ApiError::new(rejection.status(), rejection.body_text()))?;
    blocking(move || {
        let accepted = steering::send(&server.find_run(&id)?, body)?;
        Ok((StatusCode::ACCEPTED, Json(accepted)).into_response())
    })
    .await
}

async fn continue_run(
    State(server): Shared,
    PathParameters(id): PathParameters<String>,
) -> ApiResult<StatusCode> {
    require_steering(&server)?;
    blocking(move || {
        let run = server.find_run(&id)?;
        let resumed = server.launcher.run(move || steering::resume(&run));
        resumed.unwrap_or_else(|| Err(ApiError::bad_request("the server is ending")))?;
        Ok(StatusCode::ACCEPTED)
    })
    .await
}

fn require_steering(server: &Server) -> ApiResult<()> {
    match server.steering {
        Steering::On => Ok(()),
        Steering::Off => Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "this server is read-only; start it with `ralph serve --steer`",
        )),
    }
}

async fn openapi_document() -> Json<serde_json::Value> {
    Json(openapi::document())
}

async fn prometheus(State(server): Shared) -> ApiResult<Response<Body>> {
    blocking(move || {
        let filter = ListFilter {
            limit: MAX_LIMIT,
            ..ListFilter::default()
        };
        let overview = server
            .listing
            .overview(&server.state, &filter, &local_time_zone());
        Ok(text(
            "text/plain; version=0.0.4; charset=utf-8",
            metrics::render(&overview),
        ))
    })
    .await
}
