//! The requests that carry nodes, declared here a second time with one difference: a node set is bytes. On the wire an
//! embedded message and bytes are the same, so a set of thousands of nodes is encoded once and shared by every call.
use bytes::{BufMut, Bytes, BytesMut};
use ccm_proto::v1;
use prost::Message;
use tonic::Status;
use tonic::codegen::http::uri::PathAndQuery;
use tonic_prost::ProstCodec;

use crate::model::target::Target;
use crate::provider::convert;
use crate::provider::grpc::{Connection, MAX_TO_CORE, MAX_TO_PROVIDER, Method};

/// `EnsureLoadBalancerRequest` and `UpdateLoadBalancerRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct Mutation {
    /// The cluster.
    #[prost(message, optional, tag = "1")]
    pub cluster: Option<v1::ClusterRef>,
    /// Proof of leadership.
    #[prost(message, optional, tag = "2")]
    pub leadership: Option<v1::Leadership>,
    /// The service.
    #[prost(message, optional, tag = "3")]
    pub service: Option<v1::Service>,
    /// The nodes.
    #[prost(message, optional, tag = "4")]
    pub nodes: Option<Nodes>,
}

/// `PlanLoadBalancerRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct Question {
    /// The cluster.
    #[prost(message, optional, tag = "1")]
    pub cluster: Option<v1::ClusterRef>,
    /// The service.
    #[prost(message, optional, tag = "2")]
    pub service: Option<v1::Service>,
    /// The nodes.
    #[prost(message, optional, tag = "3")]
    pub nodes: Option<Nodes>,
}

/// `PutNodeSetRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct Put {
    /// The set's name.
    #[prost(string, tag = "1")]
    pub hash: String,
    /// The encoded set.
    #[prost(bytes = "bytes", tag = "2")]
    pub set: Bytes,
}

/// `NodeSetRef`.
#[derive(Clone, PartialEq, Message)]
pub struct Nodes {
    /// One of the two forms.
    #[prost(oneof = "Form", tags = "1, 2")]
    pub form: Option<Form>,
}

/// `NodeSetRef.set`.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Form {
    /// A set that was put before.
    #[prost(string, tag = "1")]
    Hash(String),
    /// An encoded set.
    #[prost(bytes = "bytes", tag = "2")]
    Inline(Bytes),
}

/// `NodeSet`, node by node, so that no second copy of thousands of nodes exists even for a moment.
pub fn encode(targets: &[Target]) -> Bytes {
    // Field 1, of a length that follows: what begins each element of `repeated Node nodes = 1`.
    const NODES: u8 = 1 << 3 | 2;
    let mut set = BytesMut::new();
    for target in targets {
        let node = convert::node(target).encode_length_delimited_to_vec();
        set.put_u8(NODES);
        set.put_slice(&node);
    }
    set.freeze()
}

impl Connection {
    /// Calls a method of LoadBalancers with a request of this module, which the generated client would not take.
    pub(super) async fn send<T, R>(&self, method: Method, message: T) -> Result<R, Status>
    where
        T: Message + 'static,
        R: Message + Default + 'static,
    {
        let path = PathAndQuery::try_from(format!("/ccm.provider.v1.LoadBalancers/{}", method.as_str()));
        let path = path.map_err(|error| Status::internal(error.to_string()))?;
        let client = tonic::client::Grpc::new(self.channel());
        let mut client = client.max_decoding_message_size(MAX_TO_CORE).max_encoding_message_size(MAX_TO_PROVIDER);
        self.call(method, message, |request| async move {
            client.ready().await.map_err(|lost| Status::from_error(lost.into()))?;
            client.unary(request, path, ProstCodec::<T, R>::default()).await
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::provider::load_balancers::tests::{service, target};

    fn same<T: Message + Default + PartialEq + std::fmt::Debug>(ours: &impl Message, theirs: &T) {
        assert_eq!(&T::decode(ours.encode_to_vec().as_slice()).unwrap(), theirs);
    }

    #[test]
    fn on_the_wire_these_are_the_messages_of_the_contract() {
        let targets = [target("a"), target("b")];
        let set = v1::NodeSet { nodes: targets.iter().map(convert::node).collect() };
        assert_eq!(set.nodes.len(), 2);
        same(
            &Put { hash: "h".to_owned(), set: encode(&targets) },
            &v1::PutNodeSetRequest { hash: "h".to_owned(), set: Some(set.clone()) },
        );

        let cluster = Some(v1::ClusterRef { name: "kubernetes".to_owned(), uid: "uid".to_owned() });
        let (service, leadership) = (Some(convert::service(&service("a"))), Some(v1::Leadership { epoch: 7 }));
        for (ours, theirs) in [
            (Form::Inline(encode(&targets)), v1::node_set_ref::Set::Inline(set)),
            (Form::Hash("h".to_owned()), v1::node_set_ref::Set::Hash("h".to_owned())),
        ] {
            let (ours, theirs) = (Some(Nodes { form: Some(ours) }), Some(v1::NodeSetRef { set: Some(theirs) }));
            let mutation = Mutation { cluster: cluster.clone(), leadership, service: service.clone(), nodes: ours.clone() };
            same(
                &mutation,
                &v1::EnsureLoadBalancerRequest {
                    cluster: cluster.clone(),
                    leadership,
                    service: service.clone(),
                    nodes: theirs.clone(),
                },
            );
            same(
                &mutation,
                &v1::UpdateLoadBalancerRequest {
                    cluster: cluster.clone(),
                    leadership,
                    service: service.clone(),
                    nodes: theirs.clone(),
                },
            );
            same(
                &Question { cluster: cluster.clone(), service: service.clone(), nodes: ours },
                &v1::PlanLoadBalancerRequest { cluster: cluster.clone(), service: service.clone(), nodes: theirs },
            );
        }
    }
}
