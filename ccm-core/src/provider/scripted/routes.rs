//! A routing table behind the port `Routes`, without a socket: it does what the contract demands, unless a test scripts otherwise.
//! For tests of the route controller.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use ipnet::IpNet;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::model::route::{Route, RouteOutcome, RouteTable, RouteTarget, WantedRoute};
use crate::provider::{Outcome, ProviderError, Routes};

type Listed = Result<RouteTable, ProviderError>;
type Answer = Result<RouteOutcome, ProviderError>;

/// A call that the table received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A list.
    List,
    /// A creation, with its epoch.
    Create(u64, Vec<WantedRoute>),
    /// A deletion, with its epoch.
    Delete(u64, Vec<Route>),
}

/// What a call does about one destination, once.
#[derive(Clone, Debug)]
pub enum Reply {
    /// It answers this and changes nothing.
    Instead(Answer),
    /// It does its work and answers this.
    AfterDoing(Answer),
}

/// A routing table. Clones share it.
#[derive(Clone)]
pub struct ScriptedRoutes {
    state: Arc<Mutex<State>>,
    calls: Arc<watch::Sender<Vec<Call>>>,
    paused: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct State {
    routes: Vec<Route>,
    observed_at: Option<Timestamp>,
    lists: VecDeque<Listed>,
    lists_always: Option<Listed>,
    replies: HashMap<IpNet, VecDeque<Reply>>,
}

impl Default for ScriptedRoutes {
    fn default() -> Self {
        Self { state: Arc::default(), calls: Arc::default(), paused: Arc::new(watch::Sender::new(false)) }
    }
}

/// An error of an item or a call.
pub fn error(outcome: Outcome, reason: &str) -> ProviderError {
    ProviderError { outcome, reason: reason.to_owned(), message: "scripted".to_owned() }
}

/// A route of this cluster to a node's machine, `fake://NODE`.
pub fn ours(node: &str, destination: &str) -> Route {
    let target =
        RouteTarget { node_name: Some(node.to_owned()), provider_id: Some(format!("fake://{node}")), ..RouteTarget::default() };
    let destination: IpNet = destination.parse().unwrap();
    Route { name: format!("{node}-{destination}"), target, destination, is_blackhole: false, is_ours: true }
}

/// A route of others to something that no provider can resolve.
pub fn foreign(destination: &str) -> Route {
    let target = RouteTarget { description: "vpn-1".to_owned(), ..RouteTarget::default() };
    let destination: IpNet = destination.parse().unwrap();
    Route { name: format!("foreign-{destination}"), target, destination, is_blackhole: false, is_ours: false }
}

impl ScriptedRoutes {
    /// A table with these routes.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Self {
        let table = Self::default();
        table.state.lock().routes.extend(routes);
        table
    }

    /// The routes now.
    pub fn routes(&self) -> Vec<Route> {
        self.state.lock().routes.clone()
    }

    /// Changes the routes as someone else would.
    pub fn change(&self, change: impl FnOnce(&mut Vec<Route>)) {
        change(&mut self.state.lock().routes);
    }

    /// From now on lists say that the table was read at this time.
    pub fn observed_at(&self, time: Option<Timestamp>) {
        self.state.lock().observed_at = time;
    }

    /// The next list that has no answer yet is answered by this.
    pub fn list_once(&self, answer: Listed) {
        self.state.lock().lists.push_back(answer);
    }

    /// Every further list is answered by this; with `None` by the table again.
    pub fn list_always(&self, answer: Option<Listed>) {
        self.state.lock().lists_always = answer;
    }

    /// What the next call about this destination does that is not scripted yet.
    pub fn reply(&self, destination: &str, reply: Reply) {
        self.state.lock().replies.entry(destination.parse().unwrap()).or_default().push_back(reply);
    }

    /// Calls are recorded and wait until this is called with `false`.
    pub fn pause(&self, paused: bool) {
        self.paused.send_replace(paused);
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.borrow().clone()
    }

    /// How many lists there were.
    pub fn lists(&self) -> usize {
        self.calls.borrow().iter().filter(|call| **call == Call::List).count()
    }

    /// Returns when this holds of the calls so far.
    pub async fn until(&self, mut holds: impl FnMut(&[Call]) -> bool) {
        // The sender lives in `self`: waiting cannot fail.
        drop(self.calls.subscribe().wait_for(|calls| holds(calls)).await);
    }

    async fn called(&self, call: Call) {
        self.calls.send_modify(|calls| calls.push(call));
        drop(self.paused.subscribe().wait_for(|paused| !paused).await);
    }
}

impl State {
    fn list(&mut self) -> Listed {
        let scripted = self.lists.pop_front().or_else(|| self.lists_always.clone());
        scripted.unwrap_or_else(|| Ok(RouteTable { routes: self.routes.clone(), observed_at: self.observed_at }))
    }

    fn answer(&mut self, destination: IpNet, work: impl FnOnce(&mut Self) -> Answer) -> Answer {
        match self.replies.get_mut(&destination).and_then(VecDeque::pop_front) {
            Some(Reply::Instead(answer)) => answer,
            Some(Reply::AfterDoing(answer)) => work(self).and(answer),
            None => work(self),
        }
    }

