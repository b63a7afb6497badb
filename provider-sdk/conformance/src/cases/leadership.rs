//! `Lead`: which stream leads, and what ends one.
use std::time::Duration;

use ccm_proto::v1::{Capability, ClusterRef, LeadRequest};
use prost_types::Duration as Seconds;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::case::{Case, Checked, Need, check};
use crate::context::{Context, eventually, failed};
use crate::exchange::describe;
use crate::rpc::Rpc;

pub mod mutations;

const LEAD: &[Need] = &[Need::Capability(Capability::Lead), Need::Mutations];

/// How long the end of a connection may take to be noticed.
pub const NOTICED: Duration = Duration::from_secs(10);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new("leadership/acknowledged", "each message of Lead is acknowledged with its epoch", &["LEAD-2"], LEAD, |c| {
        Box::pin(acknowledged(c))
    }),
    Case::new(
        "leadership/higher",
        "a stream with a higher epoch replaces the live one, which ends",
        &["LEAD-6", "LEAD-18", "ERR-1"],
        LEAD,
        |c| Box::pin(higher(c)),
    ),
    Case::new(
        "leadership/lower",
        "a stream with a lower epoch is refused, and the live one stays",
        &["LEAD-8", "LEAD-14", "ERR-1"],
        LEAD,
        |c| Box::pin(lower(c)),
    ),
    Case::new("leadership/highest-epoch", "a refusal names the highest epoch seen", &["LEAD-9"], LEAD, |c| {
        Box::pin(highest_epoch(c))
    }),
    Case::new(
        "leadership/same-epoch",
        "a second stream with the epoch of the live one is refused, from its holder and from another",
        &["LEAD-8", "LEAD-15"],
        LEAD,
        |c| Box::pin(same_epoch(c)),
    ),
    Case::new(
        "leadership/reconnect",
        "a holder whose stream ended comes back with the same epoch, and no other holder does",
        &["LEAD-7", "LEAD-15"],
        LEAD,
        |c| Box::pin(reconnect(c)),
    ),
    Case::new(
        "leadership/valid-for",
        "a message that is valid for no time, for less, or for more than an hour is refused",
        &["LEAD-4", "LEAD-17"],
        LEAD,
        |c| Box::pin(valid_for(c)),
    ),
    Case::new("leadership/hour", "an hour is not too long", &["LEAD-4"], LEAD, |c| Box::pin(hour(c))),
    Case::new("leadership/incomplete", "a message with a missing field is refused", &["LEAD-19"], LEAD, |c| {
        Box::pin(incomplete(c))
    }),
    Case::new(
        "leadership/changed",
        "a stream whose epoch, holder or cluster changes is ended",
        &["LEAD-3", "LEAD-19"],
        LEAD,
        |c| Box::pin(changed(c)),
    ),
    Case::new("leadership/expiry", "a stream without a message for valid_for is ended", &["LEAD-18", "ERR-1"], LEAD, |c| {
        Box::pin(expiry(c))
    }),
];

async fn acknowledged(c: &Context) -> Checked {
    let mut lead = c.lead().await?;
    for seconds in [60, 30, 120] {
        let request = LeadRequest { valid_for: seconds_of(seconds), ..lead.first.clone() };
        let epoch = request.epoch;
        let answer = lead.renew(request).await.map_err(|status| failed("LEAD-2", LeadRequest::PATH, &status))?;
        check("LEAD-2", answer.epoch == epoch, format!("epoch {epoch} was acknowledged with {}", answer.epoch))?;
    }
    Ok(())
}

#[allow(clippy::unnecessary_wraps)] // as the field of the messages
fn seconds_of(seconds: i64) -> Option<Seconds> {
    Some(Seconds { seconds, nanos: 0 })
}

async fn higher(c: &Context) -> Checked {
    let mut old = c.lead().await?;
    let _new = c.lead().await?;
    old.ends("LEAD-18", Code::FailedPrecondition, "NOT_LEADING").await.map(drop)
}

