//! Sabotage of leadership.
use std::sync::atomic::{AtomicU64, Ordering};

use ccm_proto::v1::{EnsureLoadBalancerDeletedRequest, LeadRequest, LeadResponse, LoadBalancerDeleted};
use prost_types::Duration as Seconds;
use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt as _};

use super::edits::{answer, instead, request, status};
use super::{Edits, Sabotage};
use crate::rpc::{Rpc, name};

/// All of them.
pub fn all() -> Vec<Sabotage> {
    [streams(), fences()].into_iter().flatten().collect()
}

fn streams() -> Vec<Sabotage> {
    vec![
        Sabotage::new("acknowledges-zero", &["LEAD-2"], answer::<LeadRequest>(|_, answer| answer.epoch = 0)),
        Sabotage::new(
            "no-highest-epoch",
            &["LEAD-9"],
            status(|path, status| {
                if name(path) != "Lead" {
                    return status;
                }
                let reason = status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default();
                let details = ErrorDetails::with_error_info(reason, "ccm.provider.v1", [("a".to_owned(), "b".to_owned())]);
                Status::with_error_details(status.code(), status.message(), details)
            }),
        ),
        Sabotage::new(
            "valid-for-anything",
            &["LEAD-17"],
            request::<LeadRequest>(|asked| {
                if asked.valid_for.is_some_and(|time| time.seconds < 1 || time.seconds > 3600) {
                    asked.valid_for = Some(Seconds { seconds: 60, nanos: 0 });
                }
            }),
        ),
        Sabotage::new(
            "an-hour-is-too-long",
            &["LEAD-4"],
            request::<LeadRequest>(|asked| {
                asked.valid_for.iter_mut().filter(|time| time.seconds == 3600).for_each(|time| time.seconds = 3601);
            }),
        ),
        Sabotage::new(
            "incomplete-leads",
            &["LEAD-19"],
            request::<LeadRequest>(|asked| {
                if asked.holder.is_empty() {
                    asked.holder = "nobody".into();
                }
            }),
        ),
        Sabotage::new(
            "never-expires",
            &["LEAD-18", "LEAD-10"],
            request::<LeadRequest>(|asked| {
                asked.valid_for.iter_mut().filter(|time| time.seconds == 1).for_each(|time| time.seconds = 60);
            }),
        ),
        Sabotage::new("holder-may-change", &["LEAD-3", "LEAD-15"], same_holder()),
        Sabotage::new(
            "anybody-reconnects",
            &["LEAD-15", "LEAD-3"],
            request::<LeadRequest>(|asked| {
                if asked.holder == "somebody-else" {
                    asked.holder = "provider-conformance".into();
                }
            }),
        ),
        Sabotage::new("nobody-reconnects", &["LEAD-7"], once_each()),
        Sabotage::new("lower-leads", &["LEAD-14", "LEAD-8"], ever_higher()),
    ]
}

/// The provider always sees the suite's own holder in later messages.
fn same_holder() -> Edits {
    let last = AtomicU64::new(0);
    request::<LeadRequest>(move |asked| {
        let seen = last.swap(asked.epoch, Ordering::Relaxed);
        if seen == asked.epoch && asked.holder == "somebody-else" && asked.valid_for.is_some() {
            asked.holder = "provider-conformance".into();
        }
    })
}

/// Each epoch leads once.
fn once_each() -> Edits {
    let seen = parking_lot::Mutex::new(Vec::new());
    instead::<LeadRequest>(move |asked| {
        let mut seen = seen.lock();
        let again = seen.contains(&asked.epoch) && asked.valid_for.is_some();
        seen.push(asked.epoch);
        let details = ErrorDetails::with_error_info("NOT_LEADING", "ccm.provider.v1", [("a".to_owned(), "b".to_owned())]);
        again.then(|| Err(Status::with_error_details(tonic::Code::FailedPrecondition, "again", details)))
    })
}

/// A stream below the highest epoch seen is acknowledged, and leads nothing.
fn ever_higher() -> Edits {
    let highest = AtomicU64::new(0);
    instead::<LeadRequest>(move |asked| {
        let seen = highest.fetch_max(asked.epoch, Ordering::Relaxed);
        let whole = asked.epoch > 1 && asked.cluster.is_some() && asked.valid_for.is_some();
        (whole && asked.epoch < seen).then(|| Ok(LeadResponse { epoch: asked.epoch }))
    })
}

fn fences() -> Vec<Sabotage> {
    vec![
        Sabotage::new("unled-deletes", &["LEAD-10"], unled()),
        Sabotage::new(
            "leadership-before-request",
            &["ERR-7"],
            instead::<EnsureLoadBalancerDeletedRequest>(|asked| {
                let details = ErrorDetails::with_error_info("NOT_LEADING", "ccm.provider.v1", [("a".to_owned(), "b".to_owned())]);
                let unled = asked.leadership.is_none() && asked.cluster.is_none();
                unled.then(|| Err(Status::with_error_details(tonic::Code::FailedPrecondition, "not led", details)))
            }),
        ),
        Sabotage::new(
            "lead-outlives-its-stream",
            &["LEAD-10", "LEAD-7", "LEAD-12", "LEAD-11"],
            Edits { lead_outlives: true, ..Edits::default() },
        ),
    ]
}

/// Every removal is done, whoever leads.
fn unled() -> Edits {
    let success = || ccm_proto::v1::EnsureLoadBalancerDeletedResponse {
        outcome: Some(ccm_proto::v1::ensure_load_balancer_deleted_response::Outcome::Done(LoadBalancerDeleted {})),
    };
    Edits {
        answer: Some(Box::new(move |path, _, answer| match answer {
            Err(status) if path == EnsureLoadBalancerDeletedRequest::PATH && is_not_leading(&status) => {
                Ok(prost::Message::encode_to_vec(&success()).into())
            }
            other => other,
        })),
        ..Edits::default()
    }
}

fn is_not_leading(status: &Status) -> bool {
    status.get_error_details().error_info().is_some_and(|info| info.reason == "NOT_LEADING")
}
