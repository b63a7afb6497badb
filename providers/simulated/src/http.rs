//! The cloud's API over HTTP: JSON on a TCP port or a Unix socket. README.md documents it for other programs. It only
//! carries; what is answered is decided in `cloud`.
use reqwest::StatusCode;

use crate::cloud::model::FailureCode;

pub mod client;
pub mod server;

/// The header by which a mutation says which provider process it comes from.
const PROVIDER_PROCESS: &str = "x-provider-process";

/// The HTTP status of a refusal.
fn status(code: FailureCode) -> StatusCode {
    match code {
        FailureCode::Invalid => StatusCode::BAD_REQUEST,
        FailureCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        FailureCode::Unknown => StatusCode::NOT_FOUND,
        FailureCode::QuotaExceeded => StatusCode::FORBIDDEN,
        FailureCode::Conflict | FailureCode::NotOwned => StatusCode::CONFLICT,
        FailureCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        FailureCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        FailureCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}
