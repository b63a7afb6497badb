//! Which cloud was accepted, and which epoch is the highest, by the ConfigMap and by its mirror on the lease. Pure: it reads
//! and writes nothing.
use super::mirror::Mirror;
use super::{Stored, Unreadable};

#[cfg(test)]
mod tests;

/// What the records in the cluster say about earlier terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The accepted cloud identity; none: no cloud was accepted yet, or the record was lost.
    pub identity: Option<String>,
    /// The highest epoch that is known; 0 if there is none.
    pub epoch: u64,
    /// The ConfigMap is older than the last term, so its history is not the cluster's: an old copy was restored, or it is gone.
    pub set_back: bool,
}

/// Why a cloud is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is another one than the accepted one.
    Another {
        /// The accepted identity.
        accepted: String,
    },
    /// ccm-core worked in this cluster before, and the record of the accepted cloud is lost.
    Lost,
}

impl Accepted {
    /// From the records for a provider. The ConfigMap decides, unless it has no identity or is older than the mirror, as a restored
    /// old copy is. A mirror of another provider says nothing about the identity. An epoch that cannot be read is an error only if
    /// there is no mirror to replace it.
    pub fn of(provider: &str, stored: Option<&Stored>, mirror: Option<&Mirror>) -> Result<Self, Unreadable> {
        let ours = mirror.filter(|mirror| mirror.provider == provider);
        let epoch = match stored.map(|stored| &stored.epoch) {
            None => 0,
            Some(Ok(epoch)) => *epoch,
            Some(Err(_)) if ours.is_some() => 0,
            Some(Err(unreadable)) => return Err(unreadable.clone()),
        };
        let in_map = stored.and_then(|stored| stored.accepted_identity.clone());
        let in_mirror = ours.map(|mirror| mirror.cloud_identity.clone());
        let is_behind = ours.is_some_and(|mirror| epoch < mirror.epoch);
        let identity = if is_behind { in_mirror.or(in_map) } else { in_map.or(in_mirror) };
        Ok(Self { identity, epoch: epoch.max(mirror.map_or(0, |mirror| mirror.epoch)), set_back: is_behind })
    }

    /// Whether ccm-core has led in this cluster before.
    pub fn worked_before(&self) -> bool {
        self.epoch > 0
    }

    /// Whether to search for traces of ccm-core in the cluster: nothing else shows whether this is a first installation.
    pub fn needs_traces(&self, by_hand: bool) -> bool {
        self.identity.is_none() && !by_hand
    }

    /// Whether a cloud is accepted. `by_hand`: the operator accepts it by a flag. `traces`: nodes have ccm-core's annotation.
    pub fn judge(&self, found: &str, by_hand: bool, traces: bool) -> Result<(), Rejection> {
        match &self.identity {
            _ if by_hand => Ok(()),
            Some(accepted) if accepted == found => Ok(()),
            Some(accepted) => Err(Rejection::Another { accepted: accepted.clone() }),
            None if traces => Err(Rejection::Lost),
            None => Ok(()),
        }
    }

    /// The epoch of a new term: greater than every known one, those that a provider has seen included, and at least the lease's
    /// count of transitions.
    pub fn next_epoch(&self, seen: u64, transitions: u64) -> u64 {
        self.epoch.max(seen).saturating_add(1).max(transitions)
    }
}
