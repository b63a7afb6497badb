//! Announces to the provider that this process leads, for exactly as long as it does: one stream per term and connection. It
//! reports whether the provider accepts that, and changes no epoch: the code that runs the term handles a refused one.
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ccm_proto::v1;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream, StreamExt, stream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::backoff::Backoff;
use super::classify;
use super::grpc::Method;
use super::session::{Live, LiveReceiver};
use crate::model::provider_info::Capability;
use crate::model::term::Term;

mod old_streams;
#[cfg(test)]
mod tests;

use old_streams::OldStreams;

/// How long the provider may take to end a stream that this side has ended.
const FAREWELL: Duration = Duration::from_secs(1);
/// The longest `valid_for` that the contract allows.
const LONGEST: Duration = Duration::from_hours(1);
/// A stream that lasted this long was a good one.
const LASTING: Duration = Duration::from_secs(30);
/// How often one epoch is offered in vain before it counts as refused, unless the provider names a higher one: it may not have
/// noticed yet that an earlier stream of the same epoch has ended.
const ATTEMPTS: u32 = 5;

type Terms = watch::Receiver<Option<Term>>;

/// Whether the provider accepts the leadership term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeadStatus {
    /// The provider has not answered yet.
    #[default]
    Pending,
    /// The provider acknowledged the term of this epoch.
    Accepted {
        /// The term's epoch.
        epoch: u64,
    },
    /// The provider refuses the term, and will refuse it again.
    Refused(Refusal),
}

/// A `Lead` that was answered by `NOT_LEADING`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The epoch that was refused.
    pub epoch: u64,
    /// The highest epoch that the provider has seen, if it names one that is higher.
    pub highest: Option<u64>,
    /// The provider's words.
    pub message: String,
}

/// Keeps a stream open whenever there are both a term and a provider that takes it, of the cloud that the term is for. A stream on
/// a connection that drains stays until the connection or the term ends: calls and detached work may still run under it. Where one
/// process is behind both connections, it refuses a second stream of the epoch: then the old stream ends with its calls.
pub async fn keep(mut live: LiveReceiver, mut terms: Terms, cluster: v1::ClusterRef, status: watch::Sender<LeadStatus>) {
    let mut draining = FuturesUnordered::new();
    let old = OldStreams::default();
    loop {
        let (provider, term) = tokio::select! {
            pair = pair(&mut live, &mut terms) => match pair {
                Some(pair) => pair,
                None => return,
            },
            Some(()) = draining.next() => continue,
        };
        let mut leading = lead(Arc::clone(&provider), term, terms.clone(), cluster.clone(), status.clone(), old.clone()).boxed();
        let left = loop {
            tokio::select! {
                () = &mut leading => break false,
                () = gone(live.clone(), &provider) => break provider.connection.is_draining(),
                Some(()) = draining.next() => {}
            }
        };
        if left {
            tracing::info!(
                "the provider takes no more calls on its connection; Lead stays open there until running calls have ended"
            );
            draining.push(old.drain(provider, leading));
        }
    }
}

/// A provider that takes Lead, and a term for its cloud. None: the session has ended.
async fn pair(live: &mut LiveReceiver, terms: &mut Terms) -> Option<(Arc<Live>, Term)> {
    loop {
        let provider = live.see().filter(|it| takes_lead(it));
        let term = terms.borrow_and_update().clone();
        if let (Some(provider), Some(term)) = (provider, term)
            && term.cloud.is(&provider.info)
        {
            return Some((provider, term));
        }
        tokio::select! {
            changed = live.changed() => changed.then_some(())?,
            Ok(()) = terms.changed() => {}
        }
    }
}

fn takes_lead(provider: &Live) -> bool {
    provider.info.capabilities.contains(&Capability::Lead)
}

/// Returns when the connection may not be used any more, or does not take Lead. A provider that describes itself again on the same
/// connection, even as another cloud, keeps the stream until the term is over: mutations may still run under it.
async fn gone(mut live: LiveReceiver, provider: &Live) {
    let other =
        |now: &Option<Arc<Live>>| now.as_ref().is_none_or(|now| !takes_lead(now) || !now.connection.is(&provider.connection));
    live.until(other).await;
}