async fn refuse_lower(c: &Context) -> Checked<(u64, Status)> {
    let earlier = c.lead_request();
    let mut live = c.lead().await?;
    let status = c.lead_refused("LEAD-14", earlier, Code::FailedPrecondition, "NOT_LEADING").await?;
    let renewal = live.renew(live.first.clone()).await;
    renewal.map_err(|status| failed("LEAD-8", LeadRequest::PATH, &status))?;
    Ok((live.first.epoch, status))
}

async fn lower(c: &Context) -> Checked {
    refuse_lower(c).await.map(drop)
}

async fn highest_epoch(c: &Context) -> Checked {
    let (epoch, status) = refuse_lower(c).await?;
    let details = status.get_error_details();
    let named = details.error_info().and_then(|info| info.metadata.get("highest_epoch").cloned());
    check("LEAD-9", named == Some(epoch.to_string()), format!("the highest epoch is {epoch}; the refusal: {}", describe(&status)))
}

async fn same_epoch(c: &Context) -> Checked {
    let live = c.lead().await?;
    let other = LeadRequest { holder: "somebody-else".into(), ..live.first.clone() };
    for second in [live.first.clone(), other] {
        c.lead_refused("LEAD-15", second, Code::FailedPrecondition, "NOT_LEADING").await?;
    }
    Ok(())
}

async fn reconnect(c: &Context) -> Checked {
    let first = c.lead().await?.first;
    // The stream has been dropped; the provider may need a moment to notice.
    let again = eventually("LEAD-7", "the holder of an ended stream is accepted with its epoch", NOTICED, async || {
        Ok(c.try_lead(&c.channel, first.clone()).await.ok())
    });
    drop(again.await?);
    let other = LeadRequest { holder: "somebody-else".into(), ..first };
    c.lead_refused("LEAD-15", other, Code::FailedPrecondition, "NOT_LEADING").await.map(drop)
}

async fn valid_for(c: &Context) -> Checked {
    for seconds in [0, -1, 3601] {
        let request = LeadRequest { valid_for: seconds_of(seconds), ..c.lead_request() };
        c.lead_refused("LEAD-17", request, Code::InvalidArgument, "").await?;
    }
    Ok(())
}

async fn hour(c: &Context) -> Checked {
    let request = LeadRequest { valid_for: seconds_of(3600), ..c.lead_request() };
    let answer = c.try_lead(&c.channel, request).await;
    answer.map(drop).map_err(|status| failed("LEAD-4", LeadRequest::PATH, &status))
}

async fn incomplete(c: &Context) -> Checked {
    let no_uid = ClusterRef { uid: String::new(), ..c.suite.cluster.clone() };
    let requests = [
        LeadRequest { epoch: 0, ..c.lead_request() },
        LeadRequest { valid_for: None, ..c.lead_request() },
        LeadRequest { holder: String::new(), ..c.lead_request() },
        LeadRequest { cluster: None, ..c.lead_request() },
        LeadRequest { cluster: Some(no_uid), ..c.lead_request() },
    ];
    for request in requests {
        c.lead_refused("LEAD-19", request, Code::InvalidArgument, "").await?;
    }
    Ok(())
}

async fn changed(c: &Context) -> Checked {
    let other = ClusterRef { uid: format!("{}-other", c.suite.cluster.uid), ..c.suite.cluster.clone() };
    for field in 0..3 {
        let mut lead = c.lead().await?;
        let first = lead.first.clone();
        let next = match field {
            0 => LeadRequest { epoch: c.suite.next_epoch(), ..first },
            1 => LeadRequest { holder: "somebody-else".into(), ..first },
            _ => LeadRequest { cluster: Some(other.clone()), ..first },
        };
        let answer = lead.renew(next.clone()).await;
        let refused = answer.as_ref().err().is_some_and(|status| status.code() == Code::InvalidArgument);
        check("LEAD-3", refused, format!("expected InvalidArgument for the second message {next:?}, got {answer:?}"))?;
    }
    Ok(())
}

async fn expiry(c: &Context) -> Checked {
    let mut lead = c.lead_as(LeadRequest { valid_for: seconds_of(1), ..c.lead_request() }).await?;
    lead.ends("LEAD-18", Code::FailedPrecondition, "NOT_LEADING").await.map(drop)
}
