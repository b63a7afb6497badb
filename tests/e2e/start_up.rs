//! In which order things start, and what lies where the socket should be.
use std::fs;
use std::os::unix::net::UnixListener;

use anyhow::Result;
use ccm_test_support::binaries::Binaries;
use ccm_test_support::kubelet::names;
use ccm_test_support::process::tail;
use ccm_test_support::wait::{PATIENCE, eventually};
use ccm_test_support::world::World;
use tokio::process::Command;

use crate::herd::Herd;

#[tokio::test(flavor = "multi_thread")]
async fn a_core_that_starts_before_its_provider_says_so_and_begins_when_it_comes() -> Result<()> {
    let world = World::start().await?;
    let core = world.core().quick().start().await?;
    let names = names("node", 3);
    world.kubelets().join(&names).await?;
    let readiness = core.readiness_says("[-]provider").await?;
    assert!(!readiness.ready, "{}", readiness.text);
    assert!(readiness.text.contains("provider.sock"), "it says where it looks: {}", readiness.text);
    let provider = world.provider().flag("--auto-instances").start().await?;
    eventually("all to be initialised", PATIENCE, async || world.kubelets().initialised(&names).await).await?;
    core.ready().await?;
    core.stop().await?;
    provider.stop().await?;
    world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_without_its_kubeconfig_says_why_once_and_ends() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let endpoint = format!("--provider-endpoint=unix://{}", dir.path().join("provider.sock").display());
    let mut core = Command::new(&Binaries::get().await?.core);
    core.args([&endpoint, "--secure-port=0", "--kubeconfig"]).arg(dir.path().join("nope")).kill_on_drop(true);
    let output = core.output().await?;
    let said = String::from_utf8(output.stderr)?;
    assert_eq!((output.status.code(), said.matches("No such file or directory").count()), (Some(1), 1), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_socket_file_is_in_nobodys_way() -> Result<()> {
    let world = World::start().await?;
    drop(UnixListener::bind(world.provider().endpoint())?);
    assert!(world.provider().endpoint().exists(), "a listener leaves its file behind");
    let core = world.core().quick().start().await?;
    assert!(!core.readiness_says("[-]provider").await?.ready);
    let provider = world.provider().flag("--auto-instances").start().await?;
    let names = names("node", 3);
    world.kubelets().join(&names).await?;
    eventually("all to be initialised", PATIENCE, async || world.kubelets().initialised(&names).await).await?;
    core.stop().await?;
    provider.stop().await?;
    assert!(!world.provider().endpoint().exists(), "an orderly end removes the socket");
    world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_provider_refuses_the_socket_of_a_living_one() -> Result<()> {
    let herd = Herd::of(3).await?;
    let mut rival = herd.provider.spec().clone().rival().spawn().await?;
    let status = rival.ended(PATIENCE).await?;
    let said = tail(rival.log(), 20);
    assert!(!status.success(), "{said}");
    assert!(said.contains("provider.sock"), "it says which socket: {said}");
    let late = names("late", 3);
    herd.provider.machines("add", &late).await?;
    herd.kubelets.join(&late).await?;
    herd.initialised(&late).await?;
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_of_something_that_is_no_provider_is_named_in_readiness() -> Result<()> {
    let world = World::start().await?;
    let endpoint = world.provider().endpoint();
    let silent = UnixListener::bind(&endpoint)?;
    let core = world.core().quick().start().await?;
    let names = names("node", 1);
    world.kubelets().join(&names).await?;
    assert!(!core.readiness_says("[-]provider").await?.ready);
    drop(silent);
    fs::remove_file(endpoint)?;
    let provider = world.provider().flag("--auto-instances").start().await?;
    eventually("all to be initialised", PATIENCE, async || world.kubelets().initialised(&names).await).await?;
    core.stop().await?;
    provider.stop().await?;
    world.end().await
}
