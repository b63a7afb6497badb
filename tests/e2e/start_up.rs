//! In which order things start, and what lies where the socket should be.
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;

use anyhow::{Context as _, Result};
use ccm_test_support::binaries::Binaries;
use ccm_test_support::kubelet::names;
use ccm_test_support::process::{Process, tail};
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

/// Listens as another user and reads what comes.
const LISTENER: &str = "
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.setuid(int(sys.argv[2]))
listener.listen()
while True:
    print('bytes', len(listener.accept()[0].recv(1)), flush=True)
";

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_of_another_user_is_refused_and_named_by_the_core_and_its_commands() -> Result<()> {
    let world = World::start().await?;
    // Only root can start a process of another user. For others this shows that their own is not refused.
    let own = fs::metadata(world.dir())?.uid();
    let (uid, refused) = if own == 0 { (65534, true) } else { (own, false) };
    let endpoint = world.provider().endpoint();
    let mut python = Command::new("python3");
    python.args(["-c", LISTENER]).arg(&endpoint).arg(uid.to_string());
    let listener = Process::start("listener", python, world.dir())?;
    eventually("the listener", PATIENCE, async || Ok(fs::metadata(&endpoint).map(drop)?)).await?;
    let core = world.core().quick().start().await?;
    eventually("a connection", PATIENCE, async || {
        let heard = tail(listener.log(), 1);
        anyhow::ensure!(heard == if refused { "bytes 0" } else { "bytes 1" }, "{heard}");
        Ok(())
    })
    .await?;

    let remedy = format!("--provider-peer-uid={uid}");
    if refused {
        let process = format!("process {}", listener.id().context("it runs")?);
        let said = core.readiness_says(&remedy).await?;
        assert!(!said.ready && said.text.contains(&process) && said.text.contains("provider.sock"), "{}", said.text);
    }
    let mut list = Command::new(&Binaries::get().await?.core);
    list.arg("load-balancers").arg(format!("--provider-endpoint=unix://{}", endpoint.display()));
    list.arg("--kubeconfig").arg(world.kubeconfig().context("the world has ended")?).kill_on_drop(true);
    let output = list.output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(&remedy) == refused, "{said}");
    core.stop().await?;
    world.end().await
}
