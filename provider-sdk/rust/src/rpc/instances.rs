//! The service Instances: batches checked before they reach the provider, and completed after.
use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use ccm_proto::v1;
use ccm_proto::v1::instance_result::Outcome;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::time::timeout_at;
use tonic::{Code, Request, Response, Status};

use super::call::Kind;
use super::{Shared, nonempty};
use crate::batch::late;
use crate::context::CallContext;
use crate::error::ProviderError;
use crate::instances::{Lookup, LookupOutcome};
use crate::mutations::{Mutation, Mutations};
use crate::parts::InstancesPart;
use crate::provider::{Progress, Result};

/// The most queries of one batch, unless the provider says otherwise.
const DEFAULT_BATCH: u32 = 100;

/// Instances, for any provider.
pub(super) struct Service {
    shared: Arc<Shared>,
    keys: Mutations<v1::AddSshKeyToAllInstancesRequest, ()>,
}

impl Service {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), keys: Mutations::new(shared.running.clone()) }
    }

    fn part(&self, capability: v1::Capability, method: &str) -> Result<Arc<dyn InstancesPart>> {
        self.shared.part(capability, method, |parts| parts.instances)
    }

    async fn batch(&self, ctx: CallContext, request: v1::BatchGetInstancesRequest) -> Result<v1::BatchGetInstancesResponse> {
        let instances = self.part(v1::Capability::Instances, "BatchGetInstances")?;
        let queries = request.queries;
        validate(&queries, self.shared.provider.describe().limits.max_batch_size.unwrap_or(DEFAULT_BATCH))?;
        let asked_at = SystemTime::now();
        let answers = match ctx.items_by() {
            Some(at) => timeout_at(at, instances.batch_get_instances(&ctx, &queries)).await,
            None => Ok(instances.batch_get_instances(&ctx, &queries).await),
        };
        let answers = answers.unwrap_or_else(|_| Ok(queries.iter().map(|query| Err(late(query))).collect()))?;
        if answers.len() != queries.len() {
            let message = format!("the provider answered {} of {} queries", answers.len(), queries.len());
            return Err(ProviderError::internal(message));
        }
        let now = SystemTime::now();
        let answers = answers.into_iter().map(|answer| answer.and_then(|lookup| read_by(now, lookup)));
        let results = queries.into_iter().zip(answers).map(|(query, answer)| result(query.node_name, answer, asked_at)).collect();
        let mut response = v1::BatchGetInstancesResponse { results };
        if let Some(intercept) = self.shared.parts().intercept {
            intercept.batch_answered(&ctx, &mut response);
        }
        Ok(response)
    }

    async fn watch(&self, ctx: CallContext) -> Result<Changes> {
        let changes = self.part(v1::Capability::WatchInstances, "WatchInstances")?.watch_instances(&ctx).await?;
        let cancels = ctx.cancelled().clone().drop_guard();
        let changes = changes.map(move |change| {
            // Lives as long as the stream: a caller that goes away cancels the watch.
            let _ = &cancels;
            change.map_err(Status::from)
        });
        let changes = changes.take_until(self.shared.ended.clone().cancelled_owned());
        Ok(changes.boxed())
    }

    async fn add_ssh_key(&self, ctx: CallContext, request: v1::AddSshKeyToAllInstancesRequest) -> Result<()> {
        const METHOD: &str = "AddSSHKeyToAllInstances";
        let instances = self.part(v1::Capability::AddSshKey, METHOD)?;
        nonempty("user", &request.user)?;
        let licence = self.shared.leadership.admit(request.leadership.as_ref(), None)?;
        let mutation = Mutation {
            key: format!("ssh-key/{}", request.user),
            method: METHOD,
            answer_by: ctx.answer_by(),
            lost: licence.lost.clone(),
            request: request.clone(),
        };
        let ctx = ctx.for_cluster(licence.cluster).led(licence.epoch, licence.lost);
        let work = async move {
            instances.add_ssh_key_to_all_instances(&ctx, &request.user, &request.key_data).await.map(Progress::Done)
        };
        match self.keys.run(mutation, work).await? {
            Progress::Done(()) => Ok(()),
            // This method has no answer for work that goes on; the same call again attaches to it.
            Progress::InProgress(progress) => Err(ProviderError::deadline_exceeded(progress.message)),
            Progress::ImplementedElsewhere(who) => Err(ProviderError::internal(who)),
        }
    }

    async fn current_node_name(
        &self,
        ctx: CallContext,
        request: v1::GetCurrentNodeNameRequest,
    ) -> Result<v1::GetCurrentNodeNameResponse> {
        let part = self.part(v1::Capability::CurrentNodeName, "GetCurrentNodeName")?;
        let node_name = part.current_node_name(&ctx, &request.hostname).await?;
        Ok(v1::GetCurrentNodeNameResponse { node_name })
    }
}

