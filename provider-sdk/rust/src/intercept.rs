//! What a provider that exists to test a core does and no honest provider does. Nothing here is needed to serve a cloud.
use ccm_proto::v1;

use crate::context::CallContext;
use crate::error::ProviderError;
use crate::routes::RouteList;

/// Sees and changes what passes between the SDK and the core; see [`Parts::intercept`](crate::Parts::intercept).
pub trait Intercept: Send + Sync + 'static {
    /// A batch has been answered, and its response is about to be sent: it may become what no honest provider would answer.
    /// The context is that of the batch.
    fn batch_answered(&self, _ctx: &CallContext, _response: &mut v1::BatchGetInstancesResponse) {}

    /// The routing table is about to be sent: it may become what no honest provider would list. An error ends the stream after
    /// the routes that are left.
    fn routes_listed(&self, _ctx: &CallContext, _list: &mut RouteList) -> Option<ProviderError> {
        None
    }

    /// A node set has arrived, and the SDK keeps it.
    fn node_set_put(&self) {}
}
