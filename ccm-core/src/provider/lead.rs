//! Tells the provider that this process leads, for exactly as long as it does: one stream per term and connection.
use std::pin::pin;
use std::time::{Duration, Instant};

use ccm_proto::v1;
use futures::{Stream, StreamExt, stream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};

use super::backoff::Backoff;
use super::classify;
use super::grpc::Method;
use super::session::{Live, LiveReceiver};
use crate::model::provider_info::Capability;
use crate::model::term::Term;

/// How long the provider may take to end a stream that this side has ended.
const FAREWELL: Duration = Duration::from_secs(1);
/// A stream that lasted so long was a good one.
const LASTING: Duration = Duration::from_secs(30);

type Terms = watch::Receiver<Option<Term>>;

/// Keeps a stream open whenever there are both a term and a provider that takes it.
pub async fn keep(mut live: LiveReceiver, terms: Terms, cluster: v1::ClusterRef) {
    loop {
        let now = live.borrow_and_update().clone().filter(|it| it.info.capabilities.contains(&Capability::Lead));
        let leading = async {
            match now {
                Some(provider) => lead(&provider, terms.clone(), &cluster).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = leading => {}
            changed = live.changed() => if changed.is_err() { return },
        }
    }
}

/// Term after term on one connection.
async fn lead(provider: &Live, mut terms: Terms, cluster: &v1::ClusterRef) {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
    loop {
        let Ok(term) = terms.wait_for(Option::is_some).await.map(|it| it.clone()) else {
            return std::future::pending().await;
        };
        let Some(term) = term else { continue };
        let started = Instant::now();
        match hold(provider, &term, terms.clone(), cluster).await {
            Ok(()) if is_over(&term, terms.borrow().as_ref()) => {
                tracing::info!(epoch = term.epoch, "the Lead stream ended with the term");
            }
            Ok(()) => warn(&term, &Status::unavailable("the provider ended the stream")),
            Err(status) => warn(&term, &status),
        }
        if started.elapsed() >= LASTING {
            backoff.reset();
        }
        if !is_over(&term, terms.borrow().as_ref()) {
            sleep(backoff.delay()).await;
        }
    }
}

/// One stream, until the term is over or the provider ends it.
async fn hold(provider: &Live, term: &Term, terms: Terms, cluster: &v1::ClusterRef) -> Result<(), Status> {
    let connection = &provider.connection;
    let mut over = terms.clone();
    let words = words(term.clone(), terms, cluster.clone());
    let mut answers = pin!(async move {
        let mut client = connection.identity();
        let mut answers = connection.call(Method::Lead, words, |it| async move { client.lead(it).await }).await?;
        tracing::info!(epoch = term.epoch, "the provider was told that this process leads");
        while let Some(answer) = answers.message().await? {
            connection.heard();
            tracing::trace!(epoch = answer.epoch, "the provider acknowledged the term");
        }
        Ok(())
    });
    let over = async { drop(over.wait_for(|now| is_over(term, now.as_ref())).await) };
    tokio::select! {
        ended = &mut answers => ended,
        () = over => timeout(FAREWELL, answers).await.unwrap_or(Ok(())),
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
            valid_for: prost_types::Duration::try_from(now.valid_until.saturating_duration_since(Instant::now())).ok(),
            holder: now.holder.to_string(),
            cluster: Some(cluster.clone()),
        };
        Some((word, (now, terms, cluster)))
    })
    .boxed()
}

/// Whether a stream of this term must end: another epoch needs another stream.
fn is_over(term: &Term, now: Option<&Term>) -> bool {
    now.is_none_or(|now| now.epoch != term.epoch || now.holder != term.holder)
}

fn warn(term: &Term, status: &Status) {
    let epoch = term.epoch;
    match classify::reason(status).as_deref() {
        Some("NOT_LEADING") => tracing::warn!(
            epoch,
            "the provider has seen a leader of this or a higher epoch: {}; if no other core leads, its epoch in the ConfigMap \
             ccm-core-PROVIDER was reset: restart the provider, or wait for the next change of leader",
            status.message()
        ),
        _ if classify::is_lost(status) => tracing::debug!(epoch, "the Lead stream went with the connection"),
        _ if status.code() == Code::Unimplemented => tracing::warn!(epoch, "the provider lists LEAD and does not serve it"),
        _ => tracing::warn!(epoch, code = classify::name(status.code()), "the Lead stream failed: {}", status.message()),
    }
}
