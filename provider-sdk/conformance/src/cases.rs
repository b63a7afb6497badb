//! All cases, in the order in which they run: what only reads first, and what ends providers last.
use crate::case::Case;

mod calls;
mod health;
mod identity;
mod instances;
mod leadership;
mod lifecycle;
mod limits;
mod load_balancers;
mod routes;
mod socket;
mod zones;

/// Every case.
pub fn all() -> impl Iterator<Item = &'static Case> {
    let reading = [identity::CASES, health::CASES, limits::CASES, instances::CASES, instances::faults::CASES, zones::CASES];
    let changing = [leadership::CASES, leadership::mutations::CASES, load_balancers::CASES, load_balancers::ownership::CASES];
    let sets_and_plans = [load_balancers::node_sets::CASES, load_balancers::plans::CASES, load_balancers::faults::CASES];
    let last = [routes::CASES, routes::others::CASES, socket::CASES, lifecycle::CASES];
    reading.into_iter().chain(changing).chain(sets_and_plans).chain(last).flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;
    use crate::contract;

    #[test]
    fn every_case_has_an_id_of_its_own_and_cites_rules_that_exist() {
        let ids: BTreeSet<_> = all().map(|case| case.id).collect();
        assert_eq!(ids.len(), all().count());
        for case in all() {
            let unknown: Vec<_> = case.rules.iter().filter(|id| contract::rule(id).is_none()).collect();
            assert!(unknown.is_empty() && !case.rules.is_empty(), "{}: {unknown:?}", case.id);
        }
    }
}
