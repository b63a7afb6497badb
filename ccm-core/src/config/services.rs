//! Flags about the load balancers of Services.
use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::go_syntax::{boolean, positive_duration, serialize_duration};
use super::{ControllersConfig, Invalid};
use crate::names::controllers::SERVICE;

#[derive(Debug, Args)]
#[command(next_help_heading = "Services")]
pub(super) struct ServicesArgs {
    /// How many Services ccm-core works on at the same time; 0: as many as the provider accepts
    ///
    /// The default of upstream's cloud-controller-manager is 1. ccm-core never exceeds the number that the provider accepts.
    #[arg(long, value_name = "N", default_value_t = 0)]
    concurrent_service_syncs: u32,
    /// Serve Services whose spec.loadBalancerClass is one of these, separated by commas
    ///
    /// If a class is removed from the list, ccm-core leaves its load balancers and finalizers unchanged.
    #[arg(long, value_name = "CLASSES", value_delimiter = ',')]
    load_balancer_classes: Vec<String>,
    /// Serve Services without a spec.loadBalancerClass
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = boolean, action = clap::ArgAction::Set)]
    load_balancer_default_class: bool,
    /// What to do if a load balancer in the cloud differs from its desired state
    ///
    /// The provider must support PlanLoadBalancer; without it ccm-core does not look for differences.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Drift::Report)]
    load_balancer_drift: Drift,
    /// Time within which ccm-core compares every load balancer once with its Service, evenly spread
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = positive_duration)]
    load_balancer_drift_period: Duration,
}

/// The load balancers of Services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicesConfig {
    /// How many Services ccm-core works on at the same time; none: as many as the provider accepts.
    pub concurrent_syncs: Option<usize>,
    /// The classes that are served.
    pub classes: BTreeSet<String>,
    /// Whether Services without a class are served.
    pub serve_default_class: bool,
    /// What to do about drift.
    pub drift: Drift,
    /// Time within which every load balancer is compared once.
    #[serde(serialize_with = "serialize_duration")]
    pub drift_period: Duration,
}

/// What to do if a load balancer in the cloud differs from its desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum Drift {
    /// Report it by an event and a metric
    Report,
    /// Restore the desired state, and report it by an event and a metric
    Repair,
    /// Do not compare
    Off,
}

impl ServicesArgs {
    pub(super) fn validate(self, controllers: &ControllersConfig) -> Result<ServicesConfig, Invalid> {
        let classes = classes(&self.load_balancer_classes)?;
        if classes.is_empty() && !self.load_balancer_default_class && controllers.runs(SERVICE) {
            return Err(Invalid::new(
                "load-balancer-default-class",
                "no Service would be served",
                "name classes in --load-balancer-classes, or leave the controller out by --controllers=*,-service",
            ));
        }
        Ok(ServicesConfig {
            concurrent_syncs: Some(self.concurrent_service_syncs as usize).filter(|number| *number > 0),
            classes,
            serve_default_class: self.load_balancer_default_class,
            drift: self.load_balancer_drift,
            drift_period: self.load_balancer_drift_period,
        })
    }
}

fn classes(given: &[String]) -> Result<BTreeSet<String>, Invalid> {
    let named = given.iter().map(|class| class.trim()).filter(|class| !class.is_empty());
    named.map(|class| if is_class(class) { Ok(class.to_owned()) } else { Err(no_class(class)) }).collect()
}

fn no_class(class: &str) -> Invalid {
    let remedy = "give values that spec.loadBalancerClass accepts, such as example.com/internal or internal";
    Invalid::new("load-balancer-classes", format!("{class:?} is not a load balancer class"), remedy)
}

/// The API server's rule for `spec.loadBalancerClass`: a name, optionally with a DNS name and a slash as its prefix.
fn is_class(class: &str) -> bool {
    let (prefix, name) = class.split_once('/').map_or((None, class), |(prefix, name)| (Some(prefix), name));
    let subdomain =
        |it: &str| it.len() <= 253 && it.split('.').all(|label| is_word(label, |b| b.is_ascii_lowercase() || b == b'-'));
    name.len() <= 63
        && is_word(name, |b| b.is_ascii_alphabetic() || matches!(b, b'-' | b'_' | b'.'))
        && prefix.is_none_or(subdomain)
}

/// Whether a text has only these bytes and digits, with a letter or digit at both ends.
fn is_word(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| byte.is_ascii_digit() || allowed(*byte)) && edge(bytes.first()) && edge(bytes.last())
}
