//! From a gRPC status or an item's error to its outcome: the one place that decides it, row by row as in the
//! contract's error tables.
use std::error::Error;
use std::time::Duration;

use ccm_proto::v1;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{Outcome, ProviderError};

#[cfg(test)]
mod tests;

/// The domain of every reason of the contract.
pub const DOMAIN: &str = "ccm.provider.v1";
/// The most bytes of a provider's message that are shown.
pub const MAX_MESSAGE: usize = 1024;
/// The key of `ErrorInfo.metadata` with the highest epoch that the provider has seen.
const HIGHEST_EPOCH: &str = "highest_epoch";
/// A longer RetryInfo counts as this.
const MAX_RETRY: Duration = Duration::from_mins(5);
/// The reason of a call whose connection was lost; no provider gives it.
pub const CONNECTION_LOST: &str = "CONNECTION_LOST";

/// A call that failed as a whole.
pub fn status(status: &Status) -> ProviderError {
    let after = status.get_details_retry_info().and_then(|info| info.retry_delay);
    if is_lost(status) {
        let message = format!("the connection to the provider was lost: {}", chain(status));
        return ProviderError { outcome: Outcome::Unknown, reason: CONNECTION_LOST.to_owned(), message };
    }
    error(status.code(), reason(status), after, status.message())
}

/// An item of a batch that failed alone.
pub fn item(item: &v1::ItemError) -> ProviderError {
    let after = item.retry_after.and_then(|delay| Duration::try_from(delay).ok());
    let reason = v1::ErrorReason::try_from(item.reason).ok().filter(|it| *it != v1::ErrorReason::Unspecified);
    let reason = reason.map(|it| it.as_str_name().trim_start_matches("ERROR_REASON_").to_owned());
    match Code::from_i32(item.code) {
        Code::Ok => {
            error(Code::Internal, reason, after, &format!("the provider gave an error with the code OK: {}", item.message))
        }
        // It concerns this one object: the other results show that the method is served.
        Code::Unimplemented => {
            ProviderError { outcome: Outcome::Terminal, ..error(Code::Unimplemented, reason, after, &item.message) }
        }
        code => error(code, reason, after, &item.message),
    }
}

/// Whether this process created the status because the connection broke; a provider's own statuses have no source.
pub fn is_lost(status: &Status) -> bool {
    status.source().is_some()
}

/// The causes of a failed connection, from the outermost to the innermost.
pub fn chain(error: &dyn Error) -> String {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes.dedup();
    causes.join(": ")
}

/// The reason of the contract that a status carries, if it carries one that can be read.
pub fn reason(status: &Status) -> Option<String> {
    let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN)?;
    let well_formed =
        info.reason.len() <= 63 && info.reason.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    (well_formed && !info.reason.is_empty()).then_some(info.reason)
}

/// The highest epoch that a provider has seen, which it reports when it refuses a lower one.
pub fn highest_epoch(status: &Status) -> Option<u64> {
    let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN)?;
    info.metadata.get(HIGHEST_EPOCH)?.parse().ok()
}

fn error(code: Code, reason: Option<String>, after: Option<Duration>, message: &str) -> ProviderError {
    let after = after.map(|it| it.min(MAX_RETRY));
    let outcome = outcome(code, reason.as_deref(), after);
    let message = if message.is_empty() { "the provider gave no message" } else { shorten(message) };
    ProviderError { outcome, reason: reason.unwrap_or_else(|| name(code).to_owned()), message: message.to_owned() }
}

fn outcome(code: Code, reason: Option<&str>, after: Option<Duration>) -> Outcome {
    match (code, reason) {
        (Code::Unimplemented, _) => Outcome::Unsupported,
        // This core fixes these itself: by the next term, by sending the node set again, by a smaller batch.
        (_, Some("NOT_LEADING" | "NODE_SET_UNKNOWN" | "BATCH_TOO_LARGE")) => Outcome::Retry { after },
        (_, Some("QUOTA_EXCEEDED" | "PROTOCOL_VERSION_UNSUPPORTED")) => Outcome::Terminal,
        (Code::Unavailable | Code::Aborted | Code::ResourceExhausted | Code::Internal | Code::DataLoss, _) => {
            Outcome::Retry { after }
        }
        // Not "does not exist", which is a typed result: the provider could not find something that it needs.
        (Code::NotFound, _) => Outcome::Retry { after },
        (Code::DeadlineExceeded | Code::Cancelled | Code::Unknown | Code::Ok, _) => Outcome::Unknown,
        _ => Outcome::Terminal,
    }
}

/// Cuts a text to what is shown of it.
pub fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_MESSAGE)]
}

/// The name of a code as the contract writes it.
pub const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
