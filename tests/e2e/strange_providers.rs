//! Providers that break the contract: clear words, no crash, and nodes that stay as they were.
use anyhow::{Result, ensure};
use ccm_test_support::kubelet::{UNINITIALIZED, has_taint, names};
use ccm_test_support::strange_provider::{StrangeProvider, Strangeness};
use ccm_test_support::wait::{PATIENCE, eventually};
use ccm_test_support::world::World;

use crate::herd::Herd;

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_of_another_protocol_version_is_named_and_changes_nothing() -> Result<()> {
    let world = World::start().await?;
    let names = names("node", 2);
    world.kubelets().join(&names).await?;
    for strangeness in [Strangeness::RefusesVersion, Strangeness::AnswersOtherVersion] {
        let endpoint = world.dir().join(format!("{strangeness:?}.sock"));
        let strange = StrangeProvider::start(&endpoint, strangeness)?;
        let core = world.core().quick().endpoint(&endpoint).named(&format!("core-{strangeness:?}")).start().await?;
        let readiness = core.readiness_says("v9").await?;
        assert!(!readiness.ready && readiness.text.contains("version"), "{strangeness:?}: {}", readiness.text);
        assert!(strange.calls() > 0);
        core.stop().await?;
    }
    assert_eq!(world.audit().node_writes()?.total(), 0);
    world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_break_the_contract_are_told_and_leave_the_node_as_it_was() -> Result<()> {
    let world = World::start().await?;
    let kinds =
        [Strangeness::Duplicates, Strangeness::Missing, Strangeness::WrongNames, Strangeness::ForeignIds, Strangeness::NoOutcome];
    for strangeness in kinds {
        let endpoint = world.dir().join(format!("{strangeness:?}.sock"));
        let strange = StrangeProvider::start(&endpoint, strangeness)?;
        let mut core = world.core().quick().endpoint(&endpoint).named(&format!("core-{strangeness:?}")).start().await?;
        let name = format!("{strangeness:?}").to_lowercase();
        world.kubelets().join(std::slice::from_ref(&name)).await?;
        eventually(&format!("an event on {name}"), PATIENCE, async || about(&world, &name).await).await?;
        assert!(has_taint(&world.kubelets().get(&name).await?, UNINITIALIZED), "{strangeness:?}");
        assert!(strange.calls() > 1 && core.process().exited()?.is_none(), "{strangeness:?}");
        core.stop().await?;
        world.kubelets().remove(&[name]).await?;
    }
    assert_eq!(world.audit().node_writes()?.total(), 0);
    world.end().await
}

async fn about(world: &World, node: &str) -> Result<()> {
    for reason in ["InvalidProviderAnswer", "CloudLookupFailed"] {
        let events = world.events(reason).await?;
        if events.iter().any(|event| event.regarding.as_ref().is_some_and(|about| about.name.as_deref() == Some(node))) {
            return Ok(());
        }
    }
    anyhow::bail!("there is none")
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_addresses_are_left_out_and_told() -> Result<()> {
    let world = World::start().await?;
    let endpoint = world.dir().join("strange.sock");
    let _strange = StrangeProvider::start(&endpoint, Strangeness::InvalidAddresses)?;
    let core = world.core().quick().endpoint(&endpoint).start().await?;
    let names = names("node", 1);
    world.kubelets().join(&names).await?;
    eventually("an event on the node", PATIENCE, async || about(&world, "node-0").await).await?;
    let node = world.kubelets().get("node-0").await?;
    let addresses = node.status.and_then(|status| status.addresses).unwrap_or_default();
    assert_eq!(addresses.iter().map(|address| address.type_.as_str()).collect::<Vec<_>>(), ["Hostname"]);
    core.stop().await?;
    world.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_answers_garbage_does_no_damage_and_is_forgiven() -> Result<()> {
    let herd = Herd::of(20).await?;
    let before = herd.world.audit().node_writes()?;
    herd.provider.set_fault("garbage").await?;
    herd.kubelets.report(&herd.names, false).await?;
    eventually("events about the garbage", PATIENCE, async || {
        ensure!(!herd.world.events("InvalidProviderAnswer").await?.is_empty(), "there are none");
        Ok(())
    })
    .await?;
    herd.all_stay(4).await?;
    assert_eq!(herd.world.audit().node_writes()?, before);
    herd.provider.clear_faults().await?;
    let late = names("late", 2);
    herd.provider.machines("add", &late).await?;
    herd.kubelets.join(&late).await?;
    herd.initialised(&late).await?;
    herd.end().await
}
