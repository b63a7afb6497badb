//! One probe for all, in paused time, against a scripted server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::{Request, Response};
use kube::client::Body;

use super::*;

/// A server that answers 500 or nothing, and how often it was asked.
#[derive(Clone, Default)]
struct Server {
    gone: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            server.asked.fetch_add(1, Ordering::Relaxed);
            let gone = server.gone.load(Ordering::Relaxed);
            async move { if gone { Err("gone") } else { Ok(Response::builder().status(500).body(Body::empty()).unwrap()) } }
        });
        Client::new(service, "default")
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_probed_once_and_what_waits_goes_on_within_a_second_of_the_return() {
    let (server, presence) = (Server::default(), Presence::default());
    tokio::spawn(presence.clone().watch(server.client()));
    presence.doubt();
    sleep(Duration::from_secs(10)).await;
    assert_eq!((server.asked.load(Ordering::Relaxed), presence.is_away()), (1, false), "a server error is an answer");

    server.gone.store(true, Ordering::Relaxed);
    (0..100).for_each(|_| presence.doubt());
    sleep(Duration::from_secs(25)).await;
    assert!(presence.is_away());
    assert!(server.asked.load(Ordering::Relaxed) <= 60, "one probe for all");
    server.gone.store(false, Ordering::Relaxed);
    let back = Instant::now();
    presence.present().await;
    assert!(back.elapsed() <= Duration::from_secs(1));
}
