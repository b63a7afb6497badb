//! What follows from the end of each piece of work.
use std::sync::Arc;
use std::time::Instant;

use ipnet::IpNet;
use jiff::Timestamp;

use super::Controller;
use super::act::{Ended, Evidence, ExamineError, Job};
use super::begin::{REMOVAL, Running};
use super::decide::deletion::{Block, Case, judge};
use super::decide::fingerprint;
use super::observe::Listed;
use super::trouble::Failure;
use crate::cluster::events::Subject;
use crate::model::route::{Route, RouteOutcome, WantedRoute};
use crate::provider::{Outcome, ProviderError};
use crate::telemetry::metrics::routes::Trigger;

type Answer = Result<RouteOutcome, ProviderError>;

impl Controller {
    /// A piece of work ended, by `None` in a panic.
    pub(super) fn ended(&mut self, Running { job, began }: Running, ended: Option<Ended>, now: Instant) {
        self.calls -= usize::from(job.is_call());
        match (job, ended) {
            (Job::List, ended) => {
                let listed = if let Some(Ended::Listed(listed)) = ended { listed } else { Err(unfinished()) };
                self.listed(listed, began, now);
            }
            (Job::Create(routes), ended) => {
                let results = results(ended, routes.len());
                self.answered(&results, began, now);
                routes.into_iter().zip(&results).for_each(|(route, result)| self.created(route, result, now));
            }
            (Job::Delete(routes), ended) => {
                let results = results(ended, routes.len());
                self.answered(&results, began, now);
                routes.iter().zip(&results).for_each(|(route, result)| self.deleted(route, result, now));
            }
            (Job::Examine(routes), Some(Ended::Examined(examined))) => self.examined(routes, examined, now),
            (Job::Examine(routes), _) => self.examined(routes, Err(unfinished().into()), now),
            (Job::Condition(node, made), Some(Ended::Written(written))) => {
                self.conditions.ended(&node.name, made, Some(&written), now);
                self.dirty.insert(node.name.clone());
            }
            (Job::Condition(node, made), _) => self.conditions.ended(&node.name, made, None, now),
            (Job::Confirm, _) => {}
        }
    }

    fn listed(&mut self, listed: Result<Listed, ProviderError>, began: Instant, now: Instant) {
        self.status.began(Trigger::Periodic);
        self.status.listed(listed.as_ref().err());
        match listed {
            Err(error) => {
                let failure = Failure::from(&error);
                self.failed(failure, now);
                self.lists.ended(Some(failure.pause()), now);
            }
            Ok(Listed { table, began: read }) => {
                self.succeeded(began, now);
                self.listed_by = self.provider.as_ref().map(|info| info.cloud_identity.clone()).unwrap_or_default();
                self.table.list(table, read);
                self.lists.ended(None, now);
                self.dirty.extend(self.claims.all().map(|claimant| claimant.node.name.clone()));
                self.look_for_stale(now);
            }
        }
    }

    /// What the results of a call say about all calls.
    fn answered(&mut self, results: &[Answer], began: Instant, now: Instant) {
        let failures: Vec<_> = results.iter().filter_map(Failure::of).collect();
        for failure in &failures {
            self.failed(*failure, now);
        }
        if failures.len() < results.len() {
            self.status.serves(true);
            self.succeeded(began, now);
        } else if !failures.iter().any(|failure| matches!(failure, Failure::RateLimited(_) | Failure::Absent)) {
            self.limit.answered(began);
        }
    }

    fn succeeded(&mut self, began: Instant, now: Instant) {
        self.limit.answered(began);
        if self.outage.succeeded(now) {
            let waiting = self.troubles.retry_now();
            tracing::info!(routes = waiting.len(), "cloud API recovered; retrying routes in back-off");
            self.retry(&waiting, now);
        }
    }

    fn failed(&mut self, failure: Failure, now: Instant) {
        match failure {
            Failure::RateLimited(after) => self.limit.limited(after, now),
            Failure::Unsupported => self.refused(now),
            Failure::Retry(_) | Failure::Unknown => self.outage.failed(),
            _ => {}
        }
        if failure.needs_list() {
            self.lists.need(now);
        }
    }

    /// The provider does not serve a call that it says it serves. It may be another by now.
    fn refused(&mut self, now: Instant) {
        self.refused_until = Some(now + self.config.reconciliation_period);
        self.status.serves(false);
        if !std::mem::replace(&mut self.asked, true) {
            self.start(Job::Confirm, 0, now);
        }
    }