fn validate(queries: &[v1::InstanceQuery], limit: u32) -> Result<()> {
    if queries.is_empty() {
        return Err(ProviderError::invalid_request("queries", "at least one is required"));
    }
    if queries.len() > limit as usize {
        let message = format!("queries: {} are more than the {limit} that one batch may have", queries.len());
        return Err(ProviderError::new(Code::InvalidArgument, v1::ErrorReason::BatchTooLarge, message));
    }
    let mut names = HashSet::new();
    for (at, query) in queries.iter().enumerate() {
        let field = format!("queries[{at}].node_name");
        if !names.insert(nonempty(&field, &query.node_name)?) {
            return Err(ProviderError::invalid_request(&field, format!("{} is asked for twice", query.node_name)));
        }
    }
    Ok(())
}

/// Refuses an answer that was read in the future. It is not given the present time instead: then two answers from one reading
/// would carry two times, and the second would confirm the first.
fn read_by(now: SystemTime, lookup: Lookup) -> Result<Lookup> {
    match lookup.read_at.map(|read_at| read_at.duration_since(now)) {
        Some(Ok(ahead)) if !ahead.is_zero() => {
            let message = format!(
                "the provider says that it read this {ahead:.1?} in the future: `read_at` takes the time at which the cloud was \
                 asked, by this machine's clock"
            );
            Err(ProviderError::internal(message))
        }
        _ => Ok(lookup),
    }
}

fn result(node_name: String, answer: Result<Lookup>, asked_at: SystemTime) -> v1::InstanceResult {
    let (outcome, read_at) = match answer {
        Ok(Lookup { outcome, read_at }) => (known(outcome), read_at),
        Err(error) => {
            tracing::warn!(node = node_name, code = ?error.code, error = error.chain(), "a look-up failed");
            (Outcome::Error(error.into()), None)
        }
    };
    let observed_at = read_at.unwrap_or(asked_at);
    v1::InstanceResult { node_name, observed_at: Some(observed_at.into()), outcome: Some(outcome) }
}

fn known(outcome: LookupOutcome) -> Outcome {
    match outcome {
        LookupOutcome::Found(instance) => Outcome::Instance(instance),
        LookupOutcome::NotFound => Outcome::NotFound(v1::InstanceNotFound {}),
        LookupOutcome::NotMine(message) => Outcome::NotMine(v1::InstanceNotMine { message }),
        LookupOutcome::Ambiguous(provider_ids) => Outcome::Ambiguous(v1::InstanceAmbiguous { provider_ids }),
    }
}

type Changes = BoxStream<'static, Result<v1::WatchInstancesResponse, Status>>;

#[tonic::async_trait]
impl v1::instances_server::Instances for Service {
    async fn batch_get_instances(
        &self,
        request: Request<v1::BatchGetInstancesRequest>,
    ) -> Result<Response<v1::BatchGetInstancesResponse>, Status> {
        self.shared.answer("BatchGetInstances", Kind::Read, request, |ctx, request| self.batch(ctx, request)).await
    }

    type WatchInstancesStream = Changes;

    async fn watch_instances(&self, request: Request<v1::WatchInstancesRequest>) -> Result<Response<Changes>, Status> {
        self.shared.answer("WatchInstances", Kind::Read, request, |ctx, _| self.watch(ctx.unbounded())).await
    }

    async fn add_ssh_key_to_all_instances(
        &self,
        request: Request<v1::AddSshKeyToAllInstancesRequest>,
    ) -> Result<Response<v1::AddSshKeyToAllInstancesResponse>, Status> {
        let work = |ctx, request| async { self.add_ssh_key(ctx, request).await.map(|()| v1::AddSshKeyToAllInstancesResponse {}) };
        self.shared.answer("AddSSHKeyToAllInstances", Kind::Mutation, request, work).await
    }

    async fn get_current_node_name(
        &self,
        request: Request<v1::GetCurrentNodeNameRequest>,
    ) -> Result<Response<v1::GetCurrentNodeNameResponse>, Status> {
        self.shared.answer("GetCurrentNodeName", Kind::Read, request, |ctx, request| self.current_node_name(ctx, request)).await
    }
}
