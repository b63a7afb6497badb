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
    /// The encoded set. A plain field of no bytes would not be sent: a set without a node is a set.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub set: Option<Bytes>,
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
    use std::fmt::Debug;

    use super::*;
    use crate::provider::load_balancers::tests::{service, target};

    /// A set without a node and one with two: as this module encodes it, and as the contract's type.
    fn sets() -> [(Bytes, v1::NodeSet); 2] {
        [vec![], vec![target("a"), target("b")]]
            .map(|targets| (encode(&targets), v1::NodeSet { nodes: targets.iter().map(convert::node).collect() }))
    }

    /// Every form of a field `nodes`: absent, without a form, by hash, inline; empty and not.
    fn forms() -> Vec<(Option<Nodes>, Option<v1::NodeSetRef>)> {
        let hashes = ["", "h"].map(|hash| (Form::Hash(hash.to_owned()), v1::node_set_ref::Set::Hash(hash.to_owned())));
        let inline = sets().map(|(ours, theirs)| (Form::Inline(ours), v1::node_set_ref::Set::Inline(theirs)));
        let forms = hashes.into_iter().chain(inline).map(|(ours, theirs)| (Some(ours), Some(theirs))).chain([(None, None)]);
        let nodes = forms.map(|(form, set)| (Some(Nodes { form }), Some(v1::NodeSetRef { set })));
        nodes.chain([(None, None)]).collect()
    }

    /// Every state of a field: absent, present and empty, present and full.
    fn states<T: Default>(full: T) -> [Option<T>; 3] {
        [None, Some(T::default()), Some(full)]
    }

    fn same(ours: &(impl Message + Debug), theirs: &(impl Message + Debug)) {
        assert_eq!(ours.encode_to_vec(), theirs.encode_to_vec(), "{ours:?} is not {theirs:?}");
    }

    #[test]
    fn a_set_that_is_put_is_on_the_wire_what_the_contract_says() {
        for hash in ["", "h"].map(str::to_owned) {
            same(&Put { hash: hash.clone(), set: None }, &v1::PutNodeSetRequest { hash: hash.clone(), set: None });
            for (ours, theirs) in sets() {
                let theirs = v1::PutNodeSetRequest { hash: hash.clone(), set: Some(theirs) };
                same(&Put { hash: hash.clone(), set: Some(ours) }, &theirs);
            }
        }
    }

    #[test]
    fn every_field_of_every_request_is_on_the_wire_what_the_contract_says() {
        for (ours, nodes) in forms() {
            for cluster in states(v1::ClusterRef { name: "kubernetes".to_owned(), uid: "uid".to_owned() }) {
                for service in states(convert::service(&service("a"))) {
                    let question = Question { cluster: cluster.clone(), service: service.clone(), nodes: ours.clone() };
                    let (cluster, service, nodes) = (cluster.clone(), service, nodes.clone());
                    same(
                        &question,
                        &v1::PlanLoadBalancerRequest { cluster: cluster.clone(), service: service.clone(), nodes: nodes.clone() },
                    );
                    for leadership in states(v1::Leadership { epoch: 7 }) {
                        let (cluster, service, nodes) = (cluster.clone(), service.clone(), nodes.clone());
                        let ours =
                            Mutation { cluster: cluster.clone(), leadership, service: service.clone(), nodes: ours.clone() };
                        let ensure = v1::EnsureLoadBalancerRequest { cluster, leadership, service, nodes };
                        same(&ours, &ensure);
                        let v1::EnsureLoadBalancerRequest { cluster, leadership, service, nodes } = ensure;
                        same(&ours, &v1::UpdateLoadBalancerRequest { cluster, leadership, service, nodes });
                    }
                }
            }
        }
    }
}
