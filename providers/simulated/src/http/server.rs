//! Serves a cloud's API. Every refusal is JSON too, with the HTTP status of its kind.
use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cloud::counters::Counters;
use crate::cloud::faults::{Fault, FaultName};
use crate::cloud::model::{Answer, CloudInfo, Failure, FailureCode, Instance, Volume};
use crate::cloud::{CloudApi, CloudError};

mod load_balancers;
mod origin;
mod routes;

/// The largest request: a change to some hundred thousand machines.
const MAX_BODY: usize = 64 << 20;

/// What is served.
#[derive(Clone)]
struct Api {
    cloud: Arc<dyn CloudApi>,
    calls: Arc<Counters>,
}

/// The API of `cloud`. `calls` are the counters that `/v1/calls` shows: the cloud's own, or those of the provider that
/// serves this as its control socket.
pub fn router(cloud: Arc<dyn CloudApi>, calls: Arc<Counters>) -> Router {
    Router::new()
        .route("/v1/cloud", get(info))
        .route("/v1/lookup", post(look_up))
        .route("/v1/volumes/{id}", get(volume))
        .route("/v1/instances", get(instances))
        .route("/v1/changes", post(change))
        .route("/v1/faults", get(faults).post(set_fault).delete(clear_faults))
        .route("/v1/faults/{name}", axum::routing::delete(clear_fault))
        .route("/v1/calls", get(read_calls).delete(take_calls))
        .merge(load_balancers::routes())
        .merge(routes::routes())
        .fallback(no_such_path)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Api { cloud, calls })
}

/// A refusal on its way out.
struct Refusal(Failure);

type Reply<T> = Result<Json<T>, Refusal>;

impl From<CloudError> for Refusal {
    fn from(error: CloudError) -> Self {
        let code = match error {
            CloudError::Refused(failure) => return Self(failure),
            CloudError::Storage(_) => FailureCode::Internal,
            CloudError::Unreachable { .. } | CloudError::ShuttingDown => FailureCode::Unavailable,
        };
        Self(Failure::new(code, error.to_string()))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (super::status(self.0.code), Json(&self.0)).into_response();
        if let Some(wait) = self.0.retry_after() {
            // Whole seconds, rounded up; the body has it in milliseconds.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

async fn info(State(api): State<Api>) -> Reply<CloudInfo> {
    Ok(Json(api.cloud.info().await?))
}

async fn look_up(State(api): State<Api>, body: Bytes) -> Reply<Answer> {
    Ok(Json(api.cloud.look_up(&parse::<Vec<_>>(&body)?).await?))
}

async fn volume(State(api): State<Api>, Path(id): Path<String>) -> Reply<Option<Volume>> {
    Ok(Json(api.cloud.volume(&id).await?))
}

async fn instances(State(api): State<Api>, Query(query): Query<HashMap<String, String>>) -> Reply<Vec<Instance>> {
    let names = query.get("names").map(String::as_str).unwrap_or_default();
    let names: Vec<_> = names.split(',').filter(|name| !name.is_empty()).map(String::from).collect();
    Ok(Json(api.cloud.instances(&names).await?))
}

async fn change(State(api): State<Api>, body: Bytes) -> Reply<Vec<Instance>> {
    Ok(Json(api.cloud.change(parse(&body)?).await?))
}

async fn faults(State(api): State<Api>) -> Reply<Vec<Fault>> {
    Ok(Json(api.cloud.faults().await?))
}

async fn set_fault(State(api): State<Api>, body: Bytes) -> Reply<Value> {
    api.cloud.set_fault(parse(&body)?).await?;
    Ok(Json(json!({})))
}

async fn clear_faults(State(api): State<Api>) -> Reply<Value> {
    api.cloud.clear_faults(None).await?;
    Ok(Json(json!({})))
}

async fn clear_fault(State(api): State<Api>, Path(name): Path<String>) -> Reply<Value> {
    let name = serde_json::from_value::<FaultName>(Value::String(name)).map_err(|error| invalid("name", &error))?;
    api.cloud.clear_faults(Some(name)).await?;
    Ok(Json(json!({})))
}

async fn read_calls(State(api): State<Api>) -> Json<Value> {
    Json(json!(api.calls.read()))
}

async fn take_calls(State(api): State<Api>) -> Json<Value> {
    Json(json!(api.calls.take()))
}

async fn no_such_path() -> Refusal {
    Refusal(Failure::new(FailureCode::Unknown, "no such path and method; the API is in providers/simulated/README.md"))
}

fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| invalid("body", &error))
}

fn invalid(path: &str, error: &serde_json::Error) -> Refusal {
    Refusal(Failure::new(FailureCode::Invalid, format!("{path}: {error}")))
}
