//! A provider that ends a connection by GOAWAY and lives on, as servers do that bound the age of connections: one process is behind
//! the old connection and the new one, and takes one stream of an epoch.
use std::path::Path;

use ccm_provider_sdk::fake::{RawLoadBalancers, RawServer, Script};
use futures::stream::BoxStream;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::{Request, Response, Streaming};
use v1::load_balancers_server::LoadBalancersServer;

use super::*;
use crate::model::load_balancer::Progress;
use crate::provider::load_balancers::tests::{service, targets};
use crate::provider::{LoadBalancers as _, ProviderState};

/// A provider that refuses a second Lead of the epoch while the first is open, and cancels mutations when a leadership ends.
#[derive(Clone)]
struct Strict {
    /// The streams that were opened, counted, and which of them leads.
    opened: watch::Sender<u64>,
    leads: Arc<watch::Sender<Option<u64>>>,
    refused: watch::Sender<u64>,
    balancers: RawLoadBalancers,
    handshake: Script<(), v1::GetProviderInfoResponse>,
}

impl Strict {
    /// The first EnsureLoadBalancer is answered when the semaphore has a permit, unless its leadership ends before.
    fn new(answer: Arc<Semaphore>) -> Self {
        let info = v1::ProviderInfo {
            capabilities: [v1::Capability::Lead, v1::Capability::LoadBalancers].map(Into::into).to_vec(),
            ..RawServer::sound_info()
        };
        let it = Self {
            opened: watch::Sender::new(0),
            leads: Arc::default(),
            refused: watch::Sender::new(0),
            balancers: RawLoadBalancers::default(),
            handshake: Script::new(move |()| v1::GetProviderInfoResponse { info: Some(info.clone()) }),
        };
        let (mut leads, ready) = (it.leads.subscribe(), RawLoadBalancers::default().ensure);
        it.balancers.ensure.then_await(move |request| async move {
            let began_under = *leads.borrow_and_update();
            let lost = async { drop(leads.wait_for(|leads| *leads != began_under).await) };
            tokio::select! {
                _ = answer.acquire() => {}
                () = lost => return Err(refusal()),
            }
            ready.call(request).await
        });
        it
    }

    /// Serves new connections, until `goaway` is cancelled; then the open ones take no more calls.
    fn serve(&self, path: &Path, goaway: CancellationToken) {
        drop(std::fs::remove_file(path));
        let incoming = UnixListenerStream::new(UnixListener::bind(path).unwrap());
        let server = Server::builder()
            .add_service(v1::identity_server::IdentityServer::new(self.clone()))
            .add_service(LoadBalancersServer::new(self.balancers.clone()));
        tokio::spawn(server.serve_with_incoming_shutdown(incoming, goaway.cancelled_owned()));
    }
}

/// Ends the leadership of a stream that is dropped.
struct Leads(Arc<watch::Sender<Option<u64>>>);

impl Drop for Leads {
    fn drop(&mut self) {
        self.0.send_replace(None);
    }
}

fn refusal() -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info("NOT_LEADING", "ccm.provider.v1", HashMap::new());
    Status::with_error_details(Code::FailedPrecondition, "another stream leads", details)
}

#[tonic::async_trait]
impl v1::identity_server::Identity for Strict {
    async fn get_provider_info(
        &self,
        _: Request<v1::GetProviderInfoRequest>,
    ) -> Result<Response<v1::GetProviderInfoResponse>, Status> {
        Ok(Response::new(self.handshake.call(()).await))
    }

    type LeadStream = BoxStream<'static, Result<v1::LeadResponse, Status>>;

    async fn lead(&self, request: Request<Streaming<v1::LeadRequest>>) -> Result<Response<Self::LeadStream>, Status> {
        if self.leads.borrow().is_some() {
            self.refused.send_modify(|count| *count += 1);
            return Err(refusal());
        }
        self.opened.send_modify(|count| *count += 1);
        self.leads.send_replace(Some(*self.opened.borrow()));
        let leads = Leads(Arc::clone(&self.leads));
        let answers = request.into_inner().map(move |word| {
            let _leads = &leads;
            word.map(|word| v1::LeadResponse { epoch: word.epoch })
        });
        Ok(Response::new(answers.boxed()))
    }
}

async fn until<T>(what: &str, mut values: watch::Receiver<T>, holds: impl FnMut(&T) -> bool) {
    timeout(PATIENCE, values.wait_for(holds)).await.unwrap_or_else(|_| panic!("never {what}")).map(drop).unwrap();
}

#[tokio::test]
async fn a_provider_that_drains_one_connection_and_lives_on_is_led_there_until_its_calls_have_ended() {
    let (dir, answer, goaway) = (tempfile::tempdir().unwrap(), Arc::new(Semaphore::new(0)), CancellationToken::new());
    let (path, provider) = (dir.path().join("p.sock"), Strict::new(Arc::clone(&answer)));
    provider.serve(&path, goaway.clone());
    let term = watch::Sender::new(None);
    let (handle, work) = Session::start(scripted::session_in(dir.path()), Arc::new(Anyone), term.subscribe());
    let work = tokio::spawn(work);
    let cloud = Arc::new(Cloud { provider: "fake".to_owned(), identity: "fake".to_owned() });
    let valid_until = Instant::now() + Duration::from_mins(1);
    term.send_replace(Some(Term { epoch: 3, cloud, holder: "me".into(), valid_until }));
    until("led", handle.lead_status(), |status| *status == LeadStatus::Accepted { epoch: 3 }).await;
    let balancers = Arc::new(handle.load_balancers());
    let ensure = |name: &'static str| {
        let balancers = Arc::clone(&balancers);
        tokio::spawn(async move { balancers.ensure(3, &service(name), &targets(&["n"])).await })
    };
    let slow = ensure("slow");
    provider.balancers.ensure.wait_for_calls(1).await;

    let old = handle.current().unwrap();
    goaway.cancel();
    provider.serve(&path, CancellationToken::new());
    until("disconnected", handle.state(), |state| matches!(state, ProviderState::Disconnected { .. })).await;
    until("ready again", handle.state(), |state| state.ready().is_some()).await;
    assert!(!handle.current().unwrap().connection.is(&old.connection), "new calls go over another connection");
    assert!(matches!(ensure("quick").await.unwrap(), Ok(Progress::Done(_))), "the stream of the old connection leads");
    until("refused", provider.refused.subscribe(), |count| *count > 0).await;
    assert_eq!(*provider.leads.borrow(), Some(1));

    answer.add_permits(1);
    assert!(matches!(slow.await.unwrap(), Ok(Progress::Done(_))), "an answer that came counts");
    until("led on the new connection", provider.leads.subscribe(), |leads| *leads == Some(2)).await;
    assert_eq!(*handle.lead_status().borrow(), LeadStatus::Accepted { epoch: 3 });
    assert_eq!(provider.balancers.ensure.count(), 2, "each call was made once");
    work.abort();
}
