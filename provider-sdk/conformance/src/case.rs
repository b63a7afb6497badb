//! What a case is: a title, the rules that it checks, what it needs, and a function. The cases themselves are in `cases`.
use std::fmt;

use ccm_proto::v1::Capability;
use futures::future::LocalBoxFuture;

use crate::context::Context;
use crate::contract;
use crate::hooks::{Fault, Hook};

/// The function of a case.
pub type Run = for<'a> fn(&'a Context) -> LocalBoxFuture<'a, Checked>;

/// What a case ends with.
pub type Checked<T = ()> = Result<T, Ended>;

/// Why a case ended early.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The provider broke a rule.
    Broken {
        /// The rule's id.
        rule: &'static str,
        /// What the provider did, and what was expected.
        what: String,
    },
    /// The case does not concern this provider.
    Skipped(String),
    /// The suite could not do its own part, such as a hook that failed.
    Stuck(String),
}

/// What a case cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The provider lists this capability.
    Capability(Capability),
    /// The suite may change the cloud (`--allow-mutations`).
    Mutations,
    /// The suite starts the provider itself (`--command`).
    Command,
    /// At least so many machines that exist, from the configuration or made by a hook.
    Machines(usize),
    /// A command that works in the cloud.
    Hook(Hook),
    /// A fault that the hooks can cause.
    Fault(Fault),
    /// At least so many test CIDRs.
    TestCidrs(usize),
    /// An annotation whose value the provider refuses.
    InvalidAnnotation,
}

/// How much of the contract a case belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What each provider with the profile's capability must do.
    Core,
    /// What comes with an optional capability, or what a provider only SHOULD do.
    Extended,
}

/// One case.
#[derive(Debug)]
pub struct Case {
    /// Its id: the profile, a slash, and a name.
    pub id: &'static str,
    /// What is true when it passes.
    pub title: &'static str,
    /// The ids of the rules that it checks.
    pub rules: &'static [&'static str],
    /// What it needs.
    pub needs: &'static [Need],
    /// What it does.
    pub run: Run,
}

impl Case {
    /// A case.
    pub const fn new(
        id: &'static str,
        title: &'static str,
        rules: &'static [&'static str],
        needs: &'static [Need],
        run: Run,
    ) -> Self {
        Self { id, title, rules, needs, run }
    }

    /// The part of the protocol that it belongs to.
    pub fn profile(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }

    /// Whether every provider with the profile must pass it.
    pub fn level(&self) -> Level {
        let optional = [
            Capability::WatchInstances,
            Capability::AddSshKey,
            Capability::CurrentNodeName,
            Capability::NodeSets,
            Capability::PlanLoadBalancer,
            Capability::ListLoadBalancers,
        ];
        let extended = optional.iter().any(|one| self.needs.contains(&Need::Capability(*one))) || !self.is_must();
        if extended { Level::Extended } else { Level::Core }
    }

    /// Whether one of its rules is a MUST.
    pub fn is_must(&self) -> bool {
        self.rules.iter().any(|id| contract::rule(id).is_some_and(|rule| rule.must))
    }

    /// Whether it changes anything in the cloud.
    pub fn mutates(&self) -> bool {
        self.needs.contains(&Need::Mutations)
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capability(one) => write!(f, "the provider lists {}", one.as_str_name()),
            Self::Mutations => write!(f, "--allow-mutations"),
            Self::Command => write!(f, "--command"),
            Self::Machines(count) => write!(f, "{count} machines in the configuration, or the hook createMachine"),
            Self::Hook(hook) => write!(f, "the hook {}", hook.name()),
            Self::Fault(fault) => write!(f, "the hooks setFault and clearFaults with the fault {}", fault.name()),
            Self::TestCidrs(count) => write!(f, "{count} testCidrs in the configuration"),
            Self::InvalidAnnotation => write!(f, "invalidAnnotation in the configuration"),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Core { "core" } else { "extended" })
    }
}

/// Ends the case unless `holds`.
pub fn check(rule: &'static str, holds: bool, what: impl fmt::Display) -> Checked {
    if holds { Ok(()) } else { Err(broken(rule, what)) }
}

/// A broken rule.
pub fn broken(rule: &'static str, what: impl fmt::Display) -> Ended {
    Ended::Broken { rule, what: what.to_string() }
}
