//! How often the cloud is read, on paused time, and what becomes of a reading that fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use futures::future::{join_all, pending};
use tokio::time::advance;

use super::*;
use crate::fake::Script;

const MAX_AGE: Duration = Duration::from_secs(10);

/// A cache of numbers, and the script of its cloud: 1 unless told otherwise.
fn cache() -> (Arc<ListCache<u32>>, Script<(), Result<u32>>) {
    let script = Script::new(|()| Ok(1));
    let cloud = script.clone();
    let list = move || {
        let cloud = cloud.clone();
        async move { cloud.call(()).await }
    };
    (Arc::new(ListCache::new(MAX_AGE, list)), script)
}

#[tokio::test(start_paused = true)]
async fn many_answers_come_from_one_reading_and_carry_its_time() {
    let (cache, cloud) = cache();
    cloud.then_await(|()| async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(7)
    });

    let lists = join_all((0..100).map(|_| cache.get())).await;
    advance(MAX_AGE / 2).await;
    let later = cache.get().await.unwrap();

    assert_eq!((cloud.count(), later.items), (1, 7));
    assert!(lists.iter().all(|list| list.as_ref().unwrap().read_at == later.read_at));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_old_is_read_anew() {
    let (cache, cloud) = cache();
    let first = cache.get().await.unwrap();

    advance(MAX_AGE).await;
    let second = cache.get().await.unwrap();

    assert_eq!(cloud.count(), 2);
    assert!(second.read_at > first.read_at);
}

#[tokio::test(start_paused = true)]
async fn a_reading_that_fails_is_an_error_for_all_who_waited_and_the_old_list_is_not_used() {
    let (cache, cloud) = cache();
    cache.get().await.unwrap();
    advance(MAX_AGE).await;
    cloud.then(Err(ProviderError::unavailable("away")));

    let failed = join_all((0..10).map(|_| cache.get())).await;
    assert!(failed.iter().all(|it| it.as_ref().is_err_and(|error| error.message == "away")), "{failed:?}");
    assert_eq!(cloud.count(), 2);

    assert_eq!(cache.get().await.unwrap().items, 1);
    assert_eq!(cloud.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_does_not_end_the_reading() {
    let (cache, cloud) = cache();
    let (finish, finished) = tokio::sync::oneshot::channel();
    cloud.then_await(|()| async move { Ok(finished.await.unwrap()) });
    let asking = Arc::clone(&cache);
    let caller = tokio::spawn(async move { asking.get().await });
    cloud.wait_for_calls(1).await;

    caller.abort();
    finish.send(5).unwrap();

    assert_eq!(cache.get().await.unwrap().items, 5);
    assert_eq!(cloud.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_ended_unheard_is_not_used_once_it_is_too_old() {
    let (cache, cloud) = cache();
    let asking = Arc::clone(&cache);
    let caller = tokio::spawn(async move { asking.get().await });
    cloud.wait_for_calls(1).await;
    caller.abort();

    advance(MAX_AGE).await;
    cache.get().await.unwrap();

    assert_eq!(cloud.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reading_that_hangs_or_panics_is_an_error_and_the_next_call_begins_another() {
    let (cache, cloud) = cache();
    cloud.then_await(|()| pending());
    assert_eq!(cache.get().await.unwrap_err().code, tonic::Code::DeadlineExceeded);
    cloud.then_await(|()| async { panic!("a defect") });
    assert_eq!(cache.get().await.unwrap_err().code, tonic::Code::Internal);

    assert_eq!(cache.get().await.unwrap().items, 1);
    assert_eq!(cloud.count(), 3);
}
