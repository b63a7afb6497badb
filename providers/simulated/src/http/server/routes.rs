//! The paths about routes: those that providers call, and those for people.
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};

use super::origin::origin;
use super::{Api, Reply, parse};
use crate::cloud::routes::model::{Listed, Listing, Outcome};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/v1/routes", get(list))
        .route("/v1/routes/{cluster_uid}", post(put))
        .route("/v1/routes/{cluster_uid}/removals", post(remove))
        .route("/v1/route-records", get(all).post(edit))
}

async fn list(State(api): State<Api>) -> Reply<Listing> {
    Ok(Json(api.cloud.list_routes().await?))
}

async fn put(State(api): State<Api>, Path(uid): Path<String>, headers: HeaderMap, body: Bytes) -> Reply<Vec<Outcome>> {
    Ok(Json(api.cloud.put_routes(&origin(&headers), &uid, parse(&body)?).await?))
}

async fn remove(State(api): State<Api>, Path(uid): Path<String>, headers: HeaderMap, body: Bytes) -> Reply<Vec<Outcome>> {
    Ok(Json(api.cloud.remove_routes(&origin(&headers), &uid, parse(&body)?).await?))
}

async fn all(State(api): State<Api>) -> Reply<Vec<Listed>> {
    Ok(Json(api.cloud.route_records().await?))
}

async fn edit(State(api): State<Api>, body: Bytes) -> Reply<Option<Listed>> {
    Ok(Json(api.cloud.edit_route(parse(&body)?).await?))
}
