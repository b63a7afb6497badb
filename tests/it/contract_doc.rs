//! CONTRACT.md keeps up with the proto files and with Go's interface. What the words say is for a reader to judge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use crate::protos::{enum_values, names};
use crate::tree::{has_word, read};

/// Every method of `k8s.io/cloud-provider` v0.36's interfaces, those that were removed from them, and its errors.
const GO: &str = "Initialize LoadBalancer Instances InstancesV2 Zones Clusters Routes ProviderName HasClusterID SetInformers \
    ListClusters Master GetLoadBalancer GetLoadBalancerName EnsureLoadBalancer UpdateLoadBalancer EnsureLoadBalancerDeleted \
    NodeAddresses NodeAddressesByProviderID InstanceID InstanceType InstanceTypeByProviderID AddSSHKeyToAllInstances \
    CurrentNodeName InstanceExistsByProviderID InstanceShutdownByProviderID InstanceExists InstanceShutdown InstanceMetadata \
    ListRoutes CreateRoute DeleteRoute GetZone GetZoneByProviderID GetZoneByNodeName GetLabelsForVolume \
    Config ConfigOrDie Client ClientOrDie DefaultLoadBalancerName GetInstanceProviderID \
    ScrubDNS ExternalID List TCPLoadBalancer \
    DiskNotFound ImplementedElsewhere InstanceNotFound NotImplemented RetryError";

fn contract() -> String {
    read("proto/CONTRACT.md")
}

fn missing<'a>(wanted: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let text = contract();
    wanted.into_iter().filter(|word| !has_word(&text, word)).collect()
}

#[test]
fn every_method_of_the_protocol_is_in_the_contract() {
    let methods = names("rpc");
    assert_eq!(methods.len(), 21, "a method came or went: is its place in CONTRACT.md right?");
    assert_eq!(missing(methods.iter().map(String::as_str)), Vec::<&str>::new());
}

#[test]
fn every_method_of_gos_interface_has_its_row() {
    let rows: Vec<_> = contract().lines().filter(|line| line.starts_with("| ")).map(str::to_owned).collect();
    let left_cells: Vec<_> = rows.iter().filter_map(|row| row.split(" | ").next()).collect();
    let lost: Vec<_> = GO.split_whitespace().filter(|method| !left_cells.iter().any(|cell| has_word(cell, method))).collect();
    assert!(lost.is_empty(), "Go's methods and errors without a row: {lost:?}");
}

#[test]
fn every_capability_has_its_row() {
    let text = contract();
    for capability in enum_values("CAPABILITY_") {
        let row = format!("| `CAPABILITY_{}` |", capability.name);
        assert!(text.contains(&row), "no row begins with {row}");
    }
}

#[test]
fn every_error_reason_has_its_row_with_the_code_of_the_proto() {
    let text = contract();
    for reason in enum_values("ERROR_REASON_") {
        let code = reason.comment.split(':').next().unwrap_or_default();
        let row = format!("| `{}` | {code} |", reason.name);
        assert!(text.contains(&row), "no row begins with {row}");
    }
}

#[test]
fn the_contract_names_nothing_that_does_not_exist() {
    let known: Vec<_> = enum_values("CAPABILITY_").into_iter().map(|value| format!("CAPABILITY_{}", value.name)).collect();
    let text = contract();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.starts_with("CAPABILITY_"));
    let unknown: Vec<_> =
        words.filter(|word| *word != "CAPABILITY_UNSPECIFIED" && !known.iter().any(|name| name == word)).collect();
    assert!(unknown.is_empty(), "capabilities that no proto has: {unknown:?}");
}
