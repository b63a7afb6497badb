//! Handshakes that are not answered, refused or not judged: what goes on, what ends, and what is confirmed.
use tokio::time::sleep;

use super::*;
use crate::cluster::gate::{Closed, Gate};

/// Handshakes are missed soon, and nothing follows from that for long.
fn short() -> Deadlines {
    let long = Duration::from_mins(1);
    Deadlines { handshake: Duration::from_millis(300), silence: long, confirmation: long, ..Deadlines::default() }
}

/// A provider that can be used and was told that this process leads.
async fn led(deadlines: Deadlines) -> (Scenario, Scripted, scripted::Serving) {
    let scenario = Scenario::with(|config| SessionConfig { deadlines, ..config });
    let provider = Scripted::new(scripted::info());
    let serving = provider.serve(&scenario.socket());
    scenario.until_ready().await;
    scenario.lead(3);
    until_led(&provider, "told", |led| led.len() == 1).await;
    (scenario, provider, serving)
}

/// Waits until so many more handshakes were asked for.
async fn asked_again(provider: &Scripted, times: usize) {
    let before = provider.handshakes.borrow().len();
    provider.shaken(before + times).await;
}

fn is_ready(scenario: &Scenario) -> bool {
    scenario.handle.state().borrow().ready().is_some()
}

/// How often a Lead stream began, or ended, or was renewed.
fn words_of_lead(provider: &Scripted) -> usize {
    provider.led.borrow().len()
}

#[tokio::test]
async fn a_missed_handshake_ends_no_call_and_no_leadership() {
    let (scenario, provider, _serving) = led(short()).await;
    let held = Arc::clone(&provider.gate).acquire_many_owned(1000).await.unwrap();
    let instances = scenario.instances();
    let look_up = tokio::spawn(async move { instances.look_up(named("a"), Priority::Lifecycle).await });
    let live = scenario.handle.current().unwrap();
    let hanging = provider.hang_handshakes().await;
    asked_again(&provider, 4).await;
    assert!(is_ready(&scenario), "{:?}", scenario.handle.state().borrow().clone());
    drop(held);
    assert!(look_up.await.unwrap().is_ok(), "the call was answered on the connection on which it was made");
    drop(hanging);
    scenario.handle.confirm().await.unwrap();
    assert_eq!(words_of_lead(&provider), 1, "Lead was opened once");
    assert!(Arc::ptr_eq(&live, &scenario.handle.current().unwrap()));
}

#[tokio::test]
async fn a_handshake_that_is_refused_for_now_ends_nothing_and_confirms_nothing() {
    let (scenario, provider, _serving) = led(short()).await;
    for refusal in [Status::unavailable("starting"), Status::deadline_exceeded("slow"), Status::internal("a defect")] {
        *provider.info.lock() = Err(refusal.clone());
        asked_again(&provider, 2).await;
        let error = scenario.handle.confirm().await.unwrap_err();
        assert_eq!(error.outcome, Outcome::Retry { after: None });
        assert!(error.message.contains(refusal.message()), "{}", error.message);
        assert!(is_ready(&scenario), "{refusal}");
    }
    *provider.info.lock() = Ok(scripted::info());
    scenario.handle.confirm().await.unwrap();
    assert_eq!(words_of_lead(&provider), 1, "Lead was opened once");
}

#[tokio::test]
async fn a_missed_handshake_confirms_nothing() {
    let (scenario, provider, _serving) = led(short()).await;
    let hanging = provider.hang_handshakes().await;
    let error = scenario.handle.confirm().await.unwrap_err();
    assert_eq!(error.outcome, Outcome::Retry { after: None });
    assert!(is_ready(&scenario), "it ends nothing either");
    drop(hanging);
    scenario.handle.confirm().await.unwrap();
}

