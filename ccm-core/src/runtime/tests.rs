//! Leading without an election, with the clock paused.
use std::time::Duration;

use tokio::time::Instant as Tick;

use super::*;

#[tokio::test(start_paused = true)]
async fn without_an_election_the_term_is_short_and_renewed_until_the_provider_is_away() {
    let (candidate, candidates) = watch::channel(true);
    let (leading, mut leadings) = watch::channel(None);
    let ending = Ending::default();
    let end = ending.release.clone();
    let alone = tokio::spawn(async move { lead_alone("me", candidates, &leading, &ending).await });
    let mut last: Option<Leading> = None;
    for _ in 0..1000 {
        assert!(leadings.changed().await.is_ok());
        let now = leadings.borrow_and_update().clone();
        assert!(now.as_ref().is_some_and(|it| it.valid_until <= Tick::now().into_std() + Duration::from_secs(60)));
        if let (Some(last), Some(now)) = (&last, &now) {
            assert!(last.valid_until > Tick::now().into_std() + Duration::from_secs(30), "renewed in good time");
            assert_eq!((last.transitions, &last.holder), (now.transitions, &now.holder), "it is the same term");
        }
        last = now;
    }
    candidate.send_replace(false);
    assert!(leadings.wait_for(Option::is_none).await.is_ok());
    end.cancel();
    assert!(alone.await.is_ok());
}