/// One term on one connection: stream after stream until the term is over.
async fn lead(
    provider: Arc<Live>,
    term: Term,
    terms: Terms,
    cluster: v1::ClusterRef,
    status: watch::Sender<LeadStatus>,
    old: OldStreams,
) {
    let term = &term;
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
    let mut refused = 0;
    loop {
        let started = Instant::now();
        let ended = hold(&provider, term, terms.clone(), &cluster, &status).await;
        if is_over(term, terms.borrow().as_ref()) {
            tracing::info!(epoch = term.epoch, "the Lead stream ended with the term");
            return;
        }
        match ended {
            Ended::Refused(refusal) if refusal.highest.is_none() && old.explain_refusal().await => continue,
            Ended::Refused(refusal) => {
                refused += 1;
                if refused >= ATTEMPTS || refusal.highest.is_some() {
                    status.send_replace(LeadStatus::Refused(refusal));
                    return over(term, terms.clone()).await;
                }
            }
            Ended::Failed(status) => warn(term, &status),
        }
        if started.elapsed() >= LASTING {
            backoff.reset();
        }
        sleep(backoff.delay()).await;
    }
}

/// How a stream ended.
enum Ended {
    /// By `NOT_LEADING`, before it was acknowledged.
    Refused(Refusal),
    /// Otherwise.
    Failed(Status),
}

/// One stream, until the term is over or the provider ends it.
async fn hold(provider: &Live, term: &Term, terms: Terms, cluster: &v1::ClusterRef, status: &watch::Sender<LeadStatus>) -> Ended {
    let connection = &provider.connection;
    // The transport holds the stream of words, and the provider sees no end of a stream of which one direction is open.
    let left = CancellationToken::new();
    let words = words(term.clone(), terms.clone(), cluster.clone()).take_until(left.clone().cancelled_owned());
    let _left = left.drop_guard();
    let mut accepted = false;
    let ended = {
        let accepted = &mut accepted;
        let mut answers = pin!(async move {
            let mut client = connection.identity();
            let mut answers = connection.call(Method::Lead, words, |it| async move { client.lead(it).await }).await?;
            while let Some(answer) = answers.message().await? {
                connection.heard();
                if !std::mem::replace(accepted, true) {
                    tracing::info!(epoch = answer.epoch, "the provider acknowledged the leadership term");
                    status.send_replace(LeadStatus::Accepted { epoch: term.epoch });
                }
            }
            Ok(())
        });
        tokio::select! {
            ended = &mut answers => ended,
            () = over(term, terms) => timeout(FAREWELL, answers).await.unwrap_or(Ok(())),
        }
    };
    match ended {
        Err(status) if !accepted && is_refusal(&status) => Ended::Refused(refusal(term, &status)),
        Err(status) => Ended::Failed(status),
        Ok(()) => Ended::Failed(Status::unavailable("the provider ended the stream")),
    }
}

/// What is said on one stream: at its opening and at each renewal, with the time that is left when it is said.
fn words(term: Term, mut terms: Terms, cluster: v1::ClusterRef) -> impl Stream<Item = v1::LeadRequest> + Send + 'static {
    terms.mark_changed();
    stream::unfold((term, terms, cluster), |(term, mut terms, cluster)| async move {
        terms.changed().await.ok()?;
        let now = terms.borrow_and_update().clone().filter(|now| !is_over(&term, Some(now)))?;
        let word = v1::LeadRequest {
            epoch: now.epoch,
            valid_for: prost_types::Duration::try_from(valid_for(&now)).ok(),
            holder: now.holder.to_string(),
            cluster: Some(cluster.clone()),
        };
        Some((word, (now, terms, cluster)))
    })
    .boxed()
}

/// The time that is left of a term, as far as one message may say.
fn valid_for(term: &Term) -> Duration {
    term.valid_until.saturating_duration_since(Instant::now()).min(LONGEST)
}

/// Whether a stream of this term must end: another epoch needs another stream.
fn is_over(term: &Term, now: Option<&Term>) -> bool {
    now.is_none_or(|now| now.epoch != term.epoch || now.holder != term.holder)
}

async fn over(term: &Term, mut terms: Terms) {
    drop(terms.wait_for(|now| is_over(term, now.as_ref())).await);
}

fn is_refusal(status: &Status) -> bool {
    classify::reason(status).as_deref() == Some("NOT_LEADING")
}

fn refusal(term: &Term, status: &Status) -> Refusal {
    let highest = classify::highest_epoch(status).filter(|highest| *highest > term.epoch);
    Refusal { epoch: term.epoch, highest, message: classify::shorten(status.message()).to_owned() }
}

fn warn(term: &Term, status: &Status) {
    let epoch = term.epoch;
    match status.code() {
        _ if classify::is_lost(status) => tracing::debug!(epoch, "the Lead stream went with the connection"),
        Code::Unimplemented => tracing::warn!(epoch, "the provider lists LEAD and does not serve it"),
        code => tracing::warn!(epoch, code = classify::name(code), "the Lead stream failed: {}", status.message()),
    }
}
