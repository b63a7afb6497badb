//! The elector against a scripted API server, in held time: waiting costs nothing and is exact.
#![allow(clippy::unwrap_used)]
use tokio::task::JoinHandle;

use super::*;
use api_server::{ApiServer, Fault};

mod api_server;
mod mirror;

const LEASE: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

/// A running elector and all its strings.
struct Contender {
    candidate: watch::Sender<bool>,
    mirror: watch::Sender<Option<Mirror>>,
    leading: watch::Receiver<Option<Leading>>,
    ending: Ending,
    task: JoinHandle<Result<(), LeaseError>>,
}

impl Contender {
    fn start(server: &ApiServer, identity: &str) -> Self {
        let config = ElectorConfig {
            namespace: "kube-system".to_owned(),
            name: "cloud-controller-manager".to_owned(),
            identity: identity.to_owned(),
            lease_duration: LEASE,
            renew_deadline: DEADLINE,
            retry_period: RETRY,
        };
        let (candidate, candidates) = watch::channel(true);
        let (leads, leading) = watch::channel(None);
        let ending = Ending::default();
        let (mirror, mirrors) = watch::channel(None);
        let elector = Elector::new(server.client(), config).with_mirror(mirrors);
        let task = tokio::spawn(elector.run(candidates, leads, ending.clone()));
        Self { candidate, mirror, leading, ending, task }
    }

    async fn leads(&mut self) -> Leading {
        within(self.leading.wait_for(Option::is_some)).await.unwrap().clone().unwrap()
    }

    async fn stands_by(&mut self) {
        within(self.leading.wait_for(Option::is_none)).await.unwrap();
    }

    /// The next renewal after what is known.
    async fn renews(&mut self) -> Leading {
        self.leading.borrow_and_update();
        self.leading.changed().await.unwrap();
        self.leads().await
    }

    async fn ends(self) -> Result<(), LeaseError> {
        self.ending.shutdown.cancel();
        self.ending.release.cancel();
        self.task.await.unwrap()
    }
}

/// A wait that fails rather than hangs: ten leases of held time.
async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(10 * LEASE, wait).await.unwrap()
}