#[tokio::test]
async fn a_confirmation_is_the_answer_to_a_handshake_that_began_after_it_was_asked_for() {
    let deadlines = Deadlines { handshake: Duration::from_secs(20), ..short() };
    let (scenario, provider, _serving) = led(deadlines).await;
    let hanging = provider.hang_handshakes().await;
    asked_again(&provider, 1).await;
    *provider.info.lock() = Ok(v1::ProviderInfo { cloud_identity: "elsewhere".to_owned(), ..scripted::info() });
    let handle = scenario.handle.clone();
    let mut confirmation = tokio::spawn(async move { handle.confirm().await });
    let early = tokio::time::timeout(Duration::from_millis(50), &mut confirmation).await;
    assert!(early.is_err(), "the handshake that ran before answers nobody");
    drop(hanging);
    assert_eq!(confirmation.await.unwrap().unwrap().cloud_identity, "elsewhere");
}

#[tokio::test]
async fn only_a_connection_on_which_nothing_is_answered_is_given_up() {
    let (scenario, provider, _serving) = led(Deadlines { silence: Duration::from_secs(1), ..short() }).await;
    let _hanging = provider.hang_handshakes().await;
    let renewals = async {
        loop {
            scenario.lead(3);
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = asked_again(&provider, 6) => {}
        () = renewals => {}
    }
    assert!(is_ready(&scenario), "acknowledgements of Lead are answers: {:?}", scenario.handle.state().borrow().clone());
    scenario.until_disconnected("answered nothing for 1s").await;
}

#[tokio::test]
async fn without_a_handshake_for_the_stated_time_nothing_begins_and_nothing_ends() {
    let (scenario, provider, _serving) = led(Deadlines { confirmation: Duration::from_secs(2), ..short() }).await;
    let live = scenario.handle.current().unwrap();
    let gate = Gate::new(scenario.term.subscribe(), scenario.handle.state());
    gate.check().unwrap();
    let hanging = provider.hang_handshakes().await;
    let state = scenario.until("not ready", |it| it.ready().is_none()).await;
    let ProviderState::Unconfirmed { message, .. } = &state else { panic!("{state:?}") };
    assert!(message.contains("for 2s") && message.contains("does not answer the handshake"), "{message}");
    assert_eq!(gate.check().unwrap_err(), Closed::ProviderUnconfirmed);
    assert!(Arc::ptr_eq(&live, &scenario.handle.current().expect("the connection stays")), "{state:?}");
    assert!(scenario.instances().look_up(named("a"), Priority::Lifecycle).await.is_ok(), "look-ups go on");
    drop(hanging);
    scenario.until_ready().await;
    gate.check().unwrap();
    assert!(Arc::ptr_eq(&live, &scenario.handle.current().unwrap()));
    assert_eq!(words_of_lead(&provider), 1, "Lead was opened once");
}

#[tokio::test]
async fn a_refusal_that_lasts_until_somebody_acts_ends_it() {
    let (scenario, provider, _serving) = led(short()).await;
    *provider.info.lock() = Err(Status::permission_denied("not for you"));
    scenario.until_unusable("not for you").await;
    assert!(scenario.handle.current().is_err());
}

#[tokio::test]
async fn the_time_without_a_handshake_counts_from_the_last_one_that_was_judged() {
    let dir = tempfile::tempdir().unwrap();
    let config = scripted::session_in(dir.path());
    let _serving = Scripted::new(scripted::info()).serve(config.endpoint.path());
    let (limit, almost) = (config.deadlines.confirmation, Duration::from_millis(59_990));
    let shared = Shared { deadlines: config.deadlines, metrics: config.metrics, doubt: Arc::default() };
    let connection = Connection::dial(&config.endpoint, &[], shared).await.unwrap();
    tokio::time::pause();
    let board = Arc::new(Board::new(&config.endpoint));
    board.ready(&connection, scripted::model_info());
    let watching = Arc::clone(&board);
    tokio::spawn(async move { watching.watch_confirmations(limit).await });
    let ready = || board.state().borrow().ready().is_some();
    for _ in 0..3 {
        sleep(almost).await;
        assert!(ready());
        board.ready(&connection, scripted::model_info());
    }
    board.missed("late".to_owned());
    sleep(almost).await;
    assert!(ready());
    sleep(Duration::from_millis(20)).await;
    assert!(matches!(&*board.state().borrow(), ProviderState::Unconfirmed { message, .. } if message.contains("1m: late")));
    board.ready(&connection, scripted::model_info());
    assert!(ready());
}
