//! The socket file: modes, locks, stale and foreign files.
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use ccm_provider_sdk::fake::{FakeProvider, Serving};
use ccm_provider_sdk::server::SocketError;
use ccm_provider_sdk::{ServeError, Server};
use tempfile::TempDir;

use crate::fixture::{Fixture, batch, endpoint_in};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn refused(endpoint: &str) -> SocketError {
    match Server::new(FakeProvider::default()).endpoint(endpoint).bind().await.err() {
        Some(ServeError::Socket(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_socket_and_a_directory_made_for_it_are_for_owner_and_group() {
    let dir = TempDir::new().unwrap();
    let endpoint = format!("unix://{}/ccm/p.sock", dir.path().display());

    let _serving = Serving::start(Server::new(FakeProvider::default()), &endpoint).await.unwrap();

    assert_eq!(mode(&dir.path().join("ccm")), 0o770);
    assert_eq!(mode(&dir.path().join("ccm/p.sock")), 0o660);
}

#[tokio::test]
async fn a_stale_socket_is_replaced() {
    let dir = TempDir::new().unwrap();
    // A listener that is dropped leaves its file, as a killed process does.
    drop(UnixListener::bind(dir.path().join("p.sock")).unwrap());

    let serving = Serving::start(Server::new(FakeProvider::default()), &endpoint_in(&dir)).await.unwrap();

    let mut client = ccm_provider_sdk::v1::instances_client::InstancesClient::new(serving.endpoint().channel());
    assert!(client.batch_get_instances(batch(["a"])).await.is_ok());
}

#[tokio::test]
async fn a_socket_that_answers_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let _live = UnixListener::bind(dir.path().join("p.sock")).unwrap();

    let error = refused(&endpoint_in(&dir)).await;

    assert!(matches!(error, SocketError::InUse { .. }));
    assert!(error.to_string().contains("p.sock") && error.to_string().contains("--endpoint"), "{error}");
    assert!(dir.path().join("p.sock").exists());
}

#[tokio::test]
async fn a_second_provider_is_kept_out_by_the_lock() {
    let fixture = Fixture::of(&FakeProvider::default()).await;

    let error = refused(&fixture.serving.endpoint().to_string()).await;

    assert!(matches!(error, SocketError::Locked { .. }));
    assert!(fixture.instances().batch_get_instances(batch(["a"])).await.is_ok());
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_never_removed() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("p.sock"), "precious").unwrap();

    assert!(matches!(refused(&endpoint_in(&dir)).await, SocketError::NotASocket { .. }));
    assert_eq!(std::fs::read_to_string(dir.path().join("p.sock")).unwrap(), "precious");
}

#[tokio::test]
async fn the_end_removes_the_own_socket_and_frees_the_path() {
    let fixture = Fixture::of(&FakeProvider::default()).await;
    let (dir, path) = (fixture.dir, fixture.serving.endpoint().path().to_owned());

    fixture.serving.stop().await.unwrap();

    assert!(!path.exists());
    assert!(Serving::start(Server::new(FakeProvider::default()), &endpoint_in(&dir)).await.is_ok());
}

#[tokio::test]
async fn the_end_leaves_a_file_that_replaced_the_own_socket() {
    let fixture = Fixture::of(&FakeProvider::default()).await;
    let path = fixture.path();
    std::fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();

    fixture.serving.stop().await.unwrap();

    assert!(path.exists());
}

#[tokio::test]
async fn a_server_without_an_endpoint_says_which_flag_is_missing() {
    let error = Server::new(FakeProvider::default()).bind().await.err().unwrap();
    assert!(error.to_string().contains("--endpoint"));
}
