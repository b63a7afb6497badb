//! The routes that wait to be made, and the destinations about which a call runs: never two about one. Changes of nodes come in
//! bursts, so that a batch waits for a moment until it is full. Pure: times are arguments.
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use ipnet::IpNet;

use crate::model::route::WantedRoute;

/// A batch that is not full leaves so long after the last route was added,
const QUIET: Duration = Duration::from_millis(100);
/// and so long after the first.
const LONGEST: Duration = Duration::from_millis(500);

/// The queue.
#[derive(Debug, Default)]
pub struct Queue {
    wanted: HashMap<IpNet, WantedRoute>,
    /// Their destinations, in the order in which they were added.
    order: VecDeque<IpNet>,
    busy: HashSet<IpNet>,
    /// When the first and the last of those that wait were added.
    times: Option<(Instant, Instant)>,
}

impl Queue {
    /// A route is to be made.
    pub fn add(&mut self, route: WantedRoute, now: Instant) {
        let destination = route.destination;
        match self.wanted.insert(destination, route) {
            Some(_) => return,
            None => self.order.push_back(destination),
        }
        self.times = Some((self.times.map_or(now, |(first, _)| first), now));
    }

    /// A route is not wanted any more, or is there.
    pub fn remove(&mut self, destination: &IpNet) {
        if self.wanted.remove(destination).is_some() {
            self.order.retain(|waiting| waiting != destination);
        }
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// When the next batch of up to `most` routes leaves.
    pub fn due_at(&self, most: usize) -> Option<Instant> {
        let (first, last) = self.times.filter(|_| !self.is_empty())?;
        Some(if self.wanted.len() >= most { first } else { (last + QUIET).min(first + LONGEST) })
    }

    /// The next batch, if one is due. Its destinations are busy from now on.
    pub fn next(&mut self, most: usize, now: Instant) -> Option<Vec<WantedRoute>> {
        self.due_at(most).filter(|at| *at <= now)?;
        let count = self.order.len().min(most);
        let batch: Vec<_> = self.order.drain(..count).filter_map(|destination| self.wanted.remove(&destination)).collect();
        self.times = if self.is_empty() { None } else { self.times.map(|(_, last)| (last, last)) };
        self.occupy(batch.iter().map(|route| route.destination));
        Some(batch)
    }

    /// Calls about these destinations begin.
    pub fn occupy(&mut self, destinations: impl Iterator<Item = IpNet>) {
        self.busy.extend(destinations);
    }

    /// The call about a destination has ended.
    pub fn release(&mut self, destination: &IpNet) {
        self.busy.remove(destination);
    }

    /// Whether a call about a destination runs.
    pub fn is_busy(&self, destination: &IpNet) -> bool {
        self.busy.contains(destination)
    }

    /// Whether no call runs.
    pub fn is_idle(&self) -> bool {
        self.busy.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn route(number: u8) -> WantedRoute {
        let destination = IpNet::from(IpAddr::from([10, 0, number, 0]));
        let (node_name, node_uid) = (format!("n{number}"), String::new());
        WantedRoute { destination, node_name, node_uid, provider_id: None, addresses: Vec::new() }
    }

    fn size(batch: Option<Vec<WantedRoute>>) -> Option<usize> {
        batch.map(|batch| batch.len())
    }

    #[test]
    fn a_full_batch_leaves_at_once_and_others_when_it_is_quiet_or_after_a_while() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        assert_eq!((queue.due_at(2), size(queue.next(2, now))), (None, None));
        (0..3).for_each(|number| queue.add(route(number), now));
        assert_eq!((size(queue.next(2, now)), size(queue.next(2, now))), (Some(2), None));
        assert_eq!((queue.due_at(2), size(queue.next(2, now + QUIET))), (Some(now + QUIET), Some(1)));
        (0..9).for_each(|number| queue.add(route(number), now + QUIET / 2 * u32::from(number)));
        assert_eq!(queue.due_at(100), Some(now + QUIET / 2 * 8 + QUIET));
        (0..9).for_each(|number| queue.add(route(20 + number), now + QUIET * u32::from(number)));
        assert_eq!(queue.due_at(100), Some(now + LONGEST), "not put off for ever");
    }

    #[test]
    fn a_destination_is_busy_from_the_batch_until_its_call_ends_and_waits_only_once() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.add(route(1), now);
        queue.add(WantedRoute { node_name: "other".into(), ..route(1) }, now);
        queue.add(route(2), now);
        queue.remove(&route(2).destination);
        let batch = queue.next(1, now).unwrap_or_default();
        assert_eq!(batch.iter().map(|route| route.node_name.as_str()).collect::<Vec<_>>(), ["other"]);
        assert!(queue.is_busy(&route(1).destination) && queue.is_empty());
        queue.release(&route(1).destination);
        assert!(queue.is_idle());
    }
}
