//! `BatchGetInstances`: what is refused, what is filled in, and that one bad item spoils no batch.
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ccm_provider_sdk::fake::{FakeInstances, FakeProvider, Script};
use ccm_provider_sdk::v1::instance_result::Outcome;
use ccm_provider_sdk::v1::{self, ErrorReason, InstanceQuery};
use ccm_provider_sdk::{
    CallContext, Description, Instances, ListCache, LookUpsOnly, Lookup, Parts, Provider, ProviderError, Result, Server,
    async_trait,
};
use tonic::Code;

use crate::fixture::{Fixture, SHORT, batch, reason, within};

fn with(instances: FakeInstances) -> FakeProvider {
    FakeProvider { instances: Some(instances), ..FakeProvider::bare() }
}

async fn results(provider: &FakeProvider, request: v1::BatchGetInstancesRequest) -> Vec<v1::InstanceResult> {
    let fixture = Fixture::of(provider).await;
    fixture.instances().batch_get_instances(within(SHORT, request)).await.unwrap().into_inner().results
}

#[tokio::test]
async fn one_look_up_method_answers_a_whole_batch_in_order() {
    let names: Vec<String> = (0..100).map(|number| format!("node-{number}")).collect();

    let results = results(&FakeProvider::default(), batch(names.iter().map(String::as_str))).await;

    assert_eq!(results.iter().map(|result| result.node_name.clone()).collect::<Vec<_>>(), names);
    assert!(results.iter().all(|result| matches!(result.outcome, Some(Outcome::Instance(_)))));
}

#[tokio::test]
async fn each_answer_says_when_it_was_observed() {
    let instances = FakeInstances { batch: Some(Script::new(|_| Ok(Vec::new()))), ..FakeInstances::default() };
    let cached = SystemTime::now() - Duration::from_secs(90);
    let answers = vec![Ok(Lookup::not_found().read_at(cached)), Ok(Lookup::not_found())];
    instances.batch.as_ref().unwrap().then(Ok(answers));
    let before = SystemTime::now();

    let results = results(&with(instances), batch(["cached", "fresh"])).await;

    let observed: Vec<_> = results.iter().map(|result| SystemTime::try_from(result.observed_at.unwrap()).unwrap()).collect();
    assert_eq!(observed[0], cached);
    assert!(observed[1] >= before);
}

#[tokio::test]
async fn a_failing_look_up_is_an_error_of_its_item_alone() {
    let instances = FakeInstances::default();
    instances.get.always(|query| match query.node_name.as_str() {
        "bad" => Err(ProviderError::rate_limited("slow down", Some(Duration::from_secs(3)))),
        "gone" => Ok(Lookup::not_found()),
        "foreign" => Ok(Lookup::not_mine("bare metal")),
        _ => Ok(Lookup::ambiguous(["fake://1", "fake://2"])),
    });

    let results = results(&with(instances), batch(["bad", "gone", "foreign", "twice"])).await;

    let Some(Outcome::Error(error)) = &results[0].outcome else { panic!("{results:?}") };
    assert_eq!((error.code, error.reason()), (Code::ResourceExhausted.into(), ErrorReason::RateLimited));
    assert_eq!(error.retry_after.unwrap().seconds, 3);
    assert!(matches!(results[1].outcome, Some(Outcome::NotFound(_))));
    assert!(matches!(results[2].outcome, Some(Outcome::NotMine(_))));
    assert!(matches!(results[3].outcome, Some(Outcome::Ambiguous(_))));
}

#[tokio::test]
async fn a_look_up_that_hangs_is_late_alone_and_those_behind_it_are_answered() {
    let instances = FakeInstances::default();
    instances.get.always_await(|query: InstanceQuery| async move {
        if query.node_name == "hangs" { pending().await } else { Ok(Lookup::not_found()) }
    });

    let results = results(&with(instances), batch(["hangs", "a", "b"])).await;

    let Some(Outcome::Error(error)) = &results[0].outcome else { panic!("{results:?}") };
    assert_eq!(error.code, i32::from(Code::DeadlineExceeded));
    assert!(results[1..].iter().all(|result| matches!(result.outcome, Some(Outcome::NotFound(_)))));
}

