//! In which form the nodes of a call cross: by hash where the provider takes node sets, in full otherwise. Either way a set
//! is encoded as seldom as can be. Which nodes are in it was decided elsewhere.
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ccm_proto::v1;
use parking_lot::Mutex;
use prost::Message;

use super::wire::{self, Form, Nodes, Put};
use crate::model::provider_info::Capability;
use crate::model::target::TargetSet;
use crate::provider::grpc::{Connection, Method, Sending};
use crate::provider::session::Live;
use crate::provider::{Outcome, ProviderError, classify};

/// The set that was sent inline last, encoded.
#[derive(Debug, Default)]
pub struct Inline {
    last: Mutex<Option<(Arc<str>, Bytes)>>,
}

impl Inline {
    /// Encodes a set unless it is the last one. Others wait meanwhile: they want the same.
    fn nodes(&self, connection: &Connection, targets: &TargetSet) -> Nodes {
        let mut last = self.last.lock();
        let known = last.as_ref().filter(|(hash, _)| hash == targets.hash()).map(|(_, set)| set.clone());
        let set = known.unwrap_or_else(|| {
            let set = encode(connection, targets);
            *last = Some((Arc::clone(targets.hash()), set.clone()));
            set
        });
        connection.metrics().node_set("inline", set.len());
        Nodes { form: Some(Form::Inline(set)) }
    }

    /// Makes a call that carries nodes.
    pub async fn call<T, R>(
        &self,
        live: &Live,
        method: Method,
        targets: &TargetSet,
        request: impl Fn(Nodes) -> T,
    ) -> Result<R, ProviderError>
    where
        T: Message + 'static,
        R: Message + Default + 'static,
    {
        let connection = &live.connection;
        let Some(sending) = put(live, targets).await? else {
            let answer = connection.send(method, request(self.nodes(connection, targets))).await;
            return answer.map_err(|status| classify::status(&status));
        };
        let by_hash = || Nodes { form: Some(Form::Hash(targets.hash().to_string())) };
        let first = connection.send(method, request(by_hash())).await;
        let unknown = |status: &tonic::Status| classify::reason(status).as_deref() == Some("NODE_SET_UNKNOWN");
        let answer = match first {
            Err(status) if unknown(&status) => {
                connection.node_sets().forget(&sending);
                put(live, targets).await?;
                connection.send(method, request(by_hash())).await
            }
            answer => answer,
        };
        answer.map_err(|status| classify::status(&status))
    }
}

/// Sees to it that the provider holds the set; `None` if it does not take node sets, or said so only now.
async fn put(live: &Live, targets: &TargetSet) -> Result<Option<Sending>, ProviderError> {
    if !live.info.capabilities.contains(&Capability::NodeSets) {
        return Ok(None);
    }
    let send = || {
        let (connection, targets) = (live.connection.clone(), targets.clone());
        async move {
            let set = encode(&connection, &targets);
            connection.metrics().node_set("put", set.len());
            let put = Put { hash: targets.hash().to_string(), set: Some(set) };
            let answer = connection.send::<_, v1::PutNodeSetResponse>(Method::PutNodeSet, put).await;
            answer.map(drop).map_err(|status| classify::status(&status))
        }
    };
    match live.connection.node_sets().sent(targets.hash(), send).await {
        Ok(sending) => Ok(Some(sending)),
        Err(error) if error.outcome == Outcome::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

fn encode(connection: &Connection, targets: &TargetSet) -> Bytes {
    let started = Instant::now();
    let set = wire::encode(targets.targets());
    let (elapsed, nodes) = (started.elapsed(), targets.targets().len());
    connection.metrics().node_set_encode.observe(elapsed.as_secs_f64());
    tracing::debug!(nodes, bytes = set.len(), ?elapsed, hash = &**targets.hash(), "encoded a node set");
    set
}
