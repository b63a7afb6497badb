//! The contract's error table, row by row.
#![allow(clippy::unwrap_used)]
use std::collections::HashMap;

use tonic_types::{ErrorDetails, StatusExt as _};

use super::*;

const AFTER: Duration = Duration::from_secs(7);

fn with_reason(code: Code, reason: &str, domain: &str) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(reason, domain, HashMap::new()).set_retry_info(Some(AFTER));
    Status::with_error_details(code, "words", details)
}

#[test]
fn each_reason_of_the_contract_has_its_outcome() {
    let again = Outcome::Retry { after: Some(AFTER) };
    for (code, reason, expected) in [
        (Code::FailedPrecondition, "NOT_LEADING", again),
        (Code::FailedPrecondition, "NODE_SET_UNKNOWN", again),
        (Code::FailedPrecondition, "PROTOCOL_VERSION_UNSUPPORTED", Outcome::Terminal),
        (Code::Unauthenticated, "CREDENTIALS_INVALID", Outcome::Terminal),
        (Code::PermissionDenied, "PERMISSION_MISSING", Outcome::Terminal),
        (Code::ResourceExhausted, "RATE_LIMITED", again),
        (Code::ResourceExhausted, "QUOTA_EXCEEDED", Outcome::Terminal),
        (Code::InvalidArgument, "USER_CONFIGURATION", Outcome::Terminal),
        (Code::FailedPrecondition, "USER_ACTION_REQUIRED", Outcome::Terminal),
        (Code::Unavailable, "CLOUD_UNAVAILABLE", again),
        (Code::Aborted, "CONFLICT", again),
        (Code::InvalidArgument, "BATCH_TOO_LARGE", again),
        (Code::FailedPrecondition, "NOT_OWNED", Outcome::Terminal),
        (Code::Unimplemented, "NOT_IMPLEMENTED", Outcome::Unsupported),
    ] {
        let expected = ProviderError { outcome: expected, reason: reason.to_owned(), message: "words".to_owned() };
        assert_eq!(status(&with_reason(code, reason, DOMAIN)), expected, "{reason} of a call");
        let number = v1::ErrorReason::from_str_name(&format!("ERROR_REASON_{reason}")).unwrap().into();
        let retry_after = Some(prost_types::Duration { seconds: 7, nanos: 0 });
        let alone = v1::ItemError { code: code as i32, reason: number, message: "words".to_owned(), retry_after };
        // That one item is not served says nothing of the method.
        let terminal = ProviderError { outcome: Outcome::Terminal, ..expected.clone() };
        let expected = if code == Code::Unimplemented { terminal } else { expected };
        assert_eq!(item(&alone), expected, "{reason} of an item");
    }
}

#[test]
fn without_a_reason_the_code_decides() {
    for (code, expected) in [
        (Code::Cancelled, Outcome::Unknown),
        (Code::Unknown, Outcome::Unknown),
        (Code::DeadlineExceeded, Outcome::Unknown),
        (Code::InvalidArgument, Outcome::Terminal),
        (Code::NotFound, Outcome::Retry { after: None }),
        (Code::AlreadyExists, Outcome::Terminal),
        (Code::PermissionDenied, Outcome::Terminal),
        (Code::ResourceExhausted, Outcome::Retry { after: None }),
        (Code::FailedPrecondition, Outcome::Terminal),
        (Code::Aborted, Outcome::Retry { after: None }),
        (Code::OutOfRange, Outcome::Terminal),
        (Code::Unimplemented, Outcome::Unsupported),
        (Code::Internal, Outcome::Retry { after: None }),
        (Code::Unavailable, Outcome::Retry { after: None }),
        (Code::DataLoss, Outcome::Retry { after: None }),
        (Code::Unauthenticated, Outcome::Terminal),
    ] {
        let found = status(&Status::new(code, "words"));
        assert_eq!((found.outcome, found.reason.as_str()), (expected, name(code)), "{code:?}");
    }
}

#[test]
fn only_the_reason_limits_the_rate_of_all_calls() {
    assert!(status(&with_reason(Code::ResourceExhausted, "RATE_LIMITED", DOMAIN)).is_rate_limit());
    assert!(!status(&Status::resource_exhausted("the message is too large")).is_rate_limit());
    assert!(!status(&with_reason(Code::ResourceExhausted, "QUOTA_EXCEEDED", DOMAIN)).is_rate_limit());
}

#[test]
fn a_longer_pause_than_five_minutes_counts_as_five() {
    let mut details = ErrorDetails::new();
    details.set_retry_info(Some(Duration::from_hours(1)));
    let found = status(&Status::with_error_details(Code::Unavailable, "words", details));
    assert_eq!(found.outcome, Outcome::Retry { after: Some(Duration::from_mins(5)) });
}

#[test]
fn details_of_others_or_that_cannot_be_read_are_ignored() {
    assert_eq!(status(&with_reason(Code::Aborted, "NOT_LEADING", "example.com")).reason, "ABORTED");
    assert_eq!(status(&with_reason(Code::Aborted, "no reason <b>", DOMAIN)).reason, "ABORTED");
    let garbage = Status::with_details(Code::Unavailable, "words", vec![0xff, 0x01, 0x02].into());
    assert_eq!(status(&garbage).outcome, Outcome::Retry { after: None });
}

#[test]
fn odd_errors_of_items_stay_errors() {
    let odd = |code, reason, seconds| v1::ItemError {
        code,
        reason,
        message: String::new(),
        retry_after: Some(prost_types::Duration { seconds, nanos: 0 }),
    };
    assert_eq!(item(&odd(0, 0, 1)).reason, "INTERNAL", "an error with the code OK");
    assert_eq!(item(&odd(999, 0, 1)).outcome, Outcome::Unknown, "a code that does not exist");
    assert_eq!(item(&odd(14, 999, -1)).outcome, Outcome::Retry { after: None }, "a reason of the future, a delay in the past");
    assert_eq!(item(&odd(14, 0, i64::MAX)).outcome, Outcome::Retry { after: Some(MAX_RETRY) });
    assert_eq!(item(&odd(14, 0, 1)).message, "the provider gave no message");
}

#[test]
fn a_lost_connection_leaves_the_outcome_unknown() {
    let lost = Status::from_error("broken pipe".into());
    let found = status(&lost);
    assert_eq!(found.outcome, Outcome::Unknown);
    assert_eq!(found.message, "the connection to the provider was lost: broken pipe");
}

#[test]
fn long_messages_are_cut_between_characters() {
    let message = "ü".repeat(MAX_MESSAGE);
    let found = status(&Status::unavailable(message));
    assert_eq!(found.message.len(), MAX_MESSAGE);
}
