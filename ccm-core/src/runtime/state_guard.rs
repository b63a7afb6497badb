//! Looks at the state's ConfigMap again and again while this process leads, so that it is restored soon, whether or not anything
//! needs it. What restoring means is for the store of the term; here is when, and who is told of what cannot be restored.
use std::time::Duration;

use tokio::time::sleep;

use crate::cluster::state::{StateError, TermStore};
use crate::names;
use crate::telemetry::health::{Check, Health};

/// The concern's name in `/readyz`.
const CONCERN: &str = "state";
/// How often it is looked at, more or less: damage is repaired within 30 s, a failed attempt included.
const PERIOD: Duration = Duration::from_secs(10);

/// Looks until another leader has written the ConfigMap; answers that one's epoch.
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
        health.set(CONCERN, problem.clone().map_or(Check::Ok, Check::Warning));
        last = problem;
    }
}
