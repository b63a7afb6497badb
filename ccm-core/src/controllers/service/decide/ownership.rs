//! Whose load balancer a Service has or wants. The finalizer is shared by all controllers of load balancers, and the API server clears
//! the class when the type changes: so an annotation says for which class we have added the finalizer.
use std::collections::BTreeSet;

use crate::model::service::Service;
use crate::names::annotations;

/// The classes that are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// By name.
    pub listed: BTreeSet<String>,
    /// And Services without a class.
    pub default: bool,
}

impl Classes {
    /// Whether a class is served; the empty one is the default.
    pub fn serve(&self, class: &str) -> bool {
        if class.is_empty() { self.default } else { self.listed.contains(class) }
    }
}

/// Whose a Service's load balancer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It has no load balancer of ours, and wants none.
    NotOurs,
    /// It wants one.
    Wanted,
    /// It has one of ours, and does not want it any more.
    Unneeded {
        /// Another controller's is asked for instead, and that controller shares the finalizer.
        keeps_finalizer: bool,
    },
    /// It has one of a class that was served once.
    ClassNotServed(String),
}

/// Whose a Service's load balancer is, where these classes are served.
pub fn ownership(service: &Service, classes: &Classes) -> Ownership {
    let asked = service.load_balancer_class.as_deref().unwrap_or_default();
    let going = service.deleted_at.is_some();
    let wants = service.is_load_balancer && !going;
    if !service.has_finalizer() {
        return if wants && classes.serve(asked) { Ownership::Wanted } else { Ownership::NotOurs };
    }
    let noted = service.annotations.get(annotations::LOAD_BALANCER_CLASS);
    let class = noted.map_or(asked, String::as_str);
    match classes.serve(class) {
        false if noted.is_some() => Ownership::ClassNotServed(class.to_owned()),
        false => Ownership::NotOurs,
        true if wants && class == asked => Ownership::Wanted,
        true => Ownership::Unneeded { keeps_finalizer: wants && !classes.serve(asked) },
    }
}
