//! A cloud whose answers are scripted. It remembers every call, can hold calls open, and notices two at a time for one Service.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::model::load_balancer::{
    Ensured, Extras, Ingress, IngressAddress, LoadBalancerStatus, OwnedLoadBalancer, Planned, Progress,
};
use crate::model::service::Service;
use crate::model::target::TargetSet;
use crate::provider::{LoadBalancers, Outcome, ProviderError};

/// Which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Ensure,
    Update,
    Delete,
    Plan,
}

/// A call that came.
#[derive(Clone, Debug)]
pub struct Call {
    pub verb: Verb,
    /// The Service as it was sent.
    pub service: Service,
    /// The names of the targets.
    pub targets: Vec<String>,
    /// The epoch; 0 for plans.
    pub epoch: u64,
    pub at: Instant,
}

impl Call {
    /// The Service's name.
    pub fn name(&self) -> &str {
        &self.service.name
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Reply {
    /// All is as asked, and this is how.
    Done(Ensured),
    /// The cloud is at work, and is to be asked again after so long.
    Busy(Duration),
    /// Somebody else makes it.
    Elsewhere,
    /// Ensure would do this.
    Changes(&'static str),
    /// No.
    Fail(ProviderError),
}

impl Reply {
    fn progress<T>(self, done: impl FnOnce(Ensured) -> T, changes: impl FnOnce(&str) -> T) -> Result<Progress<T>, ProviderError> {
        Ok(match self {
            Self::Done(ensured) => Progress::Done(done(ensured)),
            Self::Busy(poll_after) => Progress::InProgress { poll_after, message: "still at work".into() },
            Self::Elsewhere => Progress::ImplementedElsewhere("somebody".into()),
            Self::Changes(words) => Progress::Done(changes(words)),
            Self::Fail(error) => return Err(error),
        })
    }
}

/// One address of a load balancer.
pub fn address(ip: &str) -> Ingress {
    Ingress { address: IngressAddress::Ip(ip.parse().unwrap(), None), ports: vec![] }
}

/// What a load balancer is where nothing else was scripted.
pub fn ensured() -> Ensured {
    Ensured { status: LoadBalancerStatus { ingress: vec![address("203.0.113.1")] }, extras: Extras::default() }
}

/// An error.
pub fn refusal(outcome: Outcome, reason: &str) -> ProviderError {
    ProviderError { outcome, reason: reason.into(), message: format!("scripted {reason}") }
}

/// Clones don't share it; tests hold it in an `Arc`.
#[derive(Default)]
pub struct Cloud {
    calls: Mutex<Vec<Call>>,
    /// Answers to the next calls of a verb for a Service by name.
    next: Mutex<HashMap<(Verb, String), VecDeque<Reply>>>,
    /// Answers to all calls of a verb for which there is no other.
    always: Mutex<HashMap<Verb, Reply>>,
    held: Mutex<HashMap<Verb, Arc<Semaphore>>>,
    mutating: Mutex<BTreeSet<String>>,
    overlaps: Mutex<Vec<String>>,
    /// Calls that were answered; a call whose caller went away is not.
    answered: Mutex<Vec<Verb>>,
    most: Mutex<(usize, usize)>,
}

/// A mutating call that runs.
struct Mutating<'cloud>(&'cloud Cloud, String);

impl Drop for Mutating<'_> {
    fn drop(&mut self) {
        self.0.mutating.lock().remove(&self.1);
    }
}

/// A call that runs.
struct Running<'cloud>(&'cloud Cloud);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.most.lock().0 -= 1;
    }
}

impl Cloud {
    /// Scripts the answers to the next calls for a Service by name.
    pub fn reply(&self, verb: Verb, name: &str, replies: impl IntoIterator<Item = Reply>) {
        self.next.lock().entry((verb, name.to_owned())).or_default().extend(replies);
    }

    /// Scripts the answer to all calls that have no other; `None`: as asked.
    pub fn always(&self, verb: Verb, reply: Option<Reply>) {
        match reply {
            Some(reply) => drop(self.always.lock().insert(verb, reply)),
            None => drop(self.always.lock().remove(&verb)),
        }
    }

    /// From now on calls are not answered before they are let go.
    pub fn hold(&self, verb: Verb) {
        self.held.lock().insert(verb, Arc::new(Semaphore::new(0)));
    }

    /// Lets so many calls go.
    pub fn let_go(&self, verb: Verb, count: usize) {
        self.held.lock()[&verb].add_permits(count);
    }

