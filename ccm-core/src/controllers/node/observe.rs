//! What is known of a node before a decision, and the question that is put to the provider. Reads only.
use std::sync::Arc;

use crate::model::instance::{Lookup, NodeQuery};
use crate::model::node::Node;
use crate::model::provider_info::ProviderInfo;
use crate::provider::{Instances, Outcome, Priority, ProviderError};

/// All that a decision about one node rests on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The node, as read from the watch or, after a conflict, from the API server.
    pub node: Arc<Node>,
    /// Who the provider is.
    pub provider: Arc<ProviderInfo>,
    /// Whether node-route-controller configures routes, if the provider serves them.
    pub configures_routes: bool,
    /// Whether the periodic refresh is due; without it an initialised node causes no look-up.
    pub refresh: bool,
    /// The provider's answer; `None` as long as nobody has asked.
    pub answer: Option<Lookup>,
}

/// Asks the provider about a node. An answer of another cloud than the one observed is as good as none.
pub async fn look_up(instances: &dyn Instances, observed: &Observed, priority: Priority) -> Result<Lookup, ProviderError> {
    let answer = instances.look_up(NodeQuery::about(&observed.node, &observed.provider), priority).await?;
    if *answer.cloud_identity == *observed.provider.cloud_identity {
        return Ok(answer.lookup);
    }
    Err(ProviderError {
        outcome: Outcome::Retry { after: None },
        reason: "CLOUD_IDENTITY_CHANGED".to_owned(),
        message: format!("the answer is from cloud {:?}, not {:?}", answer.cloud_identity, observed.provider.cloud_identity),
    })
}
