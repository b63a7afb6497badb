//! The state in the cluster: damaged while a core leads, lost for good, behind the provider's own, and of another cloud that
//! is accepted in the middle of a term.
use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ccm_test_support::cloud::Cloud;
use ccm_test_support::kubelet::names;
use ccm_test_support::services::{Wish, is_held};
use ccm_test_support::wait::{PATIENCE, eventually, throughout};
use ccm_test_support::world::World;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::herd::Herd;

const MAP: &str = "ccm-core-simulated";
const LEASE: &str = "cloud-controller-manager";

/// Within which time damage is repaired.
const REPAIR: Duration = Duration::from_secs(30);

/// Longer than a quick core needs to delete a node, or to remove a finalizer.
const LONG: Duration = Duration::from_secs(6);

type Data = BTreeMap<String, String>;

fn maps(world: &World) -> Api<ConfigMap> {
    Api::namespaced(world.admin(), "kube-system")
}

async fn data(world: &World) -> Result<Data> {
    Ok(maps(world).get(MAP).await?.data.unwrap_or_default())
}

async fn patch(world: &World, patch: &Value) -> Result<()> {
    maps(world).patch(MAP, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn delete(world: &World) -> Result<()> {
    maps(world).delete(MAP, &DeleteParams::default()).await?;
    Ok(())
}

fn epoch(data: &Data) -> Result<u64> {
    Ok(data.get("epoch").context("no epoch")?.parse()?)
}

/// Waits until the ConfigMap has exactly this data, and another version than `damaged`.
async fn comes_back(world: &World, whole: &Data) -> Result<()> {
    eventually("the state to come back", REPAIR, async || {
        let now = data(world).await?;
        ensure!(now == *whole, "it is {now:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_is_deleted_emptied_or_set_back_under_a_leader_comes_back_whole() -> Result<()> {
    let herd = Herd::of(4).await?;
    let gone = ["node-0".to_owned()];
    herd.provider.machines("terminate", &gone).await?;
    herd.kubelets.report(&gone, false).await?;
    herd.shrinks_to(3).await?;
    let whole = data(&herd.world).await?;
    ensure!(whole["deletions"].contains("node-0"), "{whole:?}");

    delete(&herd.world).await?;
    comes_back(&herd.world, &whole).await?;
    let message = herd.world.event("StateRestored").await?;
    ensure!(message.contains("was deleted"), "{message}");

    patch(&herd.world, &json!({ "data": null })).await?;
    comes_back(&herd.world, &whole).await?;

    let older = json!({ "cloud-identity": "simulated://older", "epoch": "0", "deletions": "[]" });
    patch(&herd.world, &json!({ "data": older })).await?;
    comes_back(&herd.world, &whole).await?;

    herd.joined("late").await?;
    herd.core.ready().await?;
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wrong_cloud_is_refused_also_while_the_state_is_lost() -> Result<()> {
    let herd = Herd::of(4).await?;
    let whole = data(&herd.world).await?;
    herd.provider.set_fault("other-identity").await?;
    herd.provider.machines("hide", &herd.names).await?;
    herd.core.readiness_says("accept-cloud-identity").await?;
    // Whatever shakes hands from now on finds no state.
    delete(&herd.world).await?;
    herd.kubelets.report(&herd.names[..1], false).await?;
    comes_back(&herd.world, &whole).await?;
    throughout("the wrong cloud is refused", LONG, async || {
        let readiness = herd.core.readiness().await?;
        ensure!(!readiness.ready && readiness.text.contains("accept-cloud-identity"), "{}", readiness.text);
        ensure!(data(&herd.world).await? == whole, "the state has changed");
        herd.kubelets.count_is(4).await
    })
    .await?;
    herd.provider.machines("unhide", &herd.names).await?;
    herd.provider.clear_faults().await?;
    herd.core.ready().await?;
    herd.joined("late").await?;
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_of_which_nothing_is_left_is_accepted_by_hand_and_led_under_an_epoch_that_is_new_to_it() -> Result<()> {
    let mut herd = Herd::of(2).await?;
    for _ in 0..3 {
        let before = epoch(&data(&herd.world).await?)?;
        herd = herd.renew(|core| core).await?;
        eventually("the next term to begin", PATIENCE, async || {
            ensure!(mirrored_epoch(&herd.world).await? > before, "the lease names no later epoch than {before}");
            Ok(())
        })
        .await?;
    }
    // The provider has seen this epoch by the time at which it has made something.
    herd.world.services().create([Wish::new("web")]).await?;
    served(&herd.world, &["web".to_owned()]).await?;
    let before = data(&herd.world).await?;
    herd.core.process().stop(PATIENCE).await?;
    delete(&herd.world).await?;
    Api::<Lease>::namespaced(herd.world.admin(), "kube-system").delete(LEASE, &DeleteParams::default()).await?;

    herd.core = herd.core_spec.start().await?;
    let identity = &before["cloud-identity"];
    herd.core.readiness_says(&format!("--accept-cloud-identity={identity}")).await?;
    let message = herd.world.event("CloudIdentityLost").await?;
    ensure!(message.contains(identity.as_str()), "{message}");
    ensure!(data(&herd.world).await.is_err(), "nobody has accepted it, and it was written down");

    let accepted = format!("--accept-cloud-identity={identity}");
    herd = herd.renew(|core| core.flag(&accepted)).await?;
    herd.core.ready().await?;
    herd.world.services().create([Wish::new("late")]).await?;
    served(&herd.world, &["late".to_owned()]).await?;
    let after = data(&herd.world).await?;
    ensure!(epoch(&after)? > epoch(&before)?, "it leads under {after:?}, after {before:?}");
    herd.world.event("LeadRefused").await?;
    ensure!(!herd.core.readiness().await?.text.contains("provider-lead"), "readiness still complains");
    herd.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_a_later_epoch_is_not_written_over_and_the_leader_begins_anew_above_it() -> Result<()> {
    let herd = Herd::of(2).await?;
    let before = data(&herd.world).await?;
    let holder = lease_spec(&herd.world).await?;
    patch(&herd.world, &json!({ "data": { "epoch": "100" } })).await?;
    eventually("a term above the later epoch", PATIENCE, async || {
        let now = data(&herd.world).await?;
        ensure!(epoch(&now)? > 100 && now["cloud-identity"] == before["cloud-identity"], "it is {now:?}");
        Ok(())
    })
    .await?;
    herd.joined("late").await?;
    herd.world.services().create([Wish::new("web")]).await?;
    served(&herd.world, &["web".to_owned()]).await?;
    ensure!(lease_spec(&herd.world).await? == holder, "the lease was given up");
    ensure!(herd.world.events("StateRestored").await?.is_empty(), "the later epoch was taken for damage");
    herd.end().await
}

/// The epoch that the lease names.
async fn mirrored_epoch(world: &World) -> Result<u64> {
    let lease = Api::<Lease>::namespaced(world.admin(), "kube-system").get(LEASE).await?;
    let annotations = lease.metadata.annotations.unwrap_or_default();
    let mirror: Value = serde_json::from_str(annotations.get("ccm-core.dev/state").context("no mirror")?)?;
    mirror["epoch"].as_u64().context("no epoch")
}

async fn served(world: &World, services: &[String]) -> Result<()> {
    eventually("all to have addresses", PATIENCE, async || world.services().have_addresses(services).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn load_balancers_are_made_in_a_cloud_that_is_accepted_in_the_middle_of_a_term() -> Result<()> {
    const OTHER: &str = "simulated://other";
    let world = World::start().await?;
    let flags = |identity| ["--auto-instances".to_owned(), format!("--cloud-identity={identity}")];
    let cloud = async |identity| {
        let flags = flags(identity);
        Cloud::start(world.dir(), &flags.each_ref().map(String::as_str)).await
    };
    let (here, there) = (cloud("simulated://first").await?, cloud(OTHER).await?);
    let mut provider = world.provider().of(&here).start().await?;
    let core = world.core().quick().flag(&format!("--accept-cloud-identity={OTHER}")).start().await?;
    let nodes = names("node", 2);
    world.kubelets().join(&nodes).await?;
    eventually("all to be initialised", PATIENCE, async || world.kubelets().initialised(&nodes).await).await?;
    let services = names("web", 3);
    world.services().ask(&services).await?;
    served(&world, &services).await?;
    here.ctl().sells(3).await?;
    let before = data(&world).await?;
    let holder = lease_spec(&world).await?;

    // One is being removed when the cloud changes, and the first one's answer is still out.
    here.ctl().set_fault("lb-in-progress").await?;
    there.ctl().set_fault("lb-error").await?;
    world.services().delete(&services[2..]).await?;
    world.event("DeletingLoadBalancer").await?;
    provider.kill().await?;
    let rival = world.provider().rival().of(&there).start().await?;
    eventually("the other cloud to be written down", PATIENCE, async || {
        let now = data(&world).await?;
        ensure!(now["cloud-identity"] == OTHER && epoch(&now)? > epoch(&before)?, "it is {now:?}");
        Ok(())
    })
    .await?;
    throughout("nobody is let go by the first cloud", LONG, async || {
        ensure!(is_held(&world.services().get(&services[2]).await?), "the finalizer is gone");
        ensure!(world.events("DeletedLoadBalancer").await?.is_empty(), "it is said to be gone");
        Ok(())
    })
    .await?;
    there.ctl().clear_faults().await?;
    eventually("load balancers in the other cloud", PATIENCE, async || {
        for service in &services[..2] {
            there.ctl().load_balancer(service).await?;
        }
        world.services().gone(&services[2..]).await
    })
    .await?;
    here.ctl().sells(3).await?;
    ensure!(lease_spec(&world).await? == holder, "the lease was given up");
    core.stop().await?;
    rival.stop().await?;
    here.stop().await?;
    there.stop().await?;
    world.end().await
}

/// Who holds the lease, and how often it changed hands.
async fn lease_spec(world: &World) -> Result<(Option<String>, Option<i32>)> {
    let spec = Api::<Lease>::namespaced(world.admin(), "kube-system").get(LEASE).await?.spec.context("no spec")?;
    Ok((spec.holder_identity, spec.lease_transitions))
}