    fn created(&mut self, route: WantedRoute, result: &Answer, now: Instant) {
        let (destination, with) = (route.destination, fingerprint(&route));
        self.release(&destination);
        let Some(failure) = Failure::of(result) else {
            self.status.made(&route.node_name, &destination);
            self.troubles.forget(&destination);
            self.table.made(route, Timestamp::now());
            if self.claims.holder(&destination).is_none() {
                self.stale.freed(now);
            }
            return;
        };
        if failure.needs_list() {
            self.table.unsettle(&destination);
        }
        self.troubles.failed(destination, failure, with, now);
        let node = self.claims.get(&route.node_name).map(|claimant| Arc::clone(&claimant.node));
        let (Some(node), Some((reason, message))) = (node, words(failure, result)) else { return };
        self.status.failed(&node, &destination, &reason, &message);
    }

    fn deleted(&mut self, route: &Route, result: &Answer, now: Instant) {
        let destination = route.destination.trunc();
        self.release(&destination);
        let Some(failure) = Failure::of(result) else {
            self.status.removed(&destination, &route.name);
            self.troubles.forget(&destination);
            self.table.removed(destination, Timestamp::now());
            return;
        };
        self.troubles.failed(destination, failure, REMOVAL, now);
        if let Err(error) = result {
            self.status.failed_call("the deletion of a route", &destination, &error.to_string());
        }
    }

    /// What decides about stale routes was collected, past every cache.
    fn examined(&mut self, routes: Vec<Route>, examined: Result<Evidence, ExamineError>, now: Instant) {
        self.stale.examines = false;
        let same = |evidence: Evidence| {
            let found = evidence.provider.cloud_identity.clone();
            if found == self.listed_by {
                Ok(evidence)
            } else {
                Err(ExamineError::Identity { listed: self.listed_by.clone(), found })
            }
        };
        match examined.and_then(same) {
            Ok(evidence) => self.judge(routes, evidence, now),
            Err(error) => {
                self.status.not_examined(&error);
                for route in &routes {
                    let destination = route.destination.trunc();
                    self.troubles.failed(destination, Failure::Retry(None), REMOVAL, now);
                    self.release(&destination);
                }
            }
        }
    }

    fn judge(&mut self, routes: Vec<Route>, evidence: Evidence, now: Instant) {
        let destinations: Vec<_> = routes.iter().map(|route| route.destination.trunc()).collect();
        let ours = self.stale_routes(&|_| false).ours();
        let (window, used_up_until) = (self.config.deletion_window, Some(self.stale.used_up_until));
        let (used, budget) = (self.stale.used_within(window, now), self.budget());
        let gone: Vec<_> = destinations.iter().filter(|it| self.claims.gone_since(it).is_some()).copied().collect();
        let saw_go = |destination: &IpNet| gone.contains(destination);
        let seen = self.claims.seen_within_window(now);
        let case =
            Case { candidates: routes, live: &evidence.live, seen: &seen, saw_go: &saw_go, ours, budget, used, used_up_until };
        let judgement = judge(case, now);
        self.stale.used.extend(std::iter::repeat_n(now, judgement.on_budget));
        let delete: Vec<_> = judgement.delete.iter().map(|route| route.destination.trunc()).collect();
        self.stale.waiting.extend(judgement.delete);
        destinations.iter().filter(|destination| !delete.contains(destination)).for_each(|kept| self.release(kept));
        self.judged(judgement.block.as_ref(), now, evidence.subject);
    }

    pub(super) fn judged(&mut self, block: Option<&Block>, now: Instant, subject: Option<Subject>) {
        self.status.judged(block, self.config.deletion_window, now, subject);
        let table = &self.table;
        self.claims.forget_settled(|destination| table.has_ours(destination));
    }
}

/// A panic leaves it unknown what was done.
fn unfinished() -> ProviderError {
    let (reason, message) = ("UNKNOWN".to_owned(), "the call ended without a result".to_owned());
    ProviderError { outcome: Outcome::Unknown, reason, message }
}

fn results(ended: Option<Ended>, count: usize) -> Vec<Answer> {
    let mut results = if let Some(Ended::Results(results)) = ended { results } else { Vec::new() };
    results.resize_with(count, || Err(unfinished()));
    results
}

/// Why a route was not made, for an event; `None` where the route itself is not to blame.
fn words(failure: Failure, result: &Answer) -> Option<(String, String)> {
    match (failure, result) {
        (Failure::RateLimited(_) | Failure::Absent | Failure::Unsupported, _) => None,
        (_, Err(error)) => Some((error.reason.clone(), error.message.clone())),
        (Failure::TargetNotFound, _) => {
            Some(("TARGET_NOT_FOUND".to_owned(), "the cloud does not know the node's machine".to_owned()))
        }
        _ => None,
    }
}
