//! Lead over a real socket: which provider is led, what a refusal becomes, and what a stream outlives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::HashMap;

use tempfile::TempDir;
use tokio::task::JoinHandle;
use tonic_types::{ErrorDetails, StatusExt as _};

use super::*;
use crate::model::term::Cloud;
use crate::provider::scripted::{self, Scripted, Serving};
use crate::provider::session::{Handle, Session};
use crate::provider::{Anyone, Identity};

mod draining;

/// Longer than anything here takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

struct Scenario {
    provider: Scripted,
    handle: Handle,
    term: watch::Sender<Option<Term>>,
    work: JoinHandle<()>,
    _serving: Serving,
    _dir: TempDir,
}

impl Drop for Scenario {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Scenario {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provider = Scripted::new(scripted::info());
        let serving = provider.serve(&dir.path().join("p.sock"));
        let term = watch::Sender::new(None);
        let (handle, work) = Session::start(scripted::session_in(dir.path()), Arc::new(Anyone), term.subscribe());
        let work = tokio::spawn(work);
        let mut state = handle.state();
        timeout(PATIENCE, state.wait_for(|state| state.ready().is_some())).await.unwrap().unwrap();
        Self { provider, handle, term, work, _serving: serving, _dir: dir }
    }

    /// Leads in the cloud of this identity.
    fn lead(&self, epoch: u64, identity: &str) {
        let cloud = Arc::new(Cloud { provider: "simulated".to_owned(), identity: identity.to_owned() });
        let valid_until = Instant::now() + Duration::from_mins(1);
        self.term.send_replace(Some(Term { epoch, cloud, holder: "me".into(), valid_until }));
    }

    fn refuse(&self, times: usize, highest: Option<&str>) {
        let metadata: HashMap<_, _> = highest.map(|epoch| ("highest_epoch".to_owned(), epoch.to_owned())).into_iter().collect();
        let mut details = ErrorDetails::new();
        details.set_error_info("NOT_LEADING", "ccm.provider.v1", metadata);
        let refusal = Status::with_error_details(Code::FailedPrecondition, "an epoch was seen", details);
        self.provider.lead_failures.lock().extend(std::iter::repeat_n(refusal, times));
    }

    async fn becomes(&self, status: LeadStatus) {
        let mut lead = self.handle.lead_status();
        let reached = timeout(PATIENCE, lead.wait_for(|now| *now == status)).await.map(drop);
        reached.unwrap_or_else(|_| panic!("never {status:?}: {:?}", self.handle.lead_status().borrow().clone()));
    }

    /// Waits until the words so far are from these epochs; 0 is the end of a stream.
    async fn hears(&self, epochs: &[u64]) {
        let mut led = self.provider.led.subscribe();
        let heard = |led: &Vec<Option<v1::LeadRequest>>| {
            led.iter().map(|it| it.as_ref().map_or(0, |it| it.epoch)).eq(epochs.iter().copied())
        };
        let reached = timeout(PATIENCE, led.wait_for(heard)).await.map(drop);
        reached.unwrap_or_else(|_| panic!("never {epochs:?}: {:?}", self.provider.led.borrow().clone()));
    }
}

#[tokio::test]
async fn a_refusal_that_names_a_higher_epoch_is_final_and_the_next_term_is_taken() {
    let scenario = Scenario::new().await;
    scenario.refuse(1, Some("9"));
    scenario.lead(3, "here");
    let refusal = Refusal { epoch: 3, highest: Some(9), message: "an epoch was seen".to_owned() };
    scenario.becomes(LeadStatus::Refused(refusal)).await;
    scenario.hears(&[]).await;
    scenario.lead(10, "here");
    scenario.becomes(LeadStatus::Accepted { epoch: 10 }).await;
    scenario.hears(&[10]).await;
}

#[tokio::test]
async fn a_refusal_that_may_pass_is_tried_again_and_is_final_when_it_does_not() {
    for named in [None, Some("3"), Some("2"), Some("many")] {
        let scenario = Scenario::new().await;
        scenario.refuse(1, named);
        scenario.lead(3, "here");
        scenario.becomes(LeadStatus::Accepted { epoch: 3 }).await;
    }
    let scenario = Scenario::new().await;
    scenario.refuse(ATTEMPTS as usize, None);
    scenario.lead(3, "here");
    let refusal = Refusal { epoch: 3, highest: None, message: "an epoch was seen".to_owned() };
    scenario.becomes(LeadStatus::Refused(refusal)).await;
    assert!(scenario.provider.lead_failures.lock().is_empty());
}

#[tokio::test]
async fn another_cloud_than_the_terms_is_not_led() {
    let scenario = Scenario::new().await;
    scenario.lead(3, "elsewhere");
    scenario.lead(4, "here");
    scenario.becomes(LeadStatus::Accepted { epoch: 4 }).await;
    scenario.hears(&[4]).await;
}

#[tokio::test]
async fn a_provider_that_becomes_another_cloud_is_led_until_the_term_ends_and_then_under_the_next() {
    let scenario = Scenario::new().await;
    scenario.lead(3, "here");
    scenario.becomes(LeadStatus::Accepted { epoch: 3 }).await;
    *scenario.provider.info.lock() = Ok(v1::ProviderInfo { cloud_identity: "elsewhere".to_owned(), ..scripted::info() });
    scenario.handle.confirm().await.unwrap();
    scenario.lead(3, "here");
    scenario.hears(&[3, 3]).await;
    scenario.term.send_replace(None);
    scenario.hears(&[3, 3, 0]).await;
    scenario.lead(4, "elsewhere");
    scenario.hears(&[3, 3, 0, 4]).await;
}
