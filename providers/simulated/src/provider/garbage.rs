//! The fault `garbage`: answers as no honest provider gives them, for a core to survive. Every response has as many kinds
//! of nonsense as it has room for; one after another over several calls.
use ccm_provider_sdk::v1::instance_result::Outcome;
use ccm_provider_sdk::v1::{BatchGetInstancesResponse, Instance, InstanceNotFound, InstanceResult, NodeAddress, NodeAddressType};

/// What can be done to a result.
type Nonsense = fn(&mut InstanceResult);

/// All that is done to results; what is done to the list as a whole stands in [`spoil`].
const NONSENSE: [Nonsense; 8] = [
    |result| result.node_name.insert_str(0, "not-"),
    |result| result.outcome = None,
    |result| change(result, |machine| machine.addresses = bad_addresses()),
    |result| change(result, |machine| machine.state = 0),
    |result| change(result, |machine| machine.state = 4711),
    |result| change(result, |machine| machine.provider_id.clear()),
    |result| change(result, |machine| "elsewhere://x".clone_into(&mut machine.provider_id)),
    |result| result.observed_at = None,
];

/// Spoils a response. `turn` is the number of the call: a batch of one, too, sees everything in time.
pub fn spoil(response: &mut BatchGetInstancesResponse, turn: usize) {
    for (index, result) in response.results.iter_mut().enumerate() {
        if let Some(nonsense) = NONSENSE.get((index + turn) % (NONSENSE.len() + 2)) {
            nonsense(result);
        }
    }
    contradict(&mut response.results, turn);
}

/// One result is repeated with another outcome, another is missing, and one is for a node that nobody asked for.
fn contradict(results: &mut Vec<InstanceResult>, turn: usize) {
    if results.len() > 2 || turn % 3 == 1 {
        results.pop();
    }
    let gone = Some(Outcome::NotFound(InstanceNotFound {}));
    let again = results.first().map(|first| InstanceResult { outcome: gone.clone(), ..first.clone() });
    let stranger = InstanceResult { node_name: format!("stranger-{turn}"), outcome: gone, observed_at: None };
    results.extend(again);
    results.push(stranger);
}

fn change(result: &mut InstanceResult, nonsense: impl FnOnce(&mut Instance)) {
    if let Some(Outcome::Instance(machine)) = &mut result.outcome {
        nonsense(machine);
    }
}

fn bad_addresses() -> Vec<NodeAddress> {
    let address = |kind: NodeAddressType, text: &str| NodeAddress { r#type: kind.into(), address: text.to_owned() };
    vec![
        address(NodeAddressType::InternalIp, "300.1.2.3"),
        address(NodeAddressType::ExternalIp, ""),
        address(NodeAddressType::Unspecified, "10.0.0.1"),
        NodeAddress { r#type: 99, address: "10.0.0.2".into() },
        address(NodeAddressType::InternalDns, "not a name\n"),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn answer(machines: usize) -> BatchGetInstancesResponse {
        let result = |n| InstanceResult {
            node_name: format!("node-{n}"),
            outcome: Some(Outcome::Instance(Instance {
                state: 2,
                provider_id: format!("simulated://a/{n}"),
                ..Instance::default()
            })),
            ..InstanceResult::default()
        };
        BatchGetInstancesResponse { results: (0..machines).map(result).collect() }
    }

    #[test]
    fn one_large_batch_has_every_kind_of_nonsense() {
        let mut response = answer(12);
        spoil(&mut response, 0);
        let mut counts = HashMap::new();
        for result in &response.results {
            *counts.entry(result.node_name.as_str()).or_insert(0) += 1;
        }
        assert!(counts.values().any(|count| *count == 2), "one is repeated");
        assert!(!counts.contains_key("node-11"), "one is missing");
        assert!(counts.contains_key("not-node-0") && counts.contains_key("stranger-0"), "some were never asked for");
        assert!(response.results.iter().any(|result| result.outcome.is_none()), "one says nothing");
    }

    #[test]
    fn batches_of_one_come_out_differently_from_call_to_call() {
        let one = |turn| {
            let mut response = answer(1);
            spoil(&mut response, turn);
            format!("{:?}", response.results.first())
        };
        let spoilt: HashSet<_> = (0..30).map(one).collect();
        assert!(spoilt.len() >= NONSENSE.len());
    }
}
