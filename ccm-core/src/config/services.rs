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
    /// How many Services are worked on at the same time; 0: as many as the provider says it can take
    ///
    /// In Go's cloud-controller-manager it is 1 by default. A number here never exceeds what the provider says.
    #[arg(long, value_name = "N", default_value_t = 0)]
    concurrent_service_syncs: u32,
    /// Serve Services whose spec.loadBalancerClass is one of these
    ///
    /// A class that is taken from the list leaves the load balancers of its Services as they are: nothing is changed or removed.
    #[arg(long, value_name = "CLASSES", value_delimiter = ',')]
    load_balancer_classes: Vec<String>,
    /// Serve Services without a spec.loadBalancerClass
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", value_parser = boolean, action = clap::ArgAction::Set)]
    load_balancer_default_class: bool,
    /// What happens when a load balancer in the cloud is no longer as it was made
    ///
    /// It needs a provider that can plan (PlanLoadBalancer); without one nothing is looked for.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Drift::Report)]
    load_balancer_drift: Drift,
    /// How often every load balancer is compared with its Service, spread over this time
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = positive_duration)]
    load_balancer_drift_period: Duration,
}

/// The load balancers of Services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicesConfig {
    /// How many Services are worked on at the same time; none: as many as the provider says it can take.
    pub concurrent_syncs: Option<usize>,
    /// The classes that are served.
    pub classes: BTreeSet<String>,
    /// Whether Services without a class are served.
    pub serve_default_class: bool,
    /// What happens about drift.
    pub drift: Drift,
    /// How often every load balancer is looked at for drift.
    #[serde(serialize_with = "serialize_duration")]
    pub drift_period: Duration,
}

/// What happens when a load balancer in the cloud is no longer as it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum Drift {
    /// An event and a metric say so
    Report,
    /// It is made right again, and an event and a metric say so
    Repair,
    /// Nobody looks
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
    let remedy = "give names as spec.loadBalancerClass takes them, such as example.com/internal or internal";
    Invalid::new("load-balancer-classes", format!("{class:?} is no load balancer class"), remedy)
}

/// The API server's rule for `spec.loadBalancerClass`: a name, before it a DNS name and a slash if it likes.
fn is_class(class: &str) -> bool {
    let (prefix, name) = class.split_once('/').map_or((None, class), |(prefix, name)| (Some(prefix), name));
    let subdomain =
        |it: &str| it.len() <= 253 && it.split('.').all(|label| is_word(label, |b| b.is_ascii_lowercase() || b == b'-'));
    name.len() <= 63
        && is_word(name, |b| b.is_ascii_alphabetic() || matches!(b, b'-' | b'_' | b'.'))
        && prefix.is_none_or(subdomain)
}

/// Of these bytes and digits, with a letter or digit at both ends.
fn is_word(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().all(|byte| byte.is_ascii_digit() || allowed(*byte)) && edge(bytes.first()) && edge(bytes.last())
}
