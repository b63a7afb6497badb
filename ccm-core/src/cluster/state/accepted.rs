//! Which cloud was accepted, and which epoch is the highest, by the ConfigMap and by its mirror on the lease. Pure: it reads
//! and writes nothing.
use super::mirror::Mirror;
use super::{Stored, Unreadable};

#[cfg(test)]
mod tests;

/// What the cluster says of earlier terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The cloud identity that was accepted; none: nobody has accepted any, or that was lost.
    pub identity: Option<String>,
    /// The highest epoch that is known; 0 if there is none.
    pub epoch: u64,
    /// The ConfigMap is older than the last term, so its history is not that of the cluster: somebody put a copy back, or it is gone.
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
    /// ccm-core worked in this cluster before, and which cloud was accepted is lost.
    Lost,
}

impl Accepted {
    /// By what is stored for a provider. The ConfigMap rules, unless it has no identity or is behind the mirror, as a copy is
    /// that somebody puts back. A mirror of another provider says nothing of the identity. An epoch that cannot be read is an
    /// error only where no mirror stands in for it.
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

    /// Whether it has to be found out if ccm-core worked here before: nothing else says whether this is a first installation.
    pub fn needs_traces(&self, by_hand: bool) -> bool {
        self.identity.is_none() && !by_hand
    }

    /// Whether a cloud is accepted. `by_hand`: the operator accepts it by a flag. `traces`: nodes carry our annotation.
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
