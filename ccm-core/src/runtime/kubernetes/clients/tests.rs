//! A server that answers nothing, stops in the middle, or is too busy: real sockets, short limits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::WatchParams;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const SHORT: Duration = Duration::from_secs(2);
/// Far beyond every limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that reads, says this, and keeps the connection open for ever after; and how often it was asked.
async fn server(answer: &'static str) -> (Clients, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            count.fetch_add(1, Ordering::Relaxed);
            stream.write_all(answer.as_bytes()).await.unwrap();
            open.push(stream);
        }
    });
    let limits = Limits { request: SHORT, watch: SHORT, silence: SHORT };
    (Clients::within(&config, None, limits).unwrap(), asked)
}

async fn get(client: &Client) -> kube::Error {
    let answer = tokio::time::timeout(PATIENCE, Api::<Node>::all(client.clone()).get("n")).await;
    answer.expect("it ends by itself").unwrap_err()
}

#[tokio::test]
async fn a_request_that_is_not_answered_or_only_begun_ends() {
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"] {
        let (clients, _) = server(answer).await;
        for client in [clients.requests, clients.election] {
            get(&client).await;
        }
    }
}

#[tokio::test]
async fn a_watch_that_falls_silent_ends() {
    let (clients, _) = server("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let nodes = Api::<Node>::all(clients.watches);
    let mut events = nodes.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    let end = tokio::time::timeout(PATIENCE, events.next()).await.expect("it ends by itself");
    assert!(!matches!(end, Some(Ok(_))), "{end:?}");
}

#[tokio::test]
async fn a_server_that_is_too_busy_is_asked_again_within_the_deadline_but_not_for_the_lease() {
    let busy = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let (clients, asked) = server(busy).await;
    get(&clients.election).await;
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    get(&clients.requests).await;
    assert!(asked.load(Ordering::Relaxed) > 2);
}
