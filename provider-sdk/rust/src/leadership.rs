//! Who leads, as the Lead streams say: epochs that only grow, words that expire by this process's own monotonic clock, and
//! the tokens that stop work when a leadership ends. It knows neither streams nor providers.
use std::sync::Arc;
use std::time::Duration;

use ccm_proto::v1;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::context::LeaderContext;
use crate::error::ProviderError;
use crate::provider::Result;

/// How long a reconnecting leader is given for its own last stream to be noticed as closed.
const HANDOVER: Duration = Duration::from_secs(1);
/// The longest `valid_for` that the contract allows. A longer one is refused, not shortened: the core relies on it.
const LONGEST_WORD: Duration = Duration::from_hours(1);

/// The state of leadership in this process.
#[derive(Default)]
pub(crate) struct Leadership {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The highest epoch seen, and its holder.
    highest: Option<(u64, String)>,
    live: Option<Live>,
}

struct Live {
    epoch: u64,
    cluster: v1::ClusterRef,
    expires: Instant,
    lost: CancellationToken,
}

/// A mutation's licence: the epoch and cluster it runs under and the token that ends it.
#[derive(Debug)]
pub(crate) struct Licence {
    pub(crate) epoch: u64,
    pub(crate) cluster: v1::ClusterRef,
    pub(crate) lost: CancellationToken,
}

/// One stream's leadership. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Term {
    leadership: Arc<Leadership>,
    context: LeaderContext,
    lost: CancellationToken,
}

impl Leadership {
    /// Begins the leadership that the first message of a stream announces, and ends an older one.
    pub(crate) async fn begin(self: &Arc<Self>, word: &v1::LeadRequest) -> Result<Term> {
        let cluster = validate(word)?;
        if let Some(previous) = self.reconnected(word) {
            // Whichever way this ends, `install` decides.
            let _ = timeout(HANDOVER, previous.cancelled()).await;
        }
        let lost = self.install(word, &cluster)?;
        let context = LeaderContext::new(word.epoch, &word.holder, cluster, lost.clone());
        Ok(Term { leadership: Arc::clone(self), context, lost })
    }

    /// The token of this very leader's earlier stream, if that still counts as open.
    fn reconnected(&self, word: &v1::LeadRequest) -> Option<CancellationToken> {
        let state = self.state.lock();
        let same = state.highest.as_ref().is_some_and(|(epoch, holder)| *epoch == word.epoch && *holder == word.holder);
        state.live.as_ref().filter(|_| same).map(|live| live.lost.clone())
    }

    fn install(&self, word: &v1::LeadRequest, cluster: &v1::ClusterRef) -> Result<CancellationToken> {
        let mut state = self.state.lock();
        if let Some((epoch, holder)) = &state.highest {
            let reconnects = word.epoch == *epoch && word.holder == *holder && state.live.is_none();
            if word.epoch <= *epoch && !reconnects {
                let message = format!("epoch {} is not newer than {epoch}, under which {holder} leads or led", word.epoch);
                return Err(ProviderError::superseded(*epoch, message));
            }
        }
        if let Some(replaced) = state.live.take() {
            replaced.lost.cancel();
        }
        let lost = CancellationToken::new();
        let expires = Instant::now() + valid_for(word)?;
        state.highest = Some((word.epoch, word.holder.clone()));
        state.live = Some(Live { epoch: word.epoch, cluster: cluster.clone(), expires, lost: lost.clone() });
        Ok(lost)
    }

