//! What a claim, a removal and an edit make of the table.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::cloud::routes::model::Machine;

const NET: &str = "10.244.1.0/24";
const HERE: Terms = Terms { max: None };

fn machine(node: &str) -> Target {
    Target::Machine(Machine { node: node.into(), provider_id: Some(format!("simulated://z/{node}")) })
}

fn removal(destination: &str, node: &str) -> Removal {
    let provider_id = Some(format!("simulated://z/{node}"));
    let destination = destination.parse().unwrap();
    Removal { destination, node: node.into(), provider_id, address: None, description: String::new() }
}

/// A table with these routes: destination, node, tag.
fn table(routes: &[(&str, &str, Option<&str>)]) -> Table {
    let mut table = Table::default();
    for (destination, node, tag) in routes {
        let destination = destination.parse().unwrap();
        let add = Edit::Add { destination, target: machine(node), cluster_uid: tag.map(str::to_owned) };
        table.edit(add, &mut Vec::new()).unwrap();
    }
    table
}

fn claim(table: &mut Table, terms: Terms, destination: &str, node: &str) -> (Outcome, usize) {
    let mut records = Vec::new();
    let claim = Claim { cluster_uid: "c", destination: destination.parse().unwrap(), target: machine(node) };
    (table.claim(terms, &claim, &mut records), records.len())
}

fn release(table: &mut Table, destination: &str, node: &str) -> Outcome {
    table.release("c", &removal(destination, node), &mut Vec::new())
}

/// Targets and tags, by destination and target.
fn seen(table: &Table) -> Vec<(String, Option<String>)> {
    let mut seen: Vec<_> = table.all().map(|route| (route.target.to_string(), route.cluster_uid.clone())).collect();
    seen.sort();
    seen
}

fn at(node: &str, tag: Option<&str>) -> (String, Option<String>) {
    (format!("simulated://z/{node}"), tag.map(str::to_owned))
}

fn code(outcome: &Outcome) -> Option<FailureCode> {
    if let Outcome::Failed(failure) = outcome { Some(failure.code) } else { None }
}

#[test]
fn a_claim_makes_a_route_once_however_its_destination_is_spelled() {
    let mut table = Table::default();
    assert_eq!(claim(&mut table, HERE, NET, "a"), (Outcome::Done, 1));
    assert_eq!(claim(&mut table, HERE, "10.244.1.9/24", "a"), (Outcome::Done, 0));
    assert_eq!(seen(&table), [at("a", Some("c"))]);
}

#[test]
fn a_claim_replaces_its_own_route_in_place_and_leaves_one_of_several() {
    let mut one = table(&[(NET, "a", Some("c"))]);
    let id = one.all().next().unwrap().id.clone();
    assert_eq!(claim(&mut one, HERE, NET, "b"), (Outcome::Done, 1));
    assert_eq!((seen(&one), &one.all().next().unwrap().id), (vec![at("b", Some("c"))], &id));

    let mut several = table(&[(NET, "a", Some("c")), (NET, "b", Some("c")), (NET, "x", Some("c"))]);
    assert_eq!(claim(&mut several, HERE, NET, "b"), (Outcome::Done, 2), "the one that is right stays as it is");
    assert_eq!(seen(&several), [at("b", Some("c"))]);
}

#[test]
fn a_claim_leaves_the_routes_of_others_alone() {
    let before = [(NET, "a", None)];
    let mut foreign = table(&before);
    assert_eq!(claim(&mut foreign, HERE, NET, "a"), (Outcome::Done, 0), "it leads where it shall, and is not taken over");
    assert_eq!(code(&claim(&mut foreign, HERE, NET, "b").0), Some(FailureCode::NotOwned));
    assert_eq!(seen(&foreign), [at("a", None)]);

    let mut mixed = table(&[(NET, "a", Some("other")), (NET, "b", Some("c"))]);
    assert_eq!(code(&claim(&mut mixed, HERE, NET, "b").0), Some(FailureCode::NotOwned));
    assert_eq!(claim(&mut mixed, HERE, NET, "a"), (Outcome::Done, 1), "its own is put right");
    assert_eq!(seen(&mixed), [at("a", Some("c")), at("a", Some("other"))]);
}

