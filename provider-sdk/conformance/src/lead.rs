//! A `Lead` stream in a case's hand. It is closed when it is dropped.
use std::time::Duration;

use ccm_proto::v1::{ClusterRef, LeadRequest, LeadResponse, Leadership};
use prost_types::Duration as Seconds;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::case::{Checked, broken, check};
use crate::connection;
use crate::context::{Context, is_refusal};
use crate::exchange::describe;

/// How long an acknowledgement or the end of a stream may take.
pub const PROMPT: Duration = Duration::from_secs(5);

/// How long a message of the suite is valid, in seconds.
const VALID_FOR: i64 = 120;

/// An open stream.
#[derive(Debug)]
pub struct Lead {
    requests: mpsc::UnboundedSender<LeadRequest>,
    answers: Streaming<LeadResponse>,
    /// The first message.
    pub first: LeadRequest,
}

impl Lead {
    /// The proof of this leadership.
    #[allow(clippy::unnecessary_wraps)] // as the field of the messages
    pub fn proof(&self) -> Option<Leadership> {
        Some(Leadership { epoch: self.first.epoch })
    }

    /// The cluster that is led.
    pub fn cluster(&self) -> Option<ClusterRef> {
        self.first.cluster.clone()
    }

    /// Sends a message and takes the acknowledgement.
    pub async fn renew(&mut self, request: LeadRequest) -> Result<LeadResponse, Status> {
        // A closed stream shows at the answer.
        let _ = self.requests.send(request);
        self.answer().await
    }

    /// The next message, or the status that ended the stream.
    pub async fn answer(&mut self) -> Result<LeadResponse, Status> {
        self.answer_within(PROMPT).await
    }

    /// The same, with another patience.
    pub async fn answer_within(&mut self, patience: Duration) -> Result<LeadResponse, Status> {
        match timeout(patience, self.answers.message()).await {
            Ok(Ok(Some(answer))) => Ok(answer),
            Ok(Ok(None)) => Err(Status::ok("the stream ended without an error")),
            Ok(Err(status)) => Err(status),
            Err(_) => Err(Status::deadline_exceeded(format!("the suite waited {patience:?} for a message of Lead"))),
        }
    }

    /// The stream must end with this code and reason.
    pub async fn ends(&mut self, rule: &'static str, code: Code, reason: &str) -> Checked<Status> {
        match self.answer().await {
            Ok(answer) => Err(broken(rule, format!("Lead went on with {answer:?}; expected its end with {code:?} {reason}"))),
            Err(status) => is_refusal(rule, status, code, reason),
        }
    }
}

impl Context {
    /// A message for a new leadership of the suite's cluster, above every epoch before.
    pub fn lead_request(&self) -> LeadRequest {
        LeadRequest {
            epoch: self.suite.next_epoch(),
            valid_for: Some(Seconds { seconds: VALID_FOR, nanos: 0 }),
            holder: "provider-conformance".into(),
            cluster: Some(self.suite.cluster.clone()),
        }
    }

    /// Leads the suite's cluster; a refusal breaks LEAD-6.
    pub async fn lead(&self) -> Checked<Lead> {
        self.lead_as(self.lead_request()).await
    }

    /// Opens a stream that must be accepted and acknowledged.
    pub async fn lead_as(&self, first: LeadRequest) -> Checked<Lead> {
        let epoch = first.epoch;
        let lead = self.try_lead(&self.channel, first).await;
        let (lead, answer) = lead.map_err(|status| broken("LEAD-6", format!("Lead was refused: {}", describe(&status))))?;
        check("LEAD-2", answer.epoch == epoch, format!("Lead with epoch {epoch} was acknowledged with {}", answer.epoch))?;
        Ok(lead)
    }

    /// Opens a stream that must be refused.
    pub async fn lead_refused(&self, rule: &'static str, first: LeadRequest, code: Code, reason: &str) -> Checked<Status> {
        let said = format!("Lead was accepted; expected {code:?} {reason}: {first:?}");
        match self.try_lead(&self.channel, first).await {
            Ok(_) => Err(broken(rule, said)),
            Err(status) => is_refusal(rule, status, code, reason),
        }
    }

    /// Opens a stream, and takes the first answer.
    pub async fn try_lead(&self, channel: &Channel, first: LeadRequest) -> Result<(Lead, LeadResponse), Status> {
        let start = Instant::now();
        let opened = open(channel, first.clone()).await;
        let said = opened.as_ref().map(|(_, answer)| *answer).map_err(Clone::clone);
        self.exchanges.add("Lead", &first, &said, start.elapsed());
        opened
    }
}

/// Opens a stream, and takes the first answer.
pub async fn open(channel: &Channel, first: LeadRequest) -> Result<(Lead, LeadResponse), Status> {
    let (requests, receiver) = mpsc::unbounded_channel();
    let _ = requests.send(first.clone());
    let opening = connection::both_ways(channel, UnboundedReceiverStream::new(receiver));
    let answers = timeout(PROMPT, opening).await.unwrap_or_else(|_| Err(Status::deadline_exceeded("Lead was not answered")))?;
    let mut lead = Lead { requests, answers, first };
    let answer = lead.answer().await?;
    Ok((lead, answer))
}
