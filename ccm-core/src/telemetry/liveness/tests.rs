//! What counts as standing still. Time is virtual, but for the task that blocks its thread.
#![allow(clippy::unwrap_used)]
use super::*;

#[tokio::test(start_paused = true)]
async fn a_turn_that_lasts_too_long_is_named_until_it_ends() {
    let liveness = Liveness::default();
    let turn = liveness.turn("node lifecycle", Duration::from_mins(2));
    tokio::time::advance(Duration::from_mins(2)).await;
    assert!(liveness.problems().is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(liveness.problems(), ["the task node lifecycle has made no progress for 2m 1s"]);
    liveness.goes_on("node lifecycle");
    assert!(liveness.problems().is_empty());
    tokio::time::advance(Duration::from_mins(3)).await;
    assert_eq!(liveness.problems().len(), 1);
    drop(turn);
    assert!(liveness.problems().is_empty());
}

#[tokio::test(start_paused = true)]
async fn waiting_however_long_is_no_standstill() {
    let liveness = Liveness::default();
    let task = tokio::spawn(liveness.watched("watch", tokio::time::sleep(Duration::from_hours(2))));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(liveness.problems().is_empty());
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_gives_way_stands_still() {
    let liveness = Liveness::default();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (entered, inside) = std::sync::mpsc::channel();
    let blocking = liveness.watched("session", async move {
        let _ = (entered.send(()), held.recv());
    });
    // A thread of its own, as a worker of the runtime is.
    let thread = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let worker = std::thread::spawn(move || thread.block_on(blocking));
    inside.recv().unwrap();
    tokio::time::advance(WORK + Duration::from_secs(3)).await;
    let problems = liveness.problems();
    drop(release);
    worker.join().unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("the task session has made no progress for "), "{problems:?}");
    assert!(liveness.problems().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_renews_or_gives_up_is_overdue() {
    let liveness = Liveness::default();
    let (sender, leading) = tokio::sync::watch::channel(None);
    liveness.watch_lease(move || *leading.borrow());
    assert!(liveness.problems().is_empty());
    let valid_until = Instant::now().into_std() + Duration::from_secs(10);
    sender.send_replace(Some(valid_until));
    tokio::time::advance(Duration::from_secs(10) + OVERDUE).await;
    assert!(liveness.problems().is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(liveness.problems(), ["the lease was due to be renewed or given up 16s ago, and the elector did neither"]);
    sender.send_replace(None);
    assert!(liveness.problems().is_empty());
}
