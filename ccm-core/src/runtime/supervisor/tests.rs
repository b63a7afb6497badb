//! Which end is reported, and under which name. Time is virtual.
#![allow(clippy::panic)]
use std::future::pending;

use tokio::sync::oneshot;

use super::*;

fn supervisor() -> Supervisor {
    Supervisor::new(Liveness::default())
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_reported_with_its_task_and_its_text() {
    let mut tasks = supervisor();
    tasks.spawn("session", pending());
    tasks.spawn("batches", async { panic!("index {} of 3", 7) });
    let ended = tasks.next().await;
    assert_eq!(ended, Ended { task: "batches", how: How::Panicked("index 7 of 3".to_owned()) });
    assert_eq!(ended.to_string(), "the task batches panicked: index 7 of 3");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_returns_is_reported_too() {
    let mut tasks = supervisor();
    tasks.spawn("session", pending());
    tasks.spawn("watch", async {});
    assert_eq!(tasks.next().await.to_string(), "the task watch ended early");
}

#[tokio::test(start_paused = true)]
async fn the_panic_is_named_and_not_the_task_that_ended_because_of_it() {
    let mut tasks = supervisor();
    let (held, dropped) = oneshot::channel::<()>();
    tasks.spawn("eligibility", async move { drop(dropped.await) });
    tasks.spawn("session", async move {
        drop(held);
        tokio::time::sleep(CAUSE / 2).await;
        panic!("out of words");
    });
    assert_eq!(tasks.next().await.task, "session");
}

#[tokio::test(start_paused = true)]
async fn an_end_is_not_lost_where_the_wait_for_its_cause_is_broken_off() {
    let mut tasks = supervisor();
    tasks.spawn("session", pending());
    tasks.spawn("watch", async {});
    assert!(timeout(CAUSE / 2, tasks.next()).await.is_err());
    assert_eq!(tasks.next().await.task, "watch");
}

#[tokio::test(start_paused = true)]
async fn tasks_that_were_aborted_are_no_news() {
    let mut tasks = supervisor();
    tasks.spawn("session", pending());
    tasks.shutdown().await;
    assert!(timeout(Duration::from_secs(3600), tasks.next()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_stands_still_holds_up_no_shutdown() {
    let mut tasks = supervisor();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (entered, inside) = oneshot::channel();
    tasks.spawn("stuck", async move {
        let _ = (entered.send(()), held.recv());
    });
    assert!(inside.await.is_ok());
    assert!(timeout(2 * STOP, tasks.shutdown()).await.is_ok());
    drop(release);
}
