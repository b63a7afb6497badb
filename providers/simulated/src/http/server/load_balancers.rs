//! The paths about load balancers: those that providers call, and those for people.
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::origin::origin;
use super::{Api, Refusal, Reply, parse};
use crate::cloud::load_balancers::model::{Found, LoadBalancer, Mark, Search};
use crate::cloud::model::{Failure, FailureCode};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/v1/load-balancers", get(find))
        .route("/v1/load-balancers/{name}", put(make).delete(remove))
        .route("/v1/load-balancer-records", get(all))
        .route("/v1/load-balancer-records/{name}", post(edit))
}

async fn find(State(api): State<Api>, search: Asked<Search>) -> Reply<Found> {
    Ok(Json(api.cloud.find_load_balancers(&asked(search)?).await?))
}

async fn make(State(api): State<Api>, Path(name): Path<String>, headers: HeaderMap, body: Bytes) -> Reply<LoadBalancer> {
    Ok(Json(api.cloud.put_load_balancer(&origin(&headers), &name, parse(&body)?).await?))
}

async fn remove(State(api): State<Api>, Path(name): Path<String>, mark: Asked<Mark>, headers: HeaderMap) -> Reply<Value> {
    api.cloud.delete_load_balancer(&origin(&headers), &name, &asked(mark)?).await?;
    Ok(Json(json!({})))
}

async fn all(State(api): State<Api>) -> Reply<Vec<LoadBalancer>> {
    Ok(Json(api.cloud.load_balancers().await?))
}

async fn edit(State(api): State<Api>, Path(name): Path<String>, body: Bytes) -> Reply<Option<LoadBalancer>> {
    Ok(Json(api.cloud.edit_load_balancer(&name, parse(&body)?).await?))
}

/// A query string that may be wrong.
type Asked<T> = Result<Query<T>, axum::extract::rejection::QueryRejection>;

fn asked<T: DeserializeOwned>(query: Asked<T>) -> Result<T, Refusal> {
    let refusal = |error: axum::extract::rejection::QueryRejection| {
        Refusal(Failure::new(FailureCode::Invalid, format!("query: {}", error.body_text())))
    };
    query.map(|Query(query)| query).map_err(refusal)
}
