//! The one error type of providers, and its two forms on the wire: a gRPC status with `google.rpc` details, and the error
//! of one item of a batch. What a core does about a reason is the contract's matter, not this file's.
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ccm_proto::v1::{ErrorReason, ItemError};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// The `domain` of every `google.rpc.ErrorInfo` of this protocol.
pub const ERROR_DOMAIN: &str = "ccm.provider.v1";

/// Why something could not be found out or be done. Its message is shown to users in events.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// The gRPC code.
    pub code: Code,
    /// The reason, which decides where the code alone would not.
    pub reason: ErrorReason,
    /// What failed and what would help, for a person.
    pub message: String,
    /// Not before this long from now is a repeat of use.
    pub retry_after: Option<Duration>,
    /// What else the core should know, by key, as `ErrorInfo.metadata`. It crosses only with a reason, and not in a batch's item.
    pub metadata: BTreeMap<&'static str, String>,
    /// What caused it; logged, never sent.
    #[source]
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ProviderError {
    /// An error of any code and reason. The constructors below say the same in one word.
    pub fn new(code: Code, reason: ErrorReason, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), retry_after: None, metadata: BTreeMap::new(), source: None }
    }

    /// The same error with what caused it, for the log.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The same error with when to come back.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// The provider does not serve `method`.
    pub fn not_implemented(method: &str) -> Self {
        Self::new(Code::Unimplemented, ErrorReason::NotImplemented, format!("this provider does not serve {method}"))
    }

    /// The cloud refused the provider's credentials.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(Code::Unauthenticated, ErrorReason::CredentialsInvalid, message)
    }

    /// The credentials are valid and may not do this.
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::new(Code::PermissionDenied, ErrorReason::PermissionMissing, message)
    }

    /// The cloud limits the rate of calls; `retry_after` where it said how long to wait.
    pub fn rate_limited(message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..Self::new(Code::ResourceExhausted, ErrorReason::RateLimited, message) }
    }

    /// A quota of the account is used up.
    pub fn quota_exceeded(message: impl Into<String>) -> Self {
        Self::new(Code::ResourceExhausted, ErrorReason::QuotaExceeded, message)
    }

    /// The cloud's API could not be reached or answered with a server error.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, ErrorReason::CloudUnavailable, message)
    }

    /// The user's object asks for something that cannot be; `field` is the path of the field or the annotation's key.
    pub fn user_configuration(field: &str, message: impl std::fmt::Display) -> Self {
        Self::new(Code::InvalidArgument, ErrorReason::UserConfiguration, format!("{field}: {message}"))
    }

    /// Something that the user must do first is missing; the message says what.
    pub fn user_action_required(message: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, ErrorReason::UserActionRequired, message)
    }

    /// Something else changed the same resource; the same call may work now.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Code::Aborted, ErrorReason::Conflict, message)
    }

    /// There was no answer in time.
    pub fn deadline_exceeded(message: impl Into<String>) -> Self {
        Self::new(Code::DeadlineExceeded, ErrorReason::Unspecified, message)
    }

    /// The caller does not hold the lease.
    pub fn not_leading(message: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, ErrorReason::NotLeading, message)
    }

    /// The caller's epoch is not newer than the highest that was seen: the core leads under a higher one from then on.
    pub fn superseded(highest_epoch: u64, message: impl Into<String>) -> Self {
        let metadata = BTreeMap::from([("highest_epoch", highest_epoch.to_string())]);
        Self { metadata, ..Self::not_leading(message) }
    }

    /// A resource in the way belongs to another cluster or another service.
    pub fn not_owned(message: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, ErrorReason::NotOwned, message)
    }

    /// Something failed in a way that the provider cannot name: the core tries again and deletes nothing because of it.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(Code::Unknown, ErrorReason::Unspecified, message)
    }

    /// The provider or the SDK is at fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, ErrorReason::Unspecified, message)
    }

    /// The request breaks the contract; `field` is the path of the field in the request (`queries[2].node_name`).
    pub fn invalid_request(field: &str, message: impl std::fmt::Display) -> Self {
        Self::new(Code::InvalidArgument, ErrorReason::Unspecified, format!("{field}: {message}"))
    }

    /// The error and all that caused it, for the log.
    pub fn chain(&self) -> String {
        let causes = std::iter::successors(self.source(), |cause| (*cause).source());
        causes.fold(self.message.clone(), |text, cause| format!("{text}: {cause}"))
    }

    /// The reason as it crosses the wire, `None` if there is none: `NOT_LEADING`.
    fn wire_reason(&self) -> Option<&'static str> {
        let name = self.reason.as_str_name();
        let reason = name.strip_prefix("ERROR_REASON_").unwrap_or(name);
        (self.reason != ErrorReason::Unspecified).then_some(reason)
    }
}

impl From<ProviderError> for Status {
    fn from(error: ProviderError) -> Self {
        let mut details = ErrorDetails::new();
        if let Some(reason) = error.wire_reason() {
            let metadata: HashMap<_, _> = error.metadata.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
            details.set_error_info(reason, ERROR_DOMAIN, metadata);
        }
        if error.retry_after.is_some() {
            details.set_retry_info(error.retry_after);
        }
        Self::with_error_details(error.code, error.message, details)
    }
}

impl From<ProviderError> for ItemError {
    fn from(error: ProviderError) -> Self {
        Self {
            code: error.code.into(),
            reason: error.reason.into(),
            message: error.message,
            retry_after: error.retry_after.and_then(|after| after.try_into().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_status_carries_the_reason_without_its_prefix_and_when_to_come_back() {
        let status = Status::from(ProviderError::rate_limited("slow down", Some(Duration::from_secs(7))));

        let info = status.get_details_error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("RATE_LIMITED", "ccm.provider.v1"));
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(7)));
        assert_eq!(status.message(), "slow down");
    }

    #[test]
    fn an_error_without_a_reason_leaves_the_code_alone_to_decide() {
        let status = Status::from(ProviderError::internal("broken"));

        assert_eq!(status.code(), Code::Internal);
        assert!(status.get_details_error_info().is_none());
    }

    #[test]
    fn an_error_of_unknown_kind_is_unknown_and_no_more() {
        let status = Status::from(ProviderError::unknown("?"));

        assert_eq!(status.code(), Code::Unknown);
        assert!(status.get_details_error_info().is_none());
    }

    #[test]
    fn an_item_says_what_a_status_would() {
        let item = ItemError::from(ProviderError::conflict("changed meanwhile").with_retry_after(Duration::from_millis(1500)));

        assert_eq!((item.code, item.reason()), (10, ErrorReason::Conflict));
        assert_eq!(item.retry_after.unwrap().nanos, 500_000_000);
    }

    #[test]
    fn the_chain_names_every_cause() {
        let cause = std::io::Error::other("connection refused");
        let error = ProviderError::unavailable("the cloud did not answer").with_source(cause);

        assert_eq!(error.chain(), "the cloud did not answer: connection refused");
    }
}
