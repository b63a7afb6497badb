//! The service Identity: the handshake, and the stream that says who leads.
use std::sync::Arc;
use std::time::Duration;

use ccm_proto::{PROTOCOL_VERSION, v1};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::call::Kind;
use super::{Shared, required_cluster};
use crate::description;
use crate::error::ProviderError;
use crate::provider::Result;

/// How long a stream may be open without having said who leads.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// Acknowledgements that wait for a slow reader; more are dropped, since only the latest tells anything.
const ACKNOWLEDGEMENTS: usize = 16;

/// Identity, for any provider.
pub(super) struct Service {
    shared: Arc<Shared>,
}

impl Service {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    fn info(&self, request: v1::GetProviderInfoRequest) -> Result<v1::GetProviderInfoResponse> {
        choose_version(&request.protocol_versions)?;
        let cluster = required_cluster(request.cluster)?;
        let (description, parts) = (self.shared.provider.describe(), self.shared.parts());
        let checked = description::validate(&description, parts.serves(v1::Capability::Instances));
        checked.map_err(|error| ProviderError::internal(error.to_string()))?;
        tracing::info!(cluster = cluster.name, cluster_uid = cluster.uid, core = request.core_version, "a core shook hands");
        *self.shared.cluster.write() = cluster;
        let info = v1::ProviderInfo {
            name: description.name,
            version: description.version,
            protocol_version: PROTOCOL_VERSION.to_owned(),
            capabilities: parts.capabilities().into_iter().map(Into::into).collect(),
            provider_id_prefixes: description.provider_id_prefixes,
            cloud_identity: description.cloud_identity,
            cluster_id: description.cluster_id,
            limits: Some(description.limits),
            node_labels: description.node_labels,
            node_annotations: description.node_annotations,
            node_conditions: description.node_conditions,
            node_taints: description.node_taints,
            service_annotation_prefixes: description.service_annotation_prefixes,
        };
        Ok(v1::GetProviderInfoResponse { info: Some(info) })
    }
}

fn choose_version(offered: &[String]) -> Result<()> {
    if offered.iter().any(|version| version == PROTOCOL_VERSION) {
        return Ok(());
    }
    let message =
        format!("this provider speaks protocol version {PROTOCOL_VERSION}, the core offers {offered:?}: upgrade the older one");
    Err(ProviderError::new(Code::FailedPrecondition, v1::ErrorReason::ProtocolVersionUnsupported, message))
}

#[tonic::async_trait]
impl v1::identity_server::Identity for Service {
    async fn get_provider_info(
        &self,
        request: Request<v1::GetProviderInfoRequest>,
    ) -> Result<Response<v1::GetProviderInfoResponse>, Status> {
        if let Some(hold) = &self.shared.handshake {
            hold().await;
        }
        self.shared.answer("GetProviderInfo", Kind::Read, request, |_, request| async move { self.info(request) }).await
    }

    type LeadStream = ReceiverStream<Result<v1::LeadResponse, Status>>;

    async fn lead(&self, request: Request<Streaming<v1::LeadRequest>>) -> Result<Response<Self::LeadStream>, Status> {
        let (answers, stream) = mpsc::channel(ACKNOWLEDGEMENTS);
        let session = Session { shared: Arc::clone(&self.shared), words: request.into_inner(), answers };
        tokio::spawn(session.run());
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// One Lead stream.
struct Session {
    shared: Arc<Shared>,
    words: Streaming<v1::LeadRequest>,
    answers: mpsc::Sender<Result<v1::LeadResponse, Status>>,
}

impl Session {
    async fn run(mut self) {
        if let Err(error) = self.lead().await {
            tracing::warn!(error = error.chain(), "a Lead stream ended");
            // A caller that is gone needs no reason.
            let _ = self.answers.send(Err(error.into())).await;
        }
    }

    async fn lead(&mut self) -> Result<()> {
        let Some(first) = self.first().await? else { return Ok(()) };
        let term = self.shared.leadership.begin(&first).await?;
        tracing::info!(epoch = first.epoch, holder = first.holder, "the core leads");
        self.acknowledge(first.epoch);
        self.shared.provider.lead(term.context());
        loop {
            tokio::select! {
                // First: the end of the server ends the leadership as well, and is the reason to be told.
                biased;
                () = self.shared.ended.cancelled() => return Err(ProviderError::unavailable("the provider is shutting down")),
                word = self.words.message() => match word {
                    Ok(Some(word)) => term.renew(&word)?,
                    Ok(None) | Err(_) => break,
                },
                reason = term.over() => return Err(reason),
                () = self.answers.closed() => break,
            }
            self.acknowledge(first.epoch);
        }
        tracing::info!(epoch = first.epoch, holder = first.holder, "the core leads no longer: it closed the stream");
        Ok(())
    }

    async fn first(&mut self) -> Result<Option<v1::LeadRequest>> {
        let first = timeout(FIRST_WORD, self.words.message()).await;
        let first = first.map_err(|_| ProviderError::deadline_exceeded("the Lead stream brought no message"))?;
        Ok(first.unwrap_or_default())
    }

    fn acknowledge(&self, epoch: u64) {
        // Never waited for: a slow reader must not keep an expired word alive.
        let _ = self.answers.try_send(Ok(v1::LeadResponse { epoch }));
    }
}
