//! Sets of nodes: by hash and inline, empty, absent, large, unknown.
use ccm_proto::v1::{Capability, Node, NodeSet, NodeSetRef, PutNodeSetRequest};
use tonic::Code;

use super::BALANCERS;
use super::service::{ensure_request, hash, inline, nodes, service, update_request};
use crate::case::{Case, Checked, Need, check};
use crate::context::Context;

const SETS: &[Need] = &[Need::Capability(Capability::LoadBalancers), Need::Capability(Capability::NodeSets), Need::Mutations];

/// The cases.
pub const CASES: &[Case] = &[
    Case::new("node-sets/empty", "a set without nodes is a set, inline", &["NS-2"], BALANCERS, |c| Box::pin(empty(c))),
    Case::new("node-sets/absent", "a call without nodes is refused", &["NS-3", "LB-43"], BALANCERS, |c| Box::pin(absent(c))),
    Case::new("node-sets/put", "a set that was put is used by its hash", &["LB-55"], SETS, |c| Box::pin(put(c))),
    Case::new("node-sets/put-empty", "a set without nodes can be put", &["NS-2", "LB-55"], SETS, |c| Box::pin(put_empty(c))),
    Case::new("node-sets/inline", "inline sets are taken as well", &["NS-6"], SETS, |c| Box::pin(inline_too(c))),
    Case::new(
        "node-sets/unknown",
        "an unknown hash is NODE_SET_UNKNOWN, and nothing is made",
        &["NS-5", "LB-40", "ERR-1"],
        SETS,
        |c| Box::pin(unknown(c)),
    ),
    Case::new(
        "node-sets/put-nothing",
        "a set without hash, and a hash without set, are refused",
        &["LB-58", "NS-3"],
        SETS,
        |c| Box::pin(put_nothing(c)),
    ),
    Case::new("node-sets/large", "a set of 20,000 nodes is taken", &["LIM-1", "LB-55"], SETS, |c| Box::pin(large(c))),
    Case::new("node-sets/eight", "eight sets are kept", &["NS-4"], SETS, |c| Box::pin(eight(c))),
    Case::new("node-sets/leadership-first", "who does not lead gets NOT_LEADING, whatever the set", &["ERR-7"], SETS, |c| {
        Box::pin(leadership_first(c))
    }),
];

async fn empty(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "empty-set");
    c.ensure_with(&lead, &service, inline(NodeSet::default())).await?;
    c.update(&lead, &service, inline(nodes(c, usize::MAX))).await?;
    c.update(&lead, &service, inline(NodeSet::default())).await
}

async fn absent(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "no-set");
    for nodes in [None, Some(NodeSetRef::default())] {
        c.ensure_refused("NS-3", ensure_request(&lead, &service, nodes.clone()), Code::InvalidArgument, "").await?;
        c.refused("NS-3", update_request(&lead, &service, nodes), Code::InvalidArgument, "").await?;
    }
    Ok(())
}

async fn put(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "put");
    let all = c.put(nodes(c, usize::MAX)).await?;
    let one = c.put(nodes(c, 1)).await?;
    c.ensure_with(&lead, &service, hash(&all)).await?;
    c.update(&lead, &service, hash(&one)).await
}

async fn put_empty(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let none = c.put(NodeSet::default()).await?;
    c.ensure_with(&lead, &service(c, "put-empty"), hash(&none)).await.map(drop)
}

async fn inline_too(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "inline");
    c.may_make(&c.suite.cluster, &service)?;
    let request = ensure_request(&lead, &service, inline(nodes(c, usize::MAX)));
    c.ok("NS-6", request).await.map(drop)
}

async fn unknown(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "unknown-set");
    let unknown = || hash("conformance-never-put");
    let request = ensure_request(&lead, &service, unknown());
    c.ensure_refused("NS-5", request, Code::FailedPrecondition, "NODE_SET_UNKNOWN").await?;
    c.gone("NS-5", &c.suite.cluster, &service).await?;
    c.ensure(&lead, &service).await?;
    let request = update_request(&lead, &service, unknown());
    c.refused("NS-5", request, Code::FailedPrecondition, "NODE_SET_UNKNOWN").await.map(drop)
}

async fn put_nothing(c: &Context) -> Checked {
    let no_hash = PutNodeSetRequest { hash: String::new(), set: Some(NodeSet::default()) };
    let no_set = PutNodeSetRequest { hash: "conformance".into(), set: None };
    for request in [no_hash, no_set] {
        c.refused("LB-58", request, Code::InvalidArgument, "").await?;
    }
    Ok(())
}

async fn large(c: &Context) -> Checked {
    let node = |number: usize| Node {
        name: format!("node-{number:05}"),
        uid: format!("00000000-0000-4000-8000-{number:012}"),
        provider_id: Some(format!("conformance://zone/machine-{number:05}")),
        labels: [("example.com/padding".to_owned(), "x".repeat(200))].into(),
        ..Node::default()
    };
    let set = NodeSet { nodes: (0..20_000).map(node).collect() };
    // Not kept for the report: the text of it would be 6 MB.
    let request = PutNodeSetRequest { hash: "conformance-large".into(), set: Some(set) };
    let answer = crate::connection::unary(&c.channel, request, crate::context::MUTATING).await;
    answer.map(drop).map_err(|status| crate::context::failed("LIM-1", "PutNodeSet", &status))
}

async fn eight(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let service = service(c, "eight");
    let mut hashes = Vec::new();
    for _ in 0..8 {
        hashes.push(c.put(nodes(c, usize::MAX)).await?);
    }
    c.may_make(&c.suite.cluster, &service)?;
    for one in &hashes {
        let answer = c.send(ensure_request(&lead, &service, hash(one))).await;
        check("NS-4", answer.is_ok(), format!("of eight sets that were put, one is gone: {answer:?}"))?;
    }
    Ok(())
}

async fn leadership_first(c: &Context) -> Checked {
    let lead = c.lead().await?;
    let mut request = ensure_request(&lead, &service(c, "leadership-first"), hash("conformance-never-put"));
    request.leadership = None;
    c.refused("ERR-7", request, Code::FailedPrecondition, "NOT_LEADING").await.map(drop)
}