#[test]
fn an_address_is_one_place_for_others_and_names_its_machine_for_the_cluster() {
    let address = |node: Option<&str>| {
        let machine = node.and_then(|node| machine(node).machine().cloned());
        Target::Address { address: "10.9.0.1".parse().unwrap(), machine }
    };
    let claimed = |table: &mut Table, target| {
        let claim = Claim { cluster_uid: "c", destination: NET.parse().unwrap(), target };
        let mut records = Vec::new();
        (table.claim(HERE, &claim, &mut records), records.len())
    };
    let mut foreign = Table::default();
    let add = Edit::Add { destination: NET.parse().unwrap(), target: address(None), cluster_uid: None };
    foreign.edit(add, &mut Vec::new()).unwrap();
    assert_eq!(claimed(&mut foreign, address(Some("a"))), (Outcome::Done, 0));

    let mut own = Table::default();
    assert_eq!(claimed(&mut own, address(Some("a"))), (Outcome::Done, 1));
    assert_eq!(claimed(&mut own, address(Some("b"))), (Outcome::Done, 1), "another machine has the address now");
    assert_eq!(own.all().next().unwrap().target, address(Some("b")));
}

#[test]
fn a_quota_stops_new_routes_and_no_replacement() {
    let mut full = table(&[(NET, "a", Some("c"))]);
    let terms = Terms { max: Some(1) };
    assert_eq!(code(&claim(&mut full, terms, "10.244.2.0/24", "b").0), Some(FailureCode::QuotaExceeded));
    assert_eq!(claim(&mut full, terms, NET, "b"), (Outcome::Done, 1));
    assert_eq!(release(&mut full, NET, "b"), Outcome::Done);
    assert_eq!(claim(&mut full, terms, "10.244.2.0/24", "b"), (Outcome::Done, 1));
}

#[test]
fn a_removal_takes_only_what_still_leads_where_it_was_listed_to_lead() {
    let mut moved = table(&[(NET, "b", Some("c"))]);
    assert_eq!(code(&release(&mut moved, NET, "a")), Some(FailureCode::Conflict));
    assert_eq!(release(&mut moved, "10.244.9.0/24", "a"), Outcome::Done, "it is gone");
    assert_eq!(seen(&moved), [at("b", Some("c"))]);

    let mut foreign = table(&[(NET, "a", None)]);
    assert_eq!(code(&release(&mut foreign, NET, "a")), Some(FailureCode::NotOwned));
    assert_eq!(release(&mut foreign, NET, "b"), Outcome::Done, "the route that was meant is gone");
    assert_eq!(seen(&foreign), [at("a", None)]);

    let mut several = table(&[(NET, "a", Some("c")), (NET, "b", Some("c")), (NET, "a", Some("other"))]);
    assert_eq!(release(&mut several, NET, "a"), Outcome::Done);
    assert_eq!(seen(&several), [at("a", Some("other")), at("b", Some("c"))]);
}

#[test]
fn a_removal_knows_an_unresolved_target_by_its_description() {
    let description = "simulated://z/a".to_owned();
    let unknown = Removal { node: String::new(), provider_id: None, description, ..removal(NET, "a") };
    let mut table = table(&[(NET, "a", Some("c"))]);
    let other = Removal { description: "simulated://z/b".into(), ..unknown.clone() };
    assert_eq!(code(&table.release("c", &other, &mut Vec::new())), Some(FailureCode::Conflict));
    assert_eq!(table.release("c", &unknown, &mut Vec::new()), Outcome::Done);
    assert!(seen(&table).is_empty());
}

#[test]
fn an_edit_of_an_unknown_route_is_refused() {
    let mut table = table(&[]);
    let refused = table.edit(Edit::Remove { id: "ghost".into() }, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.code, FailureCode::Unknown);
}
