//! Which work begins now: the table is listed first, routes are made and removed by turns, conditions are written beside that.
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;

use super::act::Job;
use super::decide::deletion::{Stale, candidates};
use super::decide::{Observed, decide};
use super::{Controller, LOOKS};

/// How soon a write guard that was closed is asked again.
const GUARD: Duration = Duration::from_secs(1);

/// What the pause after a failed removal is bound to.
pub(super) const REMOVAL: u64 = 0;

/// Work that runs, and since when.
pub(super) struct Running {
    pub job: Job,
    pub began: Instant,
}

impl fmt::Display for Running {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.job.fmt(to)
    }
}

impl Controller {
    /// Decides about nodes that may have changed.
    pub(super) fn look(&mut self, now: Instant) {
        for _ in 0..LOOKS {
            let Some(name) = self.dirty.pop_first() else { return };
            self.look_at(&name, now);
        }
    }

    fn look_at(&mut self, name: &str, now: Instant) {
        let Some(claimant) = self.claims.get(name) else { return };
        let (table, troubles, queue) = (&self.table, &self.troubles, &self.queue);
        let is_busy = |cidr: &_| queue.is_busy(cidr);
        let plan = decide(&Observed { claimant, claims: &self.claims, table, troubles, is_busy: &is_busy }, now);
        let node = Arc::clone(&claimant.node);
        for destination in &plan.satisfied {
            self.queue.remove(destination);
            self.troubles.forget(destination);
        }
        plan.create.into_iter().for_each(|route| self.queue.add(route, now));
        plan.taken.iter().for_each(|(destination, by)| self.status.taken(&node, destination, by));
        if plan.routes_are_made == Some(true) {
            self.status.forget(name);
        }
        self.conditions.want(&node, plan.routes_are_made, now);
    }

    /// Begins what is due, as far as there are places.
    pub(super) fn begin(&mut self, now: Instant) {
        self.guard_at = None;
        self.begin_conditions(now);
        if !self.is_served() {
            return;
        }
        if self.has_place(now) && self.lists.due_at().is_some_and(|at| at <= now) {
            self.lists.begin(now);
            self.start(Job::List, 0, now);
        }
        while self.refused_until.is_none() && self.has_place(now) && self.has_change(now) {
            let Ok(permit) = self.worker.writer.gate().check() else {
                self.guard_at = Some(now + GUARD);
                return;
            };
            let Some(job) = self.next_change(now) else { return };
            self.start(job, permit.epoch, now);
        }
    }

    fn has_change(&self, now: Instant) -> bool {
        !self.stale.waiting.is_empty() || self.queue.due_at(self.batch()).is_some_and(|at| at <= now)
    }

    /// By turns, so that neither waits for all of the other.
    fn next_change(&mut self, now: Instant) -> Option<Job> {
        self.stale.removes_next = !self.stale.removes_next;
        if self.stale.removes_next {
            self.next_deletion().or_else(|| self.next_creation(now))
        } else {
            self.next_creation(now).or_else(|| self.next_deletion())
        }
    }

    fn next_creation(&mut self, now: Instant) -> Option<Job> {
        self.queue.next(self.batch(), now).map(Job::Create)
    }

    /// What a node has got since the routes were judged stays.
    fn next_deletion(&mut self) -> Option<Job> {
        let existing = if self.stale.waiting.is_empty() { return None } else { self.claims.cidrs() };
        let (mut batch, most) = (Vec::new(), self.batch());
        while let Some(route) = if batch.len() < most { self.stale.waiting.pop_front() } else { None } {
            if existing.overlaps(&route.destination) {
                self.release(&route.destination.trunc());
            } else {
                batch.push(route);
            }
        }
        (!batch.is_empty()).then_some(Job::Delete(batch))
    }

    /// The call about a destination has ended, or is not made.
    pub(super) fn release(&mut self, destination: &IpNet) {
        self.queue.release(destination);
        self.dirty.extend(self.claims.holder(destination).map(|holder| holder.node.name.clone()));
    }

    fn has_place(&self, now: Instant) -> bool {
        let takes = self.provider.as_ref().map_or(0, |info| info.limits.max_concurrent_route_calls.max(1));
        self.calls < self.limit.places(takes, now)
    }

    fn begin_conditions(&mut self, now: Instant) {
        while let Some((node, made)) = self.conditions.next() {
            self.start(Job::Condition(node, made), 0, now);
        }
    }

    /// Begins a piece of work.
    pub(super) fn start(&mut self, job: Job, epoch: u64, now: Instant) {
        self.calls += usize::from(job.is_call());
        let worker = Arc::clone(&self.worker);
        self.tasks.start(Running { job: job.clone(), began: now }, async move { worker.work(job, epoch).await });
    }

    /// The stale routes of the list, but for those that wait for something.
    pub(super) fn stale_routes<'a>(&'a self, waits: &'a dyn Fn(&IpNet) -> bool) -> Stale<'a> {
        Stale {
            table: &self.table,
            claims: &self.claims,
            cluster_cidrs: &self.config.cluster_cidrs,
            since: self.stale.since,
            waits,
        }
    }

    /// A complete list has come: are there routes of nodes that are gone?
    pub(super) fn look_for_stale(&mut self, now: Instant) {
        let (queue, troubles) = (&self.queue, &self.troubles);
        let waits = |destination: &IpNet| queue.is_busy(destination) || troubles.not_before(destination, REMOVAL, now).is_some();
        let found = candidates(&self.stale_routes(&waits));
        if self.stale.examines || self.refused_until.is_some() {
            return;
        }
        if found.routes.is_empty() {
            if !found.has_waiting {
                self.judged(None, now, None);
            }
            return;
        }
        self.stale.examines = true;
        self.queue.occupy(found.routes.iter().map(|route| route.destination.trunc()));
        self.start(Job::Examine(found.routes), 0, now);
    }
}
