//! Asks the provider about machines. It judges no answer.
use std::sync::Arc;

use futures::future::join_all;

use crate::model::instance::{Answer, NodeQuery};
use crate::model::node::Node;
use crate::model::provider_info::ProviderInfo;
use crate::provider::{Instances, Priority, ProviderError};

/// A node and what was answered.
pub(super) type Answered = (Arc<Node>, Result<Answer, ProviderError>);

/// Looks up nodes, all at once: the port makes batches of them.
pub(super) async fn look_up(instances: &dyn Instances, nodes: Vec<Arc<Node>>, provider: &ProviderInfo) -> Vec<Answered> {
    join_all(nodes.into_iter().map(|node| async {
        let answer = instances.look_up(NodeQuery::about(&node, provider), Priority::Lifecycle).await;
        (node, answer)
    }))
    .await
}
