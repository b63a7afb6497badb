//! The health checks of `/readyz`: one line each, set by the module that it is about.
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::time::Instant;

use super::liveness::Liveness;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Well.
    Ok,
    /// The process is ready and a person should look: what, and what to do.
    Warning(String),
    /// The process is not ready: why, and what to do.
    Failed(String),
}

#[derive(Debug)]
struct Entry {
    check: Check,
    /// When it ends by itself.
    until: Option<Instant>,
}

/// All checks. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Health {
    checks: Arc<RwLock<BTreeMap<String, Entry>>>,
    liveness: Liveness,
}

impl Health {
    /// Sets the result of a check.
    pub fn set(&self, name: &str, check: Check) {
        self.checks.write().insert(name.to_owned(), Entry { check, until: None });
    }

    /// Sets the result of a check; the check ends by itself at `until`.
    pub fn set_until(&self, name: &str, check: Check, until: Instant) {
        self.checks.write().insert(name.to_owned(), Entry { check, until: Some(until) });
    }

    /// Removes a check.
    pub fn clear(&self, name: &str) {
        self.checks.write().remove(name);
    }

    /// Removes every check except these.
    pub fn keep(&self, names: &BTreeMap<String, Check>) {
        self.checks.write().retain(|name, _| names.contains_key(name));
    }

    /// What `/livez` reports.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Every check, by name.
    pub fn checks(&self) -> BTreeMap<String, Check> {
        let (checks, now) = (self.checks.read(), Instant::now());
        let lasting = checks.iter().filter(|(_, said)| said.until.is_none_or(|until| now < until));
        lasting.map(|(name, entry)| (name.clone(), entry.check.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_check_with_an_end_ends_by_itself() {
        let (health, pause) = (Health::default(), std::time::Duration::from_secs(30));
        health.set_until("rate-limit", Check::Warning("for 30 s".to_owned()), Instant::now() + pause);
        assert_eq!(health.checks().len(), 1);
        tokio::time::sleep(pause).await;
        assert_eq!(health.checks().len(), 0);
    }

    #[test]
    fn what_was_said_since_can_be_forgotten() {
        let health = Health::default();
        health.set("provider", Check::Ok);
        let before = health.checks();
        health.set("provider", Check::Failed("away".to_owned()));
        health.set("node-deletion", Check::Warning("no node is deleted".to_owned()));
        health.keep(&before);
        assert_eq!(health.checks(), [("provider".to_owned(), Check::Failed("away".to_owned()))].into());
    }
}
