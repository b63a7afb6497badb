//! Which provider process a mutation comes from.
use axum::http::HeaderMap;

use crate::cloud::load_balancers::Origin;
use crate::http::PROVIDER_PROCESS;

/// Who does not say where a mutation comes from is nobody that was seen before.
pub(super) fn origin(headers: &HeaderMap) -> Origin {
    let said = headers.get(PROVIDER_PROCESS).and_then(|process| process.to_str().ok());
    said.map_or_else(Origin::random, Origin::named)
}