#[tokio::test]
async fn a_batch_of_the_providers_own_that_hangs_is_late_item_by_item() {
    let script = Script::new(|_| Ok(Vec::new()));
    script.then_await(|_| pending());

    let results = results(&with(FakeInstances { batch: Some(script), ..FakeInstances::default() }), batch(["a", "b"])).await;

    let late = |result: &v1::InstanceResult| matches!(&result.outcome, Some(Outcome::Error(error)) if error.code == 4);
    assert!(results.len() == 2 && results.iter().all(late), "{results:?}");
}

#[tokio::test]
async fn a_provider_that_answers_too_little_is_at_fault_itself() {
    let script = Script::new(|_| Ok(vec![Ok(Lookup::not_found())]));
    let fixture = Fixture::of(&with(FakeInstances { batch: Some(script), ..FakeInstances::default() })).await;

    let status = fixture.instances().batch_get_instances(batch(["a", "b"])).await.unwrap_err();

    assert_eq!((status.code(), status.message()), (Code::Internal, "the provider answered 1 of 2 queries"));
}

#[tokio::test]
async fn a_batch_over_the_providers_limit_is_refused_before_it_is_asked() {
    let provider = FakeProvider::default();
    provider.describe_as(|description| description.limits.max_batch_size = Some(2));
    let fixture = Fixture::of(&provider).await;

    let status = fixture.instances().batch_get_instances(batch(["a", "b", "c"])).await.unwrap_err();

    assert_eq!((status.code(), reason(&status).as_str()), (Code::InvalidArgument, "BATCH_TOO_LARGE"));
    assert_eq!(provider.instances.unwrap().get.count(), 0);
}

#[tokio::test]
async fn a_malformed_batch_is_refused_with_the_path_of_the_field() {
    let fixture = Fixture::of(&FakeProvider::default()).await;

    for (names, path) in
        [(vec![], "queries"), (vec!["a", ""], "queries[1].node_name"), (vec!["a", "b", "a"], "queries[2].node_name")]
    {
        let status = fixture.instances().batch_get_instances(batch(names)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with(&format!("{path}: ")), "{}", status.message());
    }
}

/// A provider that reads the names of its machines once in an hour: there is none.
struct Cached(ListCache<Vec<String>>);

impl Provider for Cached {
    fn describe(&self) -> Description {
        FakeProvider::default().describe()
    }
    fn parts(self: Arc<Self>) -> Parts {
        Parts::new().instances(self)
    }
}

impl LookUpsOnly for Cached {}

#[async_trait]
impl Instances for Cached {
    async fn get_instance(&self, _: &CallContext, query: &InstanceQuery) -> Result<Lookup> {
        let list = self.0.get().await?;
        let known = list.items.contains(&query.node_name);
        let lookup = if known { Lookup::found(v1::Instance::default()) } else { Lookup::not_found() };
        Ok(lookup.read_at(list.read_at))
    }
}

#[tokio::test]
async fn two_answers_from_one_reading_carry_its_time() {
    let cloud = Script::new(|()| Ok(Vec::new()));
    let asked = cloud.clone();
    let list = move || {
        let cloud = cloud.clone();
        async move { cloud.call(()).await }
    };
    let fixture = Fixture::of_server(Server::new(Cached(ListCache::new(Duration::from_secs(3600), list)))).await;

    let mut observed = Vec::new();
    for _ in 0..2 {
        let results = fixture.instances().batch_get_instances(batch(["gone"])).await.unwrap().into_inner().results;
        assert!(matches!(results[0].outcome, Some(Outcome::NotFound(_))));
        observed.push(results[0].observed_at.unwrap());
    }

    assert_eq!((observed[0], asked.count()), (observed[1], 1));
}

#[tokio::test]
async fn an_answer_that_was_read_in_the_future_is_refused() {
    let instances = FakeInstances::default();
    let future = SystemTime::now() + Duration::from_secs(3600);
    instances.get.then(Ok(Lookup::not_found().read_at(future)));

    let results = results(&with(instances), batch(["early"])).await;

    let Some(Outcome::Error(error)) = &results[0].outcome else { panic!("{results:?}") };
    assert_eq!(error.code, i32::from(Code::Internal));
    assert!(error.message.contains("in the future"), "{}", error.message);
}
