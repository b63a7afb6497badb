//! The words about routes: what one is, what it shall be, what is listed. They are the JSON of the API and of the journal too.
//! Plain data: no clock, no I/O.
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cloud::model::Failure;

/// A machine, as a route names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Machine {
    /// Its name, which is the name of its node.
    pub node: String,
    /// Which machine of that name; in what a provider wants it may be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// What a route leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// A machine.
    Machine(Machine),
    /// An address of a machine, or of something unknown.
    #[serde(rename_all = "camelCase")]
    Address {
        /// The address.
        address: IpAddr,
        /// Whose it was when the route was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine: Option<Machine>,
    },
    /// Something that is no machine, such as a gateway.
    Gateway(String),
}

impl Target {
    /// The machine, if it leads to one.
    pub fn machine(&self) -> Option<&Machine> {
        match self {
            Self::Machine(machine) => Some(machine),
            Self::Address { machine, .. } => machine.as_ref(),
            Self::Gateway(_) => None,
        }
    }

    /// The address, if it leads to one.
    pub fn address(&self) -> Option<IpAddr> {
        if let Self::Address { address, .. } = self { Some(*address) } else { None }
    }

    /// Whether packets arrive at the same place: an address is one, whosever it was when the route was made.
    pub fn leads_alike(&self, other: &Self) -> bool {
        match (self.address(), other.address()) {
            (Some(one), Some(other)) => one == other,
            _ => self.is_same(other),
        }
    }

    /// Whether both lead to the same thing: the same machine by its id, the same address of it, or the same gateway.
    pub fn is_same(&self, other: &Self) -> bool {
        let id = |target: &Self| target.machine().and_then(|machine| machine.provider_id.clone());
        match (self, other) {
            (Self::Gateway(one), Self::Gateway(other)) => one == other,
            (Self::Gateway(_), _) | (_, Self::Gateway(_)) => false,
            _ => (self.address(), id(self)) == (other.address(), id(other)),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(Machine { node, provider_id }) => f.write_str(provider_id.as_deref().unwrap_or(node)),
            Self::Address { address, .. } => address.fmt(f),
            Self::Gateway(name) => f.write_str(name),
        }
    }
}

/// A route, as the cloud keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Its id: one in the cloud.
    pub id: String,
    /// What is routed, without host bits.
    pub destination: IpNet,
    /// Where to.
    pub target: Target,
    /// The cluster that tagged it; a person's route has no tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_uid: Option<String>,
    /// How often its owner has changed it, its creation included.
    pub mutations: u64,
}

/// A route that shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    /// What is routed.
    pub destination: IpNet,
    /// The machine that it leads to.
    pub machine: Machine,
    /// The address of the machine that it leads to; absent: to the machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// A route that shall go: as it was listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Removal {
    /// What is routed.
    pub destination: IpNet,
    /// The name of the node that it led to; empty if that was not known.
    #[serde(default)]
    pub node: String,
    /// Which machine it led to, if that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The address that it led to, if it led to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The target in the cloud's words: counts if nothing else says what it was.
    #[serde(default)]
    pub description: String,
}

impl Removal {
    /// Whether a route that leads there is the one that was listed.
    pub fn is_of(&self, target: &Target) -> bool {
        let machine = target.machine();
        let is_machine = match &self.provider_id {
            Some(id) => machine.is_some_and(|machine| machine.provider_id.as_ref() == Some(id)),
            None if !self.node.is_empty() => machine.is_some_and(|machine| machine.node == self.node),
            None => self.address.is_some() || self.description == target.to_string(),
        };
        is_machine && self.address == target.address()
    }
}

/// What became of one item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It is as was asked.
    Done,
    /// The cloud is at work (fault `route-in-progress`).
    AtWork,
    /// The cloud does not know the machine.
    UnknownMachine,
    /// It was refused.
    Failed(Failure),
}

/// A route as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The route.
    pub route: Route,
    /// The machine that it leads to, if the cloud has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Whether packets are dropped, since the machine is stopped or gone.
    pub blackhole: bool,
}

/// The table as a provider sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// When it was read, where that was not just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
    /// The fault `route-list-broken` holds: a provider shall pass on a part, and then break off.
    #[serde(default)]
    pub breaks_off: bool,
    /// The routes, by destination.
    pub routes: Vec<Listed>,
}

/// A change behind the owners' backs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "action", deny_unknown_fields)]
pub enum Edit {
    /// Add a route, whatever is there already.
    #[serde(rename_all = "camelCase")]
    Add {
        /// What is routed.
        destination: IpNet,
        /// Where to.
        target: Target,
        /// The tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster_uid: Option<String>,
    },
    /// Give a route another tag, or none.
    #[serde(rename_all = "camelCase")]
    Mark {
        /// Which.
        id: String,
        /// The tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster_uid: Option<String>,
    },
    /// Remove a route.
    Remove {
        /// Which.
        id: String,
    },
}
