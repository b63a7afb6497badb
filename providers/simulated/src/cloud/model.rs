//! The words of the cloud: what it knows, what it is asked, what it answers. They are the JSON of its API too. Plain
//! data: no clock, no I/O.
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The prefix of every providerID; see [`provider_id`].
pub const PROVIDER_ID_PREFIX: &str = "simulated://";

/// The volume plugin (CSI driver) whose volumes this cloud keeps.
pub const VOLUME_PLUGIN: &str = "simulated.ccm-core.dev";

/// The providerID of a machine: `simulated://ZONE/ID`.
pub fn provider_id(zone: &str, id: &str) -> String {
    format!("{PROVIDER_ID_PREFIX}{zone}/{id}")
}

/// The power state of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Being created.
    Pending,
    /// Running.
    #[default]
    Running,
    /// Stopped; can be started again.
    Stopped,
    /// Terminated for good; only the record is left.
    Deleted,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Deleted => "deleted",
        })
    }
}

/// What an address is for, with the names Kubernetes uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressType {
    /// The machine's host name.
    Hostname,
    /// An IP address inside the cluster's network.
    InternalIP,
    /// An IP address that is reachable from outside.
    ExternalIP,
    /// A DNS name that resolves inside.
    InternalDNS,
    /// A DNS name that resolves outside.
    ExternalDNS,
}

/// An address of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: AddressType,
    /// An IP address for the IP types, a DNS name otherwise.
    pub address: String,
}

/// A machine, as the cloud keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Its name, which is the name of its node.
    pub name: String,
    /// `simulated://ZONE/ID`, unique for the life of the cloud.
    pub provider_id: String,
    /// Its power state.
    pub state: State,
    /// Its size.
    #[serde(rename = "type")]
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// Its region.
    pub region: String,
    /// Its addresses, in order.
    pub addresses: Vec<Address>,
    /// Labels for its node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The Pod CIDRs that the cloud gave it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_cidrs: Vec<String>,
    /// Really there, but the cloud says to providers that it is not.
    #[serde(default)]
    pub hidden: bool,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Volume {
    /// Its id: the `volumeHandle` of its `PersistentVolume`.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// Further labels for its `PersistentVolume`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// The cloud's word about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
// The JSON of an API, in which each of them is a field of its own.
#[allow(clippy::struct_excessive_bools)]
pub struct CloudInfo {
    /// Names the cloud: the same for its whole life.
    pub cloud_identity: String,
    /// Its region.
    pub region: String,
    /// Its zones.
    pub zones: Vec<String>,
    /// Whether it knows a machine for any name.
    pub auto_instances: bool,
    /// Whether it has load balancers (fault `lb-off`).
    pub load_balancers: bool,
    /// Whether it has routes (fault `route-off`).
    #[serde(default = "yes")]
    pub routes: bool,
    /// Whether its providers answer no handshake (fault `handshake-hang`).
    #[serde(default)]
    pub handshakes_hang: bool,
}

/// What a cloud has that does not say otherwise.
fn yes() -> bool {
    true
}

/// Asks for one machine. With a providerID a machine of the same name with another id is not the one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Query {
    /// The name.
    pub name: String,
    /// The providerID, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

/// The answer to a batch of queries: one item for each, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The fault `garbage` holds for this answer: a provider shall pass it on spoilt.
    #[serde(default)]
    pub garbage: bool,
    /// The items.
    pub items: Vec<Item>,
}

/// The answer to one query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// When the data behind the answer was read.
    pub observed_at: Timestamp,
    /// The answer.
    pub outcome: Outcome,
}

/// What the cloud says of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It is known.
    Found(Instance),
    /// It is not known.
    NotFound,
    /// It is another cloud's; the words say how that shows.
    NotMine(String),
    /// It could not be found out.
    Failed(Failure),
}

/// A refusal: the body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Its kind.
    pub code: FailureCode,
    /// Words for a person.
    pub message: String,
    /// Milliseconds until a repeat is of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Failure {
    /// A failure that says nothing of when to come back.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after_ms: None }
    }

    /// How long until a repeat is of use.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.map(Duration::from_millis)
    }
}

/// The kinds of refusal; the HTTP status of each stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureCode {
    /// 400: the request makes no sense.
    Invalid,
    /// 401: the credentials were refused.
    Unauthenticated,
    /// 404: a name is not known.
    Unknown,
    /// 403: an account may have no more of it.
    QuotaExceeded,
    /// 409: the machine's state forbids it, or the route leads elsewhere by now.
    Conflict,
    /// 409: another owner's tag is on it.
    NotOwned,
    /// 429: too many calls.
    RateLimited,
    /// 500: the cloud could not keep the change; it did not happen.
    Internal,
    /// 503: the cloud is out of order.
    Unavailable,
}

/// A change that a person or a script makes to machines: to all of them or, if one refuses, to none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Change {
    /// What to do.
    pub action: Action,
    /// To which machines. But for [`Action::Add`] their names say it all.
    pub instances: Vec<Spec>,
}

/// What can be done to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Make a new machine.
    Add,
    /// Shut it down; it can be started again.
    Stop,
    /// Start it.
    Start,
    /// Delete it for good; the record stays.
    Terminate,
    /// Delete it and its record.
    Forget,
    /// Answer providers that it is not there.
    Hide,
    /// Undo that.
    Unhide,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "added",
            Self::Stop => "stopped",
            Self::Start => "started",
            Self::Terminate => "terminated",
            Self::Forget => "forgotten",
            Self::Hide => "hidden",
            Self::Unhide => "unhidden",
        })
    }
}

/// A machine by its name and, for a new one, how it shall be. What is absent follows from the name, as for auto-instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Spec {
    /// The name. REQUIRED.
    pub name: String,
    /// The id within the zone, the last part of the providerID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The power state; running unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The size.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// The zone: one of the cloud's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The region; the cloud's unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The addresses, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Labels for the node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Pod CIDRs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pod_cidrs: Vec<String>,
    /// Whether providers are told that it is not there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

impl Spec {
    /// Just a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}
