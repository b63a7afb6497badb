//! Reads what a decision needs: the table, and all nodes past every cache. It judges nothing.
use jiff::Timestamp;

use super::claims::parse;
use super::decide::deletion::Live;
use crate::cluster::patch::{NodeWriter, WriteError};
use crate::model::route::RouteTable;
use crate::provider::{ProviderError, Routes};

/// A complete list, and when its call began.
#[derive(Debug)]
pub struct Listed {
    pub table: RouteTable,
    pub began: Timestamp,
}

/// Lists the table.
pub async fn list(routes: &dyn Routes) -> Result<Listed, ProviderError> {
    let began = Timestamp::now();
    Ok(Listed { table: routes.list().await?, began })
}

/// All nodes, as the API server has them now.
pub async fn live(writer: &NodeWriter) -> Result<Live, WriteError> {
    let mut live = Live::default();
    for (name, pod_cidrs) in writer.list_pod_cidrs().await? {
        live.names.insert(name);
        live.cidrs.extend(&parse(&pod_cidrs).into_iter().collect());
    }
    Ok(live)
}
