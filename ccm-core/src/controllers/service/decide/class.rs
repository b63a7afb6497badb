//! Whose a Service is. The finalizer is shared by all controllers of load balancers, and the API server clears the class when
//! the type changes: so the class that a finalizer of ours stands for is noted beside it.
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

/// How a Service stands to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has no load balancer of ours, and wants none.
    NotOurs,
    /// It wants one.
    Wanted,
    /// It has one, and wants it no more.
    Unneeded {
        /// It wants somebody else's instead, who shares the finalizer.
        keeps_finalizer: bool,
    },
    /// It has one of a class that was served once.
    ClassNotServed(String),
}

/// How a Service stands to who serves these classes.
pub fn standing(service: &Service, classes: &Classes) -> Standing {
    let asked = service.load_balancer_class.as_deref().unwrap_or_default();
    let going = service.deleted_at.is_some();
    let wants = service.is_load_balancer && !going;
    if !service.has_finalizer() {
        return if wants && classes.serve(asked) { Standing::Wanted } else { Standing::NotOurs };
    }
    let noted = service.annotations.get(annotations::LOAD_BALANCER_CLASS);
    let held = noted.map_or(asked, String::as_str);
    match classes.serve(held) {
        false if noted.is_some() => Standing::ClassNotServed(held.to_owned()),
        false => Standing::NotOurs,
        true if wants && held == asked => Standing::Wanted,
        true => Standing::Unneeded { keeps_finalizer: wants && !classes.serve(asked) },
    }
}