    /// Whether a mutation with this proof may run now, and until when. `cluster`: the one that the call names, if it does.
    pub(crate) fn admit(&self, proof: Option<&v1::Leadership>, cluster: Option<&v1::ClusterRef>) -> Result<Licence> {
        let epoch = proof.map_or(0, |proof| proof.epoch);
        let state = self.state.lock();
        let live = state.live.as_ref().filter(|live| Instant::now() < live.expires && !live.lost.is_cancelled());
        let Some(live) = live else {
            return Err(ProviderError::not_leading(
                "no Lead stream is open: the caller must open one before it changes anything",
            ));
        };
        if live.epoch != epoch {
            let message = format!("the call has epoch {epoch}, the Lead stream that is open has {}", live.epoch);
            return Err(ProviderError::not_leading(message));
        }
        if let Some(cluster) = cluster.filter(|cluster| cluster.uid != live.cluster.uid) {
            let message = format!("the call is for cluster {}, the Lead stream for {}", cluster.uid, live.cluster.uid);
            return Err(ProviderError::not_leading(message));
        }
        Ok(Licence { epoch, cluster: live.cluster.clone(), lost: live.lost.clone() })
    }

    /// Ends whatever leadership there is.
    pub(crate) fn end(&self) {
        if let Some(live) = self.state.lock().live.take() {
            live.lost.cancel();
        }
    }
}

impl Term {
    /// What the provider is told.
    pub(crate) fn context(&self) -> LeaderContext {
        self.context.clone()
    }

    /// Takes a further message of the stream. An error ends the stream, and the leadership with it.
    pub(crate) fn renew(&self, word: &v1::LeadRequest) -> Result<()> {
        for (field, same) in [
            ("epoch", word.epoch == self.context.epoch()),
            ("holder", word.holder == self.context.holder()),
            ("cluster", word.cluster.as_ref() == Some(self.context.cluster())),
        ] {
            if !same {
                return Err(ProviderError::invalid_request(field, "must be the same in all messages of one stream"));
            }
        }
        let expires = Instant::now() + valid_for(word)?;
        if let Some(live) = self.leadership.state.lock().live.as_mut().filter(|live| live.epoch == word.epoch) {
            live.expires = expires;
        }
        Ok(())
    }

    /// Completes when the leadership must stop, with the reason: another leader, the server's end, or an expired word.
    pub(crate) async fn over(&self) -> ProviderError {
        while let Some(expires) = self.expires() {
            if expires <= Instant::now() {
                return ProviderError::not_leading("the leader's last word has expired");
            }
            tokio::select! {
                () = self.lost.cancelled() => break,
                () = sleep_until(expires) => {}
            }
        }
        ProviderError::not_leading("another leader has come, or the provider is shutting down")
    }

    fn expires(&self) -> Option<Instant> {
        let state = self.leadership.state.lock();
        state.live.as_ref().filter(|_| !self.lost.is_cancelled()).map(|live| live.expires)
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        let mut state = self.leadership.state.lock();
        if !self.lost.is_cancelled() {
            state.live = None;
            self.lost.cancel();
        }
    }
}

impl std::fmt::Debug for Leadership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leadership").field("highest", &self.state.lock().highest).finish_non_exhaustive()
    }
}

fn validate(word: &v1::LeadRequest) -> Result<v1::ClusterRef> {
    let cluster = word.cluster.clone().filter(|cluster| !cluster.uid.is_empty());
    let cluster = cluster.ok_or_else(|| ProviderError::invalid_request("cluster.uid", "required"))?;
    if word.holder.is_empty() {
        return Err(ProviderError::invalid_request("holder", "required"));
    }
    if word.epoch == 0 {
        return Err(ProviderError::invalid_request("epoch", "must be at least 1"));
    }
    valid_for(word)?;
    Ok(cluster)
}

fn valid_for(word: &v1::LeadRequest) -> Result<Duration> {
    let given = word.valid_for.and_then(|valid_for| Duration::try_from(valid_for).ok());
    let allowed = given.filter(|valid_for| !valid_for.is_zero() && *valid_for <= LONGEST_WORD);
    allowed.ok_or_else(|| ProviderError::invalid_request("valid_for", "must be a positive duration of at most 1 h"))
}

#[cfg(test)]
#[path = "leadership/tests.rs"]
mod tests;
