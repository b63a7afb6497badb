//! CONTRACT.md keeps up with the proto files and with Go's interface, and each of its rules has an id. What the words say is for a
//! reader to judge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use crate::protos::{enum_values, names};
use crate::tree::{files, has_word, read};

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

/// The prefixes of the rules' ids.
const PREFIXES: &str = "SOCK HLT HS LIFE LEAD ID CAP LIM INST REP NS LB RT ERR ZN VER";

/// The contract from its first heading on, in sentences: each row of a table is one, and so is each heading.
fn sentences() -> Vec<String> {
    let text = contract();
    let body = text.find("\n## ").map_or("", |at| &text[at..]);
    let mut blocks = vec![String::new()];
    for line in body.lines().map(str::trim) {
        let begins = line.is_empty() || line.starts_with(['|', '#', '-']) || line.split(". ").next().is_some_and(is_number);
        if begins {
            blocks.push(String::new());
        }
        let line = line.strip_prefix("- ").unwrap_or(line);
        blocks.last_mut().unwrap().extend([line, " "]);
    }
    let split = |block: String| -> Vec<String> {
        if block.starts_with('|') {
            return vec![block];
        }
        block.replace(".** ", ".**\n").replace(". ", ".\n").lines().map(|it| it.trim().to_owned()).collect()
    };
    blocks.into_iter().flat_map(split).filter(|it| !it.is_empty()).collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The ids in a text, in their order: `LB-12` of `[LB-12]`.
fn ids(text: &str) -> Vec<(&str, u32)> {
    let inside = text.split('[').skip(1).filter_map(|rest| rest.split_once(']')).filter(|(_, rest)| !rest.starts_with('('));
    inside.filter_map(|(id, _)| id.split_once('-').and_then(|(prefix, number)| Some((prefix, number.parse().ok()?)))).collect()
}

/// What stands where a rule's id belongs: at the beginning of a sentence, or of a row's first cell.
fn id_of(sentence: &str) -> Option<(&str, u32)> {
    let begins = sentence.strip_prefix("| ").unwrap_or(sentence).starts_with('[');
    ids(sentence).into_iter().next().filter(|_| begins)
}

fn is_normative(sentence: &str) -> bool {
    has_word(sentence, "MUST") || has_word(sentence, "SHOULD")
}

#[test]
fn every_rule_of_the_contract_has_one_id_at_its_beginning() {
    let all = sentences();
    assert!(all.iter().filter(|it| is_normative(it)).count() > 60, "few sentences were found: {all:#?}");
    let nameless: Vec<_> = all.iter().filter(|it| is_normative(it) && id_of(it).is_none()).collect();
    assert!(nameless.is_empty(), "MUST or SHOULD without an id: {nameless:#?}");
    let crowded: Vec<_> = all.iter().filter(|it| ids(it).len() > 1).collect();
    assert!(crowded.is_empty(), "two ids in one sentence: {crowded:#?}");
    let idle: Vec<_> = all.iter().filter(|it| id_of(it).is_some() && !it.starts_with('|') && !is_normative(it)).collect();
    assert!(idle.is_empty(), "an id without MUST or SHOULD: {idle:#?}");
}

#[test]
fn the_ids_of_rules_are_unique_and_have_no_gaps() {
    let text = contract();
    let found = ids(&text);
    let unknown: Vec<_> = found.iter().filter(|(prefix, _)| !PREFIXES.split(' ').any(|it| it == *prefix)).collect();
    assert!(unknown.is_empty(), "prefixes that are not listed here: {unknown:?}");
    for prefix in PREFIXES.split(' ') {
        // A removed rule's id stays in the list of removed ones, so the numbers have no gap.
        let mut numbers: Vec<_> = found.iter().filter(|(of, _)| *of == prefix).map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        let expected: Vec<_> = (1..).take(numbers.len()).collect();
        assert!(!numbers.is_empty() && numbers == expected, "{prefix}: {numbers:?}");
    }
}

#[test]
fn every_row_about_errors_has_an_id() {
    let text = contract();
    let tables = text.split("### Any call").nth(1).and_then(|rest| rest.split("### Codes without").next()).unwrap();
    let rows =
        tables.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| condition") && !line.starts_with("| method"));
    let nameless: Vec<_> = rows.filter(|row| id_of(row).is_none()).collect();
    assert!(nameless.is_empty(), "rows without an id: {nameless:#?}");
}

#[test]
fn the_contract_says_which_controllers_there_are() {
    let text = contract();
    for controller in
        ["cloud-node-controller", "cloud-node-lifecycle-controller", "service-lb-controller", "node-route-controller"]
    {
        assert!(text.contains(controller), "{controller} is not named");
    }
}

#[test]
fn the_core_sends_no_keepalive_pings() {
    let core = files("rs").into_iter().filter(|file| file.path.starts_with("ccm-core/src/provider") && !file.is_test());
    let pings = ["http2_keep_alive_interval", "keep_alive_while_idle", "keep_alive_timeout"];
    let found: Vec<_> = core.filter(|file| pings.iter().any(|it| file.text.contains(it))).map(|file| file.path).collect();
    assert!(found.is_empty(), "[SOCK-12] forbids it: {found:?}");
}
