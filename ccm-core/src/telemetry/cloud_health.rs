//! The health checks of the cloud behind the provider: whether it refuses the credentials, whether look-ups fail, and whether it
//! limits the rate of calls. Every controller reports its answers; a warning stays until a call about the same object succeeds.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::health::{Check, Health};
use crate::provider::{Outcome, ProviderError};

/// The cloud refuses the provider's credentials.
pub const CREDENTIALS: &str = "cloud-credentials";
/// Look-ups of nodes fail.
pub const LOOK_UPS: &str = "cloud-look-ups";
/// Reasons of errors that are about credentials: the contract's, and the gRPC codes' for providers that give none.
const CREDENTIAL_REASONS: [&str; 4] = ["CREDENTIALS_INVALID", "PERMISSION_MISSING", "UNAUTHENTICATED", "PERMISSION_DENIED"];

/// What was heard in one term. Clones share it; its lines go with the term.
#[derive(Clone, Debug)]
pub struct CloudHealth(Arc<Mutex<Heard>>);

#[derive(Debug)]
struct Heard {
    health: Health,
    /// By the name of the object.
    credentials: BTreeMap<String, String>,
    look_ups: BTreeMap<String, String>,
}

impl CloudHealth {
    /// Nothing has been heard yet.
    pub fn new(health: Health) -> Self {
        Self(Arc::new(Mutex::new(Heard { health, credentials: BTreeMap::new(), look_ups: BTreeMap::new() })))
    }

