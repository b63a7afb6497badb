//! Makes the calls and writes that were decided. It decides nothing.
use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::decide::deletion::Live;
use super::observe::{self, Listed};
use crate::cluster::events::Subject;
use crate::cluster::patch::{NodeWriter, WriteError};
use crate::cluster::state::TermStore;
use crate::model::node::Node;
use crate::model::provider_info::ProviderInfo;
use crate::model::route::{Route, RouteOutcome, WantedRoute};
use crate::provider::{Identity, ProviderError, Routes};

/// A piece of work.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// List the table.
    List,
    /// Make these routes.
    Create(Vec<WantedRoute>),
    /// Collect what decides about these stale routes.
    Examine(Vec<Route>),
    /// Remove these routes.
    Delete(Vec<Route>),
    /// Write the condition of a node: whether its routes are made.
    Condition(Arc<Node>, bool),
    /// Ask the provider what it serves.
    Confirm,
}

impl Job {
    /// Whether it is a call to the RPC service Routes.
    pub fn is_call(&self) -> bool {
        matches!(self, Self::List | Self::Create(_) | Self::Delete(_))
    }
}

impl fmt::Display for Job {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List => write!(to, "the list of routes"),
            Self::Create(routes) => write!(to, "the creation of {} routes", routes.len()),
            Self::Examine(routes) => write!(to, "the examination of {} stale routes", routes.len()),
            Self::Delete(routes) => write!(to, "the deletion of {} routes", routes.len()),
            Self::Condition(node, _) => write!(to, "the condition of node {}", node.name),
            Self::Confirm => write!(to, "a handshake"),
        }
    }
}

/// How a piece of work ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The table.
    Listed(Result<Listed, ProviderError>),
    /// One result for each route.
    Results(Vec<Result<RouteOutcome, ProviderError>>),
    /// What decides about stale routes.
    Examined(Result<Evidence, ExamineError>),
    /// The node with its new condition.
    Written(Result<Node, WriteError>),
    /// The provider answered, or not.
    Confirmed,
    /// The term ended before.
    Stopped,
}

/// What decides about stale routes.
#[derive(Debug)]
pub(super) struct Evidence {
    /// The provider, in another handshake.
    pub provider: Arc<ProviderInfo>,
    /// All nodes.
    pub live: Live,
    /// What events about the cluster are about.
    pub subject: Option<Subject>,
}

/// Why stale routes cannot be judged.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExamineError {
    /// The provider could not say who it is.
    #[error("the provider's identity could not be confirmed: {0}")]
    Confirm(#[from] ProviderError),
    /// The nodes could not be read.
    #[error("the nodes could not be listed: {0}")]
    Nodes(#[from] WriteError),
    /// The provider is another than the one that listed the routes.
    #[error("the provider's cloud was {listed:?} when routes were listed and is {found:?} now")]
    Identity {
        /// Whose list it was.
        listed: String,
        /// Who answers now.
        found: String,
    },
}

/// Does the work.
pub(super) struct Worker {
    pub routes: Arc<dyn Routes>,
    pub identity: Arc<dyn Identity>,
    pub writer: NodeWriter,
    pub store: TermStore,
    pub shutdown: CancellationToken,
}

impl Worker {
    /// Does a piece of work under this epoch. At the end of the term reads are dropped and changes are finished.
    pub async fn work(&self, job: Job, epoch: u64) -> Ended {
        match job {
            Job::Create(routes) => Ended::Results(self.routes.create(epoch, &routes).await),
            Job::Delete(routes) => Ended::Results(self.routes.delete(epoch, &routes).await),
            Job::Condition(node, made) => Ended::Written(self.writer.network_condition(&node, made).await),
            read => self.shutdown.run_until_cancelled(self.read(read)).await.unwrap_or(Ended::Stopped),
        }
    }

    async fn read(&self, job: Job) -> Ended {
        match job {
            Job::List => Ended::Listed(observe::list(&*self.routes).await),
            Job::Examine(_) => Ended::Examined(self.examine().await),
            _ => {
                drop(self.identity.confirm().await);
                Ended::Confirmed
            }
        }
    }

    /// The nodes come last: what is removed next is judged by them.
    async fn examine(&self) -> Result<Evidence, ExamineError> {
        let subject = self.store.subject().await;
        let provider = self.identity.confirm().await?;
        let live = observe::live(&self.writer).await?;
        Ok(Evidence { provider, live, subject })
    }
}
