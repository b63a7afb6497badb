//! Batches to the connected provider. An answer counts only if the same cloud is still behind the socket.
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use jiff::Timestamp;

use super::batch::{InstanceSession, Source};
use super::grpc::Method;
use super::session::{Handle, Live, LiveReceiver};
use super::{ProviderError, classify, convert, zones};
use crate::model::instance::{Answer, NodeQuery};
use crate::model::provider_info::{Capability, Limits};

/// The connected provider's machines.
#[derive(Debug)]
pub struct ProviderInstances {
    handle: Handle,
    live: LiveReceiver,
}

impl ProviderInstances {
    /// Over a session's handle; `live` is that session's.
    pub fn new(handle: Handle, live: LiveReceiver) -> Self {
        Self { handle, live }
    }
}

impl Source for ProviderInstances {
    fn current(&self) -> Result<Arc<dyn InstanceSession>, ProviderError> {
        let live = self.handle.current_with(&[Capability::Instances])?;
        Ok(Arc::new(OneSession { live, handle: self.handle.clone() }))
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        stream::unfold(self.live.clone(), |mut live| async move { live.changed().await.then_some(((), live)) }).boxed()
    }
}

struct OneSession {
    live: Arc<Live>,
    handle: Handle,
}

#[async_trait]
impl InstanceSession for OneSession {
    fn limits(&self) -> Limits {
        self.live.info.limits
    }

    async fn batch_get(&self, queries: &[Arc<NodeQuery>]) -> Result<Vec<Result<Answer, ProviderError>>, ProviderError> {
        let (connection, request) = (&self.live.connection, convert::request(queries));
        let mut client = connection.instances();
        let answer =
            connection.call(Method::BatchGetInstances, request, |it| async move { client.batch_get_instances(it).await }).await;
        let response = answer.map_err(|status| classify::status(&status))?;
        let (info, identity) = (Arc::clone(&self.live.info), Arc::clone(&self.live.identity));
        let mut answers = convert::answers(queries, response, &convert::Context { info, identity, now: Timestamp::now() });
        zones::fill_in(&self.live, &mut answers).await;
        self.handle.still_the_same_cloud(&self.live)?;
        Ok(answers)
    }
}

#[cfg(test)]
mod tests;
