//! A target of load balancers as the contract has it. Which of a node's data it has was decided when it was made.
use ccm_proto::v1;

use super::address;
use crate::model::node::{Condition, ConditionStatus, Taint};
use crate::model::target::Target;

/// One node.
pub fn node(target: &Target) -> v1::Node {
    v1::Node {
        name: target.name.clone(),
        uid: target.uid.clone(),
        provider_id: target.provider_id.clone(),
        labels: target.labels.clone().into_iter().collect(),
        annotations: target.annotations.clone().into_iter().collect(),
        addresses: target.addresses.iter().map(address).collect(),
        pod_cidrs: target.pod_cidrs.clone(),
        taints: target.taints.iter().map(taint).collect(),
        system_uuid: target.system_uuid.clone(),
        zone: target.zone.clone(),
        region: target.region.clone(),
        conditions: target.conditions.iter().map(condition).collect(),
    }
}

fn taint(taint: &Taint) -> v1::Taint {
    let effect = match taint.effect.as_str() {
        "NoSchedule" => v1::TaintEffect::NoSchedule,
        "PreferNoSchedule" => v1::TaintEffect::PreferNoSchedule,
        "NoExecute" => v1::TaintEffect::NoExecute,
        _ => v1::TaintEffect::Unspecified,
    };
    v1::Taint { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default(), effect: effect.into() }
}

fn condition(condition: &Condition) -> v1::NodeCondition {
    let status = match condition.status {
        ConditionStatus::True => v1::ConditionStatus::True,
        ConditionStatus::False => v1::ConditionStatus::False,
        ConditionStatus::Unknown => v1::ConditionStatus::Unknown,
    };
    v1::NodeCondition { r#type: condition.kind.clone(), status: status.into() }
}
