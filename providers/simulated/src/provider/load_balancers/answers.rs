//! A load balancer in the words of the protocol. Nothing is decided here.
use std::collections::HashMap;
use std::time::Duration;

use ccm_provider_sdk::{Progress, v1};
use jiff::Timestamp;

use super::wanted::NAME_ANNOTATION;
use crate::cloud::load_balancers::model::{IpMode, LoadBalancer};

/// How long a core shall wait where the cloud does not say how long its work will take.
const AT_WORK: Duration = Duration::from_secs(1);

/// What becomes `status.loadBalancer`.
pub fn status(one: &LoadBalancer) -> v1::LoadBalancerStatus {
    let mode = match one.wanted.ip_mode {
        None => v1::LoadBalancerIpMode::Unspecified,
        Some(IpMode::Vip) => v1::LoadBalancerIpMode::Vip,
        Some(IpMode::Proxy) => v1::LoadBalancerIpMode::Proxy,
    };
    let by_ip = |ip: String| v1::LoadBalancerIngress { ip: Some(ip), ip_mode: mode.into(), ..v1::LoadBalancerIngress::default() };
    let ingress = match &one.hostname {
        Some(_) => vec![v1::LoadBalancerIngress { hostname: one.hostname.clone(), ..v1::LoadBalancerIngress::default() }],
        None => one.addresses.iter().map(|address| by_ip(address.to_string())).collect(),
    };
    v1::LoadBalancerStatus { ingress }
}

/// The annotations that its Service gets.
pub fn annotations(name: &str) -> HashMap<String, String> {
    HashMap::from([(NAME_ANNOTATION.to_owned(), name.to_owned())])
}

/// What Ensure answers of a load balancer that is as asked.
pub fn standing(one: &LoadBalancer) -> v1::LoadBalancerReady {
    let annotations = annotations(&one.name);
    v1::LoadBalancerReady { status: Some(status(one)), annotations, warnings: Vec::new() }
}

/// What is said of a load balancer that works, or how long until it does.
pub fn ready<T>(one: &LoadBalancer, answer: impl FnOnce() -> T) -> Progress<T> {
    let now = Timestamp::now();
    if one.is_ready(now) {
        return Progress::Done(answer());
    }
    let wait = Duration::try_from(one.ready_at.duration_since(now)).unwrap_or_default();
    in_progress(wait, format!("load balancer {} is being provisioned", one.name))
}

/// The cloud shall be left alone for now.
pub fn at_work<T>() -> Progress<T> {
    in_progress(AT_WORK, "the cloud is at work on the load balancer".to_owned())
}

fn in_progress<T>(wait: Duration, message: String) -> Progress<T> {
    Progress::InProgress(v1::InProgress { poll_after: wait.try_into().ok(), message })
}

/// A load balancer in a list.
pub fn owned(one: &LoadBalancer) -> v1::OwnedLoadBalancer {
    let mark = &one.wanted.mark;
    v1::OwnedLoadBalancer {
        name: one.name.clone(),
        service_uid: Some(mark.service_uid.clone()),
        service_namespace: Some(mark.namespace.clone()),
        service_name: Some(mark.service.clone()),
        status: Some(status(one)),
    }
}