    /// The cloud limits the rate of all calls to an RPC service (`Instances`, `LoadBalancers`): they pause until then. The warning
    /// ends by itself.
    pub fn rate_limited(&self, service: &'static str, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let end = SignedDuration::try_from(left).ok().and_then(|left| Timestamp::now().checked_add(left).ok());
        let end = end.and_then(|end| end.round(Unit::Second).ok()).map_or_else(String::new, |end| format!(", until {end}"));
        let left = humantime::format_duration(Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0)));
        let message = format!(
            "the cloud limits the rate of calls to {service}: they pause for {left}{end}, then one call tries. Nothing needs to be done"
        );
        self.0.lock().health.set_until(&limit_of(service), Check::Warning(message), until);
    }

    /// A call to the RPC service succeeded again.
    pub fn recovered(&self, service: &'static str) {
        self.0.lock().health.clear(&limit_of(service));
    }

    /// Reports the rate limit of an RPC service. Never returns.
    pub async fn report_rate_limit(self, service: &'static str, mut limit: watch::Receiver<Option<Instant>>) {
        loop {
            match *limit.borrow_and_update() {
                Some(until) => self.rate_limited(service, until),
                None => self.recovered(service),
            }
            if limit.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// The look-up of a node succeeded, or failed. Another check reports that look-ups are not served at all.
    pub fn looked_up(&self, node: &str, failure: Option<&ProviderError>) {
        if failure.is_some_and(|failure| failure.outcome == Outcome::Unsupported) {
            return;
        }
        self.0.lock().heard(node, failure, |failure| !is_about_credentials(failure));
    }

    /// A call for a Service succeeded, or failed. Failures that are not about credentials concern only the Service.
    pub fn called(&self, service: &str, failure: Option<&ProviderError>) {
        self.0.lock().heard(service, failure, |_| false);
    }

    /// There will be no further call about this object.
    pub fn forget(&self, name: &str) {
        self.0.lock().heard(name, None, |_| false);
    }
}

/// The check's name in `/readyz`.
fn limit_of(service: &str) -> String {
    format!("cloud-rate-limit-{}", service.to_lowercase())
}

/// Whether an error is about the provider's credentials or their permissions.
pub fn is_about_credentials(error: &ProviderError) -> bool {
    CREDENTIAL_REASONS.contains(&error.reason.as_str())
}

impl Heard {
    fn heard(&mut self, about: &str, failure: Option<&ProviderError>, counts: impl Fn(&ProviderError) -> bool) {
        let words = |failure: &ProviderError| failure.to_string();
        let refused = set(&mut self.credentials, about, failure.filter(|it| is_about_credentials(it)).map(words));
        let failing = set(&mut self.look_ups, about, failure.filter(|it| counts(it)).map(words));
        if refused {
            let message = summary(&self.credentials).map(|what| {
                format!("the cloud refuses the provider's credentials; give the provider valid ones, or the missing permission: {what}")
            });
            self.say(CREDENTIALS, message);
        }
        if failing {
            let message =
                summary(&self.look_ups).map(|what| format!("look-ups fail, and ccm-core leaves their nodes unchanged: {what}"));
            self.say(LOOK_UPS, message);
        }
    }

    fn say(&self, check: &str, message: Option<String>) {
        self.health.set(check, message.map_or(Check::Ok, Check::Warning));
    }
}

/// Whether that changed anything.
fn set(known: &mut BTreeMap<String, String>, about: &str, words: Option<String>) -> bool {
    match words {
        None => known.remove(about).is_some(),
        Some(words) if known.get(about) == Some(&words) => false,
        Some(words) => {
            known.insert(about.to_owned(), words);
            true
        }
    }
}

/// One of them in full, and how many there are.
fn summary(known: &BTreeMap<String, String>) -> Option<String> {
    let (about, words) = known.first_key_value()?;
    Some(match known.len() - 1 {
        0 => format!("{about}: {words}"),
        more => format!("{about} (and {more} more): {words}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(reason: &str) -> ProviderError {
        ProviderError { outcome: Outcome::Terminal, reason: reason.to_owned(), message: "words".to_owned() }
    }

    fn warning(health: &Health, check: &str) -> String {
        match health.checks().get(check) {
            Some(Check::Warning(text)) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_line_stays_until_all_that_it_is_about_was_asked_about_again() {
        let health = Health::default();
        let cloud = CloudHealth::new(health.clone());
        cloud.looked_up("a", Some(&error("CREDENTIALS_INVALID")));
        cloud.called("default/web", Some(&error("PERMISSION_MISSING")));
        assert!(warning(&health, CREDENTIALS).contains("a (and 1 more): "), "{}", warning(&health, CREDENTIALS));
        cloud.looked_up("a", None);
        assert!(warning(&health, CREDENTIALS).contains("default/web: "), "{}", warning(&health, CREDENTIALS));
        cloud.forget("default/web");
        assert_eq!(health.checks()[CREDENTIALS], Check::Ok);
    }

    #[test]
    fn a_look_up_that_fails_otherwise_has_a_line_of_its_own_and_a_call_has_none() {
        let health = Health::default();
        let cloud = CloudHealth::new(health.clone());
        cloud.called("default/web", Some(&error("CLOUD_UNAVAILABLE")));
        assert_eq!(health.checks().len(), 0);
        cloud.looked_up("a", Some(&error("CREDENTIALS_INVALID")));
        cloud.looked_up("a", Some(&error("CLOUD_UNAVAILABLE")));
        assert_eq!(health.checks()[CREDENTIALS], Check::Ok);
        assert!(warning(&health, LOOK_UPS).contains("a: "));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_limit_has_a_line_that_ends_by_itself_or_with_a_success() {
        let health = Health::default();
        let cloud = CloudHealth::new(health.clone());
        let (sender, limit) = watch::channel(None);
        tokio::spawn(cloud.clone().report_rate_limit("Instances", limit));
        for ends_by_itself in [true, false] {
            sender.send_replace(Some(Instant::now() + Duration::from_secs(90)));
            tokio::task::yield_now().await;
            let line = warning(&health, "cloud-rate-limit-instances");
            assert!(
                line.starts_with("the cloud limits the rate of calls to Instances: they pause for 1m 30s, until 20"),
                "{line}"
            );
            if ends_by_itself {
                tokio::time::sleep(Duration::from_secs(90)).await;
            } else {
                sender.send_replace(None);
                tokio::task::yield_now().await;
            }
            assert_eq!(health.checks().len(), 0);
        }
        cloud.rate_limited("LoadBalancers", Instant::now() + Duration::from_secs(1));
        assert_eq!(health.checks().len(), 1);
    }
}