    /// Lets all calls go, those to come included.
    pub fn release(&self, verb: Verb) {
        if let Some(held) = self.held.lock().remove(&verb) {
            held.add_permits(Semaphore::MAX_PERMITS / 2);
        }
    }

    /// All calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().clone()
    }

    /// The calls of one verb so far.
    pub fn made(&self, verb: Verb) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.verb == verb).collect()
    }

    /// How many calls of one verb there were so far.
    pub fn count(&self, verb: Verb) -> usize {
        self.calls.lock().iter().filter(|call| call.verb == verb).count()
    }

    /// How many calls that change the cloud there were so far.
    pub fn mutations(&self) -> usize {
        self.calls.lock().iter().filter(|call| call.verb != Verb::Plan).count()
    }

    /// The verbs of the calls for one Service so far.
    pub fn verbs(&self, name: &str) -> Vec<Verb> {
        self.calls().iter().filter(|call| call.name() == name).map(|call| call.verb).collect()
    }

    /// How many calls of one verb were answered.
    pub fn answered(&self, verb: Verb) -> usize {
        self.answered.lock().iter().filter(|it| **it == verb).count()
    }

    /// How many calls run now.
    pub fn running(&self) -> usize {
        self.most.lock().0
    }

    /// How many calls ran at once, at most.
    pub fn most_at_once(&self) -> usize {
        self.most.lock().1
    }

    /// No Service ever had two mutating calls at a time.
    pub fn assert_one_at_a_time(&self) {
        assert_eq!(*self.overlaps.lock(), Vec::<String>::new(), "two mutating calls at a time");
    }

    /// Forgets the calls so far.
    pub fn clear(&self) {
        self.calls.lock().clear();
        *self.most.lock() = (0, 0);
    }

    async fn call(&self, verb: Verb, epoch: u64, service: &Service, targets: &[&str]) -> Reply {
        let targets = targets.iter().map(ToString::to_string).collect();
        self.calls.lock().push(Call { verb, service: service.clone(), targets, epoch, at: Instant::now() });
        let _running = self.begin();
        let _mutating = (verb != Verb::Plan).then(|| self.mutate(service));
        let held = self.held.lock().get(&verb).cloned();
        match held {
            Some(held) => held.acquire().await.unwrap().forget(),
            // Calls take a while: whoever does not wait for one shows.
            None => tokio::task::yield_now().await,
        }
        self.answered.lock().push(verb);
        let next = self.next.lock().get_mut(&(verb, service.name.clone())).and_then(VecDeque::pop_front);
        next.or_else(|| self.always.lock().get(&verb).cloned()).unwrap_or_else(|| Reply::Done(ensured()))
    }

    fn begin(&self) -> Running<'_> {
        let mut most = self.most.lock();
        *most = (most.0 + 1, most.1.max(most.0 + 1));
        Running(self)
    }

    fn mutate(&self, service: &Service) -> Mutating<'_> {
        if !self.mutating.lock().insert(service.uid.clone()) {
            self.overlaps.lock().push(service.key());
        }
        Mutating(self, service.uid.clone())
    }
}

fn names(targets: &TargetSet) -> Vec<&str> {
    targets.targets().iter().map(|target| target.name.as_str()).collect()
}

#[async_trait]
impl LoadBalancers for Cloud {
    async fn ensure(&self, epoch: u64, service: &Service, targets: &TargetSet) -> Result<Progress<Ensured>, ProviderError> {
        self.call(Verb::Ensure, epoch, service, &names(targets)).await.progress(|it| it, |_| panic!("no plan was asked for"))
    }

    async fn update(&self, epoch: u64, service: &Service, targets: &TargetSet) -> Result<Progress<Extras>, ProviderError> {
        let reply = self.call(Verb::Update, epoch, service, &names(targets)).await;
        reply.progress(|it| it.extras, |_| panic!("no plan was asked for"))
    }

    async fn delete(&self, epoch: u64, service: &Service) -> Result<Progress<()>, ProviderError> {
        self.call(Verb::Delete, epoch, service, &[]).await.progress(|_| (), |_| panic!("no plan was asked for"))
    }

    async fn plan(&self, service: &Service, targets: &TargetSet) -> Result<Progress<Planned>, ProviderError> {
        let reply = self.call(Verb::Plan, 0, service, &names(targets)).await;
        reply.progress(Planned::AsAsked, |words| Planned::Changes(vec![words.into()]))
    }

    async fn list(&self) -> Result<Vec<OwnedLoadBalancer>, ProviderError> {
        Ok(vec![])
    }
}
