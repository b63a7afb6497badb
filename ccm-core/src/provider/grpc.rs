//! A connection to the provider: one socket, dialled once. It never redials; [`super::session`] makes another.
use std::sync::Arc;
use std::time::Duration;

use ccm_proto::v1::identity_client::IdentityClient;
use ccm_proto::v1::instances_client::InstancesClient;
use ccm_proto::v1::load_balancers_client::LoadBalancersClient;
use ccm_proto::v1::routes_client::RoutesClient;
use ccm_proto::v1::zones_client::ZonesClient;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::count::Count;
use super::metrics::ProviderMetrics;

mod call;
mod dial;
mod node_sets;

pub use call::{MAX_LISTED, Method};
pub use dial::DialError;
pub use node_sets::{NodeSets, Sending};

/// The largest message to a provider and from one, in bytes.
pub const MAX_TO_PROVIDER: usize = 64 << 20;
/// The largest message from a provider, in bytes.
pub const MAX_TO_CORE: usize = 16 << 20;

/// How long the core waits for the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// The handshake.
    pub handshake: Duration,
    /// Calls that change nothing.
    pub read: Duration,
    /// Calls that change the cloud.
    pub mutation: Duration,
    /// A connection ends when it had no answer at all for this time, including to a handshake.
    pub silence: Duration,
    /// The core begins no change when no handshake was answered and accepted for this time.
    pub confirmation: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            read: Duration::from_secs(10),
            mutation: Duration::from_secs(30),
            silence: Duration::from_secs(15),
            confirmation: Duration::from_secs(60),
        }
    }
}

/// What all connections of a session share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// How long calls may take.
    pub deadlines: Deadlines,
    /// Where calls are counted.
    pub metrics: ProviderMetrics,
    /// Notified by a call whose failure needs an early handshake: refused credentials, a deadline.
    pub doubt: Arc<Notify>,
}

/// A live or a dead connection; clones share it.
///
/// No HTTP/2 pings are sent: gRPC servers of other languages end a connection that pings while idle. A provider that dies
/// closes its socket, which is seen at once, and one that hangs answers no handshake and nothing else. Only a late call itself is
/// reset: the connection and its other calls continue.
#[derive(Clone, Debug)]
pub struct Connection {
    channel: Channel,
    /// Cancelled with `ended`, or earlier if the provider drains: the connection takes no further call.
    closed: CancellationToken,
    ended: CancellationToken,
    answered: Arc<Mutex<Instant>>,
    /// How many calls run; a stream counts until it is opened.
    running: Count,
    shared: Shared,
    node_sets: Arc<NodeSets>,
}

impl Connection {
    /// Returns when the connection has ended, or takes no more calls.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Whether it takes no more calls, while those that run may still be answered.
    pub fn is_draining(&self) -> bool {
        self.closed.is_cancelled() && !self.ended.is_cancelled()
    }

    /// Returns when the connection has ended, and every call with it.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns when no call runs. Streams that are open are none.
    pub async fn idle(&self) {
        self.running.none().await;
    }

    /// The provider answered something just now: a call, with success or with an error of its own, or a message of a stream.
    pub fn heard(&self) {
        *self.answered.lock() = Instant::now();
    }

    /// Returns when the provider has answered nothing for `limit`, of which `since` is the earliest beginning.
    pub async fn silent(&self, since: Instant, limit: Duration) {
        loop {
            let over = since.max(*self.answered.lock()) + limit;
            if Instant::now() >= over {
                return;
            }
            sleep_until(over).await;
        }
    }

    /// Whether both are one connection.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.node_sets, &other.node_sets)
    }

    /// The service Identity.
    pub fn identity(&self) -> IdentityClient<Channel> {
        IdentityClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_TO_CORE)
            .max_encoding_message_size(MAX_TO_PROVIDER)
    }

    /// The service Instances.
    pub fn instances(&self) -> InstancesClient<Channel> {
        InstancesClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_TO_CORE)
            .max_encoding_message_size(MAX_TO_PROVIDER)
    }

    /// The service LoadBalancers.
    pub fn load_balancers(&self) -> LoadBalancersClient<Channel> {
        LoadBalancersClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_TO_CORE)
            .max_encoding_message_size(MAX_TO_PROVIDER)
    }

    /// The service Routes.
    pub fn routes(&self) -> RoutesClient<Channel> {
        RoutesClient::new(self.channel.clone()).max_decoding_message_size(MAX_TO_CORE).max_encoding_message_size(MAX_TO_PROVIDER)
    }

    /// What a client of any other kind is made of.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Which node sets the provider has.
    pub fn node_sets(&self) -> &NodeSets {
        &self.node_sets
    }

    /// Where what crosses this connection is counted.
    pub fn metrics(&self) -> &ProviderMetrics {
        &self.shared.metrics
    }

    /// The service Zones.
    pub fn zones(&self) -> ZonesClient<Channel> {
        ZonesClient::new(self.channel.clone()).max_decoding_message_size(MAX_TO_CORE).max_encoding_message_size(MAX_TO_PROVIDER)
    }
}
