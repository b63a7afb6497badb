//! What depends on time, with the clock paused: words that expire, and a leader that reconnects before it is known to be gone.
#![allow(clippy::unwrap_used)]
use ccm_proto::v1::ErrorReason;

use super::*;

fn cluster() -> v1::ClusterRef {
    v1::ClusterRef { name: "kubernetes".into(), uid: "uid".into() }
}

fn word(epoch: u64, holder: &str) -> v1::LeadRequest {
    let valid_for = Some(prost_types::Duration { seconds: 10, nanos: 0 });
    v1::LeadRequest { epoch, valid_for, holder: holder.into(), cluster: Some(cluster()) }
}

fn admitted(leadership: &Leadership, epoch: u64) -> bool {
    leadership.admit(Some(&v1::Leadership { epoch }), Some(&cluster())).is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_word_holds_for_its_time_and_each_renewal_begins_it_anew() {
    let leadership = Arc::new(Leadership::default());
    let term = leadership.begin(&word(1, "a")).await.unwrap();

    tokio::time::advance(Duration::from_secs(9)).await;
    assert!(admitted(&leadership, 1));
    term.renew(&word(1, "a")).unwrap();
    tokio::time::advance(Duration::from_secs(9)).await;
    assert!(admitted(&leadership, 1));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(!admitted(&leadership, 1), "no mutation starts on an expired word, even before its stream has ended");
    assert_eq!(term.over().await.reason, ErrorReason::NotLeading);
}

#[tokio::test(start_paused = true)]
async fn a_word_may_hold_for_an_hour_and_no_longer() {
    let leadership = Arc::new(Leadership::default());
    let lasting = |seconds| v1::LeadRequest { valid_for: Some(prost_types::Duration { seconds, nanos: 0 }), ..word(1, "a") };
    let term = leadership.begin(&lasting(3600)).await.unwrap();

    assert_eq!(term.renew(&lasting(3601)).unwrap_err().code, tonic::Code::InvalidArgument);
    assert!(Arc::new(Leadership::default()).begin(&lasting(3601)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_licence_ends_with_the_term() {
    let leadership = Arc::new(Leadership::default());
    let term = leadership.begin(&word(1, "a")).await.unwrap();
    let licence = leadership.admit(Some(&v1::Leadership { epoch: 1 }), Some(&cluster())).unwrap();

    drop(term);

    assert!(licence.lost.is_cancelled());
    assert!(!admitted(&leadership, 1));
}

#[tokio::test(start_paused = true)]
async fn a_term_that_was_replaced_takes_nothing_from_its_successor_when_it_ends() {
    let leadership = Arc::new(Leadership::default());
    let old = leadership.begin(&word(1, "a")).await.unwrap();
    let _new = leadership.begin(&word(2, "b")).await.unwrap();
    assert_eq!(old.over().await.reason, ErrorReason::NotLeading);

    drop(old);

    assert!(admitted(&leadership, 2) && !admitted(&leadership, 1));
}

#[tokio::test(start_paused = true)]
async fn a_reconnecting_leader_waits_for_its_own_last_stream_and_no_longer() {
    let leadership = Arc::new(Leadership::default());
    let first = leadership.begin(&word(1, "a")).await.unwrap();
    let end = async {
        tokio::time::sleep(HANDOVER / 2).await;
        drop(first);
    };

    let the_same = word(1, "a");
    let (again, ()) = tokio::join!(leadership.begin(&the_same), end);
    let _again = again.unwrap();
    let third = leadership.begin(&word(1, "a")).await;

    assert_eq!(third.unwrap_err().reason, ErrorReason::NotLeading);
    assert!(admitted(&leadership, 1));
}

#[tokio::test(start_paused = true)]
async fn two_holders_never_share_an_epoch() {
    let leadership = Arc::new(Leadership::default());
    drop(leadership.begin(&word(1, "a")).await.unwrap());

    assert_eq!(leadership.begin(&word(1, "b")).await.unwrap_err().reason, ErrorReason::NotLeading);
}
