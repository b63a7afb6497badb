//! The health checks of `/readyz`: one line each, set by the module that it is about.
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

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

/// All checks. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Health {
    checks: Arc<RwLock<BTreeMap<String, Check>>>,
    liveness: Liveness,
}

impl Health {
    /// Sets the result of a check.
    pub fn set(&self, concern: &str, check: Check) {
        self.checks.write().insert(concern.to_owned(), check);
    }

    /// Removes a check.
    pub fn clear(&self, concern: &str) {
        self.checks.write().remove(concern);
    }

    /// Removes every check except these.
    pub fn keep(&self, concerns: &BTreeMap<String, Check>) {
        self.checks.write().retain(|concern, _| concerns.contains_key(concern));
    }

    /// What `/livez` reports.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Every check, by name.
    pub fn checks(&self) -> BTreeMap<String, Check> {
        self.checks.read().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