    fn create(&mut self, wanted: &WantedRoute) -> Answer {
        let target = RouteTarget {
            node_name: Some(wanted.node_name.clone()),
            provider_id: wanted.provider_id.clone(),
            ..RouteTarget::default()
        };
        let theirs = self.routes.iter().find(|route| route.destination == wanted.destination && !route.is_ours);
        match theirs {
            Some(theirs) if theirs.target == target => return Ok(RouteOutcome::Done),
            Some(_) => return Err(error(Outcome::Terminal, "NOT_OWNED")),
            None => self.routes.retain(|route| route.destination != wanted.destination),
        }
        let name = format!("{}-{}", wanted.node_name, wanted.destination);
        self.routes.push(Route { name, target, destination: wanted.destination, is_blackhole: false, is_ours: true });
        Ok(RouteOutcome::Done)
    }

    fn delete(&mut self, listed: &Route) -> Answer {
        let same = |route: &&Route| route.destination == listed.destination && route.name == listed.name;
        match self.routes.iter().find(same) {
            None => Ok(RouteOutcome::Done),
            Some(route) if !route.is_ours => Err(error(Outcome::Terminal, "NOT_OWNED")),
            Some(route) if route.target != listed.target => Err(error(Outcome::Retry { after: None }, "CONFLICT")),
            Some(_) => {
                self.routes.retain(|route| !same(&route));
                Ok(RouteOutcome::Done)
            }
        }
    }
}

#[async_trait]
impl Routes for ScriptedRoutes {
    async fn list(&self) -> Listed {
        self.called(Call::List).await;
        self.state.lock().list()
    }

    async fn create(&self, epoch: u64, routes: &[WantedRoute]) -> Vec<Answer> {
        self.called(Call::Create(epoch, routes.to_vec())).await;
        let mut state = self.state.lock();
        routes.iter().map(|wanted| state.answer(wanted.destination, |state| state.create(wanted))).collect()
    }

    async fn delete(&self, epoch: u64, routes: &[Route]) -> Vec<Answer> {
        self.called(Call::Delete(epoch, routes.to_vec())).await;
        let mut state = self.state.lock();
        routes.iter().map(|listed| state.answer(listed.destination, |state| state.delete(listed))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CIDR: &str = "10.0.1.0/24";

    fn wanted(node: &str) -> WantedRoute {
        WantedRoute {
            destination: CIDR.parse().unwrap(),
            node_name: node.to_owned(),
            node_uid: format!("uid-{node}"),
            provider_id: Some(format!("fake://{node}")),
            addresses: Vec::new(),
        }
    }

    #[tokio::test]
    async fn it_replaces_and_removes_its_own_routes_and_no_others() {
        let table = ScriptedRoutes::new([ours("a", CIDR), foreign("10.0.2.0/24")]);
        assert_eq!(table.create(1, &[wanted("b")]).await, [Ok(RouteOutcome::Done)]);
        assert_eq!(table.routes(), [foreign("10.0.2.0/24"), ours("b", CIDR)]);
        let reasons = |answers: Vec<Answer>| answers.into_iter().map(|it| it.unwrap_err().reason).collect::<Vec<_>>();
        let moved = Route { name: ours("b", CIDR).name, ..ours("c", CIDR) };
        assert_eq!(reasons(table.delete(1, &[foreign("10.0.2.0/24"), moved]).await), ["NOT_OWNED", "CONFLICT"]);
        assert_eq!(table.delete(1, &[ours("b", CIDR), ours("b", CIDR)]).await, [Ok(RouteOutcome::Done), Ok(RouteOutcome::Done)]);
        table.change(|routes| routes.push(foreign(CIDR)));
        assert_eq!(reasons(table.create(1, &[wanted("b")]).await), ["NOT_OWNED"]);
    }

    #[tokio::test]
    async fn it_does_what_is_scripted_instead() {
        let table = ScriptedRoutes::default();
        let lost = error(Outcome::Unknown, "CONNECTION_LOST");
        table.reply(CIDR, Reply::Instead(Ok(RouteOutcome::TargetNotFound)));
        table.reply(CIDR, Reply::AfterDoing(Err(lost.clone())));
        assert_eq!(table.create(1, &[wanted("a")]).await, [Ok(RouteOutcome::TargetNotFound)]);
        assert!(table.routes().is_empty());
        assert_eq!(table.create(1, &[wanted("a")]).await, [Err(lost.clone())]);
        table.observed_at(Some(Timestamp::UNIX_EPOCH));
        let now = RouteTable { routes: vec![ours("a", CIDR)], observed_at: Some(Timestamp::UNIX_EPOCH) };
        table.list_once(Err(lost.clone()));
        assert_eq!([table.list().await, table.list().await], [Err(lost.clone()), Ok(now.clone())]);
        table.list_always(Some(Err(lost.clone())));
        assert_eq!([table.list().await, table.list().await], [Err(lost.clone()), Err(lost)]);
        table.list_always(None);
        assert_eq!(table.list().await, Ok(now));
    }

    #[tokio::test]
    async fn calls_are_recorded_while_they_wait() {
        let table = ScriptedRoutes::default();
        table.pause(true);
        let call = tokio::spawn({
            let table = table.clone();
            async move { table.create(7, &[wanted("a")]).await }
        });
        table.until(|calls| !calls.is_empty()).await;
        assert_eq!((table.calls(), table.lists()), (vec![Call::Create(7, vec![wanted("a")])], 0));
        assert!(table.routes().is_empty());
        table.pause(false);
        assert_eq!(call.await.unwrap(), [Ok(RouteOutcome::Done)]);
    }
}
