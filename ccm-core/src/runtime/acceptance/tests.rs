//! Which cloud is accepted, by what is left in the cluster, and who is told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::cluster::scripted::ApiServer;
use crate::model::term::Cloud;

const MAP: &str = "/api/v1/namespaces/kube-system/configmaps/ccm-core-simulated";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cloud-controller-manager";

struct Scenario {
    api: ApiServer,
    acceptance: Acceptance,
    term: watch::Sender<Option<Term>>,
    notes: mpsc::Receiver<Event>,
}

impl Scenario {
    fn new(accept: Option<&str>) -> Self {
        let api = ApiServer::default();
        let lease = LeaderElectionConfig {
            enabled: true,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            resource_name: names::LEASE.to_owned(),
            resource_namespace: names::NAMESPACE.to_owned(),
            shutdown_grace: Duration::from_secs(30),
        };
        let config = ProviderConfig {
            endpoint: "unix:///p.sock".parse().unwrap(),
            grace: Duration::from_secs(30),
            accept_cloud_identity: accept.map(str::to_owned),
            required_name: None,
            allow_untagged_cloud: true,
            peer_uids: Vec::new(),
        };
        let records = Records::new(api.client(), &lease, config.accept_cloud_identity.as_ref());
        let (events, notes) = Events::queue(100);
        let (term, terms) = watch::channel(None);
        let acceptance = Acceptance::new(records, &config, events, "cluster", terms);
        Self { api, acceptance, term, notes }
    }

    fn map(&self, data: &Value) {
        self.api.put(MAP, json!({ "metadata": { "name": "ccm-core-simulated", "uid": "map" }, "data": data }));
    }

    fn mirror(&self, identity: &str, epoch: u64) {
        let mirror = json!({ "provider": "simulated", "cloudIdentity": identity, "epoch": epoch }).to_string();
        self.api
            .put(LEASE, json!({ "metadata": { "name": names::LEASE, "annotations": { names::annotations::STATE: mirror } } }));
    }

    fn node(&self, annotations: &Value) {
        self.api.put_node(json!({ "metadata": { "name": "n", "annotations": annotations } }));
    }

    fn lead(&self, identity: &str) {
        let cloud = Arc::new(Cloud { provider: "simulated".to_owned(), identity: identity.to_owned() });
        let valid_until = Instant::now() + Duration::from_mins(1);
        self.term.send_replace(Some(Term { epoch: 1, cloud, holder: "me".into(), valid_until }));
    }

    async fn judge(&self, identity: &str) -> Result<(), Verdict> {
        let info = ProviderInfo { name: "simulated".to_owned(), cloud_identity: identity.to_owned(), ..ProviderInfo::default() };
        self.acceptance.judge(&info).await
    }

    fn told(&mut self) -> Vec<(String, &'static str)> {
        std::iter::from_fn(|| self.notes.try_recv().ok()).map(|note| (note.reason, note.subject.kind)).collect()
    }
}

fn another(accepted: &str) -> Result<(), Verdict> {
    Err(Verdict::IdentityChanged { accepted: accepted.to_owned() })
}

#[tokio::test]
async fn a_candidate_judges_by_the_config_map_and_by_the_mirror_where_that_is_lost_or_set_back() {
    let scenario = Scenario::new(None);
    scenario.mirror("here", 3);
    for data in [None, Some(json!({})), Some(json!({ "cloud-identity": "there", "epoch": "2" }))] {
        data.iter().for_each(|data| scenario.map(data));
        assert_eq!(scenario.judge("here").await, Ok(()), "{data:?}");
        assert_eq!(scenario.judge("there").await, another("here"), "{data:?}");
    }
    scenario.map(&json!({ "cloud-identity": "there", "epoch": "4" }));
    assert_eq!(scenario.judge("there").await, Ok(()));
}

#[tokio::test]
async fn during_a_term_its_cloud_is_the_accepted_one_whatever_the_cluster_says() {
    let mut scenario = Scenario::new(Some("by-hand"));
    scenario.lead("here");
    for data in [None, Some(json!({ "cloud-identity": "there", "epoch": "9" })), Some(json!({ "epoch": "many" }))] {
        data.iter().for_each(|data| scenario.map(data));
        assert_eq!(scenario.judge("there").await, another("here"), "{data:?}");
        assert_eq!(scenario.judge("here").await, Ok(()), "{data:?}");
    }
    assert_eq!(scenario.judge("by-hand").await, Ok(()));
    let changed = names::events::CLOUD_IDENTITY_CHANGED.to_owned();
    assert_eq!(scenario.told(), [(changed.clone(), "Namespace"), (changed.clone(), "ConfigMap"), (changed, "ConfigMap")]);
}

#[tokio::test]
async fn where_nothing_is_left_and_nodes_show_that_there_was_something_a_person_decides() {
    let mut scenario = Scenario::new(Some("by-hand"));
    scenario.node(&json!({ "theirs": "1" }));
    assert_eq!(scenario.judge("here").await, Ok(()), "a first installation");
    scenario.node(&json!({ names::annotations::APPLIED_LABELS: "{}" }));
    for data in [None, Some(json!({ "epoch": "3" }))] {
        data.iter().for_each(|data| scenario.map(data));
        let Err(Verdict::Unusable(message)) = scenario.judge("here").await else { panic!("accepted with {data:?}") };
        assert!(message.contains("--accept-cloud-identity=here"), "{message}");
    }
    assert_eq!(scenario.told(), [(names::events::CLOUD_IDENTITY_LOST.to_owned(), "Namespace")], "once, as long as it lasts");
    assert_eq!(scenario.judge("by-hand").await, Ok(()));
}

#[tokio::test]
async fn what_cannot_be_read_is_no_verdict_and_says_what_to_repair() {
    let scenario = Scenario::new(None);
    scenario.map(&json!({ "cloud-identity": "here", "epoch": "many" }));
    let Err(Verdict::Later(message)) = scenario.judge("here").await else { panic!("a verdict") };
    assert!(message.contains("ccm-core-simulated") && message.contains("\"epoch\""), "{message}");
    scenario.map(&json!({ "cloud-identity": "here", "epoch": "1", "deletions": "oops" }));
    assert_eq!(scenario.judge("here").await, Ok(()), "a history is not what this is about");
}
