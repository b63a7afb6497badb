//! Checks the state's ConfigMap periodically while this process leads, so that it is restored soon, even if nothing needs it. The
//! term's store restores it; this file decides when, and reports what cannot be restored.
use std::time::Duration;

use tokio::time::sleep;

use crate::cluster::state::{StateError, TermStore};
use crate::names;
use crate::telemetry::health::{Check, Health};

/// The check's name in `/readyz`.
const CHECK: &str = "state";
/// The approximate time between two checks: damage is repaired within 30 s, including one failed attempt.
const PERIOD: Duration = Duration::from_secs(10);

/// Checks until another leader has written the ConfigMap; returns that leader's epoch.
pub(super) async fn guard(store: &TermStore, health: &Health) -> u64 {
    let mut last = None;
    loop {
        sleep(PERIOD.mul_f64(rand::random_range(0.8..1.2))).await;
        let problem = match store.load().await {
            Err(StateError::Superseded { stored, .. }) => return stored,
            Ok(_) | Err(StateError::Conflict | StateError::NotLeading) => None,
            Err(error) => Some(format!("ConfigMap {}/{}: {error}", names::NAMESPACE, store.name())),
        };
        if problem == last {
            continue;
        }
        if let Some(problem) = &problem {
            tracing::warn!("{problem}");
        } else {
            tracing::info!(map = store.name(), "the state can be read again");
        }
        health.set(CHECK, problem.clone().map_or(Check::Ok, Check::Warning));
        last = problem;
    }
}