/// Until the server has seen so many calls.
async fn calls(server: &ApiServer, count: usize) {
    within(async {
        while server.calls().len() < count {
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_there_is_created_and_renewed_unread() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    let first = baz.leads().await;
    assert_eq!((first.transitions, &*first.holder), (0, "baz"));
    assert_eq!(first.valid_until, now() + DEADLINE);
    let second = baz.renews().await;
    assert_eq!(second.valid_until, first.valid_until + RETRY);
    assert_eq!(server.calls(), ["get", "create", "update"]);
    let spec = server.spec();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_duration_seconds), (Some("baz"), Some(15)));
    assert!(spec.acquire_time < spec.renew_time);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_finds_the_lease_changed_reads_it_and_goes_on() {
    let server = ApiServer::default();
    server.script([Fault::None, Fault::None, Fault::Status(409)]);
    let mut baz = Contender::start(&server, "baz");
    baz.leads().await;
    baz.renews().await;
    baz.renews().await;
    assert_eq!(server.calls(), ["get", "create", "update", "get", "update", "update"]);
    assert_eq!(server.spec().lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_while_acquiring_is_tried_again() {
    let server = ApiServer::default();
    server.write(|_| {});
    server.script([Fault::None, Fault::Status(409)]);
    let mut baz = Contender::start(&server, "baz");
    assert_eq!(baz.leads().await.transitions, 1);
    assert_eq!(server.calls(), ["get", "update", "get", "update"]);
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_without_an_answer_that_was_carried_out_is_found_to_be_ours() {
    let server = ApiServer::default();
    server.script([Fault::None, Fault::HangAfter]);
    let mut baz = Contender::start(&server, "baz");
    assert_eq!(baz.leads().await.transitions, 0);
    assert_eq!(server.calls(), ["get", "create", "get", "update"]);
}

#[tokio::test(start_paused = true)]
async fn another_is_succeeded_one_lease_duration_after_its_last_change_was_seen() {
    let server = ApiServer::default();
    server.write(|spec| {
        spec.holder_identity = Some("bing".to_owned());
        spec.lease_duration_seconds = Some(15);
        spec.lease_transitions = Some(4);
        spec.renew_time = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(Timestamp::UNIX_EPOCH));
    });
    let mut baz = Contender::start(&server, "baz");
    calls(&server, 2).await;
    let renewed = now();
    server.write(|spec| spec.renew_time = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(Timestamp::now())));
    let leading = baz.leads().await;
    let waited = now() - renewed;
    assert_eq!(leading.transitions, 5);
    assert!(waited >= LEASE && waited <= LEASE + 2 * RETRY.mul_f64(1.0 + JITTER), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_at_the_deadline_and_contends_again() {
    for fault in [Fault::Status(500), Fault::Hang] {
        let server = ApiServer::default();
        let mut baz = Contender::start(&server, "baz");
        let first = baz.leads().await;
        server.always(fault);
        baz.stands_by().await;
        assert!(now() + RETRY >= first.valid_until && now() <= first.valid_until + Duration::from_millis(1), "{fault:?}");
        assert!(now() < first.valid_until + LEASE.saturating_sub(DEADLINE), "before anyone else could lead");
        server.always(Fault::None);
        assert_eq!(baz.leads().await.transitions, 0, "it is still ours: nobody took it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_stops_at_the_next_renewal() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    let first = baz.leads().await;
    server.write(|spec| spec.holder_identity = Some("bing".to_owned()));
    baz.stands_by().await;
    assert!(now() < first.valid_until);
    assert_eq!(server.holder(), "bing");
}

#[tokio::test(start_paused = true)]
async fn shutdown_keeps_renewing_until_release_which_makes_the_lease_nobodys() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    baz.leads().await;
    baz.ending.shutdown.cancel();
    baz.renews().await;
    assert_eq!(server.holder(), "baz");
    let mut leading = baz.leading.clone();
    baz.ends().await.unwrap();
    assert!(leading.borrow_and_update().is_none());
    let spec = server.spec();
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_duration_seconds, spec.lease_transitions),
        (Some(""), Some(1), Some(0))
    );
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_try() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    baz.leads().await;
    let mut qux = Contender::start(&server, "qux");
    calls(&server, 4).await;
    baz.ends().await.unwrap();
    let released = now();
    assert_eq!(qux.leads().await.transitions, 1);
    assert!(now() - released <= RETRY.mul_f64(1.0 + JITTER));
}

#[tokio::test(start_paused = true)]
async fn a_release_that_meets_a_conflict_is_repeated() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    baz.leads().await;
    server.script([Fault::None, Fault::Status(409)]);
    baz.ends().await.unwrap();
    assert_eq!(server.holder(), "");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_reported_and_one_of_anothers_lease_writes_nothing() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    baz.leads().await;
    server.always(Fault::Status(500));
    assert!(baz.ends().await.is_err());

    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    baz.leads().await;
    server.write(|spec| spec.holder_identity = Some("bing".to_owned()));
    baz.ends().await.unwrap();
    assert_eq!(server.holder(), "bing");
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_a_contender_that_waits() {
    let server = ApiServer::default();
    server.write(|spec| (spec.holder_identity, spec.lease_duration_seconds) = (Some("bing".to_owned()), Some(3600)));
    let baz = Contender::start(&server, "baz");
    calls(&server, 1).await;
    baz.ends().await.unwrap();
    assert_eq!(server.holder(), "bing");
}

#[tokio::test(start_paused = true)]
async fn no_candidate_contends_and_one_that_withdraws_leaves_others_a_lease_duration() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    baz.leads().await;
    let withdrawn = now();
    baz.candidate.send_replace(false);
    baz.stands_by().await;
    baz.candidate.send_replace(true);
    baz.leads().await;
    assert!(now() - withdrawn >= LEASE);
    assert_eq!(server.spec().lease_transitions, Some(1));

    baz.candidate.send_replace(false);
    baz.stands_by().await;
    while !server.holder().is_empty() {
        sleep(RETRY).await;
    }
    let idle = server.calls().len();
    sleep(3 * LEASE).await;
    assert_eq!((server.calls().len(), server.holder().as_str()), (idle, ""));
}

#[tokio::test(start_paused = true)]
async fn two_contenders_never_lead_together() {
    let server = ApiServer::default();
    let mut contenders = [Contender::start(&server, "baz"), Contender::start(&server, "qux")];
    for round in 0..6 {
        let leads: Vec<bool> = contenders.iter().map(|each| each.leading.borrow().is_some()).collect();
        assert!(!(leads[0] && leads[1]));
        let victim = round % 2;
        contenders[victim].candidate.send_replace(false);
        let other = &mut contenders[1 - victim];
        other.candidate.send_replace(true);
        other.leads().await;
    }
}

#[test]
fn an_identity_is_the_hosts_name_and_a_random_part() {
    let (one, other) = (identity(), identity());
    assert_ne!(one, other);
    assert_eq!(one.rsplit_once('_').map(|(host, random)| (host.is_empty(), random.len())), Some((false, 36)));
}

#[tokio::test]
async fn without_election_a_term_ends_by_itself_where_nobody_renews_it() {
    let leading = Leading::without_election("baz");
    let term = leading.term(7, &Arc::default());
    assert!(term.valid_until <= Instant::now() + Duration::from_secs(60));
    assert_eq!(term.epoch, 7);
}
